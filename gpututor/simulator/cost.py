"""How long a kernel takes: the roofline of the device's profile.

A kernel takes the longer of its arithmetic at the published peak and its bytes at the published
memory bandwidth, and never less than the shortest kernel of the profile. Arithmetic is counted by
``torch.utils.flop_counter``; bytes are those of inputs and outputs, each moved once.
A kernel too small to give every multiprocessor a block reaches only its share of the peak.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from .profiles import Profile

_THREADS = 1024  # elements one multiprocessor works on at a time, for an elementwise kernel
_TILE = 64 * 64  # outputs of one block of a matrix product
_BANDWIDTH_SHARE = 4.0  # a quarter of the multiprocessors can fill the memory bus


def kernel_time(
    func: Any,
    args: Any,
    kwargs: Any,
    result: Any,
    inputs: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor],
    profile: Profile,
) -> tuple[float, float]:
    """Return the seconds (in slow motion) of a kernel, and how often it fills the device.

    The second is its blocks over the multiprocessors: 0.25 leaves room for three more such
    kernels, 1 and more for none.

    Parameters
    ----------
    func : OpOverload
        The operator.
    args, kwargs, result
        Its arguments and result, as meta tensors.
    inputs, outputs : sequence of Tensor
        The tensors it reads and writes.
    profile : Profile
        The device's rates.
    """
    moved = sum(_extent(tensor) for tensor in inputs) + sum(_extent(t) for t in outputs)
    work = max((tensor.numel() for tensor in (*inputs, *outputs)), default=1)
    dtype = inputs[0].dtype if inputs else (outputs[0].dtype if outputs else torch.float32)
    counter = flop_registry.get(func.overloadpacket)
    if counter is None:
        flops = float(work)
        blocks = math.ceil(work / _THREADS)
    else:
        flops = float(counter(*args, **kwargs, out_val=result))
        biggest = max((tensor.numel() for tensor in outputs), default=1)
        blocks = math.ceil(biggest / _TILE)
    fills = max(1, blocks) / profile.multiprocessors
    share = min(1.0, fills)
    arithmetic = flops / (peak(profile, dtype) * share)
    movement = moved / (profile.bandwidth * min(1.0, share * _BANDWIDTH_SHARE))
    return max(arithmetic, movement, profile.kernel_seconds) * profile.slowdown, fills


def peak(profile: Profile, dtype: torch.dtype) -> float:
    """Return the operations per second of `dtype`; float32's where none is published."""
    if dtype.is_complex:
        dtype = torch.float64 if dtype == torch.complex128 else torch.float32
    return profile.peak.get(dtype, profile.peak[torch.float32])


def _extent(tensor: torch.Tensor) -> int:
    """Return the bytes of the distinct elements of `tensor`."""
    count = 1
    for length, step in zip(tensor.shape, tensor.stride(), strict=True):
        if step:
            count *= length
    return count * tensor.element_size()
