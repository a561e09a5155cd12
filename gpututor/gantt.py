"""Drawing what ran when: a track for the host, one for each stream and each copy engine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from .figures import FAINT, GREEN, INK, ORANGE, PAPER, SKY, YELLOW, number

MOST_BARS = 2000  # drawn; where there are more spans, neighbours are joined
CROWDED = 200  # bars: more are drawn without edge and hatch, which would hide them
MOST_LABELS = 60  # spans with their name in the bar
MOST_MARKS = 12  # marks with their name
SPOKEN = 6  # spans of a track that the text alternative gives one by one

#: Fill and hatch of each kind of span.
STYLES = {
    "host": (YELLOW, "\\\\"),
    "copy in": (ORANGE, "//"),
    "kernel": (SKY, ""),
    "copy out": (GREEN, ".."),
    "joined": (FAINT, ""),
}
_ENGINES = {"copy in": "copy engine in", "copy out": "copy engine out"}
_WIDTH, _LEFT, _ROW = 7.0, 1.25, 0.36  # inches
_LETTER = 0.062  # inches of a letter at 7.5 points


@dataclass(frozen=True)
class Span:
    """Something that ran.

    Attributes
    ----------
    name : str
        What it was.
    track : str
        Where: ``"host"`` or a stream.
    kind : str
        ``"host"``, ``"kernel"``, ``"copy in"`` or ``"copy out"``.
    start, end : float
        Seconds since the record began.
    """

    name: str
    track: str
    kind: str
    start: float
    end: float

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.end - self.start


@dataclass(frozen=True)
class Mark:
    """A moment on the host, in seconds since the record began."""

    name: str
    at: float


def draw(
    spans: Sequence[Span],
    marks: Sequence[Mark],
    title: str,
    notes: Sequence[str],
    source: str,
) -> tuple[Figure, str]:
    """Return the figure and its text alternative.

    Parameters
    ----------
    spans, marks
        What to draw; at least one span.
    title : str
        What the figure is about.
    notes : sequence of str
        Sentences that the figure says below its axis.
    source : str
        Where the times come from.
    """
    first = min([span.start for span in spans] + [mark.at for mark in marks])
    last = max([span.end for span in spans] + [mark.at for mark in marks])
    extent = max(last - first, 1e-9)
    unit, scale = ("s", 1.0) if extent >= 10 else ("ms", 1e3) if extent >= 1e-3 else ("µs", 1e6)
    tracks = _tracks(spans)
    bars, joined = _thin(tracks, extent)
    notes = [*notes, *([joined] if joined else [])]
    if len(marks) > MOST_MARKS:
        notes.append(f"{len(marks)} marks, without their names.")

    named = 0 < len(marks) <= MOST_MARKS
    levels = min(3, len(marks)) if named else 0
    height = 1.33 + _ROW * len(tracks) + 0.17 * (len(notes) + levels)
    figure = Figure(figsize=(_WIDTH, height), facecolor=PAPER)
    bottom = 0.68 + 0.17 * len(notes)
    axes = figure.add_axes(
        (_LEFT / _WIDTH, bottom / height, 0.97 - _LEFT / _WIDTH, 1 - (bottom + 0.58) / height)
    )
    _dress(axes, list(tracks), f"time since the first bar begins ({unit})")
    axes.set_xlim(-0.01 * extent * scale, 1.01 * extent * scale)
    axes.set_ylim(len(tracks) - 0.45, -0.55 - levels * 0.17 / _ROW)
    inches = (0.97 * _WIDTH - _LEFT) / (1.02 * extent)
    crowded = sum(map(len, bars.values())) > CROWDED
    for row, track in enumerate(tracks):
        for kind, (fill, hatch) in STYLES.items():
            axes.broken_barh(
                [
                    ((begin - first) * scale, (end - begin) * scale)
                    for each, begin, end in bars[track]
                    if each == kind
                ],
                (row - 0.34, 0.68), facecolors=fill, edgecolor=INK,
                hatch="" if crowded else hatch, lw=0 if crowded else 0.6,
            )  # fmt: skip
        if len(spans) <= MOST_LABELS:
            _label(axes, tracks[track], row, first, last, scale, inches)
    for place, mark in enumerate(sorted(marks, key=lambda mark: mark.at)):
        at = (mark.at - first) * scale
        axes.axvline(at, color=INK, lw=1, ls=(0, (4, 2)))
        if named:
            late = mark.at - first > 0.7 * extent
            axes.annotate(
                mark.name, (at, -0.62 - (place % levels) * 0.17 / _ROW), size=7.5, color=INK,
                xytext=(-3 if late else 3, 0), textcoords="offset points",
                ha="right" if late else "left", va="center",
            )  # fmt: skip
    kinds = {kind for track in bars.values() for kind, _, _ in track}
    axes.legend(
        handles=[
            Patch(facecolor=fill, hatch=hatch, edgecolor=INK, lw=0.6, label=kind)
            for kind, (fill, hatch) in STYLES.items()
            if kind in kinds
        ],
        loc="lower left", bbox_to_anchor=(0, 1.0), ncol=5, fontsize=8, frameon=False,
        borderaxespad=0.2, handlelength=1.6, borderpad=0,
    )  # fmt: skip
    figure.text(0.012, 1 - 0.2 / height, title, size=11, color=INK)
    said = f"Source: {source}."
    for line, text in enumerate([said, *reversed(notes)]):
        figure.text(0.012, (0.09 + 0.17 * line) / height, text, size=8, color=INK)
    words = [_spoken(track, tracks[track], first, scale, unit) for track in tracks]
    words += [f"{mark.name} at {number((mark.at - first) * scale)} {unit}." for mark in marks]
    return figure, " ".join([f"{title}.", *words, *notes, said])


def _tracks(spans: Sequence[Span]) -> dict[str, list[Span]]:
    """Return the spans of each track: the host's, each stream's, each copy engine's."""
    streams: dict[str, list[Span]] = {}
    engines: dict[str, list[Span]] = {}
    for span in spans:
        streams.setdefault(span.track, []).append(span)
        if span.kind in _ENGINES:
            device = span.track.partition(" ")[0] + " " if span.track.startswith("cuda:") else ""
            engines.setdefault(device + _ENGINES[span.kind], []).append(span)
    # An engine does one copy at a time: one that waits for it begins where the last one ended.
    for track, copies in engines.items():
        reached, busy = float("-inf"), []
        for span in sorted(copies, key=lambda span: span.end):
            begin = min(max(span.start, reached), span.end)
            busy.append(Span(span.name, track, span.kind, begin, span.end))
            reached = span.end
        engines[track] = busy
    order = sorted(streams, key=lambda track: (track != "host", _natural(track)))
    return {track: streams[track] for track in order} | {
        track: engines[track] for track in sorted(engines, key=_natural)
    }


def _natural(track: str) -> list[tuple[int, str]]:
    """Sort "stream 2" before "stream 10"."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", track)]


#: The bars of a track: kind, start and end of each.
Bars = list[tuple[str, float, float]]


def _thin(tracks: dict[str, list[Span]], extent: float) -> tuple[dict[str, Bars], str]:
    """Return the bars of each track; join neighbours where there are too many to draw."""
    count = sum(map(len, tracks.values()))
    gap = -1.0 if count <= MOST_BARS else extent / MOST_BARS
    while True:
        bars = {track: _join(spans, gap) for track, spans in tracks.items()}
        drawn = sum(map(len, bars.values()))
        if drawn <= MOST_BARS:
            break
        gap *= 2
    if gap < 0:
        return bars, ""
    apart = f"{number(gap * 1e3)} ms"
    return bars, f"{count} bars are drawn as {drawn}: those less than {apart} apart are joined."


def _join(spans: Sequence[Span], gap: float) -> Bars:
    """Return a bar for each span, or for several that are at most `gap` seconds apart."""
    bars: Bars = []
    for span in sorted(spans, key=lambda span: span.start):
        if gap >= 0 and bars and span.start - bars[-1][2] <= gap:
            kind, begin, end = bars[-1]
            bars[-1] = (kind if kind == span.kind else "joined", begin, max(end, span.end))
        else:
            bars.append((span.kind, span.start, span.end))
    return bars


def _dress(axes: Axes, names: Sequence[str], label: str) -> None:
    axes.set_facecolor("white")
    axes.grid(axis="x", color=FAINT, lw=0.6, alpha=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=8.5, colors=INK)
    axes.set_yticks(range(len(names)), names, size=8.5)
    axes.set_xlabel(label, size=9)


def _label(
    axes: Axes,
    spans: Sequence[Span],
    row: int,
    first: float,
    last: float,
    scale: float,
    inches: float,
) -> None:
    """Write the name into each bar, or beside it where only there is room."""
    for span in spans:
        text = _short(span)
        needed = (len(text) + 1) * _LETTER / inches  # seconds
        if needed <= span.duration:
            axes.text(
                ((span.start + span.end) / 2 - first) * scale, row, text, size=7.5, color=INK,
                ha="center", va="center",
                bbox={"facecolor": STYLES[span.kind][0], "edgecolor": "none", "pad": 1.6},
            )  # fmt: skip
            continue
        free = not any(o.start < span.end + needed and o.end > span.end for o in spans)
        if free and span.end + needed <= last:
            axes.annotate(
                text, ((span.end - first) * scale, row), size=7.5, color=INK, va="center",
                xytext=(3, 0), textcoords="offset points",
            )  # fmt: skip


def _short(span: Span) -> str:
    """Leave out the types and arguments of a kernel's name."""
    if span.kind == "host":
        return span.name[:28]
    name = span.name
    name = re.sub(r"^void ", "", name)
    name = re.split(r"[<(]", name, maxsplit=1)[0].strip() or name
    return name.split("::")[-1][:28]


def _spoken(track: str, spans: Sequence[Span], first: float, scale: float, unit: str) -> str:
    told = [
        f"{_short(span)} from {number((span.start - first) * scale)} to "
        f"{number((span.end - first) * scale)} {unit}"
        for span in spans[:SPOKEN]
    ]
    more = [f"and {len(spans) - SPOKEN} more"] if len(spans) > SPOKEN else []
    return f"{track}: {', '.join([*told, *more])}."
