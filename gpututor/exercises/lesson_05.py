"""Lesson 05, Split work with DataParallel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from . import Exercise, Wrong
from .solutions import lesson_05 as solutions

UNIT = 500_000  # cycles that one sample keeps a GPU busy in the exercise on the crossing


def _two_devices() -> None:
    if torch.cuda.device_count() < 2:
        raise Wrong("two GPUs: run gpututor.start(gpus=2) first", "one GPU")


def _check_gradients(answer: Any) -> str:
    _two_devices()
    generator = torch.Generator().manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)).to("cuda:0")
    samples: Counter[str] = Counter()
    net.register_forward_hook(  # a copy of the network has the hook too
        lambda _, args, out: samples.update({str(out.device): len(out)})
    )
    for size in (8, 7):
        x = torch.randn(size, 6, generator=generator).to("cuda:0")
        y = torch.randn(size, 2, generator=generator).to("cuda:0")
        right = torch.autograd.grad(nn.functional.mse_loss(net(x), y), list(net.parameters()))
        samples.clear()
        net.zero_grad()
        found = answer(net, x, y)
        if found is None:
            raise NotImplementedError
        _compare(found, right, size, samples)
    return "8 and 7 samples: both GPUs computed their part, and the gradients are one GPU's."


def _compare(found: Any, right: Any, size: int, samples: Counter[str]) -> None:
    if not isinstance(found, (list, tuple)) or len(found) != len(right):
        raise Wrong(f"a list of {len(right)} gradients, one for each parameter", f"{found!r}"[:80])
    for tensor in found:
        if not isinstance(tensor, torch.Tensor) or tensor.device != torch.device("cuda:0"):
            where = getattr(tensor, "device", type(tensor).__name__)
            raise Wrong("every gradient on cuda:0", f"one on {where}")
    said = ", ".join(f"{count} on {device}" for device, count in sorted(samples.items()))
    if max(samples.values(), default=0) > (size + 1) // 2 or len(samples) < 2:
        raise Wrong(f"about half of {size} samples on each GPU", said or "no call of net")
    ratios = [(a.norm() / b.norm()).item() for a, b in zip(found, right, strict=True)]
    if not all(torch.allclose(a, b, atol=1e-5) for a, b in zip(found, right, strict=True)):
        off = f"gradients {min(ratios):.2f} to {max(ratios):.2f} times as long as one GPU's"
        raise Wrong(f"one GPU's gradients for {size} samples", off)


class _Network(nn.Module):
    """A network with a child that is called ``module``: the word alone says nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.module = nn.Linear(3, 2)
        self.head = nn.Linear(2, 1)


def _check_load(answer: Any) -> str:
    saved = _Network()
    states: dict[str, Callable[[], Any]] = {
        "the network": saved.state_dict,
        "nn.DataParallel": nn.DataParallel(saved).state_dict,
    }
    for origin, state_dict in states.items():
        for target in ("the network", "nn.DataParallel"):
            case = f"a checkpoint of {origin}, loaded into {target}"
            inner = _Network()
            net = inner if target == "the network" else nn.DataParallel(inner)
            state = dict(state_dict())
            names = list(state)
            try:
                answer(net, state)
            except RuntimeError as error:
                first = " ".join(str(error).split())[:90]
                raise Wrong(f"to load {case}", f"RuntimeError: {first}") from None
            if list(state) != names:
                raise Wrong("the checkpoint left as it was", "its names were changed")
            for name, value in saved.state_dict().items():
                if not torch.equal(inner.state_dict()[name], value):
                    raise Wrong(f"to load {case}", f"{name} has another value")
    broken = {name: value for name, value in saved.state_dict().items() if "head" not in name}
    try:
        answer(_Network(), broken)
    except (RuntimeError, KeyError):
        return "both checkpoints went into both kinds of network, and a broken one was refused."
    raise Wrong("an error for a checkpoint without the weights of head", "it was taken in silence")


def _steps(overhead: float) -> tuple[Callable[[int], None], Callable[[int], None]]:
    """Return a step on one GPU and one on two that needs `overhead` more."""

    def one(batch: int) -> None:
        torch.cuda._sleep(int(UNIT * batch))

    def two(batch: int) -> None:
        cycles = int(UNIT * (overhead + batch / 2))
        torch.cuda._sleep(cycles)
        with torch.cuda.device(1):
            torch.cuda._sleep(cycles)
            done = torch.cuda.current_stream().record_event()
        torch.cuda.current_stream().wait_event(done)  # the result is gathered on cuda:0

    return one, two


def _check_first_win(answer: Any) -> str:
    _two_devices()
    for overhead, right in ((3.0, 8), (6.0, None)):
        found = answer(*_steps(overhead), (2, 4, 8))
        torch.cuda.synchronize(0)
        torch.cuda.synchronize(1)
        if found is not None and found not in (2, 4, 8):
            raise Wrong("one of the batch sizes, or None", f"{found!r}")
        if found != right:
            wins = f"two GPUs win from {right} on" if right else "two GPUs never win"
            raise Wrong(f"{right}: {wins} in this case", f"{found!r}")
    return "8 where two GPUs win from 8 on, None where they never do."


EXERCISES = (
    Exercise(
        "05-gradients",
        _check_gradients,
        solutions.split_gradients,
        (
            "The five steps of the lesson: scatter x and y, copy the network, apply, "
            "compute a loss in each copy, sum the gradients on cuda:0.",
            "With 7 samples the parts have 4 and 3: two means do not have the same weight.",
            'mse_loss(..., reduction="sum") divided by the numbers in the whole y has one weight '
            "for every sample.",
        ),
    ),
    Exercise(
        "05-checkpoint",
        _check_load,
        solutions.load,
        (
            "nn.DataParallel keeps the network in its attribute module: load into that.",
            "Compare the names of the checkpoint with those of net.state_dict(): "
            "strip the prefix only where they differ.",
            'A child of the network may be called module itself; name.removeprefix("module.") '
            "takes away the first one only.",
        ),
    ),
    Exercise(
        "05-first-win",
        _check_first_win,
        solutions.first_win,
        (
            "A step returns before its work is done: how did step_ms in the lesson wait?",
            "Record an event before the step and one after it, and wait for the second.",
            "Go through the batch sizes in order, and return the first where two is faster.",
        ),
    ),
)
