"""The checks of lesson 06 take right answers, and say what is wrong with the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss
from verdicts import is_right, is_wrong

from gpututor.exercises.solutions import lesson_06 as solutions

pytestmark = pytest.mark.usefixtures("simulated")


# -- 06-fit ----------------------------------------------------------------------------------


def whole(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
    mse_loss(net(x.cuda()), y.cuda()).backward()


def parts_on_the_gpu_at_once(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
    outputs = [net(part.cuda()) for part in x.split(512)]
    mse_loss(torch.cat(outputs), y.cuda()).backward()


def sum_of_means(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
    for part, target in zip(x.split(512), y.split(512), strict=True):
        mse_loss(net(part.cuda()), target.cuda()).backward()


def first_part(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
    whole(net, x[:512], y[:512])


def one_layer(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
    solutions.gradients(net, x, y)
    next(net.parameters()).grad = None


def by_a_quarter_of_a_thousand(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
    for part, target in zip(x.split(256), y.split(256), strict=True):
        (mse_loss(net(part.cuda()), target.cuda()) * len(part) / len(x)).backward()


# -- 06-leak ---------------------------------------------------------------------------------


class KeepsGraphs(solutions.Monitor):
    def step(self, x: torch.Tensor) -> Any:
        loss = (self.net(x) - x).square().mean()
        self.history.append(loss)
        return loss


class KeepsOutputs(solutions.Monitor):
    def look(self, net: Any, args: Any, out: torch.Tensor) -> None:
        self.__dict__.setdefault("outputs", []).append(out.detach())
        super().look(net, args, out)


class KeepsNothing(solutions.Monitor):
    def step(self, x: torch.Tensor) -> Any:
        return (self.net(x) - x).square().mean()


class KeepsHalves(solutions.Monitor):
    def step(self, x: torch.Tensor) -> Any:
        loss = super().step(x)
        self.history[-1] = self.history[-1] / 2
        return loss


class OfTheLastStep(solutions.Monitor):
    def look(self, net: Any, args: Any, out: torch.Tensor) -> None:
        self.top = out.max().item()


class ReturnsNumbers(solutions.Monitor):
    def step(self, x: torch.Tensor) -> Any:
        return super().step(x).item()


class ReturnsWithoutAGraph(solutions.Monitor):
    def step(self, x: torch.Tensor) -> Any:
        return super().step(x).detach()


class InTensors(solutions.Monitor):
    def look(self, net: Any, args: Any, out: torch.Tensor) -> None:
        self.top = torch.maximum(torch.as_tensor(self.top, device="cuda"), out.detach().max())


# -- 06-largest-batch ------------------------------------------------------------------------


def fits(step: Callable[[int], None], batch: int) -> bool:
    try:
        step(batch)
    except torch.OutOfMemoryError:
        return False
    return True


def one_by_one(step: Callable[[int], None], most: int) -> int:
    return next((batch - 1 for batch in range(1, most + 1) if not fits(step, batch)), most)


def by_doubling(step: Callable[[int], None], most: int) -> int:
    batch = 1
    while batch <= most and fits(step, batch):
        batch *= 2
    return batch // 2


def all_errors(step: Callable[[int], None], most: int) -> int:
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        try:
            step(middle)
            low = middle
        except RuntimeError:
            high = middle - 1
    return low


def at_least_one(step: Callable[[int], None], most: int) -> int:
    return max(1, int(solutions.largest_batch(step, most)))


kept: list[torch.Tensor] = []


def leaves_something(step: Callable[[int], None], most: int) -> int:
    found = int(solutions.largest_batch(step, most))
    kept.append(torch.ones(4, device="cuda"))
    return found


# -- 06-accumulate ---------------------------------------------------------------------------


def unweighted(net: nn.Module, x: torch.Tensor, y: torch.Tensor, size: int) -> None:
    parts = list(zip(x.split(size), y.split(size), strict=True))
    for part, target in parts:
        (mse_loss(net(part), target) / len(parts)).backward()


def in_one(net: nn.Module, x: torch.Tensor, y: torch.Tensor, size: int) -> None:
    mse_loss(net(x), y).backward()


def without_the_rest(net: nn.Module, x: torch.Tensor, y: torch.Tensor, size: int) -> None:
    full = len(x) // size * size
    solutions.accumulate(net, x[:full], y[:full], size)


def without_backward(net: nn.Module, x: torch.Tensor, y: torch.Tensor, size: int) -> None:
    for part in x.split(size):
        net(part)


def as_sums(net: nn.Module, x: torch.Tensor, y: torch.Tensor, size: int) -> None:
    for part, target in zip(x.split(size), y.split(size), strict=True):
        (mse_loss(net(part), target, reduction="sum") / y.numel()).backward()


WRONG: list[tuple[str, Any, str, str]] = [
    ("06-fit", whole, "a peak of at most 16 MiB", " MiB"),
    ("06-fit", parts_on_the_gpu_at_once, "a peak of at most 16 MiB", " MiB"),
    ("06-fit", sum_of_means, "one mean over all 8192 samples", "16 times as long"),
    ("06-fit", first_part, "one mean over all 8192 samples", "times as long"),
    ("06-fit", one_layer, "one mean over all 8192 samples", "0 times as long"),
    ("06-fit", lambda net, x, y: None, "left there by backward()", "none"),
    ("06-leak", KeepsGraphs, "as much memory after step 20", "more in each step"),
    ("06-leak", KeepsOutputs, "as much memory after step 20", "64.5 KiB more in each step"),
    ("06-leak", KeepsNothing, "20 losses in history, in order", "0, or"),
    ("06-leak", KeepsHalves, "20 losses in history, in order", "20, or other values"),
    ("06-leak", OfTheLastStep, "of all steps", "1."),
    ("06-leak", ReturnsNumbers, "a loss that can be trained on", "1."),
    ("06-leak", ReturnsWithoutAGraph, "a loss that can be trained on", "tensor("),
    ("06-largest-batch", one_by_one, "at most 24 tries", "search by halves"),
    ("06-largest-batch", by_doubling, "96, the largest of 1 to 1000 that fits 192 MiB", "64"),
    ("06-largest-batch", all_errors, "goes on to the caller", "returned 0"),
    ("06-largest-batch", at_least_one, "0 where not even a batch of 1 fits", "1"),
    ("06-largest-batch", leaves_something, "nothing left behind", "512 bytes"),
    ("06-largest-batch", lambda step, most: None, "", "still to be written"),
    ("06-accumulate", unweighted, "10 samples in parts of 4", "times as long"),
    ("06-accumulate", in_one, "12 samples in parts of 4", "was given 12"),
    ("06-accumulate", without_the_rest, "10 samples in parts of 4", "was given 4, 4"),
    ("06-accumulate", without_backward, "left there by backward()", "none"),
    ("06-accumulate", lambda net, x, y, size: None, "", "still to be written"),
]
RIGHT = [
    ("06-fit", by_a_quarter_of_a_thousand),
    ("06-leak", InTensors),
    ("06-accumulate", as_sums),
]


@pytest.mark.parametrize(("name", "answer", "expected", "seen"), WRONG)
def test_a_wrong_answer_is_told_why(name: str, answer: Any, expected: str, seen: str) -> None:
    is_wrong(name, answer, expected, seen)
    kept.clear()


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_another_right_answer_is_right(name: str, answer: Any) -> None:
    is_right(name, answer)
