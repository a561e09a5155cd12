"""What lesson 02 shows is so, on the simulator and on a real GPU where there is one."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch

import gpututor
from gpututor import recorded

NOTEBOOK = Path(__file__).parents[1] / "notebooks/02_move_tensors.ipynb"
_REAL = torch.cuda.is_available() and not os.environ.get("GPUTUTOR_SIMULATE")
RECORDED_PINNED = 55.02  # GB/s at 256 MiB on an H200; gpututor/recorded/transfer_h200.json


@pytest.fixture(params=["simulated", *(["cuda"] if _REAL else [])])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    gpututor.stop()
    gpututor.start(simulate="T4" if request.param == "simulated" else None)
    yield request.param
    gpututor.stop()


@pytest.fixture
def lesson(device: str) -> Callable[..., dict[str, Any]]:
    """Return a function that runs the cells of these ids and returns their names."""
    source = {cell.id: cell.source for cell in nbformat.read(NOTEBOOK, as_version=4).cells}

    def run(*ids: str) -> dict[str, Any]:
        names: dict[str, Any] = {}
        exec("import torch\nimport gpututor\nfrom gpututor import transfer", names)
        for name in ids:
            exec(source[name], names)
        return names

    return run


@pytest.mark.parametrize(
    ("cell", "name"), [("read-early", "read_early"), ("change-early", "change_early")]
)
def test_the_hazards_are_real_and_mended(
    lesson: Callable[..., dict[str, Any]], cell: str, name: str
) -> None:
    experiment = lesson(cell)[name]
    experiment(True)  # loads what the first run needs
    assert sum(not experiment(False) for _ in range(20)) >= 19
    assert all(experiment(True) for _ in range(100))


def test_a_real_gpus_pinned_copies_reach_what_was_recorded(
    device: str, lesson: Callable[..., dict[str, Any]]
) -> None:
    if device != "cuda" or "H200" not in torch.cuda.get_device_name():
        pytest.skip("the recorded rate is an H200's")
    assert lesson("rate")["copy_rate"](2**28) >= 0.95 * RECORDED_PINNED


def test_the_prose_quotes_what_was_recorded() -> None:
    prose = " ".join(c.source for c in nbformat.read(NOTEBOOK, as_version=4).cells)
    pieces = dict(recorded.load("h200", "pieces").series["4 MiB in pieces"])
    for count in (1, 10, 100, 1000):
        assert f"{pieces[count]:.2g} ms for" in prose
    ratio = round(pieces[1000] / pieces[1])
    assert prose.count(f"{ratio} times as long") == 2
    prices = {name: dict(p)[2**28] for name, p in recorded.load("h200", "pinning").series.items()}
    pin, fast, slow = (prices[n] for n in ("to pin", "to copy pinned", "to copy pageable"))
    assert f"took {pin:.0f} ms, to copy them {fast:.1f} ms pinned and {slow:.0f} ms" in prose
    assert prose.count(f"{math.ceil(pin / (slow - fast))}th copy") == 2
    for name, points in recorded.load("h200", "hazards").series.items():
        assert points == [(0.0, 20.0), (1.0, 0.0)], name
    assert prose.count("20 of 20 wrong without a wait, 0 of 20 with it") == 2


def test_a_new_tensor_is_on_the_host_and_get_device_only_reports(device: str) -> None:
    x = torch.ones(2, device="cuda")
    assert (torch.get_device(x), torch.get_device(torch.ones(2))) == (0, -1)
    with torch.cuda.device(0):
        made = [torch.ones(2), torch.tensor([1.0]), torch.rand(2), torch.arange(2), torch.empty(1)]
    assert {tensor.device.type for tensor in made} == {"cpu"}
    assert {(x + 1).device.type, torch.ones_like(x).device.type} == {"cuda"}
