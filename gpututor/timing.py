"""How long GPU work takes: four clocks side by side, and one honest time of the device.

A call that launches GPU work returns before the work is done, so what a clock says depends on
where it is read. `clocks` reads four of them around the same function. `device_time` measures
what the device alone takes, however short that is.
"""

from __future__ import annotations

import html
import math
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import benchmark

from . import arguments, figures, machine

Work = Callable[[], Any]

WARM_UP = 0.1  # seconds, and at least three calls: clocks rise, kernels load, caches fill
FEWEST, MOST = 5, 50  # samples of one clock
BURST = 2e-3  # seconds of work in one sample of `device_time`: too little to heat a GPU
MOST_CALLS = 200  # in one sample of `device_time`
LONGEST_BLOCK = 1.5  # seconds that launches may be hidden behind
LONG = 50e-6  # seconds: longer work heats a GPU, so `device_time` rests between bursts of it
REST, PAUSE = 0.3, 0.05  # seconds before and after it all, and between two samples


@dataclass(frozen=True)
class Reading:
    """What one clock said about one call.

    Attributes
    ----------
    name : str
        The clock.
    median, low, high : float
        Seconds for one call: the median of the samples, and their lower and upper quartile.
    samples : int
        How many there were.
    calls : int
        Calls in each sample.
    measures : str
        What is in this time, and what is not.
    """

    name: str
    median: float
    low: float
    high: float
    samples: int
    calls: int
    measures: str

    def __str__(self) -> str:
        count = f"{self.samples} samples" + (f" of {self.calls} calls" if self.calls > 1 else "")
        low, high = duration(self.low), duration(self.high)
        return f"{self.name}: {duration(self.median)} (half within {low} to {high}, {count})"


@dataclass(frozen=True)
class Clocks:
    """Four clocks on one function. Shows itself as a table.

    Attributes
    ----------
    naive, synchronized, events, benchmark : Reading
        The host's clock without and with ``torch.cuda.synchronize()``, two CUDA events, and
        ``torch.utils.benchmark``.
    first : float
        Seconds of the very first call, synchronised: with loading and everything else that
        happens once.
    source : str
        Where the numbers come from.
    note : str
        What to know before quoting them; mostly empty.
    """

    naive: Reading
    synchronized: Reading
    events: Reading
    benchmark: Reading
    first: float
    source: str
    note: str = ""

    @property
    def readings(self) -> tuple[Reading, ...]:
        """The four, in the order of the table."""
        return (self.naive, self.synchronized, self.events, self.benchmark)

    def show(self, title: str = "Four clocks on the same work") -> figures.Picture:
        """Draw the four as bars, in milliseconds on a logarithmic scale."""
        values = {reading.name: reading.median * 1e3 for reading in self.readings}
        return figures.bars(
            values, title=title, x=("median of one call", "ms"), log=True, source=self.source
        )

    def __repr__(self) -> str:
        lines = [str(reading) for reading in self.readings]
        lines.append(f"first call, synchronised: {duration(self.first)}")
        lines += [self.note] if self.note else []
        return "\n".join([*lines, f"Source: {self.source}."])

    def _repr_html_(self) -> str:
        rows = [_row(reading) for reading in self.readings]
        first = ["first call, synchronised", duration(self.first), "", "1", "what happens once"]
        return _table([*rows, first], self.source, [self.note] if self.note else [])


@dataclass(frozen=True)
class DeviceTime(Reading):
    """What the device takes for one call, without the host. Shows itself as a table.

    Attributes
    ----------
    how : str
        How the launches were kept out.
    cache : str
        Whether the device's cache was warm.
    source : str
        Where the number comes from.
    """

    how: str
    cache: str
    source: str

    def _words(self) -> list[str]:
        return [f"How: {self.how}.", f"In it: {self.measures}.", f"Cache: {self.cache}."]

    def __repr__(self) -> str:
        return "\n".join([str(self), *self._words(), f"Source: {self.source}."])

    def _repr_html_(self) -> str:
        return _table([_row(self)[:4]], self.source, self._words())


def clocks(function: Work, *, seconds: float = 0.3) -> Clocks:
    """Read four clocks around calls of `function`.

    Each call of the first three is a sample, and they take turns, so that all three see the GPU
    equally warm. The queue is empty before each.

    Parameters
    ----------
    function : callable
        Takes nothing and launches work on the current stream. It is called some hundred times.
    seconds : float
        How long each clock goes on, at least; it takes 5 samples at the least and 50 at most.

    Returns
    -------
    Clocks
        Median and quartiles of each clock, in seconds.

    Raises
    ------
    TypeError, ValueError
        When `function` cannot be called, or `seconds` is not positive.
    """
    arguments.work(function)
    arguments.positive(seconds, "seconds")
    first = _synchronized(function)
    once = _warm_up(function)
    count = max(FEWEST, min(MOST, math.ceil(seconds / max(once, 1e-9))))
    turns = [(_naive(function), _synchronized(function), _events(function)) for _ in range(count)]
    naive, synchronized, events = zip(*turns, strict=True)
    timer = benchmark.Timer("function()", globals={"function": function}, timer=_synchronized_clock)
    measured = timer.blocked_autorange(min_run_time=seconds)
    late = statistics.median(synchronized) - statistics.median(events)
    behind = late > max(1e-3, 0.1 * statistics.median(events))
    return Clocks(
        naive=_reading(
            "host, not synchronised", naive, 1, "launching only; the work is still under way"
        ),
        synchronized=_reading(
            "host, synchronised", synchronized, 1, "launching, the work, and waking the host"
        ),
        events=_reading(
            "CUDA events", events, 1, "the work, and gaps where the device waits for launches"
        ),
        benchmark=_reading(
            "torch.utils.benchmark",
            measured.times,
            measured.number_per_run,
            "calls in a row: launching or the work, whichever is slower",
        ),
        first=first,
        source=machine.source(),
        note=(
            "This computer could not keep up with the simulated GPU: the host's clocks show more "
            "than the model, events show the model."
            if machine.simulated() and behind
            else ""
        ),
    )


def device_time(function: Work, *, samples: int = 5) -> DeviceTime:
    """Measure what the device takes for one call of `function`, however short it is.

    The launches are kept out: `n` calls and `2n` calls are run without the host, and half the
    difference of the two per `n` is one call. What each run costs once drops out. With CUDA graphs
    the device launches the calls itself. Where there are none (on a simulated GPU) or `function`
    cannot be captured, the calls are queued behind a kernel that does nothing for long enough.

    Parameters
    ----------
    function : callable
        Takes nothing and launches work on the current stream, without waiting for it.
    samples : int
        How many pairs of runs. Each does about 6 ms of work, or three calls of longer work.

    Returns
    -------
    DeviceTime
        Median and quartiles in seconds, and what they hold.

    Raises
    ------
    TypeError, ValueError
        When `function` cannot be called, or waits for the device (``item()``, ``cpu()``, ``print``,
        ``synchronize()``): then its launches cannot be kept out; or when `samples` is below 1.

    Notes
    -----
    It includes the gap that the device leaves between two kernels: about 0.5 µs in a graph and 1 µs
    in a stream, by the profiler of an NVIDIA H200 (torch 2.11, 30 November 2026).

    Under lasting load a GPU lowers its clock, and the same kernel takes longer: there, 10 to 15 %
    for float16 matmuls of 4096 and 8192. This is the time at the clock of a rested GPU: work longer
    than 50 µs is done in short bursts, with rests between them, before and after.
    """
    arguments.work(function)
    arguments.whole(samples, "samples")
    function()
    torch.cuda.synchronize()
    _refuse_waiting(function)
    once = _queued(function, 1) - _queued(function, 0)
    calls = max(1, min(MOST_CALLS, math.ceil(BURST / max(once, 1e-9))))
    try:
        runs, how = _graphs(function, calls)
    except RuntimeError as error:
        reason = (str(error).splitlines() or ["no reason given"])[0].rstrip(".")
        how = f"queued behind a busy kernel, because a CUDA graph was not possible ({reason})"
        runs = (lambda: _queued(function, calls), lambda: _queued(function, 2 * calls))
    rests = once > LONG and not machine.simulated()
    for run in runs:
        run()
    times = []
    for turn in range(samples):
        if rests:
            time.sleep(PAUSE if turn else REST)
        runs[0]()  # wakes the device
        if turn % 2:  # in turns, so that a drifting clock falls on both alike
            double, single = runs[1](), runs[0]()
        else:
            single, double = runs[0](), runs[1]()
        times.append((double - single) / calls)
    if rests:
        time.sleep(REST)  # what is timed next finds a rested device too
    return DeviceTime(
        **vars(
            _reading(
                "device",
                times,
                calls,
                "the device's work and its gap between kernels; not launching, not the first call, "
                "not waiting",
            )
        ),
        how=f"{how}; in bursts with rests, at the clock of a rested GPU" if rests else how,
        cache=(
            "a simulated GPU has none"
            if machine.simulated()
            else "warm: each call finds in it what the calls before it left there"
        ),
        source=machine.source(),
    )


def duration(seconds: float) -> str:
    """Write seconds in the unit that fits: ``"3.14 µs"``, ``"21.5 ms"``, ``"1.2 s"``."""
    if not isinstance(seconds, (int, float)):
        raise TypeError(f"give seconds as a number, not {arguments.shown(seconds)}")
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if abs(seconds) >= size:
            return f"{figures.number(seconds / size)} {unit}"
    return f"{figures.number(seconds * 1e6)} µs"


# -- one sample of each clock, in seconds -----------------------------------------------------


def _naive(function: Work) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _synchronized(function: Work) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    function()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def _events(function: Work) -> float:
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    function()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3


def _synchronized_clock() -> float:
    """Read the host's clock once the device is done: what ``torch.utils.benchmark`` does.

    Some versions of it only do so if there was a GPU when they were imported.
    """
    torch.cuda.synchronize()
    return time.perf_counter()


def _warm_up(function: Work) -> float:
    """Call `function` until it is warm; return the seconds of a call."""
    torch.cuda.synchronize()
    start, count = time.perf_counter(), 0
    while count < 3 or time.perf_counter() - start < WARM_UP:
        function()
        torch.cuda.synchronize()
        count += 1
    return (time.perf_counter() - start) / count


# -- the device's time ------------------------------------------------------------------------


def _graphs(function: Work, calls: int) -> tuple[tuple[Callable[[], float], ...], str]:
    """Return what runs `calls` and twice as many calls from a CUDA graph, and how."""
    graphs = [_capture(function, calls), _capture(function, 2 * calls)]
    how = f"the device launched {calls} and {2 * calls} calls itself, from a CUDA graph"
    return tuple((lambda graph=graph: _events(graph.replay)) for graph in graphs), how


def _capture(function: Work, calls: int) -> Any:
    graph = torch.cuda.CUDAGraph()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        function()  # what a library prepares for each stream is not part of the graph
        torch.cuda.synchronize()
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            for _ in range(calls):
                function()
        finally:
            graph.capture_end()
    torch.cuda.current_stream().wait_stream(side)
    return graph


def _queued(function: Work, calls: int) -> float:
    """Return the device's seconds for `calls` calls whose launches are hidden.

    They wait behind a kernel that sleeps. An event on a stream with nothing to do says when the
    host had launched them all: if the sleep was over by then, it was too short.
    """
    cycles, slept_enough, before = 100_000, 0, 0.0
    while True:
        torch.cuda.synchronize()
        begin, start, end, launched = (torch.cuda.Event(enable_timing=True) for _ in range(4))
        idle = torch.cuda.Stream()
        begin.record()
        torch.cuda._sleep(cycles)
        start.record()
        for _ in range(calls):
            function()
        end.record()
        launched.record(idle)
        torch.cuda.synchronize()
        if launched.elapsed_time(start) > 0:
            return float(start.elapsed_time(end)) / 1e3
        asleep, needed = (float(begin.elapsed_time(event)) for event in (start, launched))
        # Where a longer sleep makes launching longer, again and again, the function waits for it.
        slept_enough = slept_enough + 1 if 0 < 1.2 * before < asleep else 0
        before = needed
        if slept_enough > 3:
            raise ValueError(_WAITS)
        if needed > LONGEST_BLOCK * 1e3:
            raise ValueError(
                f"launching took {needed / 1e3:.1f} s, too long to be kept out: time less work at "
                "once, or use timing.clocks"
            )
        cycles = math.ceil(cycles * max(2.0, 1.5 * needed / max(asleep, 1e-3)))


_WAITS = (
    "the function waits for the device, so its launches cannot be kept out: take item(), cpu(), "
    "print, synchronize() and the like out of it, or use timing.clocks"
)


def _refuse_waiting(function: Work) -> None:
    """Raise where `function` waits for the device."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's, that this mode is a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        function()
    except RuntimeError as error:
        if "synchronizing" not in str(error):
            raise
        raise ValueError(_WAITS) from error
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.cuda.set_sync_debug_mode(before)
    torch.cuda.synchronize()


# -- numbers and tables -----------------------------------------------------------------------


def _reading(name: str, times: Sequence[float], calls: int, measures: str) -> Reading:
    if len(times) > 1:
        low, _, high = statistics.quantiles(times, n=4, method="inclusive")
    else:
        low = high = times[0]
    return Reading(name, statistics.median(times), low, high, len(times), calls, measures)


def _row(reading: Reading) -> list[str]:
    spread = f"{duration(reading.low)} to {duration(reading.high)}"
    count = f"{reading.samples}" + (f" × {reading.calls} calls" if reading.calls > 1 else "")
    return [reading.name, duration(reading.median), spread, count, reading.measures]


def _table(rows: Sequence[Sequence[str]], source: str, notes: Sequence[str]) -> str:
    names = ["clock", "median", "half of the samples", "samples", "what is in it"]
    head = "".join(f'<th style="text-align:left">{name}</th>' for name in names[: len(rows[0])])
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:left{";white-space:nowrap" * (0 < place < 4)}">'
            f"{html.escape(cell)}</td>"  # a number stays with its unit
            for place, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    below = "".join(f"<div>{html.escape(line)}</div>" for line in (*notes, f"Source: {source}."))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"
