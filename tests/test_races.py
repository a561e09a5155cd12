"""The races of the lessons: wrong without the mend, right with it; on both kinds of GPU."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch

TRIES, MENDED_TRIES = 20, 100
#: Numbers to copy. A real GPU has copied a few thousand before the host can look.
SIZES = {"simulated": [1 << 10, 1 << 14, 1 << 18, 1 << 20], "real": [1 << 22, 1 << 23, 1 << 24]}


def missing_wait(rng: random.Random, mended: bool, gpu: str) -> bool:
    """Read on the default stream what another stream is still computing."""
    n = rng.choice([64, 256, 1024, 65536])
    stream, x = torch.cuda.Stream(), torch.zeros(n, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(rng.randrange(200_000, 1_000_000))
        x.fill_(1)
    if mended:
        torch.cuda.current_stream().wait_stream(stream)
    found = float(x.sum().item())
    torch.cuda.synchronize()  # or the next try gets this memory while it is still written
    return found == n


def missing_wait_on_a_full_device(rng: random.Random, mended: bool, gpu: str) -> bool:
    """Read what a matmul that fills the device is still computing.

    An NVIDIA H200 gave a wrong sum 20 times of 20 from float32 1024² on, and for chains of
    matmuls (torch 2.11, 30 November 2026): blocks of the reader get in as the producer drains.
    """
    n = rng.choice([512, 1024] if gpu == "simulated" else [2048, 4096])
    one, unit = torch.ones(n, n, device="cuda"), torch.eye(n, device="cuda")
    x, y = (torch.zeros(n, n, device="cuda") for _ in range(2))
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for _ in range(rng.choice([0, 1, 4])):
            torch.mm(one, unit, out=x)
        torch.mm(one, unit, out=y)
    if mended:
        torch.cuda.current_stream().wait_stream(stream)
    found = float((y - 1).abs().max().item())
    torch.cuda.synchronize()
    return found == 0


def read_too_early(rng: random.Random, mended: bool, gpu: str) -> bool:
    """Read a pinned tensor of the host while the copy into it is under way."""
    n = rng.choice(SIZES[gpu])
    x = torch.full((n,), 3.0, device="cuda")
    target = torch.zeros(n, pin_memory=True)
    torch.cuda.synchronize()
    target.copy_(x, non_blocking=True)
    if mended:
        torch.cuda.synchronize()
    return bool((target == 3).all())


def source_changed_too_early(rng: random.Random, mended: bool, gpu: str) -> bool:
    """Write to a pinned source while the copy from it is under way."""
    n = rng.choice(SIZES[gpu])
    source = torch.full((n,), 3.0).pin_memory()
    x = torch.empty(n, device="cuda")
    torch.cuda.synchronize()
    x.copy_(source, non_blocking=True)
    if mended:
        torch.cuda.current_stream().synchronize()
    source.zero_()
    return bool((x == 3).all().item())


RACES: list[Callable[[random.Random, bool, str], bool]] = [
    missing_wait,
    missing_wait_on_a_full_device,
    read_too_early,
    source_changed_too_early,
]


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.__name__)
def test_race_is_real_and_mended(
    race: Callable[[random.Random, bool, str], bool], gpu: str
) -> None:
    rng = random.Random()
    race(rng, True, gpu)  # what happens only once, such as loading kernels, is no part of it
    wrong = sum(not race(rng, False, gpu) for _ in range(TRIES))
    assert wrong >= 19
    assert all(race(rng, True, gpu) for _ in range(MENDED_TRIES))
