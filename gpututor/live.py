"""A board that a loop fills while it runs: a progress bar and one curve for each number.

It is made of core widgets and is redrawn by the loop itself: there is no thread, and nothing
happens between two calls of `Board.update`.
"""

from __future__ import annotations

import html
import time
from types import TracebackType
from typing import Any

import ipywidgets
from IPython.display import DisplayHandle, display
from matplotlib.figure import Figure

from . import figures, machine

EVERY = 0.3  # seconds between two drawings; one takes about a tenth of that
MOST = 4
MOST_POINTS = 200  # in one curve as it is drawn


class Board:
    """Shows how a loop gets on. Made by `board`; to be used in a ``with`` statement.

    Attributes
    ----------
    values : dict of str to list of (float, float)
        The points of each curve so far: step and value.
    """

    def __init__(self, total: int, units: dict[str, str]) -> None:
        self.values: dict[str, list[tuple[float, float]]] = {name: [] for name in units}
        self._units = units
        self._total = total
        self._step = 0
        self._drawn = 0.0
        self._source = machine.source()
        self._bar = ipywidgets.IntProgress(max=total, layout=ipywidgets.Layout(width="32em"))
        self._status = ipywidgets.HTML()
        self._view = ipywidgets.HTML()
        self._panel = ipywidgets.VBox([self._bar, self._status, self._view])
        self._handle: DisplayHandle | None = None

    def update(self, **values: float) -> None:
        """Count one step, and note its numbers.

        Parameters
        ----------
        **values : float
            A number for any of the curves. A tensor on the GPU is refused: to read it, the loop
            has to wait for it, and that should be seen in the loop.

        Raises
        ------
        TypeError
            When a value is no number of Python's.
        ValueError
            When there is no such curve.
        """
        for name, value in values.items():
            if name not in self.values:
                raise ValueError(f"there is no curve {name!r}; there is {', '.join(self.values)}")
            if not isinstance(value, (int, float)):
                raise TypeError(f"{name} must be a number: read a tensor with .item() first")
        self._step += 1
        for name, value in values.items():
            self.values[name].append((float(self._step), float(value)))
        if time.perf_counter() - self._drawn > EVERY:
            self._draw()

    def picture(self) -> figures.Picture:
        """Return the curves as they are now."""
        figure = Figure(figsize=(7, 0.9 + 1.15 * len(self.values)), facecolor=figures.PAPER)
        rows = figure.subplots(len(self.values), sharex=True, squeeze=False)[:, 0]
        words, steps = [], self._step
        for index, (axes, (name, points)) in enumerate(zip(rows, self.values.items(), strict=True)):
            colour, marker, dash = figures.LINES[index % len(figures.LINES)]
            kept = points[:: max(1, len(points) // MOST_POINTS)]
            axes.plot(
                [step for step, _ in kept], [value for _, value in kept],
                color=colour, ls=dash, marker=marker if len(kept) < 40 else "", ms=4,
            )  # fmt: skip
            unit = self._units[name]
            axes.set_ylabel(f"{name}\n({unit})", size=9)
            axes.set_xlim(0, self._total)
            axes.grid(color=figures.FAINT, lw=0.6, alpha=0.6)
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(labelsize=8)
            if points:
                first, last = figures.number(points[0][1]), figures.number(points[-1][1])
                words.append(f"{name}: {first} {unit} at first, {last} {unit} at step {steps}.")
        rows[-1].set_xlabel("step (count)", size=9)
        height = figure.get_size_inches()[1]
        figure.subplots_adjust(left=0.13, right=0.98, top=1 - 0.1 / height, bottom=0.72 / height)
        title = f"A loop of {self._total} steps"
        return figures.finish(figure, title, words, self._source)

    def _draw(self) -> None:
        self._bar.value = self._step
        said = [f"step {self._step} of {self._total}"]
        for name, points in self.values.items():
            if points:
                said.append(f"{name} {figures.number(points[-1][1])} {self._units[name]}".strip())
        self._say(", ".join(said))
        if any(self.values.values()):
            self._view.value = self.picture().as_html()
        self._drawn = time.perf_counter()

    def _say(self, text: str) -> None:
        self._status.value = f'<div role="status">{html.escape(text)}</div>'

    def _bundle(self) -> tuple[dict[str, Any], dict[str, Any]]:
        data: dict[str, Any] = {"text/plain": repr(self)}
        metadata: dict[str, Any] = {}
        if any(self.values.values()):
            data, metadata = self.picture()._repr_mimebundle_()
        view = {"version_major": 2, "version_minor": 0, "model_id": self._panel.model_id}
        data["application/vnd.jupyter.widget-view+json"] = view
        return data, metadata

    def __repr__(self) -> str:
        if any(self.values.values()):
            return self.picture().alt
        return f"a board of {', '.join(self.values)} for {self._total} steps"

    def __enter__(self) -> Board:
        data, metadata = self._bundle()
        self._handle = display(data, metadata=metadata, raw=True, display_id=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._draw()
        if kind is not None:
            self._bar.bar_style = "danger"
            self._say(f"ended by {kind.__name__} at step {self._step} of {self._total}")
        elif self._handle is not None:  # where widgets cannot live, the last picture is shown
            data, metadata = self._bundle()
            self._handle.update(data, metadata=metadata, raw=True)


def board(total: int, **units: str) -> Board:
    """Make a board for a loop of `total` steps.

    Parameters
    ----------
    total : int
        How many times the loop will call `Board.update`.
    **units : str
        The unit of each curve, by its name: ``loss="nats"``, ``memory="MiB"``; from 1 to 4.

    Raises
    ------
    TypeError, ValueError
        When `total` is no whole number from 1 on, or the curves are none or too many.
    """
    if isinstance(total, bool) or not isinstance(total, int):
        raise TypeError(f"total must be a whole number of steps, not {total!r:.60}")
    if total < 1:
        raise ValueError(f"total must be 1 or more, not {total}")
    if not 1 <= len(units) <= MOST:
        raise ValueError(f"give from 1 to {MOST} curves with their units, not {len(units)}")
    return Board(total, units)
