"""The three races of the lessons: wrong without the mend, right with it."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch

pytestmark = pytest.mark.usefixtures("simulated")

TRIES, MENDED_TRIES = 20, 100


def missing_wait(rng: random.Random, mended: bool) -> bool:
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


def read_too_early(rng: random.Random, mended: bool) -> bool:
    """Read a pinned tensor of the host while the copy into it is under way."""
    n = rng.choice([1 << 10, 1 << 14, 1 << 18, 1 << 20])
    x = torch.full((n,), 3.0, device="cuda")
    target = torch.zeros(n, pin_memory=True)
    torch.cuda.synchronize()
    target.copy_(x, non_blocking=True)
    if mended:
        torch.cuda.synchronize()
    return bool((target == 3).all())


def source_changed_too_early(rng: random.Random, mended: bool) -> bool:
    """Write to a pinned source while the copy from it is under way."""
    n = rng.choice([1 << 10, 1 << 14, 1 << 18, 1 << 20])
    source = torch.full((n,), 3.0).pin_memory()
    x = torch.empty(n, device="cuda")
    torch.cuda.synchronize()
    x.copy_(source, non_blocking=True)
    if mended:
        torch.cuda.current_stream().synchronize()
    source.zero_()
    return bool((x == 3).all().item())


RACES: list[Callable[[random.Random, bool], bool]] = [
    missing_wait,
    read_too_early,
    source_changed_too_early,
]


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.__name__)
def test_race_is_real_and_mended(race: Callable[[random.Random, bool], bool]) -> None:
    rng = random.Random()
    wrong = sum(not race(rng, False) for _ in range(TRIES))
    assert wrong >= 19
    assert all(race(rng, True) for _ in range(MENDED_TRIES))
