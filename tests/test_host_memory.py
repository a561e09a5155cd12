"""What the simulated memory takes of the host's, and when the host has it again."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

import gpututor
from gpututor import Machine
from gpututor.simulator import memory_blocks, runtime

MIB = 1 << 20
SIZE = 200 * MIB

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/statm")


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    """Nothing may be left to the garbage collector: it comes late, or not before memory is out."""
    gc.disable()
    yield
    gc.enable()


def resident() -> int:
    """Return the bytes of this process that are in the host's memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def fill() -> torch.Tensor:
    before = resident()
    tensor = torch.ones(SIZE, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    assert resident() - before > SIZE // 2
    return tensor


def test_emptying_the_cache_gives_it_back(simulated: Machine) -> None:
    before = resident()
    tensor = fill()
    del tensor
    assert resident() - before > SIZE // 2  # cached
    torch.cuda.empty_cache()
    assert resident() - before < SIZE // 2


def test_so_does_a_request_that_nothing_cached_fits(simulate: Callable[[str], Machine]) -> None:
    simulate("T4@512MiB")
    tensor = fill()
    del tensor
    before = resident()
    other = torch.empty(2 * SIZE, dtype=torch.uint8, device="cuda")
    assert before - resident() > SIZE // 2
    del other


def test_so_does_stop(simulated: Machine) -> None:
    before = resident()
    tensor = fill()
    gpututor.stop()
    assert resident() - before > SIZE // 2  # the learner's tensor holds it
    del tensor
    assert resident() - before < SIZE // 2
    gpututor.start(simulate="T4")
    tensor = fill()
    del tensor
    gpututor.stop()
    assert resident() - before < SIZE // 2


def test_only_so_many_views_are_kept(simulated: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_blocks, "_VIEWS", 20)
    values = [float(torch.ones(size, device="cuda").sum()) for size in range(1, 100)]
    assert values == [float(size) for size in range(1, 100)]
    allocator = runtime.current().device(0).memory
    assert all(len(segment._views) <= 20 for segment in allocator.segments())
