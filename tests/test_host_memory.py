"""What the simulated memory takes of the host's, and when the host has it again."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator

import pytest
import torch

import gpututor
from gpututor import Machine
from gpututor.simulator import memory_blocks, runtime
from gpututor.simulator.plain import plainly, undispatched

MIB = 1 << 20
SIZE = 100 * MIB


class _Buffer(bytearray):
    """Memory of the host that can be looked up while it lives."""

    __hash__ = object.__hash__


@pytest.fixture(autouse=True)
def buffers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """Return a function that counts the living host buffers of large segments.

    Nothing may be left to the garbage collector: it comes late, or not before memory is out.
    """
    alive: weakref.WeakSet[_Buffer] = weakref.WeakSet()
    original = memory_blocks._host_buffer

    def host_buffer(size: int) -> torch.UntypedStorage:
        if size < SIZE:
            return original(size)
        buffer = _Buffer(size)
        alive.add(buffer)
        with plainly(), undispatched():
            return torch.frombuffer(buffer, dtype=torch.uint8).untyped_storage()

    monkeypatch.setattr(memory_blocks, "_host_buffer", host_buffer)
    gc.disable()
    yield lambda: len(alive)
    gc.enable()


def fill() -> torch.Tensor:
    tensor = torch.ones(SIZE, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    return tensor


def test_emptying_the_cache_gives_it_back(simulated: Machine, buffers: Callable[[], int]) -> None:
    tensor = fill()
    torch.cuda.empty_cache()
    assert buffers() == 1
    del tensor
    assert buffers() == 1  # cached
    torch.cuda.empty_cache()
    assert buffers() == 0


def test_so_does_a_request_that_nothing_cached_fits(
    simulate: Callable[[str], Machine], buffers: Callable[[], int]
) -> None:
    simulate("T4@256MiB")
    tensor = fill()
    del tensor
    other = torch.empty(2 * SIZE, dtype=torch.uint8, device="cuda")
    assert buffers() == 1
    del other


def test_so_does_stop(simulated: Machine, buffers: Callable[[], int]) -> None:
    tensor = fill()
    gpututor.stop()
    assert buffers() == 1  # the learner's tensor holds it
    del tensor
    assert buffers() == 0
    gpututor.start(simulate="T4")
    tensor = fill()
    del tensor
    assert buffers() == 1
    gpututor.stop()
    assert buffers() == 0


def test_only_so_many_views_are_kept(simulated: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_blocks, "_VIEWS", 20)
    values = [float(torch.ones(size, device="cuda").sum()) for size in range(1, 100)]
    assert values == [float(size) for size in range(1, 100)]
    allocator = runtime.current().device(0).memory
    assert all(len(segment._views) <= 20 for segment in allocator.segments())
