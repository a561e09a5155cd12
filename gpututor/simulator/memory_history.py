"""The allocator's history and snapshots, in the form that PyTorch's own viewer reads.

``torch.cuda.memory._record_memory_history`` turns the history on, ``_snapshot`` and
``_dump_snapshot`` give it out. With it on, every event of the allocator is kept with the time and
the lines of Python that led to it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .memory import Allocator
    from .memory_blocks import Piece, Segment

_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LEVELS = {None: 0, "state": 1, "alloc": 2, "all": 3}
_POOL = (0, 0)  # the id of the pool that everything is in: there are no private pools

_metadata = threading.local()


def set_metadata(text: str) -> None:
    """Put `text` beside every event that this thread causes from now on."""
    _metadata.text = text


def metadata() -> str:
    """Return what `set_metadata` set in this thread."""
    return getattr(_metadata, "text", "")


class History:
    """What the allocators of all devices record, and how.

    Parameters
    ----------
    context : {None, "state", "alloc", "all"}
        For which events the lines of Python are kept: for none, for blocks in use, for every
        event but frees, or for all.
    max_entries : int
        How many events of a device are kept; the oldest go first.
    skipped : collection of str
        Kinds of events that are not kept.
    """

    def __init__(
        self, context: str | None, max_entries: int, skipped: frozenset[str] = frozenset()
    ) -> None:
        self._level = _LEVELS[context]
        self._skipped = skipped
        self.entries: deque[dict[str, Any]] = deque(maxlen=min(max(1, max_entries), sys.maxsize))

    def record(
        self, action: str, address: int, size: int, stream: int, frames: Any = None
    ) -> list[dict[str, Any]] | None:
        """Keep one event; return the lines of Python that led to it, or None."""
        is_free = action.startswith("free")
        if action != "snapshot" and self._level >= (3 if is_free else 1):
            frames = _frames()
        if action not in self._skipped:
            entry = {
                "action": action,
                "device_free" if action == "oom" else "addr": address,
                "size": size,
                "stream": stream,
                "time_us": time.time_ns() // 1000,
                "compile_context": "N/A",
                "user_metadata": metadata(),
                "pool_id": _POOL,
            }
            if frames is not None and self._level >= 2:
                entry["frames"] = frames
            self.entries.append(entry)
        return frames if self._level else None


_known: dict[tuple[Any, int], dict[str, Any]] = {}


def _frames() -> list[dict[str, Any]]:
    """Return the lines of Python that are running, the innermost first, without the simulator's."""
    found = []
    frame = sys._getframe(1)
    while frame is not None:
        code, line = frame.f_code, frame.f_lineno
        if not code.co_filename.startswith(_OWN):
            entry = _known.get((code, line))
            if entry is None:
                if len(_known) > 100_000:
                    _known.clear()
                entry = {"filename": code.co_filename, "line": line, "name": code.co_name}
                _known[code, line] = entry
            found.append(entry)
        frame = frame.f_back  # type: ignore[assignment]
    return found


def check_options(enabled: Any, context: Any, stacks: Any) -> None:
    """Raise for what PyTorch refuses.

    Raises
    ------
    RuntimeError
        With PyTorch's words.
    """
    if enabled not in (None, "state", "all"):
        raise RuntimeError("expected state to be 'state', 'all', or None")
    if context not in _LEVELS:
        raise RuntimeError("expected context to be 'state', 'alloc', 'all', or None")
    if stacks not in ("python", "all"):
        raise RuntimeError("expected stacks to be 'python', or 'all'")


def snapshot(allocators: list[Allocator]) -> dict[str, Any]:
    """Return what ``torch._C._cuda_memorySnapshot`` does."""
    segments, traces = [], []
    for allocator in allocators:
        found = [_segment(part) for part in allocator.segments()]
        segments.extend(found)
        history = allocator.history
        entries = []
        if history is not None:
            history.record("snapshot", 0, sum(part["active_size"] for part in found), 0)
            entries = list(history.entries)
        traces.append([_with_handle(entry, allocator) for entry in entries])
    return {
        "segments": segments,
        "device_traces": traces,
        "allocator_settings": allocators[0].settings.as_dict() if allocators else {},
        "external_annotations": [],
    }


def _with_handle(entry: dict[str, Any], allocator: Allocator) -> dict[str, Any]:
    return {**entry, "stream": allocator.handle(entry["stream"])}


def traceback_of(allocators: list[Allocator], address: int) -> list[dict[str, Any]] | None:
    """Return the lines that allocated the block in use at `address`, or None."""
    for allocator in allocators:
        for segment in allocator.segments():
            for piece in segment.pieces():
                if piece.address == address and not piece.free:
                    return piece.frames  # type: ignore[no-any-return]
    return None


def _segment(segment: Segment) -> dict[str, Any]:
    blocks = [_block(piece) for piece in segment.pieces()]
    active = [block for block in blocks if block["state"] != "inactive"]
    allocated = [block for block in active if block["state"] == "active_allocated"]
    return {
        "device": segment.device.index,
        "address": segment.address,
        "total_size": segment.size,
        "allocated_size": sum(block["size"] for block in allocated),
        "active_size": sum(block["size"] for block in active),
        "requested_size": sum(block["requested_size"] for block in active),
        "stream": segment.device.memory.handle(segment.stream),
        "segment_type": "small" if segment.small else "large",
        "segment_pool_id": _POOL,
        "is_expandable": False,
        "frames": segment.frames or [],
        "blocks": blocks,
    }


def _block(piece: Piece) -> dict[str, Any]:
    state = "inactive"
    if not piece.free:
        state = "active_allocated" if piece.events is None else "active_pending_free"
    return {
        "address": piece.address,
        "size": piece.size,
        "requested_size": 0 if piece.free else piece.requested,
        "state": state,
        "frames": piece.frames or [],
    }
