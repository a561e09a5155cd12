"""Lesson 07, Train on the GPU."""

from __future__ import annotations

import io
import math
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from ..transfer import count_copies
from . import Exercise, Wrong
from .solutions import lesson_07 as solutions

STEPS, STOP = 6, 3
ALLOWED = 2  # copies to the host


def _net(device: str) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Linear(8, 16),
            torch.nn.BatchNorm1d(16),
            torch.nn.ReLU(),
            torch.nn.Linear(16, 3),
        ).to(device)
    return net, torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)


def _batches(device: str) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(STEPS, 20, 8, generator=generator)
    target = torch.randint(3, (STEPS, 20), generator=generator)
    return list(zip(x.to(device), target.to(device), strict=True))


def _train(net: Any, optimizer: Any, batches: Any) -> None:
    for x, target in batches:
        optimizer.zero_grad()
        cross_entropy(net(x), target).backward()
        optimizer.step()


def _same(one: torch.nn.Module, other: torch.nn.Module) -> list[str]:
    """Return the names of what differs."""
    pairs = zip(one.state_dict().items(), other.state_dict().values(), strict=True)
    return [name for (name, a), b in pairs if not torch.equal(a, b)]


def _check_resume(answer: Any) -> str:
    for name in ("save", "resume"):
        if not callable(getattr(answer, name, None)):
            raise Wrong("a class with save and resume", f"{answer!r} has no {name}")
    batches = _batches("cpu")
    whole, optimizer = _net("cpu")
    _train(whole, optimizer, batches)

    stopped, optimizer = _net("cpu")
    _train(stopped, optimizer, batches[:STOP])
    file = io.BytesIO()
    answer.save(file, stopped, optimizer, STOP)
    if not file.getvalue():
        raise NotImplementedError
    _train(stopped, optimizer, batches[STOP:])  # a checkpoint must not follow what comes later
    file.seek(0)
    net, optimizer = _net("cpu")
    step = answer.resume(file, net, optimizer)
    if step != STOP:
        raise Wrong(f"resume to return the step that was saved, {STOP}", f"{step!r}")
    _train(net, optimizer, batches[STOP:])
    differ = _same(whole, net)
    if differ:
        raise Wrong(
            "the weights of a training without a stop, to the last bit", f"{differ[0]} differs"
        )

    on_gpu, optimizer = _net("cuda")
    _train(on_gpu, optimizer, _batches("cuda"))
    file = io.BytesIO()
    answer.save(file, on_gpu, optimizer, STEPS)
    file.seek(0)
    net, optimizer = _net("cpu")
    answer.resume(file, net, optimizer)
    if any(value.is_cuda for value in net.state_dict().values()):
        raise Wrong("a network that stays on the host", "resume moved it to the GPU")
    if _same(net, on_gpu.to("cpu")):
        raise Wrong("the weights of the GPU's training", "others")
    return f"stopped after step {STOP} of {STEPS}, and the weights are equal to the last bit."


def _check_waits(answer: Any) -> str:
    batches = _batches("cuda")
    expected, optimizer = _net("cuda")
    losses, right = solutions.train_quietly(expected, optimizer, batches)
    net, optimizer = _net("cuda")
    with count_copies() as copies:
        found = answer(net, optimizer, batches)
    if found is None:
        raise NotImplementedError
    if not (isinstance(found, tuple) and len(found) == 2):
        raise Wrong("the mean loss and the number of right answers", f"{found!r}")
    if any(isinstance(value, torch.Tensor) for value in found):
        raise Wrong("two numbers of Python's", "a tensor")
    if not math.isclose(found[0], losses, rel_tol=1e-4) or found[1] != right:
        raise Wrong(f"a mean loss of {losses:.4f} and {right} right answers", f"{found}")
    if not all(
        torch.allclose(a, b, atol=1e-5)
        for a, b in zip(expected.parameters(), net.parameters(), strict=True)
    ):
        raise Wrong("the same trained weights", "other weights")
    if copies.to_host > ALLOWED:
        raise Wrong(f"at most {ALLOWED} copies to the host", f"{copies.to_host} copies to the host")
    return f"the results are right, with {copies.to_host} copies to the host in {STEPS} steps."


EXERCISES = (
    Exercise(
        "07-resume",
        _check_resume,
        solutions.Checkpoint,
        (
            "Three things change from step to step: put them into a dictionary and torch.save it.",
            "An optimizer has a state_dict() and load_state_dict() as a network has.",
            'A checkpoint from the GPU needs map_location="cpu" to load on the host.',
        ),
    ),
    Exercise(
        "07-waits",
        _check_waits,
        solutions.train_quietly,
        (
            "Which two lines of the loop read a number from the GPU?",
            'Begin with tensors on the GPU: torch.zeros((), device="cuda"), and add to those.',
            "Add loss.detach(), or the sum keeps the graph of every step. Read with .item() after "
            "the loop.",
        ),
    ),
)
