"""The checks of the exercises take any right answer, and say what is wrong with the others."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

import gpututor
from gpututor import exercises

pytestmark = pytest.mark.usefixtures("simulated")


@pytest.mark.parametrize("exercise", exercises.every(), ids=lambda exercise: exercise.name)
def test_the_reference_solution_is_right(exercise: exercises.Exercise) -> None:
    for _ in range(3):
        verdict = gpututor.check(exercise.name, exercise.solution)
        assert verdict.passed, verdict


# -- 00-stopwatch ----------------------------------------------------------------------------


def no_first_wait(function: Callable[[], None]) -> float:
    start = time.perf_counter()
    function()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def no_second_wait(function: Callable[[], None]) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def clock_read_before_the_wait(function: Callable[[], None]) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    function()
    seconds = time.perf_counter() - start
    torch.cuda.synchronize()
    return seconds


def milliseconds(function: Callable[[], None]) -> float:
    return 1000 * exercises.find("00-stopwatch").solution(function)


# -- 02-leftover -----------------------------------------------------------------------------


class TrainedOffset(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.offset = torch.nn.Parameter(torch.arange(4.0))
        self.factors = torch.nn.ParameterList(torch.ones(4) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factors[0] * self.factors[1] + self.offset


class MovedInForward(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.offset = torch.arange(4.0)
        self.factors = torch.nn.ParameterList(torch.ones(4) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factors[0] * self.factors[1] + self.offset.to(x.device)


class AlwaysOnTheGpu(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("offset", torch.arange(4.0, device="cuda"))
        self.factors = [torch.nn.Parameter(torch.ones(4, device="cuda")) for _ in range(2)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factors[0] * self.factors[1] + self.offset


class Untrained(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("offset", torch.arange(4.0))
        self.unused = torch.nn.ParameterList(torch.ones(4) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.offset


class OneMatrix(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("offset", torch.arange(4.0))
        self.factors = torch.nn.Parameter(torch.ones(2, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factors[0] * self.factors[1] + self.offset


# -- 02-fewer-copies -------------------------------------------------------------------------


def on_the_host(batches: list[torch.Tensor], weights: torch.Tensor) -> float:
    return sum(float((batch * weights).sum()) for batch in batches)


def item_in_the_loop(batches: list[torch.Tensor], weights: torch.Tensor) -> float:
    weights = weights.cuda()
    return sum((batch.cuda() * weights).sum().item() for batch in batches)


def weights_in_the_loop(batches: list[torch.Tensor], weights: torch.Tensor) -> float:
    result = torch.zeros((), device="cuda")
    for batch in batches:
        result += (batch.cuda() * weights.cuda()).sum()
    return result.item()


def still_a_tensor(batches: list[torch.Tensor], weights: torch.Tensor) -> torch.Tensor:
    return (torch.stack(batches).cuda() * weights.cuda()).sum()


def summed_on_the_host(batches: list[torch.Tensor], weights: torch.Tensor) -> float:
    return sum((batch * weights).sum() for batch in batches).to("cuda").item()


def copied_for_show(batches: list[torch.Tensor], weights: torch.Tensor) -> float:
    for batch in batches:
        batch.to("cuda")
    return sum(float((batch * weights).sum()) for batch in batches)


def made_anew(batches: list[torch.Tensor], weights: torch.Tensor) -> float:
    result = torch.zeros((), device="cuda")
    for batch in batches:
        new = torch.tensor(batch.tolist(), device="cuda")
        result += (new * torch.tensor(weights.tolist(), device="cuda")).sum()
    return result.item()


def all_at_once(batches: list[torch.Tensor], weights: torch.Tensor) -> float:
    return (torch.stack(batches).cuda() * weights.cuda()).sum().item()


# -- 02-move-batch ---------------------------------------------------------------------------


def only_dicts(batch: Any, device: str) -> Any:
    return {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in batch.items()}


def breaks_namedtuples(batch: Any, device: str) -> Any:
    if isinstance(batch, torch.Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {k: breaks_namedtuples(v, device) for k, v in batch.items()}
    if isinstance(batch, (list, tuple)):
        kind = list if isinstance(batch, list) else tuple
        return kind(breaks_namedtuples(v, device) for v in batch)
    return batch


def changes_the_batch(batch: Any, device: str) -> Any:
    if isinstance(batch, dict):
        for key, value in batch.items():
            batch[key] = changes_the_batch(value, device)
        return batch
    return exercises.find("02-move-batch").solution(batch, device)


def zeros(batch: Any, device: str) -> Any:
    moved = exercises.find("02-move-batch").solution(batch, device)
    return exercises.find("02-move-batch").solution(
        {k: torch.zeros_like(v) if isinstance(v, torch.Tensor) else v for k, v in moved.items()}
        if isinstance(moved, dict)
        else moved,
        device,
    )


def only_floats(batch: Any, device: str) -> Any:
    from torch.utils import _pytree

    return _pytree.tree_map(
        lambda v: v.to(device).float() if isinstance(v, torch.Tensor) else v, batch
    )


def nothing_from_nothing(batch: Any, device: str) -> Any:
    if isinstance(batch, dict):
        return {k: nothing_from_nothing(v, device) for k, v in batch.items()}
    if isinstance(batch, torch.Tensor):
        return batch.to(device)
    return exercises.find("02-move-batch").solution(batch, device) if batch else None


def with_tree_map(batch: Any, device: str) -> Any:
    from torch.utils import _pytree

    def to(value: Any) -> Any:
        return value.to(device) if isinstance(value, torch.Tensor) else value

    return _pytree.tree_map(to, batch)


WRONG = [
    ("00-stopwatch", no_first_wait, "earlier work was still going on"),
    ("00-stopwatch", no_second_wait, "the work was still going on"),
    ("00-stopwatch", clock_read_before_the_wait, "about the time of its launch"),
    ("00-stopwatch", milliseconds, "more than went by"),
    ("00-stopwatch", lambda function: 1.0, "0 calls"),
    ("00-stopwatch", lambda function: None, "still to be written"),
    ("02-leftover", Untrained, "[2.0, 3.0, 4.0, 5.0]"),
    ("02-leftover", TrainedOffset, "12 numbers as parameters"),
    ("02-leftover", MovedInForward, "not in there"),
    ("02-leftover", AlwaysOnTheGpu, "0 numbers as parameters"),
    ("02-leftover", torch.nn.Linear, "missing 2 required"),
    ("02-leftover", 3, "3"),
    ("02-fewer-copies", on_the_host, "no tensor was copied to it"),
    ("02-fewer-copies", item_in_the_loop, "8 copies to the host"),
    ("02-fewer-copies", weights_in_the_loop, "16 copies to the GPU"),
    ("02-fewer-copies", still_a_tensor, "a tensor on cuda:0"),
    ("02-fewer-copies", summed_on_the_host, "not all batches"),
    ("02-fewer-copies", copied_for_show, "not computed there"),
    ("02-fewer-copies", made_anew, "16 copies to the GPU"),
    ("02-fewer-copies", lambda batches, weights: 0.0, "0.0"),
    ("02-fewer-copies", lambda batches, weights: None, "still to be written"),
    ("02-move-batch", only_dicts, "cpu"),
    ("02-move-batch", breaks_namedtuples, "a tuple"),
    ("02-move-batch", changes_the_batch, "was changed"),
    ("02-move-batch", zeros, "0.0"),
    ("02-move-batch", only_floats, "torch.float32"),
    ("02-move-batch", nothing_from_nothing, "NoneType"),
    ("02-move-batch", lambda batch, device: batch, "on cpu"),
    ("02-move-batch", lambda batch, device: None, "still to be written"),
    ("02-move-batch", "move", "'str' object is not callable"),
]
RIGHT = [
    ("02-leftover", OneMatrix),
    ("02-fewer-copies", all_at_once),
    ("02-move-batch", with_tree_map),
]


@pytest.mark.parametrize(("name", "answer", "seen"), WRONG)
def test_a_wrong_answer_is_told_why(name: str, answer: Any, seen: str) -> None:
    verdict = gpututor.check(name, answer)
    assert not verdict.passed
    assert seen in verdict.seen


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_another_right_answer_is_right(name: str, answer: Any) -> None:
    verdict = gpututor.check(name, answer)
    assert verdict.passed, verdict
