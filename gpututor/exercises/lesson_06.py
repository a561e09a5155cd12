"""Lesson 06, Manage GPU memory."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from .. import memory
from ..arguments import shown
from ..scale import amount
from . import Exercise, Wrong
from .solutions import lesson_06 as solutions

MIB = 2**20
BUDGET = 16 * MIB
MOST_TRIES = 24  # of a search in 1 to 1000, which takes 10 by halves


def _network(inner: int, outer: int = 64) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(outer, inner), nn.ReLU(), nn.Linear(inner, outer)).to("cuda")


def _reference(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    loss = nn.functional.mse_loss(net(x.to("cuda")), y.to("cuda"))
    return list(torch.autograd.grad(loss, list(net.parameters())))


def _compare(net: nn.Module, right: list[torch.Tensor], case: str) -> None:
    found = [parameter.grad for parameter in net.parameters()]
    if all(gradient is None for gradient in found):
        raise Wrong("gradients in the network, left there by backward()", "none")
    pairs = list(zip(found, right, strict=True))
    if not all(a is not None and torch.allclose(a, b, rtol=1e-3, atol=1e-6) for a, b in pairs):
        ratio = (found[0].norm() / right[0].norm()).item() if found[0] is not None else 0.0
        raise Wrong(f"the gradients of the whole batch, {case}", f"{ratio:.3g} times as long")


def _check_fit(answer: Any) -> str:
    net = _network(1024)
    x, y = torch.randn(8192, 64), torch.randn(8192, 64)
    net(x[:16].to("cuda")).sum().backward()  # takes the libraries' workspaces
    right = _reference(net, x, y)
    net.zero_grad()
    gc.collect()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    answer(net, x, y)
    peak = torch.cuda.max_memory_allocated() - before
    _compare(net, right, "which are one mean over all 8192 samples")
    if peak > BUDGET:
        raise Wrong(f"a peak of at most {amount(BUDGET)} above the start", amount(peak))
    return f"the gradients of 8192 samples with a peak of {amount(peak)} above the start."


def _plain(value: Any) -> float:
    """Return a number or a tensor of one number, with a graph or without."""
    return float(value.detach() if isinstance(value, torch.Tensor) else value)


def _check_leak(answer: Any) -> str:
    net = _network(256)
    generator = torch.Generator().manual_seed(1)
    monitor = answer(net)
    grown, losses, top = [], [], float("-inf")
    for step in range(20):
        x = torch.randn(256, 64, generator=generator).to("cuda")
        loss = monitor.step(x)
        if not isinstance(loss, torch.Tensor) or not loss.requires_grad:
            raise Wrong("step() returns a loss that can be trained on", shown(loss))
        losses.append(loss.item())
        with torch.no_grad():  # without the hooks of the network
            out = net[2](net[1](net[0](x)))
            top = max(top, out.max().item())
        del loss, x, out
        if step in (4, 19):
            gc.collect()
            grown.append(torch.cuda.memory_allocated())
    if len(monitor.history) != 20 or any(
        abs(_plain(a) - b) > 1e-5 for a, b in zip(monitor.history, losses, strict=True)
    ):
        raise Wrong("20 losses in history, in order", f"{len(monitor.history)}, or other values")
    if abs(_plain(monitor.largest()) - top) > 1e-5:
        raise Wrong(f"largest() is {top:.4f}, of all steps", f"{_plain(monitor.largest()):.4f}")
    growth = max(0, grown[1] - grown[0]) / 15
    if growth > 2048:
        raise Wrong(
            "as much memory after step 20 as after step 5", f"{amount(growth)} more in each step"
        )
    return f"after step 20 the GPU holds {amount(growth)} more per step than after step 5."


def _a_step(tried: list[int], nbytes: int = MIB) -> Callable[[int], None]:
    """Return a step that needs twice `nbytes` for each sample, the first half before the rest."""

    def step(batch: int) -> None:
        tried.append(batch)
        if len(tried) > MOST_TRIES:
            raise Wrong(f"at most {MOST_TRIES} tries for 1000 sizes", "more: search by halves")
        torch.cuda.empty_cache()
        kept = []
        for _ in range(2):
            kept.append(torch.empty(batch * nbytes, dtype=torch.uint8, device="cuda"))

    return step


def _broken(batch: int) -> None:
    raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({batch}x3 and 4x4)")


def _check_search(answer: Any) -> str:
    gc.collect()
    for limit, most, right in ((192, 1000, 96), (64, 20, 20), (128, 1000, 64)):
        before = torch.cuda.memory_allocated()
        with memory.limit(limit * MIB):
            found = answer(_a_step([]), most)
        if found is None:
            raise NotImplementedError
        if found != right:
            raise Wrong(f"{right}, the largest of 1 to {most} that fits {limit} MiB", f"{found!r}")
        if torch.cuda.memory_allocated() > before:
            raise Wrong("nothing left behind", amount(torch.cuda.memory_allocated() - before))
    with memory.limit(MIB):  # a sample needs more than the free pieces of any segment in use
        found = answer(_a_step([], 256 * MIB), 1000)
    if found != 0:
        raise Wrong("0 where not even a batch of 1 fits", f"{found!r}")
    try:
        found = answer(_broken, 1000)
    except RuntimeError as error:
        if "mat1" in str(error):
            return "the largest batch under three limits, 0 where none fits, and a bug was let by."
        raise
    raise Wrong("an error that is not out of memory goes on to the caller", f"returned {found!r}")


def _check_accumulate(answer: Any) -> str:
    net = _network(32, 8)
    sizes: list[int] = []
    net.register_forward_hook(lambda _, args, out: sizes.append(len(out)))
    for samples, size in ((12, 4), (10, 4), (7, 7), (9, 8)):
        x, y = torch.randn(samples, 8, device="cuda"), torch.randn(samples, 8, device="cuda")
        right = _reference(net, x, y)
        net.zero_grad()
        sizes.clear()
        answer(net, x, y, size)
        case = f"{samples} samples in parts of {size}"
        if not sizes:
            raise NotImplementedError
        if max(sizes) > size or sum(sizes) != samples:
            raise Wrong(f"{case}", f"the network was given {', '.join(map(str, sizes))}")
        _compare(net, right, case)
    return "the parts gave the gradients of the whole batch, also where the last part is smaller."


EXERCISES = (
    Exercise(
        "06-fit",
        _check_fit,
        solutions.gradients,
        (
            "Where is the memory at the peak? See the line-by-line account in the lesson: "
            "the activations grow with the samples.",
            "Compute the batch in parts of 512, and bring each part to the GPU when its turn "
            "comes; backward() adds to the gradients that are there.",
            'mse_loss(..., reduction="sum") divided by y.numel() gives every sample its weight; '
            "and del what the next part does not need.",
        ),
    ),
    Exercise(
        "06-leak",
        _check_leak,
        solutions.Monitor,
        (
            "Make a Monitor, take a few steps, and run memory.leaks().",
            "There are two leaks: a loss that holds its graph, and a list of outputs.",
            "Keep loss.detach(), and only the largest number of all outputs so far.",
        ),
    ),
    Exercise(
        "06-largest-batch",
        _check_search,
        solutions.largest_batch,
        (
            "Catch torch.OutOfMemoryError and nothing else, in a small function that returns "
            "True or False.",
            "Try the next size outside the except block: inside it, the failed step still holds "
            "its tensors.",
            "Halve the range: keep the largest size that worked and the smallest that failed.",
        ),
    ),
    Exercise(
        "06-accumulate",
        _check_accumulate,
        solutions.accumulate,
        (
            "x.split(size) cuts the batch; the last part may be smaller.",
            "The loss of a part is a mean over its samples: what share of the batch is it?",
            "Multiply it by len(part) / len(x) before backward().",
        ),
    ),
)
