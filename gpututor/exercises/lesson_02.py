"""Lesson 02, Move tensors."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import torch

from ..transfer import count_copies
from . import Exercise, Wrong
from .solutions import lesson_02 as solutions

BATCHES = 8


def _check_leftover(answer: Any) -> str:
    if not (isinstance(answer, type) and issubclass(answer, torch.nn.Module)):
        raise Wrong("the class Scale itself", f"{answer!r}")
    expected = "a module whose tensors all follow it, to the GPU and back"
    module = answer()
    names = [name for name, _ in module.named_parameters()]
    trained = sum(parameter.numel() for parameter in module.parameters())
    if trained != 8:
        raise Wrong(
            "8 numbers that are trained: two factors of 4",
            f"the module lists {trained} numbers as parameters {names or ''}".strip(),
        )
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(3)
    for device in ("cuda", "cpu", "cuda"):
        module.to(device)
        try:
            y = module(torch.full((3, 4), 2.0, device=device))
        except RuntimeError as error:
            first = str(error).partition("\n")[0]
            raise Wrong(expected, f"after .to({device!r}) the call failed: {first}") from None
        if y.device.type != device:
            raise Wrong(expected, f"after .to({device!r}) the result was on {y.device}")
        if y.tolist() != [[18.0, 19.0, 20.0, 21.0]] * 3:
            raise Wrong(
                "x times both factors plus offset: [18, 19, 20, 21] for x = 2 and factors of 3",
                f"{y[0].tolist()}",
            )
        y.sum().backward()
        for name, parameter in module.named_parameters():
            if parameter.grad is None or parameter.grad.device.type != device:
                raise Wrong(f"a gradient for {name} on {device}", "none there")
        module.zero_grad()
    if "offset" not in module.state_dict():
        raise Wrong("offset in the state_dict, so that a checkpoint has it", "it is not in there")
    left = [k for k, v in vars(module).items() if isinstance(v, torch.Tensor) and not v.is_cuda]
    if left:
        raise Wrong(expected, f"{left[0]} is still on the host")
    return f"{', '.join([*names, 'offset'])} moved to the GPU, back, and to the GPU again."


def _check_fewer_copies(answer: Any) -> str:
    generator = torch.Generator().manual_seed(0)
    batches = [torch.randint(0, 9, (16, 32), generator=generator).float() for _ in range(BATCHES)]
    weights = torch.arange(32.0)
    right = sum(float((batch * weights).sum()) for batch in batches)
    with count_copies() as copies:
        found = answer(list(batches), weights)
    if found is None:
        raise NotImplementedError
    if isinstance(found, torch.Tensor):
        raise Wrong("a Python number, as .item() gives", f"a tensor on {found.device}")
    if not isinstance(found, (int, float)) or abs(found - right) > 1e-3 * abs(right):
        raise Wrong(f"the total {right:g}", f"{found!r}")
    if copies.to_device == 0:
        raise Wrong("the products and sums on the GPU", "no tensor was copied to it")
    if copies.bytes_to_device < sum(batch.nbytes for batch in batches):
        raise Wrong("the products and sums on the GPU", "not all batches were copied to it")
    if copies.on_device < 2:
        raise Wrong("the products and sums on the GPU", "they were not computed there")
    if copies.to_host > 1:
        raise Wrong("1 copy to the host, at the end", f"{copies.to_host} copies to the host")
    if copies.to_device > BATCHES + 1:
        raise Wrong(
            f"at most {BATCHES + 1} copies to the GPU: each batch once, the weights once",
            f"{copies.to_device} copies to the GPU",
        )
    count = "1 copy" if copies.to_device == 1 else f"{copies.to_device} copies"
    return f"the total is right, with {count} to the GPU and {copies.to_host} back."


_Pair = namedtuple("_Pair", "image mask")


def _check_move(answer: Any) -> str:
    def fresh() -> Any:
        return {
            "image": torch.arange(6.0).view(2, 3).requires_grad_(),
            "sizes": [torch.tensor([3, 4]), {"deep": (torch.full((1,), 5.0), "a name")}],
            "pair": _Pair(torch.tensor([True, False]), None),
            "name": "image",
            "count": 0,
            "scale": 1.0,
            "empty": [],
            "text": "",
        }

    batch = fresh()
    moved = answer(batch, "cuda")
    if moved is None:
        raise NotImplementedError
    if batch["image"].is_cuda or batch["sizes"][0].is_cuda or batch["sizes"][1]["deep"][0].is_cuda:
        raise Wrong("new containers, and the batch left as it was", "the batch itself was changed")
    _same_shape(moved, batch, "batch")
    back = answer(moved, "cpu")
    if back["sizes"][1]["deep"][0].is_cuda:
        raise Wrong('tensors on the host after move(moved, "cpu")', "one is still on the GPU")
    alone = answer(torch.ones(1), "cuda")
    if not (isinstance(alone, torch.Tensor) and alone.is_cuda):
        raise Wrong("a tensor alone to be moved too", f"{alone!r}")
    return "tensors moved at every depth; the rest, and the batch given, stayed as they were."


def _same_shape(moved: Any, given: Any, place: str) -> None:
    """Demand that `moved` is `given` with every tensor on the GPU."""
    if isinstance(given, torch.Tensor):
        if not (isinstance(moved, torch.Tensor) and moved.is_cuda):
            where = f"on {moved.device}" if isinstance(moved, torch.Tensor) else f"{moved!r}"
            raise Wrong(f"{place} on the GPU", where)
        for what in ("dtype", "shape"):
            if getattr(moved, what) != getattr(given, what):
                raise Wrong(
                    f"{place} with its {what}, {getattr(given, what)}", f"{getattr(moved, what)}"
                )
        if not torch.equal(moved.cpu(), given):
            raise Wrong(f"{place} with its values, {given.tolist()}", f"{moved.tolist()}")
        if moved.requires_grad != given.requires_grad:
            raise Wrong(f"{place} still part of its graph", "it was detached, or cut off")
        return
    if type(moved) is not type(given):
        raise Wrong(f"{place} to be a {type(given).__name__}", f"a {type(moved).__name__}")
    if isinstance(given, dict):
        if list(moved) != list(given):
            raise Wrong(f"the keys {list(given)} in {place}", f"{list(moved)}")
        for key in given:
            _same_shape(moved[key], given[key], f"{place}[{key!r}]")
    elif isinstance(given, (list, tuple)):
        if len(moved) != len(given):
            raise Wrong(f"{len(given)} items in {place}", f"{len(moved)}")
        for index, (a, b) in enumerate(zip(moved, given, strict=True)):
            _same_shape(a, b, f"{place}[{index}]")
    elif moved != given:
        raise Wrong(f"{place} to stay {given!r}", f"{moved!r}")


EXERCISES = (
    Exercise(
        "02-leftover",
        _check_leftover,
        solutions.Scale,
        (
            "Which of the tensors in __init__ does module.named_parameters() list? "
            "Which does module.named_buffers()?",
            "A Python list hides what is in it from the module: torch.nn.ParameterList does not.",
            "A tensor that moves but is not trained is a buffer: "
            'self.register_buffer("offset", ...).',
        ),
    ),
    Exercise(
        "02-fewer-copies",
        _check_fewer_copies,
        solutions.total,
        (
            'Each .to("cuda") of a CPU tensor is one copy, and so is each .item().',
            "What is the same in every turn of the loop can be copied before the loop.",
            "Keep the running total in a tensor on the GPU, and call .item() once, after the loop.",
        ),
    ),
    Exercise(
        "02-move-batch",
        _check_move,
        solutions.move,
        (
            "Ask what the batch is: a tensor, a dict, a list or tuple, or something else?",
            "For a container, call move on each thing in it and build a new container.",
            "A namedtuple takes its fields one by one: type(batch)(*values). It has _fields.",
        ),
    ),
)
