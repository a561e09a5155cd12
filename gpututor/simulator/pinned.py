"""Pinned memory of the host: ordinary memory that the simulator knows as page-locked.

As with PyTorch's caching allocator for pinned memory, a size is rounded up to a power of two,
page-locking a new block takes the host time, and a block given back is used again for nothing.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Sequence

import torch

from . import runtime


class _Buffer(bytearray):
    """Memory that a pinned tensor's storage holds on to; it can be looked up while it lives."""


_buffers: weakref.WeakValueDictionary[int, _Buffer] = weakref.WeakValueDictionary()
_spare: defaultdict[int, list[None]] = defaultdict(list)  # size -> one for each block given back


def forget() -> None:
    """Give back the blocks that wait to be used again."""
    _spare.clear()


def _page_lock(nbytes: int) -> _Buffer:
    """Return memory for `nbytes`; the host pays for a block that is new."""
    size = 1 << max(9, (nbytes - 1).bit_length())
    if _spare[size]:
        _spare[size].pop()
    else:
        simulation = runtime.current()
        profile = simulation.devices[0].profile
        simulation.engine.busy(size / profile.pin_bandwidth * profile.slowdown)
    buffer = _Buffer(nbytes)
    weakref.finalize(buffer, _spare[size].append, None)
    return buffer


def empty_strided(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Return an uninitialised pinned tensor of the host."""
    extent = 0
    if all(size):
        extent = 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    with torch._C.DisableTorchFunction():
        if not extent:
            return torch.empty_strided(size, stride, dtype=dtype, device="cpu")
        buffer = _page_lock(extent * dtype.itemsize)
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
