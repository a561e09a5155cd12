"""A finished figure: a small PNG file and what it shows in words."""

from __future__ import annotations

import base64
import contextlib
import html
import io
import signal
import struct
import threading
from collections.abc import Iterator
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image  # matplotlib needs it, and brings it

from .arguments import shown


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

    def as_html(self) -> str:
        """Return the picture as an HTML image with its words, for a widget."""
        width, height = self.size
        image = base64.b64encode(self.png).decode("ascii")
        return (
            f'<img src="data:image/png;base64,{image}" width="{width}" height="{height}" '
            f'style="max-width:100%;height:auto" decoding="sync" '  # no blank frame between two
            f'alt="{html.escape(self.alt, quote=True)}">'
        )


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
    TypeError, ValueError
        When `figure` is no figure, or `alt` no text or empty.
    """
    if not isinstance(figure, Figure):
        raise TypeError(f"show needs a matplotlib Figure, not {shown(figure)}")
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError("alt is empty: say in words what the figure shows")
    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)
    with _interrupts_wait():
        canvas.draw()
    pixels = canvas.buffer_rgba()
    image = Image.frombuffer("RGBA", canvas.get_width_height(), pixels, "raw", "RGBA", 0, 1)
    # A figure has few colours: a palette makes a file of a third of the size in half the time.
    palette = image.convert("RGB").quantize(
        method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
    )
    file = io.BytesIO()
    palette.save(file, "PNG")
    return Picture(file.getvalue(), alt)


@contextlib.contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Let an interrupt wait until the block is over; for a block of some milliseconds.

    Matplotlib's C++ asks Python for a number here and there. An interrupt that falls into that
    becomes "Invalid bounding box" (matplotlib 3.10, in one of a hundred drawings stopped).
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield  # no interrupt can come here
        return
    came: list[Any] = []
    signal.signal(signal.SIGINT, lambda *what: came.append(what))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:  # also after an error: an interrupt is never lost
            handler(*came[0])
