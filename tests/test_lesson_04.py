"""What lesson 04 shows is so, on the simulator and on a real GPU where there is one."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

NOTEBOOK = Path(__file__).parents[1] / "notebooks/04_time_asynchronous_work.ipynb"


def test_the_clocks_of_the_lesson_agree_but_for_the_naive_one(
    lesson: Callable[..., dict[str, Any]],
) -> None:
    names = lesson("naive", "synchronised", "events")

    def work() -> None:
        torch.cuda._sleep(3_000_000)

    work()
    events = names["with_events"](work)
    assert names["naive"](work) < 0.2 * events
    torch.cuda.synchronize()
    assert names["synchronised"](work) == pytest.approx(events, rel=0.3)


def test_a_wait_costs_the_shorter_part_and_a_sum_on_the_gpu_none(
    lesson: Callable[..., dict[str, Any]],
) -> None:
    names = lesson("part", "reads", "loop")
    loop = names["loop"]

    def ratio(read: str, host: float) -> float:
        return float(loop(read, host).duration / loop("nothing", host).duration)

    assert ratio("item()", 0.02) > 1.5
    assert ratio("total", 0.02) < 1.2
    assert ratio("item()", 0.0) < 1.2
    waiting = [read for read in names["reads"] if ratio(read, 0.02) > 1.4]
    assert waiting == ["item()", "print()", "if", "cpu()", "mask", "nonzero()"]


def test_moving_a_wait_saves_nothing(lesson: Callable[..., dict[str, Any]]) -> None:
    names = lesson("part", "moved-step")
    ends = []
    for early in (False, True):
        words = names["step"](early).alt
        end = float(words.partition("backward from ")[2].partition(" to ")[2].partition(" ms")[0])
        ends.append(end)
    assert ends[0] == pytest.approx(ends[1], rel=0.1)


def test_one_kernel_beats_many_and_hidden_launches_are_faster(
    lesson: Callable[..., dict[str, Any]],
) -> None:
    seconds = lesson("hide")["seconds"]
    x = torch.zeros(8, device="cuda")
    assert seconds(lambda: x.add_(1), 100, True) < 0.8 * seconds(lambda: x.add_(1), 100, False)


def test_in_turns_the_same_work_is_the_same_and_more_work_is_more(
    lesson: Callable[..., dict[str, Any]],
) -> None:
    in_turns = lesson("in-turns")["in_turns"]
    for b, ratio in (("the same", 1), ("twice the work", 2)):
        pictures = [in_turns(b).alt for _ in range(5)]  # the words hold one turn of the middle
        seen = [
            statistics.median(
                float(re.search(rf"\b{name}: .*? ([\d.]+) ms at 7 count", words)[1])  # type: ignore[index]
                for words in pictures
            )
            for name in "AB"
        ]
        assert seen[1] / seen[0] == pytest.approx(ratio, rel=0.4)
