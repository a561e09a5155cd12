"""What ran when: spans on streams and on the host, on one axis of time.

The device's times come from CUDA events, the host's from its clock. Both start at one event that
the host waits for. On a simulated GPU the host's times are events too, on an idle stream, so that
a computer that is slower than the model does not shift them. Only the public ``torch.cuda`` is
used, so a real run and a simulated one are recorded by the same code. `from_profiler` takes single
kernels from ``torch.profiler`` instead.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from matplotlib.figure import Figure

from . import arguments, figures, gantt, machine
from .arguments import shown
from .gantt import Mark, Span

KINDS = ("kernel", "copy in", "copy out")
_DRIFT = 1e-3  # seconds, and two parts in a hundred, that the two clocks may differ


class Timeline:
    """Spans and marks on one axis of time. As a cell's last value it shows its figure.

    Parameters
    ----------
    spans : sequence of Span
        What ran.
    marks : sequence of Mark
        Moments on the host.
    notes : sequence of str
        What to know about the times; the figure says it.
    source : str
        Where the times come from.
    """

    def __init__(
        self,
        spans: Sequence[Span],
        marks: Sequence[Mark] = (),
        notes: Sequence[str] = (),
        source: str = "",
    ) -> None:
        self._spans = list(spans)
        self._marks = list(marks)
        self._notes = list(notes)
        self._source = source

    @property
    def spans(self) -> list[Span]:
        """The spans, in order of their start; times in seconds."""
        return sorted(self._spans, key=lambda span: (span.start, span.end))

    @property
    def marks(self) -> list[Mark]:
        """The marks; times in seconds."""
        return list(self._marks)

    @property
    def notes(self) -> list[str]:
        """What to know about the times."""
        return list(self._notes)

    @property
    def duration(self) -> float:
        """Seconds from the start of the first span of a device to the end of the last."""
        device = [span for span in self.spans if span.kind != "host"]
        if not device:
            raise ValueError("there is no span of a device in this timeline")
        return max(span.end for span in device) - min(span.start for span in device)

    def busy(self) -> dict[str, float]:
        """Return for each name of device spans the seconds in which at least one of them ran."""
        groups: dict[str, list[Span]] = {}
        for span in self.spans:
            if span.kind != "host":
                groups.setdefault(span.name, []).append(span)
        return {name: _covered(spans) for name, spans in groups.items()}

    def overlap(self, alone: Timeline) -> float:
        """Return how much of the overlap that was possible there was.

        A span says from when to when a stream was at it, and that may be waiting for others. So
        what could be hidden is not taken from this timeline but from one without overlap.

        Parameters
        ----------
        alone : Timeline
            The same work on one stream: how long each kind of work takes alone. Spans of one name
            are one kind.

        Returns
        -------
        float
            0 when this took as long as the kinds one after the other, 1 when it took no longer
            than the longest of them. Below 0 it took longer than on one stream.

        Raises
        ------
        ValueError
            When the two timelines have different names, or fewer than two: then there is nothing
            to overlap.
        """
        parts = alone.busy()
        if len(parts) < 2:
            raise ValueError(
                "overlap needs two kinds of work: give the spans that could run at the same time "
                "different names"
            )
        if parts.keys() != self.busy().keys():
            raise ValueError(
                f"the timelines must hold the same work: this one has {sorted(self.busy())}, the "
                f"other {sorted(parts)}"
            )
        total, longest = sum(parts.values()), max(parts.values())
        return (total - self.duration) / (total - longest) if total > longest else 0.0

    def figure(self, title: str = "What ran when", alone: Timeline | None = None) -> Figure:
        """Draw it: the host above, a track for each stream and each copy engine below.

        Parameters
        ----------
        title : str
            What the figure is about.
        alone : Timeline, optional
            The same work on one stream; with it the figure says the `overlap`.
        """
        return self._drawn(title, alone)[0]

    def show(self, title: str = "What ran when", alone: Timeline | None = None) -> figures.Picture:
        """Draw it as `figure` does, with a text alternative that holds the numbers."""
        return figures.show(*self._drawn(title, alone))

    def _drawn(self, title: str, alone: Timeline | None) -> tuple[Figure, str]:
        spans = self.spans
        if not spans:
            raise ValueError("there is nothing to draw: no span was recorded")
        notes = list(self._notes)
        if alone is not None:
            overlap = round(self.overlap(alone), 2) + 0.0  # no minus before a zero
            notes.insert(0, f"Overlap: {overlap:.2f} (0: none, 1: all that could overlap).")
        return gantt.draw(spans, self.marks, title, notes, self._source)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.show()._repr_mimebundle_(**options)


@dataclass(frozen=True)
class _Pending:
    """A span whose events may not have happened yet."""

    name: str
    track: str
    kind: str
    device: int
    start: torch.cuda.Event
    end: torch.cuda.Event


@dataclass(frozen=True)
class _Moment:
    """A moment of the host: by its clock, and on a simulated GPU by an event that is reached."""

    clock: float
    reached: torch.cuda.Event | None


class Recorder(Timeline):
    """A timeline that is being recorded. Made by `record`.

    Reading `spans`, `overlap` or a figure waits for the device.
    """

    def __init__(self, devices: Sequence[int]) -> None:
        super().__init__([], source=machine.source(devices[0]))
        self._pending: list[_Pending] = []
        self._moments: list[tuple[str, _Moment, _Moment | None]] = []
        # Of another pool than the streams of the code that is recorded, so that it is idle.
        self._idle = torch.cuda.Stream(devices[0], priority=-1) if machine.simulated() else None
        self._tracks: dict[tuple[int, int], str] = {}
        self._many = len(devices) > 1
        self._zero: dict[int, tuple[torch.cuda.Event, float]] = {}
        for device in devices:
            self._zero[device] = _tie(device)
        self._began = max(moment for _, moment in self._zero.values())

    @contextmanager
    def span(
        self, name: str, stream: torch.cuda.Stream | None = None, kind: str | None = None
    ) -> Iterator[None]:
        """Record from when a stream begins to when it ends what is launched in the block.

        Parameters
        ----------
        name : str
            What it is. Spans of one name are one kind of work to `overlap`.
        stream : torch.cuda.Stream, optional
            The stream, which becomes current in the block; by default the current one.
        kind : str, optional
            ``"kernel"``, ``"copy in"`` or ``"copy out"``; by default a copy if the name begins so.

        Raises
        ------
        ValueError
            When there is no such kind, or `record` was not told of the stream's device.

        Notes
        -----
        It begins where the stream comes to it, so that waiting inside the block is part of it.
        """
        if kind is None:
            kind = next((kind for kind in KINDS if name.startswith(kind)), "kernel")
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {shown(kind)}")
        with torch.cuda.stream(stream):
            current = torch.cuda.current_stream()
            track = self._track(current)
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            yield
            end.record(current)
        device = current.device.index
        self._pending.append(_Pending(name, track, kind, device, start, end))

    @contextmanager
    def host(self, name: str) -> Iterator[None]:
        """Record what the host does in the block.

        On a real GPU by the host's clock. On a simulated one by the simulated clock, where a launch
        takes what the model says and other work of under 5 ms nothing, so that a busy computer does
        not shift the host's track against the others.
        """
        start = self._moment()
        yield
        self._moments.append((name, start, self._moment()))

    def mark(self, name: str) -> None:
        """Mark this moment on the host, such as the reading of a clock."""
        self._moments.append((name, self._moment(), None))

    @property
    def spans(self) -> list[Span]:
        """The spans so far, in order of their start; times in seconds. Waits for the device."""
        if self._pending or self._moments:
            self._collect()
        return super().spans

    @property
    def marks(self) -> list[Mark]:
        """The marks so far; times in seconds. Waits for the device."""
        if self._moments:
            self._collect()
        return super().marks

    def _track(self, stream: torch.cuda.Stream) -> str:
        device = stream.device.index
        if device not in self._zero:
            raise ValueError(
                f"cuda:{device} is not part of this timeline: name it in "
                f"timeline.record({', '.join(map(str, [*self._zero, device]))})"
            )
        key = (device, stream.cuda_stream)
        if key not in self._tracks:
            others = [d for d, handle in self._tracks if d == device and handle]
            name = f"stream {len(others) + 1}" if stream.cuda_stream else "default stream"
            self._tracks[key] = f"cuda:{device} {name}" if self._many else name
        return self._tracks[key]

    def _moment(self) -> _Moment:
        clock, reached = time.perf_counter(), None
        if self._idle is not None:
            reached = torch.cuda.Event(enable_timing=True)
            reached.record(self._idle)
        return _Moment(clock, reached)

    def _collect(self) -> None:
        """Wait for the device, take the times of the events, and compare the two clocks."""
        self._notes = []
        shift = {}
        for device, (zero, moment) in self._zero.items():
            last, now = _tie(device)
            shift[device] = moment - self._began
            on_host, on_device = now - moment, zero.elapsed_time(last) / 1e3
            drift = on_host - on_device
            if abs(drift) <= max(_DRIFT, 0.02 * on_host):
                continue
            way = f"{figures.number(abs(drift) * 1e3)} ms {'ahead of' if drift > 0 else 'behind'}"
            if self._idle is None:
                why = "the host's track is shifted by up to that"
            elif drift < 0:
                why = "a long sleep was not waited out"
            else:  # the host's track is on the simulated clock: nothing is shifted
                continue
            self._notes.append(f"The host's clock ran {way} the device's: {why}.")
        for item in self._pending:
            zero = self._zero[item.device][0]
            times = (
                zero.elapsed_time(event) / 1e3 + shift[item.device]
                for event in (item.start, item.end)
            )
            self._spans.append(Span(item.name, item.track, item.kind, *times))
        for name, start, end in self._moments:
            if end is None:
                self._marks.append(Mark(name, self._when(start, shift)))
            else:
                times = (self._when(moment, shift) for moment in (start, end))
                self._spans.append(Span(name, "host", "host", *times))
        self._pending, self._moments = [], []

    def _when(self, moment: _Moment, shift: dict[int, float]) -> float:
        """Return a moment of the host in seconds since the record began."""
        if self._idle is None or moment.reached is None:
            return moment.clock - self._began
        device = self._idle.device.index
        return float(self._zero[device][0].elapsed_time(moment.reached)) / 1e3 + shift[device]


def record(*devices: int) -> Recorder:
    """Wait for the device, and begin to record a timeline there.

    Parameters
    ----------
    *devices : int
        The CUDA devices whose streams are recorded; by default the current one.

    Returns
    -------
    Recorder
        With ``span``, ``host`` and ``mark`` to record, ``show`` and ``overlap`` to read.

    Raises
    ------
    TypeError, ValueError
        When one of `devices` is no index, or there is no such device.
    """
    return Recorder([arguments.device_index(device) for device in devices or (None,)])


def from_profiler(profile: torch.profiler.profile) -> Timeline:
    """Take a timeline from a finished ``torch.profiler.profile`` of a real GPU.

    Parameters
    ----------
    profile : torch.profiler.profile
        With the activity CUDA, and CPU for a track of the host: its outermost operators and calls.

    Returns
    -------
    Timeline
        A span for every kernel and every copy.

    Raises
    ------
    ValueError
        When the profile has no work of a GPU in it.
    """
    if not hasattr(profile, "events"):
        raise TypeError(f"give a profile of torch.profiler.profile, not {shown(profile)}")
    spans = []
    for event in profile.events() or ():
        start, end = event.time_range.start / 1e6, event.time_range.end / 1e6
        if event.device_type.name == "CUDA":
            if not getattr(event, "is_user_annotation", False):
                stream = f"stream {event.device_resource_id}"
                track = f"cuda:{event.device_index} {stream}" if event.device_index else stream
                spans.append(Span(event.name, track, _kind(event.name), start, end))
        elif event.cpu_parent is None and not event.is_async:
            spans.append(Span(event.name, "host", "host", start, end))
    if all(span.kind == "host" for span in spans):
        raise ValueError(
            "there is no work of a GPU in this profile: give torch.profiler.profile "
            "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
        )
    return Timeline(spans, source=f"{machine.source()}, torch.profiler")


def _kind(name: str) -> str:
    if name.startswith("Memcpy HtoD"):
        return "copy in"
    return "copy out" if name.startswith("Memcpy DtoH") else "kernel"


def _tie(device: int) -> tuple[torch.cuda.Event, float]:
    """Return an event of an idle device, and the host's time of it, as near as can be."""
    torch.cuda.synchronize(device)
    best: tuple[float, torch.cuda.Event, float] | None = None
    for _ in range(3):
        event = torch.cuda.Event(enable_timing=True)
        before = time.perf_counter()
        event.record(torch.cuda.default_stream(device))
        event.synchronize()
        after = time.perf_counter()
        if best is None or after - before < best[0]:
            best = (after - before, event, after)
    assert best is not None
    return best[1], best[2]


def _covered(spans: Sequence[Span]) -> float:
    """Return the seconds in which at least one of the spans ran."""
    total, reached = 0.0, float("-inf")
    for span in sorted(spans, key=lambda span: span.start):
        total += max(0.0, span.end - max(span.start, reached))
        reached = max(reached, span.end)
    return total
