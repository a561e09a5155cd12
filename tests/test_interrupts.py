"""An interrupt of the host at any line leaves the simulated memory whole."""

from __future__ import annotations

import contextlib
import functools
import gc
import linecache
import random
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
import torch
from torch import nn

from gpututor import Machine
from gpututor.simulator import runtime
from gpututor.simulator.device import Device, Task
from gpututor.simulator.engine import Engine
from gpututor.simulator.profiles import PROFILES

MIB = 1 << 20
ALLOCATOR = ("memory.py", "memory_blocks.py", "memory_statistics.py")


class Interrupter:
    """Raises KeyboardInterrupt at the nth line of some files, as Ctrl-C can.

    Not on the way out of ``with lock``, where Python lets no signal in before the lock is free.
    """

    def __init__(self, files: tuple[str, ...], lines: int) -> None:
        self.files = files
        self.left = lines

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not (frame.f_code.co_filename or "").endswith(self.files):
            return None
        if event == "line":
            self.left -= 1
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            if self.left <= 0 and "with " not in line:
                self.left = 1 << 60
                raise KeyboardInterrupt
        return self


def interrupted(files: tuple[str, ...], lines: int, call: Callable[[], Any]) -> bool:
    """Call, and interrupt after so many lines of `files`; tell whether it came to that."""
    sys.settrace(Interrupter(files, lines))
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


def whole(memory: Any, blocks: list[Any]) -> None:
    """Check every statistic and every pool against the blocks that are alive."""
    stats = memory.stats()
    sizes = sum(memory.rounded(block.nbytes) for block in blocks if block.nbytes)
    used = sum(block.piece.size for block in blocks if block.nbytes)
    assert stats["allocated_bytes"]["all"]["current"] == used >= sizes
    assert stats["allocation"]["all"]["current"] == sum(1 for block in blocks if block.nbytes)
    free: dict[int, Any] = {}
    reserved = 0
    for segment in memory.segments():
        reserved += segment.size
        pieces = segment.pieces()
        assert sum(piece.size for piece in pieces) == segment.size
        offset = 0
        for place, piece in enumerate(pieces):
            assert piece.offset == offset
            assert piece.previous is (pieces[place - 1] if place else None)
            assert not (piece.free and place and pieces[place - 1].free)
            offset += piece.size
            if piece.free:
                free[id(piece)] = piece
    assert stats["reserved_bytes"]["all"]["current"] == reserved
    pooled = [entry[3] for pool in memory._pools.values() for entry in pool]
    assert sorted(map(id, pooled)) == sorted(free)
    for pool in memory._pools.values():
        assert pool == sorted(pool, key=lambda entry: entry[:2])
    split = sum(piece.size for piece in free.values() if piece.split)
    assert stats["inactive_split_bytes"]["all"]["current"] == split


@pytest.mark.parametrize("seed", range(4))
def test_allocator(seed: int) -> None:
    chance = random.Random(seed)
    device = Device(0, PROFILES["T4"], 256 * MIB, Engine())
    memory, side = device.memory, device.new_stream(0)
    blocks: list[Any] = []

    def work() -> None:
        for _ in range(6):
            draw = chance.random()
            if draw < 0.45 and blocks:
                block = blocks.pop(chance.randrange(len(blocks)))
                if chance.random() < 0.3:
                    block.used_on(side)
                del block
            elif draw < 0.5:
                memory.empty_cache()
            else:
                size = chance.choice([chance.randint(1, MIB), chance.randint(1, 40 * MIB)])
                try:
                    blocks.append(memory.allocate(size, chance.choice([0, side.stream_id])))
                except torch.OutOfMemoryError:
                    blocks.clear()

    count = 0
    for _ in range(250):
        count += interrupted(ALLOCATOR, chance.randint(1, 200), work)
        whole(memory, blocks)
    assert count > 100
    blocks.clear()
    memory.empty_cache()
    whole(memory, [])
    assert memory.stats()["reserved_bytes"]["all"]["current"] == 0
    device.engine.stop()


def test_training(simulated: Machine) -> None:
    """Interrupt anywhere in the simulator's own Python while a network trains."""
    chance = random.Random(0)
    net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x = torch.randn(16, 32, device="cuda")
    net(x).sum().backward()  # everything is set up
    torch.cuda.synchronize()

    def step() -> None:
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()

    step()
    device = runtime.current().devices[0]
    files = (*ALLOCATOR, "operators.py", "tensor.py", "device.py", "kernel.py", "runtime.py")
    count = 0
    for _ in range(150):
        count += interrupted(files, chance.randint(1, 3000), step)
        optimizer.zero_grad()
    assert count > 50
    torch.cuda.synchronize()
    gc.collect()
    held = {id(p._block): p._block for p in [x, *net.parameters()]}  # type: ignore[attr-defined]
    whole_of = [*held.values(), *device.workspaces.blocks()]
    whole(device.memory, whole_of)
    assert torch.isfinite(net(x)).all()


def test_waiting() -> None:
    """Interrupt anywhere in the wait for the simulator's thread, also in Python's own part of it.

    A wait that holds the lock there would leave it held, or open it for another.
    """
    chance = random.Random(0)
    device = Device(0, PROFILES["T4"], 256 * MIB, Engine())
    engine = device.engine
    done: list[int] = []

    def work() -> None:
        for number in range(3):
            task = Task(device, "task", functools.partial(done.append, number))
            device.launch(device.default, 1e-4, task, copies=True)
        device.synchronize()

    count = 0
    for _ in range(100):
        if chance.random() < 0.1:
            engine.stop()
            device.engine = engine = Engine()  # the first launch begins the thread
        with contextlib.suppress(RuntimeError):  # of Python's own locks, where a thread begins
            count += interrupted(("engine.py", "threading.py"), chance.randint(1, 150), work)
        device.synchronize()
        done.clear()
        work()
        assert done == [0, 1, 2]
    assert count > 40
    engine.stop()


def test_finaliser_that_allocates() -> None:
    """Python may run a finaliser inside a change, and that may make and free blocks itself."""
    device = Device(0, PROFILES["T4"], 256 * MIB, Engine())
    memory = device.memory
    kept: list[Any] = []
    lines = chosen = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        if not (frame.f_code.co_filename or "").endswith(ALLOCATOR):
            return None
        if event == "line":
            lines += 1
            if lines == chosen:
                sys.settrace(None)
                kept.append(memory.allocate(1000 + number, 0))
                memory.allocate(500, 0)
                memory.empty_cache()
                sys.settrace(trace)
        return trace

    blocks: list[Any] = []
    for number in range(80):
        lines, chosen = 0, 1 + number
        sys.settrace(trace)
        blocks.append(memory.allocate(number * 10_000 + 1, 0))
        if number % 3 == 0:
            blocks.pop(0)
        memory.collect()
        sys.settrace(None)
        whole(memory, [*blocks, *kept])
    assert len(kept) > 50
    device.engine.stop()


def test_backward(simulated: Machine) -> None:
    """After a backward pass that was stopped, the next one is waited for as ever."""
    side = torch.cuda.Stream()

    def gradient(factor: float, stop: bool = False) -> float:
        x = torch.ones(1000, device="cuda", requires_grad=True)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = x * factor
        torch.cuda.current_stream().wait_stream(side)
        y.register_hook(lambda _: torch.cuda._sleep(5_000_000))  # on the side stream too

        def interrupt(_: torch.Tensor) -> None:
            if stop:
                raise KeyboardInterrupt

        x.register_hook(interrupt)
        y.backward(torch.ones(1000, device="cuda"))
        assert x.grad is not None
        return float(x.grad[-1].item())

    assert gradient(5.0) == 5
    with pytest.raises(KeyboardInterrupt):
        gradient(6.0, stop=True)
    assert gradient(7.0) == 7


def switches() -> tuple[bool, ...]:
    """Return what the simulator turns off or on for a moment."""
    return (
        torch._C._dispatch_tls_is_dispatch_key_excluded(torch._C.DispatchKey.Python),
        torch._C._is_torch_function_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_grad_enabled(),
    )


def make_new_ones(count: int) -> None:
    """Make tensors of geometries that no segment has seen, and views in all modes."""
    dtype = (torch.float64, torch.int16, torch.complex64, torch.int64)[count % 4]
    x = torch.ones(5 + count, 2, dtype=dtype, device="cuda")
    torch.empty(0, dtype=dtype, device="cuda")
    with torch.inference_mode():
        y = x.t() + x[0, 0]
    y.t()


def test_nothing_stays_switched_off(simulated: Machine) -> None:
    make_new_ones(0)
    before = switches()
    count = 0
    while True:
        count += 1

        def interrupt(frame: FrameType, event: str, argument: Any) -> None:
            nonlocal left
            if event != "c_return":  # Python looks for signals after a call
                return
            caller: FrameType | None = frame
            while caller is not None and not caller.f_code.co_filename.endswith(
                ("memory_blocks.py", "tensor.py")
            ):
                caller = caller.f_back
            if caller is not None:
                left -= 1
                if not left:
                    sys.setprofile(None)
                    raise KeyboardInterrupt

        for segment in runtime.current().device(0).memory.segments():
            segment._bases.clear()  # so that each dtype is new to it
        left, kept = count, None
        sys.setprofile(interrupt)
        try:
            make_new_ones(count)
        except KeyboardInterrupt as error:
            kept = error  # as IPython keeps the last one, with its frames
        finally:
            sys.setprofile(None)
        assert switches() == before, count
        if kept is None:
            break  # all of it was done
        del kept
        assert switches() == before, count
        torch.cuda.synchronize()
    assert count > 50
    assert float((torch.ones(3, device="cuda") + 1).sum()) == 6


def test_a_memory_history_leaves_no_lock_behind(
    simulated: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # an interrupt of a finaliser
    torch.cuda.memory._record_memory_history()
    memory = runtime.current().device(0).memory
    for count in range(1, 30):
        x, left = torch.ones(1000, device="cuda"), count

        def interrupt(frame: FrameType, event: str, argument: Any) -> None:
            nonlocal left
            if event == "c_return" and frame.f_code.co_filename.endswith("memory.py"):
                left -= 1
                if not left:
                    sys.setprofile(None)
                    raise KeyboardInterrupt

        sys.setprofile(interrupt)
        with contextlib.suppress(KeyboardInterrupt):
            del x
        sys.setprofile(None)
        assert not memory._lock._is_owned(), count
    assert torch.cuda.memory_allocated() == 0
    torch.cuda.memory._record_memory_history(enabled=None)
