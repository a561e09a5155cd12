"""A training that is run again in the same kernel takes no more memory than the first time.

The names of the first run are still bound when the second begins: a lesson that lets a model, an
optimizer or a loss stay alive would begin above zero, and end higher.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from test_notebook_runs import PATHS, sections

from gpututor import Machine

pytestmark = pytest.mark.slow


def trainings() -> dict[str, list[str]]:
    """Return the code of each section that trains, after that of the setup."""
    found = {}
    for path in PATHS:
        setup, *rest = sections(nbformat.read(path, as_version=4).cells)
        for section in rest:
            sources = [cell.source for cell in section if not cell.source.startswith("%%")]
            if any("backward(" in source for source in sources):
                name = f"{path.stem[:2]} {section[0].id}"
                found[name] = [*(cell.source for cell in setup), *sources]
    return found


TRAININGS = trainings()


@pytest.mark.parametrize("name", TRAININGS)
def test_the_second_time_takes_no_more(
    name: str, simulate: Callable[[str], Machine], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPUTUTOR_SIMULATE", "T4")
    names: dict[str, Any] = {}
    peaks = []
    for _ in range(2):
        for index in range(torch.cuda.device_count()):
            torch.cuda.reset_peak_memory_stats(index)
        for source in TRAININGS[name]:
            exec(source, names)
        devices = range(torch.cuda.device_count())
        peaks.append([torch.cuda.max_memory_allocated(index) for index in devices])
    first, second = peaks
    assert sum(first)
    # A few tensors of some numbers may come and go: 64 KiB of them.
    assert all(b <= 1.05 * a + 65536 for a, b in zip(first, second, strict=True)), peaks
