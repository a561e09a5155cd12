"""What the simulated GPU does not do, refused by name where PyTorch would fail otherwise.

Some of it would even answer: TorchScript would save a simulated module's empty storages.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.export
import torch.nested
from torch.utils import _pytree as pytree

from .errors import NotSimulatedError
from .factories import wanted_device
from .tensor import is_simulated

#: (where, what it is called, names): refused whatever the arguments.
ALWAYS: list[tuple[Any, str, tuple[str, ...]]] = [
    (torch, "torch", ("compile",)),
    (
        torch.cuda,
        "torch.cuda",
        (
            "CUDAGraph",
            "graph",
            "graph_pool_handle",
            "make_graphed_callables",
            "MemPool",
            "use_mem_pool",
            "clock_rate",  # these ask the driver's library about a real GPU
            "device_memory_used",
            "list_gpu_processes",
            "memory_usage",
            "power_draw",
            "temperature",
            "utilization",
        ),
    ),
    (
        torch.cuda.tunable,
        "torch.cuda.tunable",
        tuple(name for name in torch.cuda.tunable.__all__ if not name.endswith("is_enabled")),
    ),
]
#: Refused where an argument is simulated, or names a simulated device.
WHERE_SIMULATED: list[tuple[Any, str, tuple[str, ...]]] = [
    (torch._C, "torch.utils.dlpack", ("_to_dlpack",)),
    (torch.utils.dlpack, "torch.utils.dlpack", ("to_dlpack",)),
    (torch.nested, "torch.nested", ("nested_tensor", "as_nested_tensor")),
    (torch.export, "torch.export", ("export",)),
    (torch.jit, "torch.jit", ("load", "save")),
    (torch.jit.ScriptModule, "torch.jit.ScriptModule", ("save",)),
    (torch.jit._script.RecursiveScriptModule, "torch.jit.ScriptModule", ("save",)),
    (torch.Tensor, "torch.Tensor", ("as_subclass",)),
]


def always(name: str) -> Callable[..., Any]:
    """Return a function that refuses."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotSimulatedError(name)

    return refuse


def where_simulated(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that refuses what is simulated, and else is the original."""

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        if any(_is_simulated(value) for value in _parts(args, kwargs)):
            raise NotSimulatedError(name)
        return original(*args, **kwargs)

    return function


def _parts(args: Any, kwargs: dict[str, Any]) -> Iterator[Any]:
    for value in pytree.tree_leaves((args, kwargs)):
        if isinstance(value, torch.nn.Module):
            yield from value.parameters()
            yield from value.buffers()
        else:
            yield value
    for name in ("device", "map_location"):
        device = kwargs.get(name)
        yield wanted_device(device) if isinstance(device, (int, str)) else device


def _is_simulated(value: object) -> bool:
    return is_simulated(value) or (isinstance(value, torch.device) and value.type == "cuda")


def functions() -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """Yield everything to replace: where, its name, and what replaces it."""
    for owner, label, names in ALWAYS:
        for name in names:
            if hasattr(owner, name):
                yield owner, name, always(f"{label}.{name}")
    for owner, label, names in WHERE_SIMULATED:
        for name in names:
            original = getattr(owner, name, None)
            if original is not None:
                yield owner, name, where_simulated(f"{label}.{name.lstrip('_')}", original)
