"""Drawing: one style for every figure of the course.

Every axis has a label and a unit, every figure a line that says where its numbers come from and
a text alternative that holds them. Lines differ in marker and dash, bars in hatch, so that
nothing depends on hue. A figure brings its own light background: it reads the same in a dark
theme.

Figures are ``matplotlib.figure.Figure`` objects and never pyplot's, so that drawing one leaves
nothing open.
"""

from __future__ import annotations

import base64
import io
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from . import machine, prediction
from .recorded import Recording

#: Colours that people with any colour vision can tell apart (Okabe and Ito, 2008).
ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILLION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
INK, PAPER, FAINT = "#1A1A1A", "#FCFCF9", "#C9C9C2"

#: Colour, marker and dash of the first, second, ... line.
LINES: tuple[tuple[str, str, Any], ...] = (
    (BLUE, "o", "-"),
    (VERMILLION, "s", (0, (6, 2))),
    (GREEN, "^", (0, (2, 1.5))),
    (PURPLE, "D", (0, (6, 2, 1.5, 2))),
    (INK, "v", (0, (1, 1))),
    (ORANGE, "P", (0, (4, 1, 1, 1, 1, 1))),
)
#: Fill and hatch of the first, second, ... bar.
BARS = ((SKY, ""), (ORANGE, "//"), (GREEN, ".."), (YELLOW, "\\\\"), (PURPLE, "xx"), (BLUE, "--"))
MOST_BARS = 12

Points = Sequence[tuple[float, float]]


class Picture:
    """A finished figure, with its text alternative.

    Parameters
    ----------
    png : bytes
        The figure, as a PNG file.
    alt : str
        What it shows, in words and numbers: for those who do not see it, and for plain text.

    Attributes
    ----------
    size : tuple of int
        Width and height in pixels.
    """

    def __init__(self, png: bytes, alt: str) -> None:
        self.png = png
        self.alt = alt
        self.size: tuple[int, int] = struct.unpack(">II", png[16:24])  # the PNG's first chunk

    def __repr__(self) -> str:
        return self.alt

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
        image = base64.b64encode(self.png).decode("ascii")
        return {"text/plain": self.alt, "image/png": image}, {"image/png": {"alt": self.alt}}


def show(figure: Figure, alt: str, dpi: int = 100) -> Picture:
    """Turn a figure into a picture that a notebook shows, with its text alternative.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        What to show.
    alt : str
        What it shows, in words.
    dpi : int
        Pixels per inch.

    Returns
    -------
    Picture
        The PNG and the words. As a cell's last value it shows itself.

    Raises
    ------
    ValueError
        When `alt` is empty.
    """
    if not alt.strip():
        raise ValueError("alt is empty: say in words what the figure shows")
    file = io.BytesIO()
    # Without the drawing program's version in it, equal figures are equal files.
    figure.savefig(file, format="png", dpi=dpi, metadata={"Software": None})
    return Picture(file.getvalue(), alt)


def lines(
    series: Mapping[str, Points],
    *,
    title: str,
    x: tuple[str, str],
    y: tuple[str, str],
    log: str = "",
    limits: Mapping[str, float] | None = None,
    guess: str | None = None,
    recorded: Recording | None = None,
    source: str | None = None,
) -> Picture:
    """Draw one quantity against another.

    Parameters
    ----------
    series : mapping of str to sequence of (float, float)
        The points of each line, by its name.
    title : str
        What the figure is about, without numbers.
    x, y : tuple of str
        Quantity and unit of each axis, such as ``("size", "bytes")``. Bytes get ticks in powers
        of 1024.
    log : str
        The axes with a logarithmic scale: ``""``, ``"x"``, ``"y"`` or ``"xy"``.
    limits : mapping of str to float, optional
        Named levels of `y` that are drawn across, such as a published rate.
    guess : str, optional
        The name of a prediction of `y` (see `gpututor.predict`); drawn when there is one.
    recorded : Recording, optional
        Lines measured earlier, drawn thin and hollow beside these.
    source : str, optional
        Where the numbers come from; by default the machine the notebook runs on.

    Raises
    ------
    ValueError
        When there is nothing to draw, or a logarithmic axis meets a number that is not positive.
    """
    if not any(series.values()):
        raise ValueError("there are no points to draw: give at least one line with a point")
    figure, axes = _new(title)
    old = recorded.series if recorded is not None else {}
    words = []
    for index, (name, points) in enumerate(series.items()):
        colour, marker, dash = LINES[index % len(LINES)]
        axes.plot(*_columns(points), color=colour, marker=marker, ls=dash, lw=2, label=name)
        words.append(_spoken(name, points, x, y))
    for index, (name, points) in enumerate(old.items()):
        colour, marker, dash = LINES[index % len(LINES)]
        axes.plot(
            *_columns(points), color=colour, marker=marker, ls=dash, lw=1, mfc=PAPER, ms=5,
            label=f"{name}, recorded",
        )  # fmt: skip
        words.append(_spoken(f"{name}, recorded", points, x, y))
    for name, level in (limits or {}).items():
        axes.axhline(level, color=INK, lw=1, ls=(0, (1, 2)))
        axes.annotate(
            name, (0, level), xycoords=("axes fraction", "data"), xytext=(4, 3),
            textcoords="offset points", size=8, color=INK,
        )  # fmt: skip
        words.append(f"{name}: {number(level)} {y[1]}.")
    words += _mark_guess(guess, y, axes.axhline)
    points_of_all = [p for points in (*series.values(), *old.values()) for p in points]
    for place, (axis, (quantity, unit), values) in enumerate(
        (
            (axes.xaxis, x, [p[0] for p in points_of_all]),
            (axes.yaxis, y, [p[1] for p in points_of_all] + list((limits or {}).values())),
        )
    ):
        _scale(axes, axis, "xy"[place], unit, values, "xy"[place] in log)
        axis.set_label_text(f"{quantity} ({unit})")
    if len(series) + len(old) > 1 or guess is not None:
        axes.legend(fontsize=8, framealpha=0.9, edgecolor=FAINT)
    return _finish(figure, title, words, source, recorded)


def bars(
    values: Mapping[str, float],
    *,
    title: str,
    x: tuple[str, str],
    log: bool = False,
    limits: Mapping[str, float] | None = None,
    guess: str | None = None,
    recorded: Recording | None = None,
    source: str | None = None,
) -> Picture:
    """Draw one number for each of a few cases, as bars that lie.

    Parameters
    ----------
    values : mapping of str to float
        The number of each case, by its name; at most 12.
    title : str
        What the figure is about, without numbers.
    x : tuple of str
        Quantity and unit of the numbers, such as ``("time", "ms")``.
    log : bool
        Whether the scale is logarithmic.
    limits, guess, recorded, source
        As in `lines`; of `recorded` the last `y` of each line is drawn.

    Raises
    ------
    ValueError
        When there is nothing to draw, or too much.
    """
    rows = [(name, float(value)) for name, value in values.items()]
    if recorded is not None:
        rows += [(f"{name}, recorded", p[-1][1]) for name, p in recorded.series.items() if p]
    if not rows:
        raise ValueError("there are no numbers to draw: give at least one case")
    if len(rows) > MOST_BARS:
        raise ValueError(f"{len(rows)} bars are too many to read: give at most {MOST_BARS}")
    figure, axes = _new(title, height=1.55 + 0.36 * len(rows), left=0.3)
    words = []
    for index, (name, value) in enumerate(rows):
        fill, hatch = BARS[index % len(BARS)]
        fill = PAPER if index >= len(values) else fill
        axes.barh(index, value, 0.62, color=fill, hatch=hatch, edgecolor=INK, lw=1)
        axes.annotate(
            number(value), (value, index), xytext=(4, 0), textcoords="offset points",
            va="center", size=9, color=INK,
        )  # fmt: skip
        words.append(f"{name}: {number(value)} {x[1]}.")
    for name, level in (limits or {}).items():
        axes.axvline(level, color=INK, lw=1.2, ls=(0, (1, 2)), label=f"{name}: {number(level)}")
        words.append(f"{name}: {number(level)} {x[1]}.")
    words += _mark_guess(guess, x, axes.axvline)
    levels = [value for _, value in rows] + list((limits or {}).values())
    _scale(axes, axes.xaxis, "x", x[1], levels, log)
    if not log:
        axes.set_xlim(left=min(0.0, *levels), right=max(levels) * 1.13 or 1)
    axes.set_yticks(range(len(rows)), [name for name, _ in rows], size=9)
    axes.invert_yaxis()
    axes.set_xlabel(f"{x[0]} ({x[1]})")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8, framealpha=0.9, edgecolor=FAINT)
    return _finish(figure, title, words, source, recorded)


def number(value: float) -> str:
    """Write a number with three significant digits, as the figures do; a count in full."""
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    text = f"{value:.3g}"
    if "e" in text and 1e-4 <= abs(value) < 1e6:
        text = f"{float(text):.0f}"
    return text


def amount(nbytes: float) -> str:
    """Write a number of bytes in the largest unit of 1024 that it fills."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if abs(nbytes) < 1024 or unit == "GiB":
            return f"{number(nbytes)} {unit}"
        nbytes /= 1024
    raise AssertionError


def _new(title: str, height: float = 3.6, left: float = 0.1) -> tuple[Figure, Axes]:
    """Return a figure 7 inches wide, with room for the title, the labels and the source line."""
    figure = Figure(figsize=(7, height), facecolor=PAPER)
    axes = figure.add_axes((left, 0.82 / height, 0.97 - left, 1 - 1.22 / height))
    axes.set_facecolor("white")
    axes.set_title(title, loc="left", size=11, color=INK)
    axes.grid(color=FAINT, lw=0.6, alpha=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=8.5, colors=INK)
    return figure, axes


def _scale(axes: Axes, axis: Any, name: str, unit: str, values: Sequence[float], log: bool) -> None:
    """Set the scale and its ticks; without matplotlib's own for logarithms, which take 60 ms."""
    low, high = min(values), max(values)
    if log and low <= 0:
        raise ValueError(f"{name} has {low}, which a logarithmic scale cannot show")
    ticks: list[float] = []
    if log:
        (axes.set_xscale if name == "x" else axes.set_yscale)("log")
        base = 2.0 if unit == "bytes" else 10.0
        first, last = math.floor(math.log(low, base)), math.ceil(math.log(high, base))
        every = max(1, round((last - first) / 7))
        ticks = [base**power for power in range(first, last + 1, every)]
        axis.set_minor_locator(NullLocator())
        (axes.set_xlim if name == "x" else axes.set_ylim)(
            low * (low / high) ** 0.04 / 1.1, high * (high / low) ** 0.08 * 1.1
        )
    elif unit == "bytes":
        step = 2.0 ** max(0, math.ceil(math.log2(max(high, 1) / 6)))
        ticks = [step * count for count in range(int(high / step) + 1)]
    if ticks:
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_ticklabels([amount(t) if unit == "bytes" else number(t) for t in ticks])


def _columns(points: Points) -> tuple[list[float], list[float]]:
    return [point[0] for point in points], [point[1] for point in points]


def _spoken(name: str, points: Points, x: tuple[str, str], y: tuple[str, str]) -> str:
    """Put a line into words: its ends and its middle."""
    if not points:
        return f"{name}: no points."
    chosen = [points[0], points[len(points) // 2], points[-1]] if len(points) > 3 else points

    def at(value: float) -> str:
        return amount(value) if x[1] == "bytes" else f"{number(value)} {x[1]}"

    said = ", ".join(f"{number(value)} {y[1]} at {at(place)}" for place, value in chosen)
    return f"{name}: {said}."


def _mark_guess(guess: str | None, quantity: tuple[str, str], across: Any) -> list[str]:
    value = prediction.kept(guess) if guess is not None else None
    if not isinstance(value, (int, float)):
        return []
    across(value, color=INK, lw=1.6, ls=(0, (5, 2, 1, 2)), label=f"your guess: {number(value)}")
    return [f"Your guess: {number(value)} {quantity[1]}."]


def _finish(
    figure: Figure, title: str, words: list[str], source: str | None, recorded: Recording | None
) -> Picture:
    """Write the source line, and make the picture with its text alternative."""
    sources = [source or machine.source()]
    if recorded is not None:
        sources.append(recorded.source)
    line = "Source: " + "; ".join(sources) + "."
    height = figure.get_size_inches()[1]
    figure.text(0.012, 0.09 / height, line, size=8, color=INK)
    return show(figure, " ".join([f"{title}.", *words, line]))
