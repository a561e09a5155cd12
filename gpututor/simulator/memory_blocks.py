"""What a caching allocator deals in: segments, their pieces, and the blocks that tensors hold."""

from __future__ import annotations

import bisect
import mmap
import sys
import weakref
from typing import TYPE_CHECKING, Any

import torch

from .plain import inner, plainly, undispatched

if TYPE_CHECKING:
    from .device import Device, StreamState

ROUND = 512  # bytes; every block's size and address is a multiple of it
_VIEWS = 1000  # of one segment that are kept; chosen: some hundred KiB of Python objects
_NO_RESERVE = 0x4000  # MAP_NORESERVE of Linux, which Python's mmap names from 3.12 on


class AddressSpace:
    """The addresses of one device, given out as NVIDIA's driver gives them out.

    Which of two free blocks of one size is taken depends on them. The driver documents no order.
    This one was read off 943 addresses of an H200 (driver 580, 30 November 2026), of which it
    gives 93 %: ranges lie in regions of a multiple of 32 MiB, new regions below the old ones; a
    range goes into the newest region that has room, where it fits best; an empty region goes.
    """

    _REGION = 32 << 20
    _CONTEXT = 6 << 20  # what the process's context takes of the first region

    def __init__(self, end: int) -> None:
        self._end = end
        first = (end - self._REGION, end - self._REGION + self._CONTEXT)
        self._context = (first[0], end, [first])
        #: (start, end, ranges in order) of each region, the newest last
        self._regions: list[tuple[int, int, list[tuple[int, int]]]] = []
        self.keep_only([])

    def take(self, size: int) -> int:
        """Return the address of `size` free bytes."""
        for start, end, ranges in reversed(self._regions):
            holes = []
            for used, after in (*ranges, (end, end)):
                if used - start >= size:
                    holes.append((used - start, start))
                start = after
            if holes:
                address = min(holes)[1]
                bisect.insort(ranges, (address, address + size))
                return address
        needed = -(-size // self._REGION) * self._REGION
        address = self._end - needed
        for start, end, _ in sorted(self._regions, reverse=True):
            if address >= end:
                break
            address = start - needed
        self._regions.append((address, address + needed, [(address, address + size)]))
        return address

    def give_back(self, address: int) -> None:
        """Free what `take` returned."""
        for place, (start, end, ranges) in enumerate(self._regions):
            if start <= address < end:
                del ranges[bisect.bisect_left(ranges, (address, 0))]
                if not ranges:
                    del self._regions[place]
                return

    def keep_only(self, ranges: list[tuple[int, int]]) -> None:
        """Free all addresses but those of `ranges`, pairs of address and size."""
        start, end, first = self._context
        self._regions = [(start, end, first[:1])]
        for address, size in sorted(ranges, reverse=True):
            for low, high, taken in self._regions:
                if low <= address < high:
                    bisect.insort(taken, (address, address + size))
                    break
            else:
                low = address // self._REGION * self._REGION
                high = -(-(address + size) // self._REGION) * self._REGION
                self._regions.append((low, high, [(address, address + size)]))


class Segment:
    """One host buffer that stands for one ``cudaMalloc``.

    Attributes
    ----------
    size : int
        Bytes.
    stream : int
        The stream whose requests it serves.
    small : bool
        Whether it belongs to the pool of small requests.
    first : Piece
        Its first piece.
    """

    __slots__ = (
        "_bases",
        "_views",
        "address",
        "device",
        "first",
        "frames",
        "shift",
        "size",
        "small",
        "storage",
        "stream",
    )

    first: Piece

    def __init__(self, device: Device, address: int, size: int, stream: int, small: bool) -> None:
        self.device = device
        self.address = address
        self.size = size
        self.stream = stream
        self.small = small
        self.frames: Any = None
        self.storage = _host_buffer(size + ROUND)
        # A dtype's elements start at multiples of its size, as on CUDA.
        self.shift = -self.storage.data_ptr() % ROUND
        self._bases: dict[torch.dtype, torch.Tensor] = {}
        self._views: dict[Any, torch.Tensor] = {}
        self.first = Piece(self, 0, size)

    def base(self, dtype: torch.dtype) -> torch.Tensor:
        """Return the whole segment as a flat CPU tensor of `dtype`, to take views of."""
        base = self._bases.get(dtype)
        if base is None:
            # A tensor made in inference mode could not be written by kernels, which run outside it.
            with torch._C._InferenceMode(False), plainly(), undispatched():
                flat = torch.empty(0, dtype=dtype, device="cpu")
                first = self.shift // dtype.itemsize
                base = flat.set_(self.storage, first, (self.size // dtype.itemsize,), (1,))
            base = self._bases[dtype] = inner(base)
        return base

    def view(
        self, size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype, first: int
    ) -> torch.Tensor:
        """Return the CPU tensor of this geometry that begins at element `first`.

        A loop asks for the same ones in every turn, so they are kept. Measured on two cores,
        torch 2.13, 30 November 2026: an addition takes the host 18 µs with that and 20 without.
        """
        key = (first, size, stride, dtype)
        view = self._views.get(key)
        if view is None:
            if len(self._views) >= _VIEWS:
                self._views.clear()
            with plainly(), undispatched():
                view = self.base(dtype).as_strided(size, stride, first)
            view = self._views[key] = inner(view)
        return view

    def close(self) -> None:
        """Let go of the host buffer, which lives on while a tensor or a pending kernel shows it.

        Without this it would live until the garbage collector runs: segment and pieces hold each
        other.
        """
        self.storage = torch.UntypedStorage(0, device="cpu")
        self._bases.clear()
        self._views.clear()

    def pieces(self) -> list[Piece]:
        """Return its pieces in order."""
        found: list[Piece] = []
        piece: Piece | None = self.first
        while piece is not None:
            found.append(piece)
            piece = piece.next
        return found


def _host_buffer(size: int) -> torch.UntypedStorage:
    """Return `size` bytes of the host; pages never written to cost nothing."""
    try:
        return torch.UntypedStorage(size, device="cpu")
    except RuntimeError:
        if sys.platform != "linux":
            raise
    # More than the host has at all. Most of it will never be touched.
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    with plainly(), undispatched():
        values = torch.frombuffer(mmap.mmap(-1, size, flags=flags), dtype=torch.uint8)
    return values.untyped_storage()


class Piece:
    """A stretch of a segment: in use, waiting for other streams, or free in its pool.

    Attributes
    ----------
    requested : int
        Bytes asked for, before rounding.
    uses : list of StreamState or None
        Other streams that use it: ``Tensor.record_stream``.
    events : list of (StreamState, float) or None
        Set when it is freed: how far each of those streams must come before it is free.
    age : int
        How many searches its pool had seen when it became free.
    frames : list of dict or None
        Where it was allocated, if the memory history says so.
    """

    __slots__ = (
        "age",
        "events",
        "frames",
        "free",
        "next",
        "offset",
        "previous",
        "requested",
        "segment",
        "size",
        "uses",
        "watch",
    )

    def __init__(self, segment: Segment, offset: int, size: int) -> None:
        self.segment = segment
        self.offset = offset
        self.size = size
        self.free = True
        self.requested = 0
        self.age = 0
        self.previous: Piece | None = None
        self.next: Piece | None = None
        self.uses: list[StreamState] | None = None
        self.events: list[tuple[StreamState, float]] | None = None
        self.frames: Any = None
        self.watch: Any = None

    @property
    def address(self) -> int:
        """The address of its first byte."""
        return self.segment.address + self.offset

    @property
    def split(self) -> bool:
        """Whether its segment has other pieces."""
        return self.previous is not None or self.next is not None

    def note_events(self, _: Any = None) -> None:
        """Remember how far the other streams that use it must come, from now on."""
        self.events = [(stream, stream.end) for stream in self.uses or ()]


class Block:
    """The storage of a simulated tensor and of all its views; freed when they are gone.

    Attributes
    ----------
    nbytes : int
        Bytes asked for.
    written : float
        Simulated time at which the last launched operator that writes it ends.
    kept : object
        What is freed with it: blocks that an operator keeps beside a result.
    """

    __slots__ = ("__weakref__", "kept", "nbytes", "piece", "written")

    def __init__(self, piece: Piece | None, nbytes: int) -> None:
        self.piece = piece
        self.nbytes = nbytes
        self.written = 0.0
        self.kept: Any = None

    def used_on(self, stream: StreamState) -> None:
        """Do not hand it out again before what `stream` has queued by its freeing is done."""
        piece = self.piece
        if piece is None:
            return
        segment = piece.segment
        if stream.device is segment.device and stream.stream_id == segment.stream:
            return
        if piece.uses is None:
            piece.uses = [stream]
            piece.watch = weakref.ref(self, piece.note_events)
        elif stream not in piece.uses:
            piece.uses.append(stream)

    @property
    def address(self) -> int:
        """The address of its first byte; 0 for an empty one."""
        return 0 if self.piece is None else self.piece.address

    def first(self, dtype: torch.dtype) -> int:
        """Return where it begins in its segment's host buffer, in elements of `dtype`."""
        piece = self.piece
        return 0 if piece is None else (piece.segment.shift + piece.offset) // dtype.itemsize

    def view(
        self, size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype, offset: int = 0
    ) -> torch.Tensor:
        """Return the CPU tensor of this geometry over the block; `offset` in elements."""
        piece = self.piece
        if piece is None:
            with plainly(), undispatched():
                return torch.empty_strided(size, stride, dtype=dtype, device="cpu")
        segment = piece.segment
        first = (segment.shift + piece.offset) // dtype.itemsize + offset
        return segment.view(size, stride, dtype, first)
