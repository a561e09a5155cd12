"""Pinned memory of the host: ordinary memory that the simulator knows as page-locked."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import torch


class _Buffer(bytearray):
    """Memory that a pinned tensor's storage holds on to; it can be looked up while it lives."""


_buffers: weakref.WeakValueDictionary[int, _Buffer] = weakref.WeakValueDictionary()


def empty_strided(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Return an uninitialised pinned tensor of the host."""
    extent = 0
    if all(size):
        extent = 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    with torch._C.DisableTorchFunction():
        if not extent:
            return torch.empty_strided(size, stride, dtype=dtype, device="cpu")
        buffer = _Buffer(extent * dtype.itemsize)
        flat = torch.frombuffer(buffer, dtype=dtype)
        _buffers[flat.data_ptr()] = buffer
        return flat.as_strided(size, stride)


def pin(value: torch.Tensor) -> torch.Tensor:
    """Return `value` in pinned memory: itself where it already is."""
    if is_pinned(value):
        return value
    copy = empty_strided(value.shape, torch.empty_like(value, device="meta").stride(), value.dtype)
    copy.copy_(value)
    return copy


def is_pinned(value: torch.Tensor) -> bool:
    """Tell whether a tensor of the host is in pinned memory."""
    if not _buffers or value.layout != torch.strided or value.device.type != "cpu":
        return False
    with torch._C.DisableTorchFunction():
        return value.untyped_storage().data_ptr() in _buffers
