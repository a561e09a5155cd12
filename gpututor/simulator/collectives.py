"""What ``torch.nn.parallel`` asks of C++: collectives, made of copies as CUDA's own are.

PyTorch's Python code for ``nn.DataParallel`` runs unchanged on top, in threads of its own. What it
costs the host is counted here in modelled time, because on a real GPU it decides whether two
devices win, and in slow motion it would seem to cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch._prims_common import suggest_memory_format
from torch._utils import _flatten_dense_tensors, _take_tensors, _unflatten_dense_tensors

from .operators import Operator, aten, handles
from .runtime import current

# Seconds on the host at real speed. Measured on the host of an NVIDIA H200, torch 2.11,
# 30 November 2026, with networks of 2 to 65 modules and 2 to 128 parameters.
#: Copying one module (or parametrisation) for one device: 30 to 50 µs.
REPLICA = 33e-6
#: Sending one parameter or buffer to one device, beyond the launches: 5.7 µs.
TENSOR = 5.7e-6
#: Choosing cuDNN's plan for a convolution of a new geometry, in each thread anew because PyTorch
#: keeps plans per thread: 0.8 to 1.4 ms. The workers of DataParallel are new threads every time.
PLAN = 1.3e-3


def replicate(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``nn.Module._replicate_for_data_parallel``, whose time counts."""

    def _replicate_for_data_parallel(self: nn.Module) -> nn.Module:
        current().spend(REPLICA)
        copied: nn.Module = original(self)
        return copied

    return _replicate_for_data_parallel


@handles(aten.convolution.default)
def _convolution(operator: Operator, args: Any, kwargs: Any) -> Any:
    simulation = current()
    geometries = tuple(getattr(value, "_geometry", None) for value in args[:2])
    key = (geometries, *(tuple(value) for value in args[3:6]))
    plans = simulation.thread.plans
    if key not in plans:
        plans.add(key)
        simulation.spend(PLAN)
    return operator.kernel(args, kwargs)


def _device(index: int) -> torch.device:
    return torch.device("cuda", index)


def broadcast(tensor: torch.Tensor, devices: Sequence[int]) -> list[torch.Tensor]:
    """Return `tensor` on each device: itself where it already is."""
    return [tensor.to(_device(index), non_blocking=True) for index in devices]


def broadcast_out(tensor: torch.Tensor, out: list[torch.Tensor]) -> list[torch.Tensor]:
    """Copy `tensor` into each of `out`."""
    for position, target in enumerate(out):
        if target.device.type != "cuda":
            raise RuntimeError(
                f"Expected all output tensors to be CUDA tensors, but output tensor at index "
                f"{position} has device '{target.device}'"
            )
        if target.shape != tensor.shape:
            raise RuntimeError(
                "Expected all output tensors to have same shape as the source tensor "
                f"{list(tensor.shape)}, but output tensor at index {position} has shape "
                f"{list(target.shape)}"
            )
        target.copy_(tensor, non_blocking=True)
    return out


def broadcast_coalesced(
    tensors: Sequence[torch.Tensor], devices: Sequence[int], buffer_size: int
) -> list[list[torch.Tensor]]:
    """Return all tensors on each device, sent in few large pieces.

    Those of the first device are the tensors themselves; those of another are views of a buffer.
    """
    simulation = current()
    simulation.engine.workers = len(devices)
    simulation.spend(TENSOR * len(tensors) * len(devices))
    if any(tensor.device != _device(devices[0]) for tensor in tensors):
        raise RuntimeError(f"All tensors must be on devices[0]: {devices[0]}")
    with torch.no_grad():
        found: list[list[torch.Tensor]] = [[*tensors]]
        found += [[torch.Tensor()] * len(tensors) for _ in devices[1:]]
        places = {id(tensor): place for place, tensor in enumerate(tensors)}
        for chunk in _take_tensors(tensors, buffer_size):
            flat = _flatten_dense_tensors(chunk)
            for copies, index in zip(found[1:], devices[1:], strict=True):
                sent = flat.to(_device(index), non_blocking=True)
                for tensor, part in zip(chunk, _unflatten_dense_tensors(sent, chunk), strict=True):
                    copies[places[id(tensor)]] = part.data  # a version counter of its own
    return found


def scatter(
    tensor: torch.Tensor,
    devices: Sequence[int],
    chunk_sizes: Sequence[int] | None,
    dim: int | None,
    streams: Sequence[Any] | None = None,
) -> list[torch.Tensor]:
    """Return the chunks of `tensor`, each on its device; there can be fewer than devices."""
    if not devices:
        raise RuntimeError("Expected at least one device to scatter to")
    if chunk_sizes is not None and len(chunk_sizes) != len(devices):
        raise RuntimeError(
            "Expected devices and chunk_sizes to be of same length, but got len(devices) = "
            f"{len(devices)} and len(chunk_sizes) = {len(chunk_sizes)}"
        )
    dim = dim or 0
    parts = tensor.split(list(chunk_sizes), dim) if chunk_sizes else tensor.chunk(len(devices), dim)
    current().engine.workers = len(parts)
    moved = []
    for place, part in enumerate(parts):
        with torch.cuda.stream(streams[place] if streams else None):
            moved.append(part.to(_device(devices[place]), non_blocking=True))
    return moved


def scatter_out(
    tensor: torch.Tensor, out: list[torch.Tensor], dim: int, streams: Any = None
) -> list[torch.Tensor]:
    """Copy the chunks of `tensor` into `out`."""
    parts = tensor.split([target.shape[dim] for target in out], dim)
    for target, part in zip(out, parts, strict=True):
        target.copy_(part, non_blocking=True)
    return out


def gather(
    tensors: Sequence[torch.Tensor], dim: int, destination: int | None = None
) -> torch.Tensor:
    """Return the tensors one behind the other, on one device; -1 is the host."""
    current().engine.workers = 1
    if not tensors:
        raise RuntimeError("Expected at least one tensor to gather from")
    first = tensors[0]
    dim = dim % max(first.dim(), 1)
    size = list(first.shape)
    size[dim] = 0
    for place, tensor in enumerate(tensors):
        if tensor.device.type != "cuda":
            raise RuntimeError(
                f"Expected all input tensors to be CUDA tensors, but tensor at index {place} has "
                f"device '{tensor.device}'"
            )
        if tensor.dim() != first.dim():
            raise RuntimeError(
                "Expected all input tensors to have the same number of dimensions, but tensor at "
                f"index {place}has {tensor.dim()} dimensions, (expected {first.dim()})"
            )
        expected = [*size[:dim], tensor.shape[dim], *size[dim:][1:]]
        if list(tensor.shape) != expected:
            raise RuntimeError(
                f"Input tensor at index {place} has invalid shape {list(tensor.shape)}, but "
                f"expected {expected}"
            )
        size[dim] += tensor.shape[dim]
    device = torch.device("cpu")
    if destination != -1:
        device = _device(torch.cuda.current_device() if destination is None else destination)
    formats = {suggest_memory_format(tensor) for tensor in tensors}
    memory_format = formats.pop() if len(formats) == 1 else torch.contiguous_format
    out = torch.empty(size, dtype=first.dtype, device=device, memory_format=memory_format)
    return gather_out(tensors, out, dim)


def gather_out(tensors: Sequence[torch.Tensor], out: torch.Tensor, dim: int) -> torch.Tensor:
    """Copy the tensors one behind the other into `out`."""
    parts = out.split([tensor.shape[dim] for tensor in tensors], dim)
    for part, tensor in zip(parts, tensors, strict=True):
        part.copy_(tensor, non_blocking=out.device.type == "cuda")
    return out


#: By the name under which ``torch._C`` has them.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "_broadcast": broadcast,
    "_broadcast_out": broadcast_out,
    "_broadcast_coalesced": broadcast_coalesced,
    "_scatter": scatter,
    "_scatter_out": scatter_out,
    "_gather": gather,
    "_gather_out": gather_out,
}
