"""Set the simulator beside a real GPU: write ``docs/measured.md``.

``python scripts/measured.py`` runs the lessons' experiments on a simulated H200 and puts each ratio
beside the one that was recorded on a real H200. It takes about ten minutes on two cores; with the
names of experiments it only prints their ratios.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

import gpututor
from gpututor import recorded, timeline, transfer
from gpututor.machine import VARIABLE

sys.path.insert(0, str(Path(__file__).parent))  # for a test, which loads this file by its path
from record import cells

PAGE = Path(__file__).parents[1] / "docs/measured.md"
VERSIONS = {"cuda": "CUDA", "python": "Python"}  # what a recording may say besides
LARGE = 0.25  # an error above this one needs its reason
Ratios = dict[str, float]


@dataclass(frozen=True)
class Experiment:
    """One ratio that a lesson teaches, in a few cases.

    Attributes
    ----------
    name : str
        The heading.
    ratio : str
        What is divided by what; a sentence.
    lesson : str
        The notebook that teaches it, without its ending.
    workload : str
        What was simulated, and what of it differs from what was recorded.
    cases : tuple
        What is varied.
    quick : int
        How many of the cases, from the first on, a test may run again: seconds each.
    simulate : callable
        Runs such cases on the simulated machine `spec` and returns the ratio of each.
    recorded : callable
        Returns the recorded ratio of each case, and the source.
    why : str
        Why simulated and recorded differ where they do by more than a quarter; else empty.
    spec, gpus : str, int
        The simulated machine, and how many GPUs its lesson asks for.
    """

    name: str
    ratio: str
    lesson: str
    workload: str
    cases: tuple[Any, ...]
    quick: int
    simulate: Callable[[Iterable[Any]], Ratios]
    recorded: Callable[[], tuple[Ratios, str]]
    why: str = ""
    spec: str = "H200"
    gpus: int = 1


def points(name: str, line: str, experiment: str | None = None) -> tuple[dict[float, float], str]:
    """Return one recorded line, and where it comes from."""
    recording = recorded.load(name, experiment)
    file = Path(recorded.__file__).with_name(f"{name}.json")
    about = json.loads(file.read_text(encoding="utf-8"))["source"]
    more = [f"{word} {about[key]}" for key, word in VERSIONS.items() if key in about]
    return dict(recording.series[line]), ", ".join([recording.source, *more])


# -- lesson 02: copies ---------------------------------------------------------------------------

SIZES = (4, 16, 256)  # MiB


def pinned_simulated(sizes: Iterable[int]) -> Ratios:
    """Copy with the lesson's function; the first of two runs is the warm-up."""
    lesson = cells("02_move_tensors", "rate")
    rate, repeats = lesson["copy_rate"], functools.partial(transfer.seconds, repeats=1)
    lesson["transfer"] = type("transfer", (), {"seconds": staticmethod(repeats)})  # 20 s a copy
    return {f"{n} MiB": rate(n * 2**20) / rate(n * 2**20, pinned=False) for n in sizes}


def pinned_recorded() -> tuple[Ratios, str]:
    """Divide the two lines to the GPU."""
    pinned, source = points("h200", "to the GPU, pinned", "transfer")
    pageable, _ = points("h200", "to the GPU, pageable", "transfer")
    return {f"{n} MiB": pinned[n * 2**20] / pageable[n * 2**20] for n in SIZES}, source


COUNTS = (10, 100, 1000)


def pieces_simulated(counts: Iterable[int]) -> Ratios:
    """Copy 4 MiB in pieces with the lesson's function."""
    run = cells("02_move_tensors", "pieces")["in_pieces"]
    one = run(1)
    return {f"{count} pieces": run(count) / one for count in counts}


def pieces_recorded() -> tuple[Ratios, str]:
    """Divide by the time of one piece."""
    times, source = points("h200", "4 MiB in pieces", "pieces")
    return {f"{count} pieces": times[count] / times[1] for count in COUNTS}, source


# -- lesson 03: streams --------------------------------------------------------------------------

STREAMS = "03_overlap_work_with_streams"
ROWS = ("two sleeps", "sines of 4096 numbers", "products that fill the GPU")
RECORDED_ROWS = ("two sleeps", "400 sines of 4096 numbers", "10 products of 4096 rows")


def two_rows(streams: int, count: int, rows: int, product: bool) -> float:
    """Return the time of `count` equal kernels, dealt out to one stream or to two."""
    shape = (rows, rows) if product else (rows,)
    x, y = (torch.ones(shape, device="cuda") for _ in range(2))
    out = torch.empty_like(x)
    for values in (x, y):  # loads the kernel
        torch.mm(values, values, out=out) if product else values.sin_()
    sides = [torch.cuda.Stream() for _ in range(streams)]
    line = timeline.record()
    for side in sides:
        with line.span("row", side):
            for _ in range(count // streams):
                torch.mm(x, x, out=out) if product else x.sin_()
    return line.duration


def streams_simulated(rows: Iterable[str]) -> Ratios:
    """Run two sleeps with the lesson's function, and two rows of kernels."""
    lesson = cells(STREAMS, "setup", "two-sleeps")
    lesson["nap"] = 20_000_000  # cycles: 10 ms of a real GPU; not waited out here
    sleeps = lesson["two_sleeps"]
    works: dict[str, Callable[[int], float]] = {
        "two sleeps": lambda streams: sleeps(streams).duration,
        "sines of 4096 numbers": lambda streams: two_rows(streams, 400, 4096, False),
        "products that fill the GPU": lambda streams: two_rows(streams, 4, 2048, True),
    }
    return {row: works[row](1) / works[row](2) for row in rows}


def streams_recorded() -> tuple[Ratios, str]:
    """Divide the time on one stream by that on two."""
    found = {}
    for row, name in zip(ROWS, RECORDED_ROWS, strict=True):
        times, source = points("streams_h200", name)
        found[row] = times[1] / times[2]
    return found, source


CHUNKS = (1, 4, 8, 16)


def pipeline_simulated(chunks: Iterable[int]) -> Ratios:
    """Run the lesson's pipeline on 0.25 GiB, with 60 kernels a chunk."""
    lesson = cells(STREAMS, "work", "pipeline")
    lesson["timeline"] = timeline
    host = torch.rand(2**26).pin_memory()
    lesson.update(
        host=host,
        back=torch.empty_like(host).pin_memory(),
        device=torch.empty_like(host, device="cuda"),
        each=60,
    )
    run = lesson["in_chunks"]
    run(1)
    limit = max(run(1).busy().values())
    return {chunked(count): run(count).duration / limit for count in chunks}


def chunked(count: int) -> str:
    """Return ``1 chunk`` or ``4 chunks``."""
    return f"{count} chunk{'s' * (count > 1)}"


def pipeline_recorded() -> tuple[Ratios, str]:
    """Return what was recorded for 0.25 GiB."""
    ratios, source = points("pipeline_h200", "0.25 GiB")
    return {chunked(count): ratios[count] for count in CHUNKS}, source


# -- lessons 00 and 04: what a clock reads -------------------------------------------------------

PRODUCTS = (256, 1024, 3072, 8192)


def naive_simulated(sizes: Iterable[int]) -> Ratios:
    """Read both clocks on the simulated time of the host: its own clock is not in slow motion."""
    found = {}
    for size in sizes:
        x = torch.rand(size, size, device="cuda")
        y = x[:8] @ x  # loads the code
        torch.cuda.synchronize()
        runs = [clock_read(x) for _ in range(3)]
        # The shortest: a computer that is busy can hold the simulated host up.
        launch, done = (min(times) for times in zip(*runs, strict=True))
        found[f"{size} rows"] = done / launch
        del x, y
    return found


def clock_read(x: torch.Tensor) -> tuple[float, float]:
    """Return the host's simulated seconds until a product is launched, and until it is done."""
    line = timeline.record()
    with line.host("nothing"):
        pass
    with line.host("launch"):
        y = x @ x
    torch.cuda.synchronize()
    with line.host("work"):
        y = x @ x
        torch.cuda.synchronize()
    del y
    times = {span.name: span.end - span.start for span in line.spans}
    mark = times["nothing"]  # what it costs to note a time
    return times["launch"] - mark, times["work"] - mark


def naive_recorded() -> tuple[Ratios, str]:
    """Return the first surprise of lesson 00."""
    ratios, source = points("h200", "matrix product", "surprise")
    return {f"{size} rows": ratios[size] for size in PRODUCTS}, source


# -- lesson 05: two devices ----------------------------------------------------------------------

BATCHES = (8, 256, 1024)
CHANNELS, RECORDED_CHANNELS = 236, 336


def devices_simulated(batches: Iterable[int]) -> Ratios:
    """Time the lesson's step of a network of three convolutions."""
    lesson = cells("05_split_work", "setup", "network", "step")
    one = lesson["network"](CHANNELS)
    two = nn.DataParallel(one, device_ids=[0, 1])
    found = {}
    for batch in batches:
        x = torch.randn(batch, 3, 16, 16, device="cuda:0")
        found[f"{batch} samples"] = lesson["step_ms"](two, x) / lesson["step_ms"](one, x)
    return found


def devices_recorded() -> tuple[Ratios, str]:
    """Return what two GPUs took, divided by what one took."""
    ratios, source = points("h200x2", f"two GPUs, {RECORDED_CHANNELS} channels", "data parallel")
    return {f"{batch} samples": ratios[batch] for batch in BATCHES}, source


EXPERIMENTS = {
    "pinned": Experiment(
        "Pinned and pageable copies",
        "The rate of a copy to the GPU from pinned memory, divided by that from pageable memory.",
        "02_move_tensors",
        "The same sizes.",
        SIZES,
        2,
        pinned_simulated,
        pinned_recorded,
        why="a real driver copies pageable memory by way of the host, so this rate is the host's. "
        "The simulator has one, 7 GB/s, measured with 256 MiB on another host, which was slower "
        "than the host of this recording. A real one also depends on the size.",
    ),
    "pieces": Experiment(
        "One large copy and many small ones",
        "The time to copy 4 MiB in pieces, divided by the time to copy them at once.",
        "02_move_tensors",
        "The same.",
        COUNTS,
        3,
        pieces_simulated,
        pieces_recorded,
        why="every launch costs the simulated host 8.6 µs, which is what a kernel took from "
        "Python on the host of an earlier recording. The host of this recording was faster.",
    ),
    "streams": Experiment(
        "One stream and two",
        "The time of work on one stream, divided by the time of the same work on two.",
        STREAMS,
        "The same sleeps and sines, and 4 products of 2048 rows in place of 10 of 4096: each "
        "of them fills the GPU.",
        ROWS,
        3,
        streams_simulated,
        streams_recorded,
    ),
    "pipeline": Experiment(
        "A pipeline and its limit",
        "The time of copy in, kernels and copy out in chunks on three streams, divided by the time "
        "of the longest of the three alone.",
        STREAMS,
        "The same: 0.25 GiB, 60 kernels for each chunk.",
        CHUNKS,
        1,
        pipeline_simulated,
        pipeline_recorded,
    ),
    "naive": Experiment(
        "The naive clock and the true time",
        "The time until a matrix product is done, divided by the time until its call returns.",
        "00_start_here",
        "The same products, in float32. Both times are the host's on the simulated clock.",
        PRODUCTS,
        3,
        naive_simulated,
        naive_recorded,
        why="the simulated host needs 8.6 µs for each launch, which is what one takes in a row. "
        "A recorded call comes alone, after a wait, and takes several times as long. "
        "The simulated products also run at the published peak, which real ones do not reach. "
        "So the ratio says that the gap is wide, not how wide.",
    ),
    "devices": Experiment(
        "DataParallel on two devices and one device",
        "The time of a forward and a backward pass with two devices, divided by the time with one.",
        "05_split_work",
        f"The network of the lesson with {CHANNELS} channels, in which a sample takes one "
        f"simulated GPU about as long as it took a real one with {RECORDED_CHANNELS}: a real H200 "
        "computes such convolutions with TF32, and the simulator does not.",
        BATCHES,
        1,
        devices_simulated,
        devices_recorded,
        why="at 8 samples the launches decide, not the GPU. One simulated device is too fast "
        "then: a launch costs 8.6 µs, and what Python and autograd do between launches is not "
        "counted.",
        spec="H200x2@6GiB",
        gpus=2,
    ),
}

HEAD = """# The simulator beside a real GPU

Does a simulated GPU teach the right ratios?
For each experiment of the lessons that is about a ratio, this page sets two of them side by side.
One is what a simulated H200 gives, the other was recorded on a real H200.

`python scripts/measured.py` writes this page.
It runs the lessons' own functions on the simulated GPU, by its events and its clock.
So the ratios do not depend on the computer.
The recordings are in `gpututor/recorded/`.

*Off by* is the simulated ratio's distance from the recorded one.
Recorded times are medians of a few runs on shared machines: two recordings differ by some per cent.
"""


def error(simulated: float, real: float) -> float:
    """Return the relative error of a simulated ratio."""
    return simulated / real - 1


def rounded(value: float) -> str:
    """Return a ratio with the three digits that mean something."""
    return f"{float(f'{value:.3g}'):g}"


def signed(share: float) -> str:
    """Return an error in per cent, with its sign where there is one."""
    return f"{share:+.0%}" if abs(share) >= 0.005 else "0%"


def section(experiment: Experiment, simulated: Ratios) -> str:
    """Return what the page says of one experiment."""
    real, source = experiment.recorded()
    rows = []
    for case, ratio in simulated.items():
        shown = rounded(ratio)
        off = signed(error(float(shown), real[case]))
        rows.append(f"| {case} | {shown} | {rounded(real[case])} | {off} |")
    parts = [
        f"## {experiment.name}",
        experiment.ratio + f"\nLesson [{experiment.lesson[:2]}](../notebooks/{experiment.lesson}"
        ".ipynb) teaches it.",
        "\n".join(["| | simulated | recorded | off by |", "| --- | --- | --- | --- |", *rows]),
        f"*Simulated* {experiment.spec.partition('@')[0]}: {experiment.workload}\n"
        f"*{source[0].upper()}{source[1:]}.*",
    ]
    if experiment.why:
        parts.append(f"Why it differs: {experiment.why}")
    return "\n\n".join(parts) + "\n"


def simulate(experiment: Experiment, quick: bool = False) -> Ratios:
    """Run one experiment on its simulated machine, or its quick cases only."""
    gpututor.stop()
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = experiment.spec  # for the lessons' own start()
    try:
        gpututor.start(experiment.gpus)
        return experiment.simulate(experiment.cases[: experiment.quick if quick else None])
    finally:
        gpututor.stop()
        os.environ.pop(VARIABLE)
        if before is not None:
            os.environ[VARIABLE] = before


def main(arguments: list[str] | None = None) -> int:
    """Run, and write the page or print; return 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("only", nargs="*", choices=[[], *EXPERIMENTS], help="print only these")
    options = parser.parse_args(arguments)
    parts = []
    for name, experiment in EXPERIMENTS.items():
        if not options.only or name in options.only:
            parts.append(section(experiment, simulate(experiment)))
            print(parts[-1], flush=True)
    if not options.only:
        PAGE.write_text("\n".join([HEAD, *parts]), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
