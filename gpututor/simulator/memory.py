"""PyTorch's caching allocator for one simulated device.

The rules are those of ``c10/cuda/CUDACachingAllocator.cpp``: sizes round up to 512 bytes; up to
1 MiB comes from 2 MiB segments (the small pool), up to 10 MiB from 20 MiB segments, and more from
segments of its own size rounded to 2 MiB (the large pool); best fit, within the stream that asks;
a block splits where enough remains, and merges with its free neighbours when it is freed.

A segment is one host buffer and a tensor's storage a piece of it, so that reuse, stale contents
and addresses are real. Pages never written to cost the host nothing.
"""

from __future__ import annotations

import bisect
import itertools
import threading
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .device import Device, StreamState

ROUND = 512
SMALL = 1 << 20  # the largest request the small pool serves
SMALL_SEGMENT = 2 << 20
LARGE_SEGMENT = 20 << 20
LARGE_MINIMUM = 10 << 20  # from here on a segment holds one request
LARGE_ROUND = 2 << 20


def rounded(size: int) -> int:
    """Return `size` in bytes as the allocator counts it."""
    return max(ROUND, -(-size // ROUND) * ROUND)


def segment_size(size: int) -> int:
    """Return the bytes of the segment made for a block of `size` bytes."""
    if size <= SMALL:
        return SMALL_SEGMENT
    if size < LARGE_MINIMUM:
        return LARGE_SEGMENT
    return -(-size // LARGE_ROUND) * LARGE_ROUND


class Segment:
    """One host buffer that stands for one ``cudaMalloc``."""

    __slots__ = ("_bases", "address", "shift", "size", "storage", "stream")

    def __init__(self, size: int, stream: int) -> None:
        self.size = size
        self.stream = stream
        self.storage = torch.UntypedStorage(size + ROUND, device="cpu")
        # CUDA's addresses are multiples of 512 bytes.
        self.shift = -self.storage.data_ptr() % ROUND
        self.address = self.storage.data_ptr() + self.shift
        self._bases: dict[torch.dtype, torch.Tensor] = {}

    def base(self, dtype: torch.dtype) -> torch.Tensor:
        """Return the whole segment as a flat CPU tensor of `dtype`, to take views of."""
        base = self._bases.get(dtype)
        if base is None:
            # A tensor made in inference mode could not be written by kernels, which run outside it.
            with torch._C.DisableTorchFunction(), torch.inference_mode(False):
                flat = torch.empty(0, dtype=dtype, device="cpu")
                first = self.shift // dtype.itemsize
                base = flat.set_(self.storage, first, (self.size // dtype.itemsize,), (1,))
            self._bases[dtype] = base
        return base


class _Piece:
    """A stretch of a segment: in use, or free in its pool."""

    __slots__ = ("free", "next", "offset", "previous", "requested", "segment", "size")

    def __init__(self, segment: Segment, offset: int, size: int) -> None:
        self.segment = segment
        self.offset = offset
        self.size = size
        self.free = True
        self.requested = 0
        self.previous: _Piece | None = None
        self.next: _Piece | None = None


class Block:
    """The storage of a simulated tensor and of all its views; freed when they are gone.

    Attributes
    ----------
    nbytes : int
        Bytes asked for.
    written : float
        Simulated time at which the last launched operator that writes it ends.
    """

    __slots__ = ("__weakref__", "_device", "_piece", "_used_until", "nbytes", "written")

    def __init__(self, device: Device, piece: _Piece | None, nbytes: int) -> None:
        self._device = device
        self._piece = piece
        self.nbytes = nbytes
        self.written = 0.0
        self._used_until: list[StreamState] = []

    def used_on(self, stream: StreamState) -> None:
        """Do not hand it out again before what `stream` has queued by its freeing is done."""
        if stream not in self._used_until:
            self._used_until.append(stream)

    @property
    def address(self) -> int:
        """The address of its first byte; 0 for an empty one."""
        piece = self._piece
        return 0 if piece is None else piece.segment.address + piece.offset

    def first(self, dtype: torch.dtype) -> int:
        """Return where it begins in its segment, in elements of `dtype`."""
        piece = self._piece
        return 0 if piece is None else (piece.segment.shift + piece.offset) // dtype.itemsize

    def view(
        self, size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype, offset: int = 0
    ) -> torch.Tensor:
        """Return the CPU tensor of this geometry over the block; `offset` in elements."""
        piece = self._piece
        if piece is None:
            with torch._C.DisableTorchFunction():
                return torch.empty_strided(size, stride, dtype=dtype, device="cpu")
        return piece.segment.base(dtype).as_strided(
            size, stride, (piece.segment.shift + piece.offset) // dtype.itemsize + offset
        )

    def __del__(self) -> None:
        # Runs in any thread and at any moment: queue only, take no lock.
        if self._piece is not None:
            busy = max((stream.end for stream in self._used_until), default=0.0)
            self._device.memory.returned.append((self._piece, busy))


class _Counter:
    """``current``, ``peak``, ``allocated`` and ``freed`` of one statistic."""

    __slots__ = ("allocated", "current", "freed", "peak")

    def __init__(self) -> None:
        self.current = self.peak = self.allocated = self.freed = 0

    def add(self, amount: int) -> None:
        if amount > 0:
            self.allocated += amount
            self.current = current = self.current + amount
            if current > self.peak:
                self.peak = current
        else:
            self.freed -= amount
            self.current += amount

    def as_dict(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in ("current", "peak", "allocated", "freed")}


class _Tally:
    """The statistics of one pool, or of both together."""

    __slots__ = (
        "allocated_bytes",
        "allocation",
        "inactive_split",
        "inactive_split_bytes",
        "requested_bytes",
        "reserved_bytes",
        "segment",
    )

    def __init__(self) -> None:
        for name in self.__slots__:
            setattr(self, name, _Counter())

    allocation: _Counter
    allocated_bytes: _Counter
    inactive_split: _Counter
    inactive_split_bytes: _Counter
    requested_bytes: _Counter
    reserved_bytes: _Counter
    segment: _Counter


#: Statistic of PyTorch's -> where it is kept. What is allocated is active.
_STATISTICS = {
    "allocation": "allocation",
    "segment": "segment",
    "active": "allocation",
    "inactive_split": "inactive_split",
    "allocated_bytes": "allocated_bytes",
    "reserved_bytes": "reserved_bytes",
    "active_bytes": "allocated_bytes",
    "inactive_split_bytes": "inactive_split_bytes",
    "requested_bytes": "requested_bytes",
}


class Allocator:
    """The caching allocator of one device.

    Parameters
    ----------
    device : Device
        Where it allocates.
    capacity : int
        Bytes of the device's memory.
    """

    def __init__(self, device: Device, capacity: int) -> None:
        self._device = device
        self.capacity = capacity
        self.limit = capacity
        self.fraction = 1.0
        self.returned: deque[tuple[_Piece, float]] = deque()  # filled by Block.__del__
        self._lock = threading.RLock()
        self._held: list[tuple[_Piece, float]] = []  # freed, but in use on another stream
        #: (stream, small?) -> free pieces sorted by size, then address
        self._pools: defaultdict[tuple[int, bool], list[tuple[int, int, int, _Piece]]]
        self._pools = defaultdict(list)
        self._order = itertools.count()
        self._segments: dict[int, tuple[Segment, _Piece]] = {}
        self.retries = 0
        self.ooms = 0
        self._all = _Tally()
        self._tallies = {True: (self._all, _Tally()), False: (self._all, _Tally())}  # by small?

    # -- allocating --------------------------------------------------------------------------

    def allocate(self, nbytes: int, stream: int) -> Block:
        """Return a block of `nbytes` for use on `stream`.

        Raises
        ------
        torch.OutOfMemoryError
            When neither a free block nor a new segment can hold it.
        """
        if nbytes == 0:
            return Block(self._device, None, 0)
        with self._lock:
            if self.returned or self._held:
                self.collect()
            return Block(self._device, self._take(nbytes, stream), nbytes)

    def _take(self, nbytes: int, stream: int) -> _Piece:
        size = rounded(nbytes)
        piece = self._find(size, stream) or self._grow(size, nbytes, stream)
        small = piece.segment.size == SMALL_SEGMENT and size <= SMALL
        if self._should_split(piece, size, small):
            rest = _Piece(piece.segment, piece.offset + size, piece.size - size)
            rest.previous, rest.next = piece, piece.next
            if rest.next is not None:
                rest.next.previous = rest
            if piece.previous is None and piece.next is None:
                pass  # a whole segment was not an inactive split
            else:
                self._split_inactive(-piece.size, small)
            piece.next, piece.size = rest, size
            self._insert(rest, small)
            self._split_inactive(rest.size, small)
        elif piece.previous is not None or piece.next is not None:
            self._split_inactive(-piece.size, small)
        piece.free = False
        piece.requested = nbytes
        self._use(piece, small, 1)
        return piece

    def collect(self) -> None:
        """Take back the blocks that Python and autograd have let go."""
        returned = self.returned
        with self._lock:
            while returned:
                piece, busy = returned.popleft()
                if busy and not self._device.engine.reached(busy):
                    self._held.append((piece, busy))
                else:
                    self._free(piece)
            if self._held:
                held, self._held = self._held, []
                for piece, busy in held:
                    if self._device.engine.reached(busy):
                        self._free(piece)
                    else:
                        self._held.append((piece, busy))

    def _find(self, size: int, stream: int) -> _Piece | None:
        pool = self._pools[stream, size <= SMALL]
        index = bisect.bisect_left(pool, (size, 0))
        if index == len(pool):
            return None
        return pool.pop(index)[3]

    def _grow(self, size: int, nbytes: int, stream: int) -> _Piece:
        wanted = segment_size(size)
        reserved = self._all.reserved_bytes
        if reserved.current + wanted > self.limit:
            self.retries += 1
            self.empty_cache()
            if reserved.current + wanted > self.limit:
                self.ooms += 1
                raise self._out_of_memory(nbytes)
        segment = Segment(wanted, stream)
        piece = _Piece(segment, 0, wanted)
        self._segments[segment.address] = (segment, piece)
        for tally in self._tallies[size <= SMALL]:
            tally.segment.add(1)
            tally.reserved_bytes.add(wanted)
        return piece

    @staticmethod
    def _should_split(piece: _Piece, size: int, small: bool) -> bool:
        rest = piece.size - size
        return rest >= ROUND if small else rest > SMALL

    def _insert(self, piece: _Piece, small: bool) -> None:
        address = piece.segment.address + piece.offset
        entry = (piece.size, address, next(self._order), piece)
        bisect.insort(self._pools[piece.segment.stream, small], entry)

    def _remove(self, piece: _Piece, small: bool) -> None:
        pool = self._pools[piece.segment.stream, small]
        address = piece.segment.address + piece.offset
        index = bisect.bisect_left(pool, (piece.size, address))
        pool.pop(index)

    def _free(self, piece: _Piece) -> None:
        small = piece.segment.size == SMALL_SEGMENT
        self._use(piece, small, -1)
        piece.free = True
        for neighbour in (piece.previous, piece.next):
            if neighbour is None or not neighbour.free:
                continue
            self._remove(neighbour, small)
            self._split_inactive(-neighbour.size, small)
            piece.size += neighbour.size
            if neighbour is piece.previous:
                piece.offset = neighbour.offset
                piece.previous = neighbour.previous
                if piece.previous is not None:
                    piece.previous.next = piece
            else:
                piece.next = neighbour.next
                if piece.next is not None:
                    piece.next.previous = piece
        self._insert(piece, small)
        if piece.previous is not None or piece.next is not None:
            self._split_inactive(piece.size, small)
        else:
            self._segments[piece.segment.address] = (piece.segment, piece)
        if piece.previous is None:
            self._segments[piece.segment.address] = (piece.segment, piece)

    def _use(self, piece: _Piece, small: bool, sign: int) -> None:
        for tally in self._tallies[small]:
            tally.allocation.add(sign)
            tally.allocated_bytes.add(sign * piece.size)
            tally.requested_bytes.add(sign * piece.requested)

    def _split_inactive(self, size: int, small: bool) -> None:
        for tally in self._tallies[small]:
            tally.inactive_split.add(1 if size > 0 else -1)
            tally.inactive_split_bytes.add(size)

    def empty_cache(self) -> None:
        """Give every segment without a block in use back to the host."""
        self._device.finish()
        with self._lock:
            self.collect()
            self._release()

    def _release(self) -> None:
        for key, pool in self._pools.items():
            keep = []
            for entry in pool:
                piece = entry[3]
                if piece.previous is not None or piece.next is not None:
                    keep.append(entry)
                    continue
                del self._segments[piece.segment.address]
                for tally in self._tallies[key[1]]:
                    tally.segment.add(-1)
                    tally.reserved_bytes.add(-piece.segment.size)
            pool[:] = keep

    # -- answering ---------------------------------------------------------------------------

    def statistics(self) -> dict[str, Any]:
        """Return what ``torch._C._cuda_memoryStats`` returns: nested statistics."""
        self.collect()
        kinds = {
            "all": self._all,
            "small_pool": self._tallies[True][1],
            "large_pool": self._tallies[False][1],
        }
        stats: dict[str, Any] = {
            name: {kind: getattr(tally, kept).as_dict() for kind, tally in kinds.items()}
            for name, kept in _STATISTICS.items()
        }
        empty = _Counter().as_dict()
        stats["oversize_allocations"] = dict(empty)
        stats["oversize_segments"] = dict(empty)
        stats["num_alloc_retries"] = self.retries
        stats["num_ooms"] = self.ooms
        stats["max_split_size"] = -1
        stats["num_sync_all_streams"] = 0
        stats["num_device_alloc"] = self._all.segment.allocated
        stats["num_device_free"] = self._all.segment.freed
        return stats

    def reserved(self) -> int:
        """Return the bytes taken from the device."""
        return self._all.reserved_bytes.current

    def reset_peak(self) -> None:
        """Start the peaks again from the current values."""
        self.collect()
        for counter in self._counters():
            counter.peak = counter.current

    def reset_accumulated(self) -> None:
        """Start the sums of all that was allocated and freed again from zero."""
        self.collect()
        self.retries = self.ooms = 0
        for counter in self._counters():
            counter.allocated = counter.freed = 0

    def _counters(self) -> list[_Counter]:
        tallies = (self._all, self._tallies[True][1], self._tallies[False][1])
        return [getattr(tally, name) for tally in tallies for name in _Tally.__slots__]

    def snapshot(self) -> list[dict[str, Any]]:
        """Return the segments as ``torch._C._cuda_memorySnapshot`` lists them."""
        self.collect()
        segments = []
        for segment, first in self._segments.values():
            blocks: list[dict[str, Any]] = []
            piece: _Piece | None = first
            while piece is not None:
                blocks.append(
                    {
                        "address": segment.address + piece.offset,
                        "size": piece.size,
                        "requested_size": 0 if piece.free else piece.requested,
                        "state": "inactive" if piece.free else "active_allocated",
                        "frames": [],
                    }
                )
                piece = piece.next
            used = [block for block in blocks if block["state"] == "active_allocated"]
            segments.append(
                {
                    "device": self._device.index,
                    "address": segment.address,
                    "total_size": segment.size,
                    "allocated_size": sum(block["size"] for block in used),
                    "active_size": sum(block["size"] for block in used),
                    "requested_size": sum(block["requested_size"] for block in used),
                    "stream": segment.stream,
                    "segment_type": "small" if segment.size == SMALL_SEGMENT else "large",
                    "segment_pool_id": (0, 0),
                    "is_expandable": False,
                    "frames": [],
                    "blocks": blocks,
                }
            )
        return segments

    def _out_of_memory(self, nbytes: int) -> BaseException:
        reserved = self.reserved()
        allocated = self._all.allocated_bytes.current
        allowed = f" {_amount(self.limit)} allowed;" if self.fraction < 1 else ""
        return torch.OutOfMemoryError(
            f"CUDA out of memory. Tried to allocate {_amount(nbytes)}. GPU {self._device.index} "
            f"has a total capacity of {_amount(self.capacity)} of which "
            f"{_amount(self.capacity - reserved)} is free. Including non-PyTorch memory, this "
            f"process has {_amount(reserved)} memory in use.{allowed} Of the allocated memory "
            f"{_amount(allocated)} is allocated by PyTorch, and {_amount(reserved - allocated)} "
            "is reserved by PyTorch but unallocated. If reserved but unallocated memory is large "
            "try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid "
            "fragmentation.  See documentation for Memory Management  "
            "(https://docs.pytorch.org/docs/stable/notes/cuda.html"
            "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
        )


def _amount(nbytes: int) -> str:
    if nbytes <= 1024:
        return f"{nbytes} bytes"
    if nbytes <= 1024**2:
        return f"{nbytes / 1024:.2f} KiB"
    if nbytes <= 1024**3:
        return f"{nbytes / 1024**2:.2f} MiB"
    return f"{nbytes / 1024**3:.2f} GiB"
