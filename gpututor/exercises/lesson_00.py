"""Lesson 00, Start here."""

from __future__ import annotations

import time
from typing import Any

import torch

from . import Exercise, Wrong
from .solutions import lesson_00 as solutions

SIZE = 2048  # a product that takes far longer than its launch, on any GPU


def _check_stopwatch(answer: Any) -> str:
    a = torch.rand(SIZE, SIZE, device="cuda")
    queue = torch.cuda.current_stream()
    seen: dict[str, Any] = {"calls": 0}

    def work() -> None:
        seen["calls"] += 1
        seen["idle"] = queue.query()  # asks whether all work is done, and does not wait
        start = time.perf_counter()
        seen["product"] = a @ a
        seen["launch"] = time.perf_counter() - start

    work()  # loads the kernel
    torch.cuda.synchronize()
    work()  # earlier work, which must not count
    seen["calls"] = 0
    start = time.perf_counter()
    found = answer(work)
    whole = time.perf_counter() - start
    done = queue.query()
    torch.cuda.synchronize()
    if found is None:
        raise NotImplementedError
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        raise Wrong("the seconds, as a number", f"{found!r}")
    if seen["calls"] != 1:
        raise Wrong("function() to be called once", f"{seen['calls']} calls")
    if not seen["idle"]:
        raise Wrong("an idle GPU when the work is launched", "earlier work was still going on")
    if not done:
        raise Wrong("an idle GPU when the function returns", "the work was still going on")
    if found <= 2 * seen["launch"]:
        raise Wrong(
            "the time until the work is done", f"{found:.6f} s, about the time of its launch"
        )
    if found > whole:
        raise Wrong("seconds", f"{found:g}, more than went by")
    return f"{found * 1000:.3g} ms, and the GPU was idle before and after."


EXERCISES = (
    Exercise(
        "00-stopwatch",
        _check_stopwatch,
        solutions.gpu_seconds,
        (
            "The four lines of the stopwatch are in the section 'Time it'.",
            "Synchronise before you read the clock: before the work, and after it.",
            "The work is function(). It goes between the two readings of time.perf_counter().",
        ),
    ),
)
