"""The checks of lesson 05 take right answers, and say what is wrong with the others."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present
from verdicts import is_right, is_wrong

import gpututor
from gpututor import exercises

pytestmark = pytest.mark.usefixtures("two_devices")


def mean_of_means(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    copies = [copy.deepcopy(net).to(f"cuda:{i}") for i in range(2)]
    for each, part, target in zip(copies, x.chunk(2), y.chunk(2), strict=True):
        device = next(each.parameters()).device
        (mse_loss(each(part.to(device)), target.to(device)) / 2).backward()
    pairs = zip(*(each.parameters() for each in copies), strict=True)
    return [p.grad + q.grad.to("cuda:0") for p, q in pairs]


def sum_of_means(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    return [2 * gradient for gradient in mean_of_means(net, x, y)]


def on_one_device(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Any:
    return torch.autograd.grad(mse_loss(net(x), y), list(net.parameters()))


def left_on_the_second(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Any:
    return [gradient.to("cuda:1") for gradient in on_one_device(net, x, y)]


def data_parallel(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Any:
    mse_loss(nn.DataParallel(net, device_ids=[0, 1])(x), y).backward()
    return [parameter.grad for parameter in net.parameters()]


def plain(net: nn.Module, state: dict[str, Any]) -> None:
    net.load_state_dict(state)


def into_the_inner(net: nn.Module, state: dict[str, Any]) -> None:
    getattr(net, "module", net).load_state_dict(state)


def inner(net: nn.Module) -> nn.Module:
    return net.module if isinstance(net, nn.DataParallel) else net


def blind(net: nn.Module, state: dict[str, Any]) -> None:
    inner(net).load_state_dict({name[7:]: value for name, value in state.items()})


def in_place(net: nn.Module, state: dict[str, Any]) -> None:
    if "module.module.weight" in state:
        consume_prefix_in_state_dict_if_present(state, "module.")
    inner(net).load_state_dict(state)


def not_strict(net: nn.Module, state: dict[str, Any]) -> None:
    if "module.module.weight" in state:
        state = {name.removeprefix("module."): value for name, value in state.items()}
    inner(net).load_state_dict(state, strict=False)


def naive(one: Any, two: Any, batches: Any) -> Any:
    import time

    def seconds(step: Any, batch: int) -> float:
        begin = time.perf_counter()
        step(batch)
        return time.perf_counter() - begin

    return next((b for b in batches if seconds(two, b) < seconds(one, b)), None)


def with_synchronize(one: Any, two: Any, batches: Any) -> Any:
    import time

    def seconds(step: Any, batch: int) -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        step(batch)
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    return next((b for b in batches if seconds(two, b) < seconds(one, b)), None)


WRONG = [
    ("05-gradients", mean_of_means, "one GPU's gradients for 7 samples", "times as long"),
    ("05-gradients", sum_of_means, "one GPU's gradients for 8 samples", "2.00 to 2.00 times"),
    ("05-gradients", on_one_device, "about half of 8 samples", "8 on cuda:0"),
    ("05-gradients", left_on_the_second, "every gradient on cuda:0", "one on cuda:1"),
    ("05-gradients", lambda net, x, y: 1.0, "a list of 4 gradients", "1.0"),
    ("05-gradients", lambda net, x, y: None, "", "still to be written"),
    ("05-checkpoint", plain, "the network, loaded into nn.DataParallel", "RuntimeError"),
    ("05-checkpoint", into_the_inner, "loaded into the network", "RuntimeError"),
    ("05-checkpoint", blind, "the network, loaded into the network", "RuntimeError"),
    ("05-checkpoint", in_place, "left as it was", "names were changed"),
    ("05-checkpoint", not_strict, "an error for a checkpoint", "in silence"),
    ("05-checkpoint", lambda net, state: None, "", "has another value"),
    ("05-first-win", naive, "8: two GPUs win from 8 on", "None"),
    ("05-first-win", lambda one, two, batches: batches[-1], "None: two GPUs never win", "8"),
    ("05-first-win", lambda one, two, batches: 3, "one of the batch sizes", "3"),
    ("05-first-win", lambda one, two, batches: None, "8: two GPUs win", "None"),
]
RIGHT = [("05-gradients", data_parallel), ("05-first-win", with_synchronize)]


@pytest.mark.parametrize(("name", "answer", "expected", "seen"), WRONG)
def test_a_wrong_answer_is_told_why(name: str, answer: Any, expected: str, seen: str) -> None:
    is_wrong(name, answer, expected, seen)


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_another_right_answer_is_right(name: str, answer: Any) -> None:
    is_right(name, answer)


def test_one_device_is_not_enough(simulate: Callable[[str], Any]) -> None:
    simulate("T4")
    verdict = gpututor.check("05-gradients", exercises.find("05-gradients").solution)
    assert "gpututor.start(gpus=2)" in verdict.expected
