"""The statistics of a caching allocator, under PyTorch's own names."""

from __future__ import annotations

from typing import Any


class Counter:
    """One statistic: what it is now, its peak, and the sums of all its rises and falls.

    Parameters
    ----------
    total : Counter, optional
        What counts this one and others together: it rises and falls with each of them.
    """

    __slots__ = ("allocated", "current", "freed", "peak", "total")

    def __init__(self, total: Counter | None = None) -> None:
        self.current = self.peak = self.allocated = self.freed = 0
        self.total = total

    def rise(self, amount: int) -> None:
        """Add `amount`."""
        self.allocated += amount
        self.current = current = self.current + amount
        if current > self.peak:
            self.peak = current
        total = self.total
        if total is not None:  # written out: a launch rises and falls twelve times
            total.allocated += amount
            total.current = current = total.current + amount
            if current > total.peak:
                total.peak = current

    def fall(self, amount: int) -> None:
        """Take `amount` away."""
        self.freed += amount
        self.current -= amount
        total = self.total
        if total is not None:
            total.freed += amount
            total.current -= amount

    def change(self, amount: int) -> None:
        """Add `amount`, or take it away where it is negative."""
        if amount > 0:
            self.rise(amount)
        elif amount < 0:
            self.fall(-amount)

    def as_dict(self) -> dict[str, int]:
        """Return it as PyTorch does."""
        return {name: getattr(self, name) for name in ("current", "peak", "allocated", "freed")}


#: What is counted for each pool and for both together, by PyTorch's names.
COUNTED = (
    "allocation",
    "segment",
    "active",
    "inactive_split",
    "allocated_bytes",
    "reserved_bytes",
    "active_bytes",
    "inactive_split_bytes",
    "requested_bytes",
)


class Tally:
    """The statistics of one pool, or of both together: the `total` of each.

    *Allocated* is what tensors hold. *Active* is that and what waits for another stream. An
    *inactive split* is a free piece of a segment of which other pieces are in use.
    """

    __slots__ = COUNTED

    allocation: Counter
    segment: Counter
    active: Counter
    inactive_split: Counter
    allocated_bytes: Counter
    reserved_bytes: Counter
    active_bytes: Counter
    inactive_split_bytes: Counter
    requested_bytes: Counter

    def __init__(self, total: Tally | None = None) -> None:
        for name in COUNTED:
            setattr(self, name, Counter(getattr(total, name, None)))


class Statistics:
    """All that an allocator counts.

    Attributes
    ----------
    all : Tally
        Both pools together.
    small, large : Tally
        The pool of requests up to 1 MiB, and the one of larger requests.
    of : mapping of bool to Tally
        The tally of a pool, by whether it is the small one.
    oversize_allocations, oversize_segments : Counter
        Those of at least ``max_split_size_mb``.
    """

    def __init__(self) -> None:
        self.all = Tally()
        self.small, self.large = Tally(self.all), Tally(self.all)
        self.of = {True: self.small, False: self.large}
        self.oversize_allocations, self.oversize_segments = Counter(), Counter()
        self.retries = self.ooms = self.syncs = 0
        self.segments_made = self.segments_freed = 0

    def counters(self) -> list[Counter]:
        """Return every counter."""
        tallies = (self.all, self.small, self.large)
        found = [getattr(tally, name) for tally in tallies for name in COUNTED]
        return [*found, self.oversize_allocations, self.oversize_segments]

    def reset_peak(self) -> None:
        """Start the peaks again from the current values."""
        for counter in self.counters():
            counter.peak = counter.current

    def reset_accumulated(self) -> None:
        """Start all sums again from zero."""
        self.retries = self.ooms = self.syncs = self.segments_made = self.segments_freed = 0
        for counter in self.counters():
            counter.allocated = counter.freed = 0

    def as_dict(self, max_split_size: int | None) -> dict[str, Any]:
        """Return what ``torch._C._cuda_memoryStats`` returns: nested statistics."""
        kinds = {"all": self.all, "small_pool": self.small, "large_pool": self.large}
        found: dict[str, Any] = {
            name: {kind: getattr(tally, name).as_dict() for kind, tally in kinds.items()}
            for name in COUNTED
        }
        found["oversize_allocations"] = self.oversize_allocations.as_dict()
        found["oversize_segments"] = self.oversize_segments.as_dict()
        found["num_alloc_retries"] = self.retries
        found["num_ooms"] = self.ooms
        found["max_split_size"] = -1 if max_split_size is None else max_split_size
        found["num_sync_all_streams"] = self.syncs
        found["num_device_alloc"] = self.segments_made
        found["num_device_free"] = self.segments_freed
        return found
