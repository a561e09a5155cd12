"""A finished figure: a small PNG file and what it shows in words."""

from __future__ import annotations

import base64
import html
import io
import struct
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image  # matplotlib needs it, and brings it


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
        raise TypeError(f"show needs a matplotlib Figure, not {figure!r:.60}")
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError("alt is empty: say in words what the figure shows")
    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)
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
