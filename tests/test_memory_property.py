"""Random programs: what is allocated is what live storages need, at every step; 0 at the end."""

from __future__ import annotations

import gc
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

from gpututor import Machine
from gpututor.simulator import runtime

MIB = 2**20


def live_bytes(tensors: list[torch.Tensor]) -> int:
    """Return what the storages of these tensors take, each once, rounded to 512 bytes."""
    blocks = {id(tensor._block): tensor._block for tensor in tensors}  # type: ignore[attr-defined]
    return sum(-(-block.nbytes // 512) * 512 for block in blocks.values())


def operations(chance: random.Random) -> list[Callable[[list[torch.Tensor]], Any]]:
    """Return things to do with a list of live tensors."""

    def one(live: list[torch.Tensor]) -> torch.Tensor:
        return live[chance.randrange(len(live))]

    def make(live: list[torch.Tensor]) -> None:
        live.append(torch.zeros(chance.randint(1, 4000), device="cuda"))

    def view(live: list[torch.Tensor]) -> None:
        live.append(one(live)[chance.randint(0, 1) :])

    def compute(live: list[torch.Tensor]) -> None:
        live.append(one(live) * 2 + 1)

    def in_place(live: list[torch.Tensor]) -> None:
        one(live).add_(1)

    def forget(live: list[torch.Tensor]) -> None:
        del live[chance.randrange(len(live))]

    def replace(live: list[torch.Tensor]) -> None:
        live[chance.randrange(len(live))] = one(live).clone()

    def fail(live: list[torch.Tensor]) -> None:
        with pytest.raises(RuntimeError):
            (one(live) + 1).reshape(-1, 1) @ torch.ones(7, 3, 5, 2, device="cuda")[0, 0, 0, 0]

    def exhaust(live: list[torch.Tensor]) -> None:
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(1 << 40, dtype=torch.uint8, device="cuda")

    def differentiate(live: list[torch.Tensor]) -> None:
        x = one(live).detach().requires_grad_()
        (x.exp().sin() * x).sum().backward()
        live.append(x.grad)  # type: ignore[arg-type]

    def drop_a_graph(live: list[torch.Tensor]) -> None:
        x = one(live).detach().requires_grad_()
        x.exp().sin().sum()

    def on_a_stream(live: list[torch.Tensor]) -> None:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            live.append(one(live) * 3)
        torch.cuda.current_stream().wait_stream(side)

    def cycle(live: list[torch.Tensor]) -> None:
        knot: list[Any] = [one(live).clone()]
        knot.append(knot)
        del knot
        gc.collect()

    def move(live: list[torch.Tensor]) -> None:
        live.append(one(live).cpu().cuda())

    def empty(live: list[torch.Tensor]) -> None:
        torch.cuda.empty_cache()

    return [
        make, make, view, compute, compute, in_place, forget, forget, replace, fail, exhaust,
        differentiate, drop_a_graph, on_a_stream, cycle, move, empty,
    ]  # fmt: skip


def play(chance: random.Random, steps: int, check: Callable[[list[torch.Tensor]], None]) -> None:
    live: list[torch.Tensor] = [torch.zeros(10, device="cuda")]
    todo = operations(chance)
    for _ in range(steps):
        if len(live) < 2:
            live.append(torch.ones(chance.randint(1, 1000), device="cuda"))
        chance.choice(todo)(live)
        if len(live) > 30:
            del live[:20]
        check(live)


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(simulated: Machine, seed: int) -> None:
    def check(live: list[torch.Tensor]) -> None:
        assert torch.cuda.memory_allocated() == live_bytes(live)

    gc.collect()
    play(random.Random(seed), 120, check)
    assert torch.cuda.memory_allocated() == 0
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 0


def test_threads(simulated: Machine) -> None:
    """Several threads at once; what is left while all wait is what all of them hold."""
    count, held, failures = 4, [], []
    barrier = threading.Barrier(count + 1, timeout=60)

    def worker(seed: int) -> None:
        try:
            kept: list[torch.Tensor] = []
            for round_ in range(3):
                play(random.Random(seed * 100 + round_), 25, lambda live: None)
                kept.append(torch.ones(1000 * seed + 1, device="cuda"))
                held.extend(kept[-1:])
                barrier.wait()
                barrier.wait()
        except BaseException as error:
            failures.append(error)
            barrier.abort()

    threads = [threading.Thread(target=worker, args=(seed,)) for seed in range(count)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            barrier.wait()
            gc.collect()
            assert torch.cuda.memory_allocated() == live_bytes(held)
            barrier.wait()
    except threading.BrokenBarrierError:
        pass
    finally:
        for thread in threads:
            thread.join(60)
    assert not failures, failures
    held.clear()
    gc.collect()
    assert torch.cuda.memory_allocated() == 0
    assert runtime.current().devices[0].memory.stats()["active"]["all"]["current"] == 0
