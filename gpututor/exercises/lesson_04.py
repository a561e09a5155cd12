"""Lesson 04, Time asynchronous work."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .. import timing, transfer, waits
from ..arguments import shown
from . import Exercise, Wrong
from .solutions import lesson_04 as solutions

BATCHES = 8
PART = 5e-3  # seconds of the device
#: Parts that one call of the work takes, from the fourth call on: the median is 2, the least 1,
#: and the mean about 5.
PATTERN = (2, 2, 1, 2, 25, 2, 2)


def _cycles(seconds: float) -> int:
    """Return the cycles of a sleeping kernel that takes so long here."""
    once = transfer.seconds(lambda: torch.cuda._sleep(100_000), 3)
    return max(1, round(100_000 * seconds / once))


def _check_benchmark(answer: Any) -> str:
    part = _cycles(PART)
    lengths = itertools.chain((8, 8, 8), itertools.cycle(PATTERN))
    done = torch.cuda.Event()
    idle: list[bool] = []  # whether the call before was done when each began

    def work() -> None:
        idle.append(done.query())
        torch.cuda._sleep(next(lengths) * part)
        done.record()

    found = answer(work)
    torch.cuda.synchronize()
    calls = len(idle)
    if found is None:
        raise NotImplementedError
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        raise Wrong("the seconds of one call, as a number", f"{found!r}")
    expected = f"about {timing.duration(2 * PART)}, the median of this work once it is warm"
    seen = f"{timing.duration(found)} from {calls} calls"
    if calls < 6:
        raise Wrong("at least 5 timed calls after the warm-up", f"{calls} calls")
    if found < 0.5 * PART:
        raise Wrong(expected, f"{seen}: that is about what launching takes")
    if found < 1.5 * PART:
        raise Wrong(expected, f"{seen}: that is the luckiest call")
    if not all(idle[-5:]):
        raise Wrong("an idle GPU when a timed call begins", "the call before it was still running")
    if found > 2.8 * PART:
        raise Wrong(expected, f"{seen}: slow calls pull a mean up, and so do calls without warm-up")
    return f"{seen}, each timed alone; the median of this work is {timing.duration(2 * PART)}."


class _Watched(list[torch.Tensor]):
    """Batches that note, each time one is taken, whether the GPU had run out of work."""

    def __init__(self, batches: list[torch.Tensor]) -> None:
        super().__init__(batches)
        self.idle = 0

    def _note(self) -> None:
        self.idle += torch.cuda.current_stream().query()

    def __iter__(self) -> Iterator[torch.Tensor]:
        for batch in super().__iter__():
            self._note()
            yield batch

    def __getitem__(self, index: Any) -> Any:
        self._note()
        return super().__getitem__(index)


def _check_waits(answer: Any) -> str:
    generator = torch.Generator().manual_seed(0)
    batches = [torch.randn(1000, generator=generator) for _ in range(BATCHES)]
    right = (
        sum(float(b.clamp(min=0).sum()) for b in batches),
        max(float(b.max()) for b in batches),
    )
    on_gpu = [batch.cuda() for batch in batches]
    with transfer.count_copies() as copies:
        found = answer(list(on_gpu))  # this also loads its kernels
    if found is None:
        raise NotImplementedError
    numbers = isinstance(found, (tuple, list)) and len(found) == 2
    if not numbers or not all(isinstance(number, (int, float)) for number in found):
        raise Wrong("two Python numbers, total and largest", shown(found))
    if any(abs(a - b) > 1e-3 * abs(b) for a, b in zip(found, right, strict=True)):
        raise Wrong(f"the total {right[0]:.6g} and the largest {right[1]:.6g}", f"{found}")
    if copies.on_device < 3:
        raise Wrong("the sums and the maxima on the GPU", "they were not computed there")
    lines = waits.find(lambda: answer(list(on_gpu)))
    times = sum(wait.times for wait in lines)
    if times > 2:
        worst = max(lines, key=lambda wait: wait.times)
        raise Wrong(
            "at most 2 waits, after the loop",
            f"{times} waits for {BATCHES} batches, {worst.times} of them in: {worst.text}",
        )
    watched = _Watched(on_gpu)
    torch.cuda.synchronize()
    torch.cuda._sleep(_cycles(0.2))  # work that lasts longer than launching the loop
    answer(watched)
    if watched.idle:
        raise Wrong("a loop that goes on while the GPU is busy", "it waited for the GPU in between")
    return f"both numbers are right, and {BATCHES} batches cost {times} waits, after the loop."


def _check_launch_bound(answer: Any) -> str:
    x = torch.zeros(8, device="cuda")
    part = _cycles(0.01)

    def tiny(count: int) -> None:
        for _ in range(count):
            x.add_(1)

    def long_then_tiny() -> None:
        torch.cuda._sleep(part)
        tiny(8)

    def tiny_then_long() -> None:
        tiny(8)
        torch.cuda._sleep(part)

    cases: tuple[tuple[str, Callable[[], None], bool], ...] = (
        ("150 additions of 8 numbers", lambda: tiny(150), True),
        ("one long kernel", lambda: torch.cuda._sleep(part), False),
        ("one long kernel, then 8 short ones", long_then_tiny, False),
        ("8 short kernels, then a long one", tiny_then_long, False),
    )
    for name, work, right in cases:
        found = answer(work)
        if found is None:
            raise NotImplementedError
        if not isinstance(found, bool):
            raise Wrong("True or False", f"{found!r}")
        if found is not right:
            raise Wrong(f"{right} for {name}", f"{found}")
    return "right for four kinds of work, short and long kernels in either order."


EXERCISES = (
    Exercise(
        "04-benchmark",
        _check_benchmark,
        solutions.benchmark,
        (
            "When is the work done, and when is the clock read?",
            "Call work() a few times before you measure: the first calls are slow.",
            "min() picks the luckiest call. statistics.median() picks the usual one.",
        ),
    ),
    Exercise(
        "04-hidden-waits",
        _check_waits,
        solutions.summarise,
        (
            "waits.find(lambda: summarise(batches)) lists the lines that wait.",
            "A sum of what a mask selects has no need of the mask: negative numbers can count 0.",
            "total and largest can be tensors on the GPU: torch.maximum instead of an if, and "
            ".item() once, after the loop.",
        ),
    ),
    Exercise(
        "04-launch-bound",
        _check_launch_bound,
        solutions.launch_bound,
        (
            "Two times tell it: that of the whole as it is launched, and that of the device alone.",
            "timing.clocks(work).events.median is the whole, timing.device_time(work).median is "
            "the device alone.",
            "It is launch-bound when the device alone takes clearly less than the whole.",
        ),
    ),
)
