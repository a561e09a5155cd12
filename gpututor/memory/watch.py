"""A live view of a GPU's memory that a loop updates: no thread, nothing between two updates."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

import ipywidgets
from IPython.display import DisplayHandle, display

from .. import arguments, figures, machine
from .numbers import Numbers, numbers

EVERY = 0.3  # seconds between two drawings
MOST_POINTS = 200  # in one line as it is drawn
MIB = 2**20
TITLE = "Memory of the GPU while a loop runs"


class Watch:
    """Shows the three numbers of a device's memory as a loop goes on. Made by `watch`.

    Attributes
    ----------
    history : list of Numbers
        What every update found.
    """

    def __init__(self, device: int | None) -> None:
        self._device = arguments.device_index(device)
        self._source = machine.source(self._device)
        self.history: list[Numbers] = []
        self._drawn = 0.0
        self._view = ipywidgets.HTML()
        self._handle: DisplayHandle | None = None

    def update(self) -> Numbers:
        """Read the numbers, and redraw the view if the last drawing is 0.3 s old."""
        found = numbers(self._device)
        self.history.append(found)
        if time.perf_counter() - self._drawn > EVERY:
            self._draw()
        return found

    def picture(self) -> figures.Picture:
        """Return the curves so far.

        Raises
        ------
        ValueError
            Before the first update.
        """
        if not self.history:
            raise ValueError("there is nothing to draw yet: call update() in the loop")
        every = -(-len(self.history) // MOST_POINTS)
        steps = sorted({*range(0, len(self.history), every), len(self.history) - 1})
        names = {
            "allocated: held by tensors": "allocated",
            "reserved: kept by PyTorch": "reserved",
            "used: given by the driver": "used",
        }
        series = {
            name: [(step + 1, getattr(self.history[step], key) / MIB) for step in steps]
            for name, key in names.items()
        }
        return figures.lines(
            series, title=TITLE, x=("update", "count"), y=("memory", "MiB"), source=self._source
        )

    def _draw(self) -> None:
        self._view.value = self.picture().as_html()
        self._drawn = time.perf_counter()

    def _bundle(self) -> tuple[dict[str, Any], dict[str, Any]]:
        data: dict[str, Any] = {"text/plain": repr(self)}
        metadata: dict[str, Any] = {}
        if self.history:
            data, metadata = self.picture()._repr_mimebundle_()
        view = {"version_major": 2, "version_minor": 0, "model_id": self._view.model_id}
        data["application/vnd.jupyter.widget-view+json"] = view
        return data, metadata

    def _ipython_display_(self) -> None:
        data, metadata = self._bundle()
        self._handle = display(data, metadata=metadata, raw=True, display_id=True)

    def __repr__(self) -> str:
        return self.picture().alt if self.history else "a view of the GPU's memory, not updated yet"

    def __enter__(self) -> Watch:
        self._ipython_display_()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.history:
            self._draw()
        if self._handle is not None:  # where widgets cannot live, the last picture is shown
            data, metadata = self._bundle()
            self._handle.update(data, metadata=metadata, raw=True)


def watch(device: int | None = None) -> Watch:
    """Make a live view of a device's memory; the loop calls `Watch.update`.

    Parameters
    ----------
    device : int, optional
        The index of a CUDA device; by default the current one.

    Examples
    --------
    >>> with memory.watch() as view:  # doctest: +SKIP
    ...     for batch in batches:
    ...         step(batch)
    ...         view.update()
    """
    return Watch(device)
