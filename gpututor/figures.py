"""Drawing: one style for every figure of the course.

Every axis has a label and a unit, every figure a line that says where its numbers come from and
a text alternative that holds them. Lines differ in marker and dash, bars in hatch, so that
nothing depends on hue. A figure brings its own light background: it reads the same in a dark
theme.

Figures are ``matplotlib.figure.Figure`` objects and never pyplot's, so that drawing one leaves
nothing open.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter, NullLocator

from . import machine, prediction, scale
from .picture import Picture, show
from .recorded import Recording
from .scale import amount, number

__all__ = ["Picture", "amount", "bars", "figure_of", "finish", "lines", "number", "replay", "show"]

#: Colours that people with any colour vision can tell apart (Okabe and Ito, 2008).
ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILLION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
INK, PAPER, FAINT = "#1A1A1A", "#FFFFFF", "#C9C9C2"
GREY = "#6E6E6E"  # for a sixth line: the colours left above are too pale for a line on white

#: Colour, marker and dash of the first, second, ... line.
LINES: tuple[tuple[str, str, Any], ...] = (
    (BLUE, "o", "-"),
    (VERMILLION, "s", (0, (6, 2))),
    (GREEN, "^", (0, (2, 1.5))),
    (PURPLE, "D", (0, (6, 2, 1.5, 2))),
    (INK, "v", (0, (1, 1))),
    (GREY, "P", (0, (4, 1, 1, 1, 1, 1))),
)
#: Fill and hatch of the first, second, ... bar.
BARS = ((SKY, ""), (ORANGE, "//"), (GREEN, ".."), (YELLOW, "\\\\"), (PURPLE, "xx"), (BLUE, "--"))
MOST_BARS, MOST_LINES, MOST_POINTS = 12, len(LINES), 2000
TITLE, NAME, LINE = 76, 26, 112  # characters that fit into a title, a bar's name, a source line

Points = Sequence[tuple[float, float]]


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
        The points of each line, by its name; at most 6 lines of 2000 points.
    title : str
        What the figure is about, without numbers.
    x, y : tuple of str
        Quantity and unit of each axis, such as ``("size", "bytes")``. Bytes get ticks in powers
        of 1024.
    log : str
        The axes with a logarithmic scale: ``""``, ``"x"``, ``"y"`` or ``"xy"``. A linear `y`
        shows zero, so that heights can be compared.
    limits : mapping of str to float, optional
        Named levels of `y` that are drawn across, such as a published rate.
    guess : str, optional
        The name of a prediction of `y` (see `gpututor.predict`); drawn when there is one.
    recorded : Recording, optional
        Lines measured earlier, drawn thin and hollow beside these: a line of the same name in
        the same colour.
    source : str, optional
        Where the numbers come from; by default the machine the notebook runs on.

    Raises
    ------
    TypeError, ValueError
        When there is nothing to draw or too much, a number is not finite, an axis has no unit,
        or a logarithmic axis meets a number that is not positive. One line says which.
    """
    if log not in ("", "x", "y", "xy"):
        raise ValueError(f"log must be '', 'x', 'y' or 'xy', not {log!r:.60}")
    _check_axes(x=x, y=y)
    new = {name: _points(name, points) for name, points in _items(series, "series")}
    old = {} if recorded is None else recorded.series
    levels = _levels(limits)
    if not any((*new.values(), *old.values())):
        raise ValueError("there are no points to draw: give at least one line with a point")
    styles = {name: LINES[index % MOST_LINES] for index, name in enumerate({**new, **old})}
    if len(styles) > MOST_LINES:
        raise ValueError(f"{len(styles)} lines are too many to tell apart: give {MOST_LINES}")
    figure, axes = figure_of(title)
    words = []
    for lines_of, recorded_too in ((new, False), (old, True)):
        for name, points in lines_of.items():
            colour, marker, dash = styles[name]
            name = f"{name}, recorded" if recorded_too else name
            fill, width, size = (PAPER, 1, 5) if recorded_too else (colour, 2, 6)
            axes.plot(
                *([point[place] for point in points] for place in (0, 1)), label=name,
                color=colour, marker=marker, ls=dash, lw=width, mfc=fill, ms=size,
            )  # fmt: skip
            words.append(_spoken(name, points, x, y))
    every = [point for points in (*new.values(), *old.values()) for point in points]
    heights = [point[1] for point in every] + list(levels.values())
    _scale(axes, "x", x, [point[0] for point in every], "x" in log)
    words += _marks(axes, "y", y, heights, "y" in log, levels, guess)
    return finish(figure, title, words, source if any(new.values()) else "", recorded)


def replay(recording: Recording, *, title: str, log: str = "") -> Picture:
    """Draw a recording by itself.

    Parameters
    ----------
    recording : Recording
        What to draw; its axes and its source are its own.
    title, log
        As in `lines`.
    """
    return lines(
        recording.series,
        title=title,
        x=recording.x,
        y=recording.y,
        log=log,
        source=recording.source,
    )


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
    TypeError, ValueError
        As in `lines`.
    """
    _check_axes(x=x)
    rows = [(name, scale.finite(value, f"{name!r}")) for name, value in _items(values, "values")]
    fresh = len(rows)
    if recorded is not None:
        rows += [(f"{name}, recorded", p[-1][1]) for name, p in recorded.series.items() if p]
    levels = _levels(limits)
    if not rows:
        raise ValueError("there are no numbers to draw: give at least one case")
    if len(rows) > MOST_BARS:
        raise ValueError(f"{len(rows)} bars are too many to read: give at most {MOST_BARS}")
    names = [textwrap.wrap(name, NAME)[:2] for name, _ in rows]
    longest = max(len(line) for name in names for line in name)
    figure, axes = figure_of(title, height=1.55 + 0.36 * len(rows), left=0.04 + 0.0115 * longest)
    plate = {"facecolor": PAPER, "edgecolor": "none", "pad": 1}  # where a level crosses it
    words = []
    for index, (name, value) in enumerate(rows):
        fill, hatch = BARS[index % len(BARS)]
        fill = fill if index < fresh else PAPER
        axes.barh(index, value, 0.62, color=fill, hatch=hatch, edgecolor=INK, lw=1)
        axes.annotate(
            number(value), (max(value, 0), index), xytext=(5, 0), textcoords="offset points",
            va="center", size=9, color=INK, bbox=plate,
        )  # fmt: skip
        words.append(f"{name}: {number(value)} {x[1]}.")
    numbers = [value for _, value in rows] + list(levels.values())
    if not log:  # room for the number behind the longest bar
        numbers.append(max(numbers) + 0.1 * (max(numbers) - min(0.0, *numbers)))
    axes.set_yticks(range(len(rows)), ["\n".join(name) for name in names], size=9)
    axes.set_ylim(len(rows) - 0.5, -0.5)  # the first on top
    words += _marks(axes, "x", x, numbers, log, levels, guess)
    return finish(figure, title, words, source if fresh else "", recorded)


def figure_of(title: str, height: float = 3.6, left: float = 0.1) -> tuple[Figure, Axes]:
    """Return an empty figure in the style of the course, for what `lines` and `bars` cannot draw.

    Parameters
    ----------
    title : str
        What the figure is about, without numbers.
    height : float
        In inches. The width is 7.
    left : float
        The part of the width that is left free for what stands left of the axes.

    Returns
    -------
    tuple of Figure and Axes
        With room for the axes' labels and the source line, which `finish` writes.

    Raises
    ------
    ValueError
        When the title is empty, or too long for one line.
    """
    if not isinstance(title, str) or not 0 < len(title) <= TITLE:
        raise ValueError(f"title must be a text of 1 to {TITLE} characters, not {title!r:.60}")
    figure = Figure(figsize=(7, height), facecolor=PAPER)
    axes = figure.add_axes((left, 0.82 / height, 0.97 - left, 1 - 1.22 / height))
    axes.set_facecolor(PAPER)
    # Where matplotlib places a title or an axis label itself, it lays out every tick once more.
    axes.set_title(title, loc="left", size=11, color=INK, y=1.0)
    axes.xaxis.set_label_coords(0.5, -0.27 / (height - 1.22))
    axes.yaxis.set_label_coords(-(left - 0.026) / (0.97 - left), 0.5)
    axes.grid(color=FAINT, lw=0.6, alpha=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8.5, colors=INK)
    return figure, axes


def finish(
    figure: Figure,
    title: str,
    words: Iterable[str],
    source: str | None = None,
    recorded: Recording | None = None,
) -> Picture:
    """Write the source line, and make the picture with its text alternative.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Made by `figure_of`.
    title : str
        Its title, which begins the text alternative.
    words : iterable of str
        Sentences that say what the figure shows, with its numbers.
    source, recorded
        As in `lines`; an empty source is left out.
    """
    sources = [
        machine.source() if source is None else source,
        recorded.source if recorded is not None else "",
    ]
    line = "Source: " + "; ".join(filter(None, sources)) + "."
    height = figure.get_size_inches()[1]
    shown = "\n".join(textwrap.wrap(line, LINE)[:2])
    figure.text(0.012, 0.09 / height, shown, size=8, color=INK, linespacing=1.15)
    return show(figure, " ".join([f"{title}.", *words, line]))


def _items(given: Any, what: str) -> Iterable[tuple[str, Any]]:
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} must be a dictionary from names to numbers, not {given!r:.60}")
    return [(str(name), value) for name, value in given.items()]


def _levels(limits: Mapping[str, float] | None) -> dict[str, float]:
    given = _items(limits or {}, "limits")
    return {name: scale.finite(level, f"the limit {name!r}") for name, level in given}


def _points(name: str, points: Any) -> list[tuple[float, float]]:
    points = list(points)
    if len(points) > MOST_POINTS:
        raise ValueError(f"{name!r} has {len(points)} points: give at most {MOST_POINTS}")
    found = []
    for index, point in enumerate(points):
        try:
            across, up = point
        except (TypeError, ValueError):
            raise TypeError(f"point {index} of {name!r} is {point!r}, not a pair (x, y)") from None
        place = f"point {index} of {name!r}"
        found.append((scale.finite(across, f"x of {place}"), scale.finite(up, f"y of {place}")))
    return found


def _check_axes(**axes: Any) -> None:
    for name, pair in axes.items():
        texts = isinstance(pair, tuple) and len(pair) == 2
        if not texts or not all(isinstance(text, str) and text.strip() for text in pair):
            raise ValueError(
                f"{name} must be a quantity and its unit, such as ('size', 'bytes'), "
                f"not {pair!r:.60}"
            )


def _scale(
    axes: Axes, name: str, quantity: tuple[str, str], values: Sequence[float], log: bool
) -> None:
    """Set label, scale and ticks; without matplotlib's own for logarithms, which take 60 ms."""
    if log and min(values) <= 0:
        raise ValueError(f"{name} has {min(values)}, which a logarithmic scale cannot show")
    axis = axes.xaxis if name == "x" else axes.yaxis
    binary = quantity[1] == "bytes"
    bars_or_height = name == "y" or bool(axes.patches)
    low, high = scale.limits(values, log, from_zero=bars_or_height)
    if log:
        (axes.set_xscale if name == "x" else axes.set_yscale)("log")
    (axes.set_xlim if name == "x" else axes.set_ylim)(low, high)
    ticks = scale.ticks(low, high, log, binary)
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter([amount(t) if binary else number(t) for t in ticks]))
    axis.set_label_text(f"{quantity[0]} ({quantity[1]})", color=INK)


def _marks(
    axes: Axes,
    name: str,
    quantity: tuple[str, str],
    values: Sequence[float],
    log: bool,
    levels: Mapping[str, float],
    guess: str | None,
) -> list[str]:
    """Scale the axis of the numbers, draw the named levels and the guess across; say them."""
    across = axes.axvline if name == "x" else axes.axhline
    words = []
    for level_name, level in levels.items():
        label = f"{level_name}: {number(level)} {quantity[1]}"
        across(level, color=INK, lw=1.3, ls=(0, (1, 2)), label=label)
        words.append(f"{label}.")
    guessed = prediction.kept(guess) if guess is not None else None
    if isinstance(guessed, (int, float)):
        fits = guessed > 0 or not log
        # A guess far off must not squeeze what was measured into a corner.
        reach = [*values, 0.0] if not log else [min(values) / 100, max(values) * 100]
        span = 4 * (max(reach) - min(reach))
        fits = fits and min(reach) - span <= guessed <= max(reach) + span
        label = f"your guess: {number(guessed)} {quantity[1]}{'' if fits else ', off the scale'}"
        if fits:
            values = [*values, float(guessed)]
            across(guessed, color=INK, lw=1.6, ls=(0, (5, 2, 1, 2)), label=label)
        else:
            axes.plot([], [], color=INK, lw=1.6, ls=(0, (5, 2, 1, 2)), label=label)
        words.append(f"{label[0].upper()}{label[1:]}.")
    elif isinstance(guessed, str):
        axes.plot([], [], color="none", label=f"your guess: {guessed}")
        words.append(f"Your guess: {guessed}.")
    _scale(axes, name, quantity, values, log)
    if len(axes.get_legend_handles_labels()[1]) > (0 if axes.patches else 1):
        axes.legend(fontsize=8, framealpha=0.9, edgecolor=FAINT, labelcolor=INK)
    return words


def _spoken(name: str, points: Points, x: tuple[str, str], y: tuple[str, str]) -> str:
    """Put a line into words: its ends and its middle."""
    if not points:
        return f"{name}: no points."
    chosen = [points[0], points[len(points) // 2], points[-1]] if len(points) > 3 else points

    def at(value: float) -> str:
        return amount(value) if x[1] == "bytes" else f"{number(value)} {x[1]}"

    said = ", ".join(f"{number(value)} {y[1]} at {at(place)}" for place, value in chosen)
    return f"{name}: {said}."
