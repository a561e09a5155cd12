"""Pinned memory of the host: ordinary memory that the simulator knows as page-locked.

As with PyTorch's caching allocator for pinned memory, a size is rounded up to a power of two,
page-locking a new block takes the host time, and a block given back is used again for nothing.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch

from . import runtime
from .memory_statistics import Counter


class _Buffer(bytearray):
    """Memory that a pinned tensor's storage holds on to; it can be looked up while it lives."""


_buffers: weakref.WeakValueDictionary[int, _Buffer] = weakref.WeakValueDictionary()
_spare: defaultdict[int, list[None]] = defaultdict(list)  # size -> one for each block given back


#: What ``torch.cuda.host_memory_stats`` counts.
_counters = {
    name: Counter()
    for name in ("allocations", "allocated_bytes", "active_requests", "active_bytes")
}


def stats() -> dict[str, Any]:
    """Return what ``torch._C._cuda_hostMemoryStats`` returns; page-locking takes no real time."""
    found: dict[str, Any] = {name: counter.as_dict() for name, counter in _counters.items()}
    found["num_host_alloc"] = _counters["allocations"].allocated
    found["num_host_free"] = _counters["allocations"].freed
    for name in ("host_alloc_time", "host_free_time"):
        found[name] = dict.fromkeys(("total", "max", "min", "count", "avg"), 0)
    return found


def reset_peak() -> None:
    """Start the peaks again from the current values."""
    for counter in _counters.values():
        counter.peak = counter.current


def reset_accumulated() -> None:
    """Start all sums again from zero."""
    for counter in _counters.values():
        counter.allocated = counter.freed = 0


def forget() -> None:
    """Give back the blocks that wait to be used again."""
    for size, blocks in _spare.items():
        _counters["allocations"].change(-len(blocks))
        _counters["allocated_bytes"].change(-size * len(blocks))
    _spare.clear()


def _give_back(size: int) -> None:
    _counters["active_requests"].fall(1)
    _counters["active_bytes"].fall(size)
    _spare[size].append(None)


def _page_lock(nbytes: int) -> _Buffer:
    """Return memory for `nbytes`; the host pays for a block that is new."""
    size = 1 << max(9, (nbytes - 1).bit_length())
    if _spare[size]:
        _spare[size].pop()
    else:
        simulation = runtime.current()
        profile = simulation.devices[0].profile
        simulation.engine.busy(size / profile.pin_bandwidth * profile.slowdown)
        _counters["allocations"].rise(1)
        _counters["allocated_bytes"].rise(size)
    _counters["active_requests"].rise(1)
    _counters["active_bytes"].rise(size)
    buffer = _Buffer(nbytes)
    weakref.finalize(buffer, _give_back, size)
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
