"""Draw docs/images/course.png, README.md's picture, from a run on the simulated GPU.

Four matmuls are launched on two streams. The host's times are readings of its clock, the GPU's
are CUDA events. Run it as ``python scripts/course_picture.py``.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from matplotlib.figure import Figure

import gpututor
from gpututor import figures

TARGET = Path(__file__).parents[1] / "docs/images/course.png"
#: Two of these fit on a T4 at once: a 256×256 result occupies 16 of its 40 multiprocessors.
ROWS, INNER = 256, 4096
ORDER = (("A", 0), ("B", 1), ("C", 0), ("D", 1))  # kernel and stream, as launched
TRIES = 20
LATE = 0.5  # ms by which the host may see the end later than the GPU's events say
COLOURS = {"A": figures.SKY, "B": figures.ORANGE, "C": figures.GREEN, "D": figures.YELLOW}


@dataclass
class Kernel:
    """One kernel's times, in milliseconds from the common zero."""

    name: str
    stream: int
    called: float  # the host calls
    returned: float  # the call returns
    begins: float  # the GPU begins
    ends: float  # the GPU ends


def run() -> tuple[list[Kernel], float]:
    """Launch the kernels; return their times, and when the host had synchronised."""
    left = torch.rand(ROWS, INNER, device="cuda")
    right = torch.rand(INNER, ROWS, device="cuda")
    streams = [torch.cuda.Stream() for _ in range(2)]
    for stream in streams:  # once before: the first call of anything takes longer
        with torch.cuda.stream(stream):
            left @ right
    torch.cuda.synchronize()
    marks = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in ORDER]
    calls = []
    zero = torch.cuda.Event(enable_timing=True)
    zero.record()
    zero.synchronize()
    started = time.perf_counter()  # the host's reading of the event's moment
    for (_, stream), (begin, end) in zip(ORDER, marks, strict=True):
        with torch.cuda.stream(streams[stream]):
            called = time.perf_counter()
            begin.record()
            left @ right
            end.record()
            calls.append((called, time.perf_counter()))
    torch.cuda.synchronize()
    done = (time.perf_counter() - started) * 1e3
    kernels = [
        Kernel(
            name,
            stream,
            (called - started) * 1e3,
            (returned - started) * 1e3,
            zero.elapsed_time(begin),
            zero.elapsed_time(end),
        )
        for (name, stream), (called, returned), (begin, end) in zip(
            ORDER, calls, marks, strict=True
        )
    ]
    return kernels, done


def run_in_step() -> tuple[list[Kernel], float]:
    """Return a run in which the CPU kept up, so that both clocks belong on one axis."""
    for _ in range(TRIES):
        kernels, done = run()
        if done - max(kernel.ends for kernel in kernels) < LATE:
            return kernels, done
    sys.exit(f"the CPU was too busy to keep up with the simulated GPU, {TRIES} times: try later")


def draw(kernels: list[Kernel], done: float, source: str) -> Figure:
    """Draw host, queue and the GPU's two streams along time."""
    figure = Figure(figsize=(9, 4.1), facecolor=figures.PAPER, layout="constrained")
    axes = figure.add_subplot(facecolor=figures.PAPER)
    bar = {"edgecolor": figures.INK, "linewidth": 1}
    idle = kernels[-1].returned
    for kernel in kernels:
        colour = COLOURS[kernel.name]
        axes.barh(8, kernel.returned - kernel.called, left=kernel.called, color=colour, **bar)
        lane = 6.6 - 0.55 * kernels.index(kernel)
        wait = max(kernel.begins - kernel.called, 0)
        axes.barh(lane, wait, 0.45, left=kernel.called, color="white", hatch="////", **bar)
        axes.text(kernel.called + wait + 0.1, lane, kernel.name, va="center", size=10)
        place = 3.2 - 1.3 * kernel.stream
        length = kernel.ends - kernel.begins
        axes.barh(place, length, 0.9, left=kernel.begins, color=colour, **bar)
        middle = kernel.begins + length / 2
        axes.text(middle, place, f"{kernel.name}: {length:.1f} ms", ha="center", va="center")
    axes.barh(8, done - idle, left=idle, color="#E4E4DF", hatch="..", **bar)
    axes.text(
        (idle + done) / 2,
        8,
        "waits in torch.cuda.synchronize()",
        ha="center",
        va="center",
        bbox={"facecolor": "#E4E4DF", "edgecolor": "none", "pad": 2},
    )
    axes.annotate(
        f"four launches in {idle - kernels[0].called:.1f} ms",
        (idle / 2, 8.45),
        (idle / 2 + 0.4, 9.15),
        va="center",
        arrowprops={"arrowstyle": "-|>", "color": figures.INK},
    )
    axes.set_yticks(
        [8, 5.8, 3.2, 1.9],
        ["host\n(your program)", "queue\n(launched, waits)", "GPU, stream 1", "GPU, stream 2"],
    )
    axes.set(
        xlim=(-0.2, done * 1.02), ylim=(1.2, 9.7), xlabel="time since the start of the run (ms)"
    )
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_title("The host launches, the GPU works later", loc="left", weight="bold")
    figure.supxlabel(source, size=9, x=0.99, ha="right")
    return figure


def main() -> None:
    """Run, draw, write."""
    machine = gpututor.start(simulate="T4")
    kernels, done = run_in_step()
    source = (
        f"Source: {machine.devices[0]}; matmuls {ROWS}×{INNER} by {INNER}×{ROWS}, float32; "
        "host by its clock, GPU by CUDA events"
    )
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_bytes(figures.png_bytes(draw(kernels, done, source), dpi=120))
    print(f"{TARGET.name}: {TARGET.stat().st_size / 1000:.0f} kB")
    for kernel in kernels:
        print(kernel)


if __name__ == "__main__":
    main()
