"""Measure what the lessons quote, on the GPU that is here, and write it as one small file.

``python scripts/record.py gpututor/recorded/h200.json`` runs the lessons' own cells, so that what
is recorded is what a learner runs. It takes about two minutes, and refuses a simulated GPU.
With two GPUs it also measures DataParallel and copies between them.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import torch

import gpututor
from gpututor import timing, transfer

ROOT = Path(__file__).parents[1]
NOTEBOOKS = ROOT / "notebooks"
REPEATS = 5


def cells(notebook: str, *names: str) -> dict[str, Any]:
    """Run these code cells of a lesson, and return what they define."""
    source = {
        cell.id: cell.source
        for cell in nbformat.read(NOTEBOOKS / f"{notebook}.ipynb", as_version=4).cells
    }
    space: dict[str, Any] = {}
    exec("import time\nimport torch\nimport gpututor\nfrom gpututor import *", space)
    exec("from gpututor import figures, live, recorded, transfer", space)
    exec("from torch.nn.functional import cross_entropy", space)
    for name in names:
        exec(source[name], space)
    return space


def curve(
    x: tuple[str, str], y: tuple[str, str], series: dict[str, list[tuple[float, list[float]]]]
) -> dict[str, Any]:
    """Return an experiment in its stored form: the medians, and the samples behind them."""
    return {
        "x": list(x),
        "y": list(y),
        "series": {
            name: [[at, round_to(statistics.median(samples))] for at, samples in points]
            for name, points in series.items()
        },
        "samples": {
            name: [[round_to(sample) for sample in samples] for _, samples in points]
            for name, points in series.items()
        },
    }


def round_to(value: float, digits: int = 4) -> float:
    """Return `value` with so many digits that count."""
    return float(f"{value:.{digits}g}")


def often(function: Callable[[], float], repeats: int = REPEATS) -> list[float]:
    """Return the results of a few calls."""
    return [function() for _ in range(repeats)]


# -- lesson 00 and 04: what a clock reads -------------------------------------------------------


def surprise() -> dict[str, Any]:
    """A product's time until the call returns and until it is done."""
    measure = cells("00_start_here", "surprise")["surprise"]
    measure(256)
    points = [(n, often(lambda n=n: measure(n))) for n in (256, 1024, 3072, 8192)]
    return curve(("size", "rows"), ("done relative to returned", "×"), {"matrix product": points})


def clocks() -> dict[str, Any]:
    """A product's time by three clocks of the host and the device, by size."""
    lesson = cells("04_time_asynchronous_work", "naive", "synchronised", "events")
    readers = {
        "host, not synchronised": lesson["naive"],
        "host, synchronised": lesson["synchronised"],
        "CUDA events": lesson["with_events"],
    }
    series: dict[str, list[tuple[float, list[float]]]] = {name: [] for name in readers}
    for n in (128, 512, 2048, 4096, 8192):
        x = torch.rand(n, n, device="cuda")
        for name, read in readers.items():
            torch.mm(x, x)
            samples = []
            for _ in range(REPEATS):
                torch.cuda.synchronize()  # the naive clock leaves work behind
                samples.append(1e3 * read(lambda x=x: torch.mm(x, x)))
            series[name].append((n, samples))
    return curve(("size", "rows"), ("time of one product", "ms"), series)


def small_work() -> dict[str, Any]:
    """A float16 product's time by events, by a row of calls, and of the device alone."""
    series: dict[str, list[tuple[float, list[float]]]] = {}
    for n in (256, 1024, 4096, 8192):
        x = torch.rand(n, n, device="cuda", dtype=torch.float16)
        found = timing.clocks(lambda x=x: torch.mm(x, x))
        alone = timing.device_time(lambda x=x: torch.mm(x, x))
        for reading in (found.events, found.benchmark, alone):
            times = [1e6 * time for time in (reading.low, reading.median, reading.high)]
            series.setdefault(reading.name, []).append((n, times))
    return curve(("size", "rows"), ("time of one product", "µs"), series)


# -- lesson 02: what copies cost ---------------------------------------------------------------


def copies() -> dict[str, Any]:
    """Bandwidth against size, both directions, pinned and pageable."""
    rate = cells("02_move_tensors", "rate")["copy_rate"]
    sizes = [4096 * 4**power for power in range(10)]
    return curve(
        ("size", "bytes"),
        ("rate", "GB/s"),
        {
            f"{way}, {kind}": [
                (size, often(lambda s=size, w=way, k=kind: rate(s, w, k == "pinned"), 3))
                for size in sizes
            ]
            for way in ("to the GPU", "to the host")
            for kind in ("pinned", "pageable")
        },
    )


def pieces() -> dict[str, Any]:
    """4 MiB as one copy and as many."""
    run = cells("02_move_tensors", "pieces")["in_pieces"]
    points = [(n, often(lambda n=n: 1e3 * run(n))) for n in (1, 10, 100, 1000)]
    return curve(("pieces", "count"), ("time", "ms"), {"4 MiB in pieces": points})


def pinning() -> dict[str, Any]:
    """The price of page-locking beside two kinds of copy."""
    prices = cells("02_move_tensors", "pinning-prices")["prices"]
    names = ("to pin", "to copy pinned", "to copy pageable")
    series: dict[str, list[tuple[float, list[float]]]] = {name: [] for name in names}
    for mib in (1, 4, 16, 64, 256):
        found = list(zip(*(prices(mib * 2**20) for _ in range(3)), strict=True))
        for name, samples in zip(names, found, strict=True):
            series[name].append((mib * 2**20, [1e3 * sample for sample in samples]))
    return curve(("size", "bytes"), ("time", "ms"), series)


def hazards() -> dict[str, Any]:
    """How many of 20 results are wrong, without a wait and with it."""
    lesson = cells("02_move_tensors", "read-early", "change-early")
    series = {}
    for name in ("read_early", "change_early"):
        experiment = lesson[name]
        experiment(True)
        series[name.replace("_", " ")] = [
            (float(wait), [float(sum(not experiment(wait) for _ in range(20)))])
            for wait in (False, True)
        ]
    return curve(("waits", "count"), ("wrong results", "of 20"), series)


# -- lesson 03: streams ------------------------------------------------------------------------

STREAMS = "03_overlap_work_with_streams"


def sleeps() -> dict[str, Any]:
    """Two sleeps of equal length, on one stream and on two."""
    lesson = cells(STREAMS, "setup", "two-sleeps")
    run = lesson["two_sleeps"]
    points = [(n, often(lambda n=n: 1e3 * run(n).duration)) for n in (1, 2)]
    return curve(("streams", "count"), ("time", "ms"), {"two sleeps": points})


def races() -> dict[str, Any]:
    """How many of 20 sums are wrong, without the wait and with it."""
    is_right = cells(STREAMS, "setup", "missing-wait")["is_right"]
    is_right(True)
    wrong = [
        (float(wait), [float(sum(not is_right(wait) for _ in range(20)))]) for wait in (False, True)
    ]
    return curve(("waits", "count"), ("wrong results", "of 20"), {"missing wait": wrong})


def overlaps() -> dict[str, Any]:
    """How much a copy and kernels overlap, and kernels and kernels."""
    lesson = cells(STREAMS, "setup", "sizes", "copy-kernels", "rows", "rows-line")
    copy, rows = lesson["copy_and_kernels"], lesson["two_rows"]
    series: dict[str, list[tuple[float, list[float]]]] = {}
    for pin in (False, True):
        name = f"copy and kernels, {'pinned' if pin else 'pageable'}"
        series[name] = [
            # each beside a run on one stream just before: a pageable copy's time varies
            (1 + own, often(lambda p=pin, o=own: copy(p, o).overlap(copy(p, False))))
            for own in (False, True)
        ]
    for numbers in (lesson["small"], lesson["large"]):
        for ahead in (False, True):
            alone = rows(numbers, False, ahead)
            name = f"kernels on {numbers} numbers{', launched ahead' if ahead else ''}"
            series[name] = [
                (2, often(lambda n=numbers, h=ahead, a=alone: rows(n, True, h).overlap(a)))
            ]
    return curve(("streams", "count"), ("overlap", "of 1"), series)


def pipeline() -> dict[str, Any]:
    """The pipeline in chunks, relative to the longest of its parts."""
    lesson = cells(STREAMS, "setup", "pipeline-data", "work", "pipeline", "ratios")
    runs = [dict(lesson["ratios"]()) for _ in range(REPEATS)]
    points = [(n, [run[n] for run in runs]) for n in runs[0]]
    size = f"{lesson['host'].nbytes / 2**30:g} GiB, {lesson['each']} kernels a chunk"
    return curve(("chunks", "count"), ("time relative to the longest part", "×"), {size: points})


# -- lesson 05: two GPUs -----------------------------------------------------------------------


def peer_copies() -> dict[str, Any]:
    """Bandwidth against size, from one GPU to the other."""
    sizes = [4096 * 4**power for power in range(10)]
    series: dict[str, list[tuple[float, list[float]]]] = {}
    for begin, end in ((0, 1), (1, 0)):
        points = series.setdefault(f"cuda:{begin} to cuda:{end}", [])
        with torch.cuda.device(begin):  # a copy runs on a stream of the device it comes from
            for size in sizes:
                source = torch.ones(size, dtype=torch.uint8, device=f"cuda:{begin}")
                target = torch.empty(size, dtype=torch.uint8, device=f"cuda:{end}")
                seconds = often(lambda t=target, s=source: transfer.seconds(lambda: t.copy_(s)))
                points.append((size, [size / each / 1e9 for each in seconds]))
    return curve(("size", "bytes"), ("rate", "GB/s"), series)


@functools.cache
def steps_of_two() -> dict[str, Any]:
    """A step of the lesson's network, with one GPU and with two, at five batch sizes."""
    lesson = cells("05_split_work", "setup", "network", "step")
    series: dict[str, list[tuple[float, list[float]]]] = {}
    for channels in (128, 336):
        one = lesson["network"](channels)
        two = torch.nn.DataParallel(one, device_ids=[0, 1])
        for name, net in (("one GPU", one), ("two GPUs", two)):
            points = series.setdefault(f"{name}, {channels} channels", [])
            for batch in (8, 64, 256, 1024, 4096):
                x = torch.randn(batch, 3, 16, 16, device="cuda:0")
                points.append((batch, often(lambda n=net, x=x: lesson["step_ms"](n, x))))
    return curve(("batch", "samples"), ("time of a step", "ms"), series)


def data_parallel() -> dict[str, Any]:
    """The time of such a step with two GPUs, divided by that with one."""
    samples, times = steps_of_two()["samples"], steps_of_two()["series"]
    series: dict[str, list[tuple[float, list[float]]]] = {}
    for name, points in times.items():
        if name.startswith("two GPUs"):
            alone = [time for _, time in times[name.replace("two GPUs", "one GPU")]]
            series[name] = [
                (batch, [sample / one for sample in found])
                for (batch, _), found, one in zip(points, samples[name], alone, strict=True)
            ]
    return curve(("batch", "samples"), ("time with two GPUs / with one", "×"), series)


@functools.cache
def memory_of_each() -> dict[str, Any]:
    """The most bytes that each of two GPUs held in a step of the lesson's network."""
    train = cells("05_split_work", "setup", "memory")["train"]
    series: dict[str, list[tuple[float, list[float]]]] = {}
    for batch in (64, 1024):
        train(10, batch)  # the libraries' own memory comes with the first step
        for outputs in (10, 1000, 8000):
            for index, row in enumerate(train(outputs, batch).rows[:2]):
                points = series.setdefault(f"cuda:{index}, {batch} samples", [])
                points.append((outputs, [row.peak / 2**20]))
    return curve(("outputs", "count"), ("memory at the peak", "MiB"), series)


def memory_shares() -> dict[str, Any]:
    """What the first of two GPUs held at the peak, divided by what the second held."""
    peaks = memory_of_each()["series"]
    series: dict[str, list[tuple[float, list[float]]]] = {}
    for batch in (64, 1024):
        first, second = (peaks[f"cuda:{index}, {batch} samples"] for index in range(2))
        for (outputs, held), (_, other) in zip(first, second, strict=True):
            name = f"{outputs:.0f} outputs, {batch} samples"
            series[name] = [(outputs, [held / other])]
    return curve(("outputs", "count"), ("cuda:0 / cuda:1", "×"), series)


# -- lesson 07: training -----------------------------------------------------------------------


def training() -> dict[str, Any]:
    """The speed of each loop of the lesson, and of the last one without each change."""
    lesson = cells(
        "07_train_on_the_gpu", "sizes", "data", "net", "clock", "step", "plain", "wait", "pinned",
        "ahead", "dtype", "half", "half-loop", "all", "table",
    )  # fmt: skip
    speed, pinned, batches = (lesson[n] for n in ("samples_per_second", "pinned", "batches"))
    train, ahead = lesson["train"], lesson["ahead"]
    wait_once = lesson["wait_once"]
    loops = {
        "plain": (lesson["plain"], batches),
        "wait once": (wait_once, batches),
        "and copied ahead": (lambda n, o, b: wait_once(n, o, ahead(b)), pinned),
        "and half precision": (lesson["half"], pinned),
        "all": (train, pinned),
        "all but pinned memory": (train, batches),
    }
    for name, options in lesson["without"].items():
        loops[f"all but {name}"] = (lambda *a, o=options: train(*a, **o), pinned)
    return curve(
        ("width", "numbers"),
        ("speed", "samples/s"),
        {
            name: [(lesson["width"], often(lambda c=case: speed(*c)))]
            for name, case in loops.items()
        },
    )


def against_the_cpu() -> dict[str, Any]:
    """Matrix products and the lesson's network, on the host and on the GPU, by size."""
    torch.backends.cuda.matmul.allow_tf32 = False
    products: dict[str, list[tuple[float, list[float]]]] = {"host": [], "GPU": []}
    for n in (16, 32, 64, 128, 256, 512, 1024, 2048, 4096):
        for name, device in (("host", "cpu"), ("GPU", "cuda")):
            a = torch.rand(n, n, device=device)
            products[name].append((n, [1e3 * _seconds(lambda a=a: a @ a) for _ in range(REPEATS)]))
    return curve(("size", "rows"), ("time of one product", "ms"), products)


def network_against_the_cpu() -> dict[str, Any]:
    """One training step of the lesson's network, on the host and on the GPU, by its width."""
    lesson = cells("07_train_on_the_gpu", "sizes", "net")
    series: dict[str, list[tuple[float, list[float]]]] = {"host": [], "GPU": []}
    for width in (16, 64, 256, 1024, 4096):
        lesson["width"] = width
        for name, device in (("host", "cpu"), ("GPU", "cuda")):
            net, optimizer = lesson["make_net"](device)
            x = torch.randn(64, width, device=device)
            target = torch.zeros(64, dtype=torch.int64, device=device)

            def step(
                net: Any = net, optimizer: Any = optimizer, x: Any = x, t: Any = target
            ) -> None:
                optimizer.zero_grad()
                lesson["cross_entropy"](net(x), t).backward()
                optimizer.step()

            series[name].append((width, [1e3 * _seconds(step) for _ in range(REPEATS)]))
    return curve(("width of the network", "numbers"), ("time of one step", "ms"), series)


def _seconds(work: Callable[[], Any]) -> float:
    """Return the host's time for `work`, synchronised, once it is warm."""
    work()
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


EXPERIMENTS = {
    "surprise": surprise,
    "clocks": clocks,
    "small work": small_work,
    "transfer": copies,
    "pieces": pieces,
    "pinning": pinning,
    "hazards": hazards,
    "sleeps": sleeps,
    "races": races,
    "overlaps": overlaps,
    "pipeline": pipeline,
    "training": training,
    "products": against_the_cpu,
    "steps": network_against_the_cpu,
}
TWO_GPUS = {
    "peer copies": peer_copies,
    "steps of two": steps_of_two,
    "data parallel": data_parallel,
    "memory of each": memory_of_each,
    "memory shares": memory_shares,
}


def main(arguments: list[str] | None = None) -> int:
    """Measure, and write the file; return 0 when all is well, 1 when not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, help="the JSON file to write")
    choices = EXPERIMENTS | TWO_GPUS
    parser.add_argument("--only", action="append", choices=choices, help="measure only this")
    options = parser.parse_args(arguments)
    machine = gpututor.start()
    if machine.simulated:
        print("a recording needs a real GPU: here it would be simulated", file=sys.stderr)
        return 1
    recording: dict[str, Any] = {
        "source": {
            "device": torch.cuda.get_device_name(),
            "devices": torch.cuda.device_count(),
            "torch": torch.__version__.partition("+")[0],
            "cuda": torch.version.cuda,
            "python": platform.python_version(),
            "cpus": os.cpu_count(),
            "date": datetime.date.today().isoformat(),
        },
        "experiments": {},
    }
    here = choices if torch.cuda.device_count() > 1 else EXPERIMENTS
    for name in options.only or here:
        start = time.perf_counter()
        transfer.empty_pinned_cache()
        torch._C._cuda_clearCublasWorkspaces()  # so that none counts an earlier one's memory
        torch.cuda.empty_cache()
        recording["experiments"][name] = choices[name]()
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)
        options.path.write_text(json.dumps(recording, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
