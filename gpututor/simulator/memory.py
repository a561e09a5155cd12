"""PyTorch's caching allocator for one simulated device.

The rules are those of ``c10/cuda/CUDACachingAllocator.cpp``: sizes round up to 512 bytes; up to
1 MiB comes from 2 MiB segments (the small pool), up to 10 MiB from 20 MiB segments, and more from
segments of its own size rounded to 2 MiB (the large pool); best fit, within the stream that asks;
a block splits where enough remains, and merges with its free neighbours when it is freed.

A segment is one host buffer and a tensor's storage a piece of it, so that reuse, stale contents
and addresses are real. Pages never written to cost the host nothing.

A learner may interrupt the host at any moment. What holds the truth is little: the segments, and
which pieces blocks hold. All else (pools, neighbours, current statistics) is made from it again
where an interrupt fell into a change.
"""

from __future__ import annotations

import bisect
import itertools
import threading
import weakref
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

import torch

from .memory_blocks import ROUND, AddressSpace, Block, Piece, Segment
from .memory_settings import Settings
from .memory_statistics import COUNTED, Statistics

if TYPE_CHECKING:
    from .device import Device
    from .memory_history import History

__all__ = ["Allocator", "Block"]

SMALL = 1 << 20  # the largest request the small pool serves
SMALL_SEGMENT = 2 << 20
LARGE_SEGMENT = 20 << 20
LARGE_MINIMUM = 10 << 20  # from here on a segment holds one request
LARGE_ROUND = 2 << 20
_LAST_ADDRESS = 0x7F00_0000_0000  # where the driver's addresses end on Linux, about
_ADDRESSES = 1 << 40  # for each device: the largest memory

_Entry = tuple[int, int, int, Piece]  # a free piece: size, address, a number, the piece


def segment_size(size: int) -> int:
    """Return the bytes of the segment made for a block of `size` bytes."""
    if size <= SMALL:
        return SMALL_SEGMENT
    if size < LARGE_MINIMUM:
        return LARGE_SEGMENT
    return -(-size // LARGE_ROUND) * LARGE_ROUND


class Allocator:
    """The caching allocator of one device.

    Parameters
    ----------
    device : Device
        Where it allocates.
    capacity : int
        Bytes of the device's memory.
    settings : Settings, optional
        What ``PYTORCH_ALLOC_CONF`` says; the defaults where it is left out.
    """

    def __init__(self, device: Device, capacity: int, settings: Settings | None = None) -> None:
        self._device = device
        self.capacity = capacity
        self.settings = settings or Settings()
        self.statistics = Statistics()
        self.history: History | None = None
        self.fraction: float | None = None  # of the memory that this process may use
        self._lock = threading.RLock()
        self._changing = 0  # not 0: a change is under way, or was when an interrupt fell into it
        # The truth: the segments, the pieces that blocks hold, and those that wait for streams.
        self._segments: dict[int, Segment] = {}
        self._live: dict[weakref.ref[Block], Piece] = {}
        self._held: list[Piece] = []
        #: References to blocks that are gone. C code fills it: it takes no lock, runs in any
        #: thread and at any moment, and no interrupt can fall into it.
        self._returned: deque[weakref.ref[Block]] = deque()
        #: (stream, small?) -> free pieces sorted by size, then address
        self._pools: defaultdict[tuple[int, bool], list[_Entry]] = defaultdict(list)
        self._searches = {True: 0, False: 0}  # by small?: how old a free piece is counts in these
        self._order = itertools.count()
        self._addresses = AddressSpace(_LAST_ADDRESS - device.index * _ADDRESSES)

    # -- allocating --------------------------------------------------------------------------

    def allocate(self, nbytes: int, stream: int) -> Block:
        """Return a block of `nbytes` for use on `stream`.

        Raises
        ------
        torch.OutOfMemoryError
            When neither a free block nor a new segment can hold it.
        """
        if nbytes == 0:
            return Block(None, 0)
        if self._changing and self._is_inside():
            return self._apart(nbytes, stream)
        with self._lock:
            if self._changing or self._returned:
                self._settle()
            size = self.rounded(nbytes)
            small = size <= SMALL
            self._changing += 1
            if self._held:
                self._process_events()
            piece = self._find(size, stream, small)
            if piece is None:
                if not self._make_room(size, stream, small):
                    self._changing -= 1
                    # In no variable: the frame would hold the error, which holds the frame, and
                    # with it the tensors of every caller, until the garbage collector runs.
                    raise self._out_of_memory(segment_size(size))
                piece = self._grow(size, stream, small)
            else:
                self._remove(piece)
            self._take(piece, size, nbytes)
            block = self._hand_out(piece, nbytes)
            self._changing -= 1
            return block

    def rounded(self, nbytes: int) -> int:
        """Return `nbytes` as the allocator counts it."""
        divisions = self.settings.divisions(nbytes) if nbytes >= ROUND else 0
        if divisions > 1 and nbytes > ROUND * divisions:
            floor = 1 << (nbytes.bit_length() - 1)
            step = floor >> (divisions.bit_length() - 1)
            return nbytes if nbytes == floor else -(-nbytes // step) * step
        return max(ROUND, -(-nbytes // ROUND) * ROUND)

    def _hand_out(self, piece: Piece, nbytes: int) -> Block:
        block = Block(piece, nbytes)
        gone = self._returned.append if self.history is None else self._note_gone
        self._live[weakref.ref(block, gone)] = piece
        return block

    def _find(self, size: int, stream: int, small: bool) -> Piece | None:
        settings = self.settings
        if settings.garbage_collection_threshold and self.fraction is not None:
            self._searches[small] += 1
        pool = self._pools[stream, small]
        index = bisect.bisect_left(pool, (size, 0))
        if index == len(pool):
            return None
        piece = pool[index][3]
        limit = settings.max_split_size
        if limit is not None:
            if size < limit <= piece.size:
                return None  # a large block is kept whole for a large request
            if size >= limit and piece.size >= size + settings.max_non_split_rounding:
                return None
        return piece

    def _take(self, piece: Piece, size: int, nbytes: int) -> None:
        """Put `piece`, which is in no pool, into use; what it has too much goes to the pool."""
        small, was_split = piece.segment.small, piece.split
        tally = self.statistics.of[small]
        if self._should_split(piece, size, small):
            rest = Piece(piece.segment, piece.offset + size, piece.size - size)
            rest.previous, rest.next = piece, piece.next
            if rest.next is not None:
                rest.next.previous = rest
            piece.next, piece.size = rest, size
            self._insert(rest)
            if was_split:
                tally.inactive_split_bytes.fall(size)
            else:
                tally.inactive_split_bytes.rise(rest.size)
                tally.inactive_split.rise(1)
        elif was_split:
            tally.inactive_split_bytes.fall(piece.size)
            tally.inactive_split.fall(1)
        piece.free = False
        piece.requested = nbytes
        tally.allocation.rise(1)
        tally.allocated_bytes.rise(piece.size)
        tally.active.rise(1)
        tally.active_bytes.rise(piece.size)
        tally.requested_bytes.rise(nbytes)
        if self._is_oversize(piece.size):
            self.statistics.oversize_allocations.rise(1)
        if self.history is not None:
            piece.frames = self.history.record("alloc", piece.address, nbytes, piece.segment.stream)

    def _should_split(self, piece: Piece, size: int, small: bool) -> bool:
        rest = piece.size - size
        if small:
            return rest >= ROUND
        limit = self.settings.max_split_size
        return rest > SMALL and (limit is None or size < limit)

    def _is_oversize(self, size: int) -> bool:
        limit = self.settings.max_split_size
        return limit is not None and size >= limit

    # -- segments ----------------------------------------------------------------------------

    @property
    def limit(self) -> int:
        """Bytes that this process may reserve."""
        return self.capacity if self.fraction is None else int(self.fraction * self.capacity)

    def reserved(self) -> int:
        """Return the bytes taken from the device."""
        return self.statistics.all.reserved_bytes.current

    def _make_room(self, size: int, stream: int, small: bool) -> bool:
        """Give segments back until a new one for `size` fits; tell whether one does."""
        threshold = self.settings.garbage_collection_threshold
        if threshold and self.fraction is not None:
            self._collect_garbage(int(threshold * self.limit))
        wanted = segment_size(size)
        if self.reserved() + wanted <= self.limit:
            return True
        if self._release_oversize(size, stream, small) and self.reserved() + wanted <= self.limit:
            return True
        self._release_cached()
        self.statistics.retries += 1
        if self.reserved() + wanted <= self.limit:
            return True
        self.statistics.ooms += 1
        if self.history is not None:
            self.history.record("oom", self.capacity - self.reserved(), size, stream)
        return False

    def _grow(self, size: int, stream: int, small: bool) -> Piece:
        wanted = segment_size(size)
        address = self._addresses.take(wanted)
        segment = Segment(self._device, address, wanted, stream, small)
        self._segments[segment.address] = segment
        tally = self.statistics.of[small]
        tally.segment.rise(1)
        tally.reserved_bytes.rise(wanted)
        self.statistics.segments_made += 1
        if self._is_oversize(wanted):
            self.statistics.oversize_segments.rise(1)
        if self.history is not None:
            segment.frames = self.history.record("segment_alloc", segment.address, wanted, stream)
        return segment.first

    def _release(self, piece: Piece) -> None:
        """Give the segment of `piece`, a free one that is all of it, back to the host."""
        segment = piece.segment
        self._remove(piece)
        del self._segments[segment.address]
        self._addresses.give_back(segment.address)
        segment.close()
        tally = self.statistics.of[segment.small]
        tally.segment.fall(1)
        tally.reserved_bytes.fall(segment.size)
        self.statistics.segments_freed += 1
        if self._is_oversize(segment.size):
            self.statistics.oversize_segments.fall(1)
        if self.history is not None:
            self.history.record("segment_free", segment.address, segment.size, segment.stream)

    def _collect_garbage(self, threshold: int) -> None:
        """Give back free large segments, those unused for longest first, down to `threshold`."""
        wanted = self.reserved() - threshold
        if wanted <= 0:
            return
        searches = self._searches[False]
        whole = [
            entry[3]
            for (_, small), pool in sorted(self._pools.items(), key=_by_stream)
            for entry in pool
            if not small and not entry[3].split
        ]
        ages = sum(searches - piece.age for piece in whole)
        released = True
        while wanted > 0 and released and whole:
            mean, released, kept = ages / len(whole), False, []
            for piece in whole:
                if searches - piece.age >= mean:
                    ages -= searches - piece.age
                    wanted -= piece.size
                    released = True
                    self._release(piece)
                else:
                    kept.append(piece)
            whole = kept

    def _release_oversize(self, size: int, stream: int, small: bool) -> bool:
        """Give back as many free blocks that are never split as `size` needs; tell if enough."""
        limit = self.settings.max_split_size
        if limit is None:
            return False
        pool, wanted = self._pools[stream, small], max(size, limit)
        index = bisect.bisect_left(pool, (wanted, 0))
        if index < len(pool):
            self._release(pool[index][3])
            return True
        released = 0
        while released < wanted and pool and pool[-1][0] >= limit and not pool[-1][3].split:
            released += pool[-1][0]
            self._release(pool[-1][3])
        return released >= wanted

    def empty_cache(self) -> None:
        """Give every segment without a block in use back to the host."""
        if self._changing and self._is_inside():
            return
        with self._lock:
            self._settle()
            self._changing += 1
            self._release_cached()
            self._changing -= 1

    def _release_cached(self) -> None:
        self._device.finish()
        self.statistics.syncs += 1
        for piece in list(self._held):
            self._end_wait(piece)
        for key in sorted(self._pools, key=lambda key: (key[1], key[0])):  # the large pool first
            for entry in list(self._pools[key]):
                if not entry[3].split:
                    self._release(entry[3])

    # -- freeing -----------------------------------------------------------------------------

    def close(self) -> None:
        """Give the host its memory back, as soon as the learner's tensors let go of it."""
        for segment in list(self._segments.values()):
            segment.close()

    def collect(self) -> None:
        """Take back the blocks that Python and autograd have let go."""
        if self._changing and self._is_inside():
            return
        with self._lock:
            self._settle()

    def _settle(self) -> None:
        if self._changing:
            self._mend()
        returned, live = self._returned, self._live
        while returned:
            reference = returned[0]
            piece = live.get(reference)
            if piece is not None:
                self._changing += 1
                if piece.uses is not None:
                    if piece.events is None:
                        piece.note_events()
                    self._held.append(piece)
                del live[reference]
                self._let_go(piece)
                self._changing -= 1
            returned.popleft()

    def _note_gone(self, reference: weakref.ref[Block]) -> None:
        """Take a block back at once, so that the memory history says where it was let go."""
        self._returned.append(reference)
        if self._changing and self._is_inside():
            return
        taken: list[bool] = []
        try:
            # Taken and noted in one call of C: an interrupt between the two would leave it taken.
            taken.extend(map(self._lock.acquire, (False,)))
            if taken[0]:
                self._settle()
        finally:
            if taken and taken[0]:
                self._lock.release()

    def _let_go(self, piece: Piece) -> None:
        """Count `piece` as freed; it is free at once unless another stream may still use it."""
        size, segment = piece.size, piece.segment
        tally = self.statistics.of[segment.small]
        tally.allocation.fall(1)
        tally.allocated_bytes.fall(size)
        if self._is_oversize(size):
            self.statistics.oversize_allocations.fall(1)
        if self.history is not None:
            self.history.record(
                "free_requested", piece.address, piece.requested, segment.stream, piece.frames
            )
        if piece.uses is None:
            self._free(piece)

    def _process_events(self) -> None:
        """Free the blocks that other streams no longer use."""
        reached = self._device.engine.reached
        for piece in list(self._held):
            piece.events = [event for event in piece.events or () if not reached(event[1])]
            if not piece.events:
                self._end_wait(piece)

    def _end_wait(self, piece: Piece) -> None:
        self._held.remove(piece)
        self._free(piece)

    def _free(self, piece: Piece) -> None:
        """Put `piece` into its pool, as one with its free neighbours."""
        segment, size, requested = piece.segment, piece.size, piece.requested
        if self.history is not None:
            self.history.record(
                "free_completed", piece.address, requested, segment.stream, piece.frames
            )
        piece.uses = piece.events = piece.watch = piece.frames = None
        count = grown = 0
        before, after = piece.previous, piece.next
        if before is not None and before.free:
            self._remove(before)
            count, grown = count - 1, grown - before.size
            piece.offset, piece.size = before.offset, before.size + piece.size
            piece.previous = before.previous
            if piece.previous is None:
                segment.first = piece
            else:
                piece.previous.next = piece
        if after is not None and after.free:
            self._remove(after)
            count, grown = count - 1, grown - after.size
            piece.size += after.size
            piece.next = after.next
            if piece.next is not None:
                piece.next.previous = piece
        piece.free = True
        self._insert(piece)
        if piece.split:
            count, grown = count + 1, grown + piece.size
        tally = self.statistics.of[segment.small]
        tally.inactive_split.change(count)
        tally.inactive_split_bytes.change(grown)
        tally.active.fall(1)
        tally.active_bytes.fall(size)
        tally.requested_bytes.fall(requested)

    # -- the pools ---------------------------------------------------------------------------

    def _insert(self, piece: Piece) -> None:
        segment = piece.segment
        piece.age = self._searches[segment.small]
        entry = (piece.size, segment.address + piece.offset, next(self._order), piece)
        bisect.insort(self._pools[segment.stream, segment.small], entry)

    def _remove(self, piece: Piece) -> None:
        """Take `piece` out of its pool, if it is there."""
        segment = piece.segment
        pool = self._pools[segment.stream, segment.small]
        index = bisect.bisect_left(pool, (piece.size, segment.address + piece.offset))
        if index < len(pool) and pool[index][3] is piece:
            del pool[index]

    # -- after an interrupt ------------------------------------------------------------------

    def _is_inside(self) -> bool:
        """Tell whether this thread is in the middle of a change, further up its stack.

        Python can run a finaliser or a signal handler anywhere, and that can free or make tensors.
        """
        return self._lock._is_owned()  # type: ignore[attr-defined, no-any-return]

    def _apart(self, nbytes: int, stream: int) -> Block:
        """Return a block in a segment of its own; the next change counts it."""
        size = self.rounded(nbytes)
        wanted, small = segment_size(size), size <= SMALL
        address = self._addresses.take(wanted)
        segment = Segment(self._device, address, wanted, stream, small)
        segment.first.free = False
        segment.first.requested = nbytes
        self._segments[segment.address] = segment
        self._changing += 1
        return self._hand_out(segment.first, nbytes)

    def _mend(self) -> None:
        """Make neighbours, pools and current statistics again from what blocks hold."""
        changes = self._changing
        in_use = {id(piece): piece for piece in list(self._live.values())}
        self._held = [piece for piece in self._held if id(piece) not in in_use]
        waiting = {id(piece): piece for piece in self._held}
        self._held = list(waiting.values())
        segments = list(self._segments.values())
        pieces: dict[int, list[Piece]] = {segment.address: [] for segment in segments}
        for piece in (*in_use.values(), *waiting.values()):
            pieces[piece.segment.address].append(piece)
        self._pools.clear()
        current: defaultdict[tuple[str, bool], int] = defaultdict(int)
        for segment in segments:
            self._mend_segment(segment, pieces[segment.address])
            current["segment", segment.small] += 1
            current["reserved_bytes", segment.small] += segment.size
            for part in segment.pieces():
                for name, count in _counts(part, id(part) in in_use):
                    current[name, segment.small] += count
        statistics = self.statistics
        for name in COUNTED:
            total = getattr(statistics.all, name)
            for small, tally in statistics.of.items():
                counter = getattr(tally, name)
                counter.change(current[name, small] - counter.current)
            # An interrupt may have come between a pool's number and the total's.
            total.change(current[name, True] + current[name, False] - total.current)
        for counter, sizes in (
            (statistics.oversize_allocations, [piece.size for piece in in_use.values()]),
            (statistics.oversize_segments, [segment.size for segment in segments]),
        ):
            counter.change(sum(map(self._is_oversize, sizes)) - counter.current)
        self._addresses.keep_only([(part.address, part.size) for part in segments])
        self._changing -= changes

    def _mend_segment(self, segment: Segment, pieces: list[Piece]) -> None:
        """Fill the gaps between the pieces in use with free ones, and put those into the pool."""
        pieces.sort(key=lambda piece: piece.offset)
        chain: list[Piece] = []
        end = 0
        for piece in pieces:
            if piece.offset > end:
                chain.append(Piece(segment, end, piece.offset - end))
            piece.free = False
            chain.append(piece)
            end = piece.offset + piece.size
        if end < segment.size:
            chain.append(Piece(segment, end, segment.size - end))
        segment.first = chain[0]
        for piece, before, after in zip(
            chain, [None, *chain[:-1]], [*chain[1:], None], strict=True
        ):
            piece.previous, piece.next = before, after
            if piece.free:
                self._insert(piece)

    # -- answering ---------------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """Return what ``torch._C._cuda_memoryStats`` returns: nested statistics."""
        self.collect()
        with self._lock:
            return self.statistics.as_dict(self.settings.max_split_size)

    def reset_peak(self) -> None:
        """Start the peaks again from the current values."""
        self.collect()
        with self._lock:
            self.statistics.reset_peak()

    def reset_accumulated(self) -> None:
        """Start the sums of all that was allocated and freed again from zero."""
        self.collect()
        with self._lock:
            self.statistics.reset_accumulated()

    def segments(self) -> list[Segment]:
        """Return the segments by address, once all blocks that are gone are taken back."""
        self.collect()
        with self._lock:
            return [self._segments[address] for address in sorted(self._segments)]

    def handle(self, stream: int) -> int:
        """Return the handle of the stream with this id, which is how snapshots name it."""
        return self._device.stream(stream).handle if stream else 0

    def _out_of_memory(self, wanted: int) -> BaseException:
        reserved = self.reserved()
        allocated = self.statistics.all.allocated_bytes.current
        allowed = "" if self.fraction is None else f"{amount(self.limit)} allowed; "
        return torch.OutOfMemoryError(
            f"CUDA out of memory. Tried to allocate {amount(wanted)}. "
            f"GPU {self._device.index} has a total capacity of {amount(self.capacity)} of which "
            f"{amount(self.capacity - reserved)} is free. Including non-PyTorch memory, this "
            f"process has {amount(reserved)} memory in use. {allowed}Of the allocated memory "
            f"{amount(allocated)} is allocated by PyTorch, and {amount(reserved - allocated)} "
            "is reserved by PyTorch but unallocated. If reserved but unallocated memory is large "
            "try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid "
            "fragmentation.  See documentation for Memory Management  "
            "(https://docs.pytorch.org/docs/stable/notes/cuda.html"
            "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
        )


def _by_stream(item: tuple[tuple[int, bool], Any]) -> int:
    return item[0][0]


def _counts(piece: Piece, allocated: bool) -> list[tuple[str, int]]:
    """Return what `piece` adds to the current statistics."""
    if piece.free:
        split = int(piece.split)
        return [("inactive_split", split), ("inactive_split_bytes", split * piece.size)]
    found = [("active", 1), ("active_bytes", piece.size), ("requested_bytes", piece.requested)]
    if allocated:
        found += [("allocation", 1), ("allocated_bytes", piece.size)]
    return found


def amount(nbytes: int) -> str:
    """Return a number of bytes as PyTorch writes it: ``"20.00 MiB"``."""
    if nbytes <= 1024:
        return f"{nbytes} bytes"
    if nbytes <= 1024**2:
        return f"{nbytes / 1024:.2f} KiB"
    if nbytes <= 1024**3:
        return f"{nbytes / 1024**2:.2f} MiB"
    return f"{nbytes / 1024**3:.2f} GiB"
