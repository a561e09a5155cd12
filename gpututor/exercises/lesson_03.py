"""Lesson 03, Overlap work with streams."""

from __future__ import annotations

import statistics
import time
from typing import Any

import torch

from .. import timeline, transfer
from ..arguments import shown
from ..picture import Picture
from . import Exercise, Wrong
from .solutions import lesson_03 as solutions

TRIES = 20
LIMIT = 1.15


def _cycles(seconds: float) -> int:
    """Return the clock cycles for which ``torch.cuda._sleep`` sleeps so long."""
    million = 1_000_000
    return int(million * seconds / transfer.seconds(lambda: torch.cuda._sleep(million), 3))


# -- 03-race -----------------------------------------------------------------------------------


class _Half:
    """Half of the work: reads its input first, takes its time, and gives its result last."""

    def __init__(self, factor: int, cycles: int) -> None:
        self.factor, self.cycles = factor, cycles
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.calls = 0

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.begin.record()
        product = values * self.factor
        torch.cuda._sleep(self.cycles)
        result = product + 0
        self.end.record()
        return result

    def times(self, origin: torch.cuda.Event) -> tuple[float, float]:
        """Return the milliseconds from `origin` to its begin and its end."""
        return float(origin.elapsed_time(self.begin)), float(origin.elapsed_time(self.end))


def _check_race(answer: Any) -> str:
    cycles = _cycles(0.01)
    right_ones, shares, waited = 0, [], 0
    for number in range(1, TRIES + 1):
        # The longer half takes turns: whichever is not waited for is then late.
        left, right = _Half(2, cycles), _Half(3, cycles)
        (left if number % 2 else right).cycles *= 2
        origin, x = torch.cuda.Event(enable_timing=True), torch.zeros(1000, device="cuda")
        torch.cuda.synchronize()
        origin.record()
        torch.cuda._sleep(cycles)  # x is ready late
        x.fill_(number)
        found = answer(x, left, right)
        waited += torch.cuda.current_stream().query()
        if found is None:
            raise NotImplementedError
        if not isinstance(found, torch.Tensor) or found.shape != x.shape:
            raise Wrong("a tensor like x", shown(found))
        if (left.calls, right.calls) != (1, 1):
            raise Wrong(
                "left and right to be called once each", f"{left.calls} and {right.calls} calls"
            )
        total = float(found.sum().item())
        right_ones += total == 5 * number * len(x)
        torch.cuda.synchronize()
        (a, b), (c, d) = left.times(origin), right.times(origin)
        shares.append(max(0.0, min(b, d) - max(a, c)) / min(b - a, d - c))
    if right_ones < TRIES:
        raise Wrong(
            f"left(x) + right(x) in {TRIES} of {TRIES} tries",
            f"{TRIES - right_ones} of {TRIES} results were wrong",
        )
    share = statistics.median(shares)
    if share < 0.8:
        raise Wrong(
            "left and right to be under way at the same time",
            f"they were for {share:.0%} of their time, by events on their streams",
        )
    if waited == TRIES:
        raise Wrong(
            "streams that wait for streams, while the host goes on",
            "all the work was done when your function returned: the host had waited for it",
        )
    return (
        f"{TRIES} of {TRIES} results were right, and left and right were under way together for "
        f"{share:.0%} of their time."
    )


# -- 03-pipeline -------------------------------------------------------------------------------


class _Work:
    """Kernels in a row, each on the whole chunk: for all of it about twice as long as a copy."""

    def __init__(self, host: torch.Tensor, back: torch.Tensor) -> None:
        device = torch.empty_like(host, device="cuda")
        copy_in = transfer.seconds(lambda: device.copy_(host, non_blocking=True), 2)
        copy_out = transfer.seconds(lambda: back.copy_(device, non_blocking=True), 2)
        self.kernels = 2 * round(copy_in / transfer.seconds(device.neg_, 2)) + 1  # odd: a minus
        self.longest = max(copy_in, copy_out, transfer.seconds(lambda: self(device), 2))

    def __call__(self, values: torch.Tensor) -> None:
        if not (isinstance(values, torch.Tensor) and values.is_cuda):
            where = f"on {values.device}" if isinstance(values, torch.Tensor) else shown(values)
            raise Wrong("work(values) with a tensor on the GPU", where)
        for _ in range(self.kernels):
            values.neg_()


def _check_pipeline(answer: Any) -> str:
    size = transfer.sizes()[-1] // 4
    host = torch.randint(1, 99, (size,)).float().pin_memory()
    back = torch.zeros(size, pin_memory=True)
    work = _Work(host, back)
    ratio, limit = _ratio(answer, host, back, work), LIMIT
    if ratio > limit:  # where launches take long, or others use the GPU, no pipeline reaches it
        limit = max(LIMIT, 1.05 * _ratio(solutions.pipeline, host, back, work))
    if ratio > limit:
        raise Wrong(
            f"at most {limit:.3g} times as long as the longest part, which takes "
            f"{work.longest * 1e3:.3g} ms",
            f"{ratio:.2f} times as long, at best",
        )
    return f"all numbers came back, in {ratio:.2f} times the time of the longest part."


def _ratio(pipeline: Any, host: torch.Tensor, back: torch.Tensor, work: _Work) -> float:
    """Return the time of the pipeline, the best of three, relative to its longest part."""
    ratios = []
    for _ in range(3):
        back.zero_()
        torch.cuda.synchronize()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        pipeline(host, back, work)
        end.record()
        end.synchronize()
        missing = int((back != -host).sum())
        torch.cuda.synchronize()
        if not back.any():
            raise NotImplementedError
        if missing:
            raise Wrong(
                "all of back, when the current stream has come to the end of your function",
                f"{missing:,} of {len(host):,} numbers in back were wrong",
            )
        ratios.append(float(start.elapsed_time(end)) / 1e3 / work.longest)
    return min(ratios)


# -- 03-explain --------------------------------------------------------------------------------

#: What keeps work from overlapping, in the words that ``03-explain`` takes, and where it shows.
CAUSES = {
    "full GPU": "two rows of kernels, under way together, whose end does not come earlier",
    "one stream": "an early end of the launches, and one stream with all the work",
    "pageable memory": "a copy, and a host that is held in launching it until it is over",
    "slow host": "a host that is busy with something else between two launches",
}
_CASES = {
    "A": "slow host", "B": "pageable memory", "C": "full GPU", "D": "one stream",
}  # fmt: skip


def mystery(case: str = "A") -> Picture:
    """Run a small program with one fault, and draw its timeline.

    Parameters
    ----------
    case : str
        ``"A"``, ``"B"``, ``"C"`` or ``"D"``.

    Raises
    ------
    ValueError
        When there is no such case.
    """
    if case not in _CASES:
        raise ValueError(f"case must be one of {', '.join(_CASES)}, not {shown(case)}")
    size = transfer.sizes()[-1] // 8  # numbers; two tensors of it are on the device
    x, y = (torch.ones(size, device="cuda") for _ in range(2))
    host = torch.ones(size, pin_memory=True)
    copy = transfer.seconds(lambda: y.copy_(host, non_blocking=True), 1)
    kernels = max(1, round(copy / transfer.seconds(x.neg_, 1)))
    source = torch.ones(size) if _CASES[case] == "pageable memory" else host

    def run(cause: str) -> timeline.Recorder:
        one, two = torch.cuda.Stream(), torch.cuda.Stream()
        line = timeline.record()
        if cause != "full GPU":
            with line.host("launch"), line.span("copy in", one):
                y.copy_(source, non_blocking=True)
        if cause == "slow host":
            with line.host("prepare"):
                time.sleep(1.2 * copy)
        if cause == "full GPU":
            with line.host("launch"), line.span("kernels A", one):
                for _ in range(kernels):
                    y.neg_()
        name = "kernels B" if cause == "full GPU" else "kernels"
        with line.host("launch"), line.span(name, one if cause == "one stream" else two):
            for _ in range(kernels):
                x.neg_()
        torch.cuda.synchronize()
        return line

    return run(_CASES[case]).show(f"Program {case}: what keeps it from overlapping")


def _check_explain(answer: Any) -> str:
    found = answer()
    if found is None:
        raise NotImplementedError
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        raise Wrong('a dictionary such as {"A": "one stream", ...}', shown(found))
    if missing := [case for case in _CASES if case not in found]:
        raise Wrong("a cause for A, B, C and D", f"none for {' and '.join(missing)}")
    for case, cause in _CASES.items():
        if found[case] not in CAUSES:
            raise Wrong(f"one of {', '.join(map(repr, CAUSES))}", f"{found[case]!r} for {case}")
        if found[case] != cause:
            raise Wrong(
                f"for {found[case]!r}: {CAUSES[found[case]]}",
                f"the timeline of {case} does not show that",
            )
    return "A, B, C and D each have their cause."


EXERCISES = (
    Exercise(
        "03-race",
        _check_race,
        solutions.both,
        (
            "There are two places where a stream reads what another one makes: x, and a and b.",
            "The stream that reads has to wait: reader.wait_stream(writer), after the writer's "
            "work is launched and before the reader's is.",
            "Both streams wait for torch.cuda.current_stream() before left and right; the current "
            "stream waits for both before a + b.",
        ),
    ),
    Exercise(
        "03-pipeline",
        _check_pipeline,
        solutions.pipeline,
        (
            "Cut host, the tensor on the GPU and back into chunks alike, and give the chunks to "
            "three streams in turn.",
            "At the end the current stream has to wait for the three. At the beginning they wait "
            "for it.",
            "Too few chunks leave a long beginning and a long end; with too many the GPU waits for "
            "launches. Try 4, 8, 12 and 16.",
        ),
    ),
    Exercise(
        "03-explain",
        _check_explain,
        solutions.explain,
        (
            "Look at the host first: for how long is each of its bars?",
            "Then count the streams: work on one stream never overlaps.",
            "Two rows of kernels on two streams, and yet the second ends late: what do they share?",
        ),
    ),
)
