"""Launching one kernel that PyTorch's own operators do not have on the CPU: attention, RNNs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from . import footprint, operators, runtime
from .device import Device
from .kernel import Kernel
from .memory_blocks import Block
from .tensor import Tensor, geometry, wrap


class Output(NamedTuple):
    """What one result looks like.

    Attributes
    ----------
    size : tuple of int
        Its shape.
    dtype : torch.dtype
        Its type.
    stride : tuple of int, optional
        Its strides; contiguous where it is left out.
    """

    size: tuple[int, ...]
    dtype: torch.dtype
    stride: tuple[int, ...] | None = None


def new(device: Device, output: Output) -> Tensor:
    """Return an uninitialised tensor on the stream that is current."""
    stride = output.stride or torch.empty(output.size, device="meta").stride()
    spec = geometry(output.size, stride, output.dtype, device)
    stream = runtime.current().launch_stream(device)
    block = device.memory.allocate(spec.nbytes, stream.stream_id)
    return wrap(spec, block.view(spec.size, spec.stride, spec.dtype), block)


def allocate(device: Device, nbytes: int) -> Block:
    """Return a block on the stream that is current."""
    stream = runtime.current().launch_stream(device)
    return device.memory.allocate(nbytes, stream.stream_id)


def launch(
    name: str,
    function: Callable[..., Any],
    inputs: Sequence[torch.Tensor],
    outputs: Sequence[Tensor],
    seconds: float,
    takes: footprint.Footprint | None = None,
) -> None:
    """Queue one kernel.

    Parameters
    ----------
    name : str
        What it is called when it fails.
    function : callable
        Takes the CPU tensors of `inputs`, returns those of `outputs`.
    inputs, outputs : sequence of Tensor
        Simulated tensors of one device.
    seconds : float
        Its time, in slow motion.
    takes : Footprint, optional
        The memory it takes beyond its results.
    """
    first: Any = inputs[0]
    device: Device = first._geometry.device
    stream = runtime.current().launch_stream(device)
    if takes is not None:
        operators.take(takes, device, stream)
    raw = [value._raw for value in inputs]  # type: ignore[attr-defined]
    kernel = Kernel(device, name, function, raw, {}, [], [value._raw for value in outputs])
    end = device.launch(stream, seconds, kernel)
    for value in outputs:
        value._block.written = end
