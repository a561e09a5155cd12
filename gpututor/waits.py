"""Find the lines of a function that wait for the GPU."""

from __future__ import annotations

import html
import linecache
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from . import arguments

_INSIDE = (str(Path(torch.__file__).parent), str(Path(__file__).parent / "simulator"))


@dataclass(frozen=True)
class Wait:
    """A line that waited.

    Attributes
    ----------
    line : int
        Its number in its cell or file.
    text : str
        The line.
    times : int
        How often PyTorch said that it waits. One line can wait more than once.
    """

    line: int
    text: str
    times: int


class Waits(tuple[Wait, ...]):
    """The lines that waited, in their order. Shows itself as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self:
            return "no line waited"
        width = max(len(str(wait.times)) for wait in self)
        rows = [f"{wait.times:>{width}} × line {wait.line}: {wait.text}" for wait in self]
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


def find(function: Callable[[], Any]) -> Waits:
    """Call a function, and return its lines that waited for the GPU.

    PyTorch says of most calls that they wait, once ``torch.cuda.set_sync_debug_mode("warn")`` asks
    it to. Each warning is traced to the nearest line outside of PyTorch.

    Parameters
    ----------
    function : callable
        Takes nothing.

    Returns
    -------
    Waits
        Each line once, with how often it waited.

    Notes
    -----
    PyTorch calls the mode a prototype that does not see every wait. It does not report
    ``torch.cuda.synchronize()``, ``Stream.synchronize()`` and ``Event.synchronize()``, which say
    themselves that they wait.
    """
    arguments.work(function)
    counts: Counter[tuple[str, int]] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        shown = warnings.showwarning

        def note(message: Any, category: Any, filename: Any, lineno: Any, *more: Any) -> None:
            if "called a synchronizing CUDA operation" in str(message):
                counts[_line()] += 1
            elif "Synchronization debug mode is a prototype" not in str(message):
                shown(message, category, filename, lineno, *more)

        warnings.showwarning = note  # type: ignore[assignment]
        before = torch.cuda.get_sync_debug_mode()
        torch.cuda.set_sync_debug_mode("warn")
        try:
            function()
        finally:
            torch.cuda.set_sync_debug_mode(before)
    return Waits(
        Wait(line, linecache.getline(file, line).strip(), times)
        for (file, line), times in sorted(counts.items(), key=lambda item: item[0][1])
    )


def _line() -> tuple[str, int]:
    """Return file and line of the nearest caller outside of PyTorch."""
    frame = sys._getframe(2)
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(_INSIDE)
        or frame.f_code.co_filename == warnings.__file__
        or "_dispatch" in frame.f_code.co_filename
    ):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
