"""docs/measured.md is what scripts/measured.py writes."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/measured.md").read_text(encoding="utf-8")
NAMES = ("pinned", "pieces", "streams", "pipeline", "naive", "devices")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("measured", ROOT / "scripts/measured.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["measured"] = module  # dataclasses ask for it
    spec.loader.exec_module(module)
    return module


def section_of(name: str) -> str:
    """Return what the page says under a heading."""
    return next(part for part in PAGE.split("\n## ") if part.startswith(name + "\n"))


def table(section: str) -> dict[str, tuple[str, str, str]]:
    """Return simulated, recorded and error by case, as they are written."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", section, re.M)
    return {case: (simulated, real, off) for case, simulated, real, off in rows[1:]}


def test_every_experiment_has_its_section_and_no_other(script: ModuleType) -> None:
    assert tuple(script.EXPERIMENTS) == NAMES
    head, *sections = PAGE.split("\n## ")
    assert head == script.HEAD
    assert [section.splitlines()[0] for section in sections] == [
        experiment.name for experiment in script.EXPERIMENTS.values()
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_section_is_what_the_script_writes(script: ModuleType, name: str) -> None:
    """All of it but the simulated numbers: those are taken from the page."""
    experiment = script.EXPERIMENTS[name]
    section = section_of(experiment.name)
    rows = {case: float(simulated) for case, (simulated, _, _) in table(section).items()}
    real, source = experiment.recorded()
    assert list(rows) == list(real)
    assert script.section(experiment, rows).strip() == f"## {section}".strip()
    assert source.partition(" ")[2] in section
    for case, ratio in rows.items():
        small = abs(script.error(ratio, real[case])) <= script.LARGE
        assert small or experiment.why, f"{case}: say why"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_quick_cases_give_what_the_page_says(script: ModuleType, name: str) -> None:
    experiment = script.EXPERIMENTS[name]
    section = next(part for part in PAGE.split("\n## ") if part.startswith(experiment.name + "\n"))
    rows, found = table(section), script.simulate(experiment, quick=True)
    assert len(found) == experiment.quick
    for case, ratio in found.items():
        assert ratio == pytest.approx(float(rows[case][0]), rel=0.1), case
