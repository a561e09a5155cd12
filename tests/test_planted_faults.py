"""Faults planted in a copy of the project turn the suite red, and without them it is green.

Others stand beside what finds them: tests/test_notebook_runs.py has panels that break and stubs
that pass, tests/test_simulated_time.py streams that fail in a notebook, tests/test_notebooks.py
figures that are stale and units that are wrong. `scripts/mutants.py` plants many more.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


class Fault(NamedTuple):
    """A text in a file that is replaced by another, and the test that must see it."""

    file: str
    old: str
    new: str
    test: str


FAULTS = {
    "a panel that swallows what its function raised": Fault(
        "gpututor/explorer.py",
        "            self.error = _one_line(error)\n",
        "            return self.result\n",
        "tests/test_explorer.py::test_an_error_is_shown_in_the_panel_and_raised",
    ),
    "a thread of the simulator that dies": Fault(
        "gpututor/simulator/engine.py",
        "                when, phase, _, work = heappop(queue)\n",
        "                raise LookupError('planted')\n",
        "tests/test_asynchrony.py::test_event_time_is_the_model_and_the_same_every_time",
    ),
    "an axis without its unit": Fault(
        "gpututor/figures.py",
        " ({quantity[1]})",
        "",
        "tests/test_figures.py::test_lines_have_labels_units_title_and_source",
    ),
    "milliseconds that are said to be microseconds": Fault(
        "gpututor/timing.py",
        '("ms", 1e-3)',
        '("µs", 1e-3)',
        "tests/test_timing.py::test_durations_have_three_digits_and_a_unit",
    ),
    "a wrong unit in a lesson": Fault(
        "notebooks/02_move_tensors.ipynb",
        '\\"GB/s\\"',
        '\\"ms\\"',
        "tests/test_notebooks.py::test_every_axis_has_a_unit_of_its_quantity",
    ),
    "a stored output that is stale": Fault(
        "notebooks/00_start_here.ipynb",
        "index=0), 1000.0)",
        "index=0), 1001.0)",
        "notebooks/00_start_here.ipynb",
    ),
    "a check that lets everything pass": Fault(
        "gpututor/exercises/lesson_06.py",
        "    net = _network(1024)\n",
        "    return 'right'\n",
        "tests/test_exercises.py::test_no_answer_is_no_pass[06-fit]",
    ),
    "a check that lets a wrong answer pass": Fault(
        "gpututor/exercises/lesson_07.py",
        "    if copies.to_host > ALLOWED:\n",
        "    if False:\n",
        "tests/test_answers_07.py::test_a_wrong_answer_is_told_why",
    ),
    "an allocator that rounds to 256 bytes": Fault(
        "gpututor/simulator/memory_blocks.py",
        "ROUND = 512",
        "ROUND = 256",
        "tests/test_allocator.py::test_trace",
    ),
    "a verdict of the doctor that blames the driver": Fault(
        "gpututor/doctor/build.py",
        'Finding("build", summary, seen',
        'Finding("driver", summary, seen',
        "tests/test_doctor_machines.py",
    ),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project, to plant faults in."""
    folder = tmp_path_factory.mktemp("planted") / "project"
    listed = ("gpututor", "tests", "notebooks", "scripts", "docs", "conftest.py")
    for name in (*listed, "pyproject.toml", "README.md", "CONTRIBUTING.md"):
        source, ignore = ROOT / name, shutil.ignore_patterns("__pycache__", ".*")
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignore)
        else:
            shutil.copy(source, folder / name)
    return folder


def run(folder: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Run tests of a copy on the copy; they have two minutes."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        [*command, *tests],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_found(copy: Path, name: str) -> None:
    fault = FAULTS[name]
    path = copy / fault.file
    whole = path.read_text(encoding="utf-8")
    assert fault.old in whole
    path.write_text(whole.replace(fault.old, fault.new), encoding="utf-8")
    try:
        done = run(copy, fault.test)
    finally:
        path.write_text(whole, encoding="utf-8")
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"FAILED {fault.test}" in done.stdout


def test_without_a_fault_nothing_is_found(copy: Path) -> None:
    done = run(copy, *sorted({fault.test for fault in FAULTS.values()}))
    assert done.returncode == 0, done.stdout + done.stderr
