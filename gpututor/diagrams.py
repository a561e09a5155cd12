"""Pictures of how things hang together. They hold no numbers, so they have no source line."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from .figures import INK, ORANGE, PAPER, SKY, YELLOW
from .picture import Picture, show

#: What `host_and_device` shows, in words.
HOST_AND_DEVICE = (
    "Two boxes side by side, with a queue between them. "
    "Left, the host: your program on the CPU, and below it the host memory. "
    "Right, the device: the GPU, and below it the device memory. "
    "Arrow 1, launch: your program puts kernels into the queue and goes on at once. "
    "Arrow 2, run: the GPU takes the oldest kernel from the queue, one after the other. "
    "Arrow 3, dashed, synchronise: your program waits until the queue is empty "
    "and the GPU is done. "
    "Arrow 4, both ways between the two memories: copy."
)


#: Each verdict of the doctor, and the question that it answers with no.
FIVE_CHECKS = (
    ("build", "Is this PyTorch\nfor GPUs of\nthis maker?"),
    ("driver", "Is there\na driver that\nruns this build?"),
    ("visibility", "May this\nprocess see\nthe GPU?"),
    ("architecture", "Has it code\nfor this model\nof GPU?"),
    ("usability", "Does a small\naddition on it\nwork now?"),
)


def five_checks() -> Picture:
    """Draw the five checks of the doctor in their order."""
    figure = Figure(figsize=(8, 2.1), facecolor=PAPER)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0, 160), ylim=(0, 42))
    axes.axis("off")
    words = ["Five boxes in a row, each with an arrow “yes” to the next."]
    for index, (verdict, question) in enumerate(FIVE_CHECKS):
        left = 2 + 29.5 * index
        _box(axes, (left, 14, 24.5, 25), SKY)
        _write(axes, (left + 12.25, 34.5), f"{index + 1} {verdict}", 9.5, weight="bold")
        _write(axes, (left + 12.25, 23.5), question, 8.5)
        _arrow(axes, (left + 24.9, 26), (left + 29.3, 26))
        _write(axes, (left + 26.9, 30), "yes", 8)
        _arrow(axes, (left + 12.25, 13.6), (left + 12.25, 6.5), linestyle=(0, (3, 2)))
        _write(axes, (left + 15.5, 10), "no", 8.5)
        _write(axes, (left + 12.25, 3.5), f"verdict: {verdict}", 8.5)
        words.append(f"{index + 1}, {verdict}: {' '.join(question.split())}")
    _write(axes, (154.5, 26), "fine", 10, weight="bold")
    words.append("After five times yes stands “fine”. A no names the cause.")
    return show(figure, " ".join(words))


def host_and_device() -> Picture:
    """Draw the picture that the course builds on: host, queue, device, two memories."""
    figure = Figure(figsize=(8, 4.4), facecolor=PAPER)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0, 160), ylim=(0, 88))
    axes.axis("off")

    for left, title, where in ((4.0, "HOST", "your computer"), (110.0, "DEVICE", "cuda:0")):
        _box(axes, (left, 4, 46, 80), "#FFFFFF")
        _write(axes, (left + 4, 78), title, 13, ha="left", weight="bold")
        _write(axes, (left + 42, 78), where, 10, ha="right")
    _box(axes, (8, 44, 38, 28), SKY)
    _write(axes, (27, 58), "your program\non the CPU", 12)
    _box(axes, (114, 44, 38, 28), ORANGE)
    _write(axes, (133, 58), "the GPU\nruns kernels", 12)
    for left, text in ((8.0, "host memory"), (114.0, "device memory")):
        _box(axes, (left, 9, 38, 18), "#E4E4DF", hatch="..")
        _write(axes, (left + 19, 18), text, 12, plate="#E4E4DF")

    _write(axes, (80, 78), "QUEUE", 13, weight="bold")
    for left, text in ((63.5, "third"), (74.5, "second"), (85.5, "first")):
        _box(axes, (left, 61, 11, 11), YELLOW, hatch="//")
        _write(axes, (left + 5.5, 66.5), text, 8.5, plate=YELLOW)
    _arrow(axes, (46.6, 66.5), (63, 66.5))
    _write(axes, (56.6, 70), "1 launch", 10)
    _arrow(axes, (97, 66.5), (113.4, 66.5))
    _write(axes, (103.6, 70), "2 run", 10)
    _arrow(axes, (113.4, 49), (46.6, 49), linestyle=(0, (4, 3)))
    _write(axes, (80, 53), "3 synchronise: the host waits for", 10)
    _write(axes, (80, 45), "an empty queue and an idle GPU", 10)
    _arrow(axes, (46.6, 18), (113.4, 18), style="<|-|>")
    _write(axes, (80, 22), "4 copy, both ways", 10)
    return show(figure, HOST_AND_DEVICE)


def _box(
    axes: Axes, place: tuple[float, float, float, float], colour: str, hatch: str | None = None
) -> None:
    """Draw a box at (left, bottom, width, height); `hatch` tells it apart without its colour."""
    left, bottom, width, height = place
    shape: dict[str, Any] = {"boxstyle": "round,pad=0,rounding_size=1.2"}
    axes.add_patch(
        FancyBboxPatch(
            (left, bottom), width, height, facecolor=colour, edgecolor=INK, linewidth=1.2, **shape
        )
    )
    if hatch:  # a patch of its own, because a hatch has the colour of its patch's edge
        axes.add_patch(
            FancyBboxPatch(
                (left, bottom),
                width,
                height,
                facecolor="none",
                edgecolor="#8A8A80",
                linewidth=0,
                hatch=hatch,
                **shape,
            )
        )


def _arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    style: str = "-|>",
    linestyle: Any = "solid",
) -> None:
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle=style,
            mutation_scale=16,
            shrinkA=0,
            shrinkB=0,
            color=INK,
            linewidth=1.5,
            linestyle=linestyle,
        )
    )


def _write(
    axes: Axes,
    place: tuple[float, float],
    text: str,
    size: float,
    ha: str = "center",
    weight: str = "normal",
    plate: str | None = None,
) -> None:
    """Write text; a `plate` of that colour keeps it readable on a hatched box."""
    box = {"facecolor": plate, "edgecolor": "none", "pad": 1.5} if plate else None
    axes.text(*place, text, size=size, color=INK, ha=ha, va="center", weight=weight, bbox=box)
