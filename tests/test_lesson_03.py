"""What lesson 03 shows is so, on the simulator and on a real GPU where there is one."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch

from gpututor import recorded, timeline, transfer
from gpututor.exercises import lesson_03

NOTEBOOK = Path(__file__).parents[1] / "notebooks/03_overlap_work_with_streams.ipynb"


@pytest.fixture
def lesson(gpu: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Return a function that runs the cells of these ids and returns their names."""
    source = {cell.id: cell.source for cell in nbformat.read(NOTEBOOK, as_version=4).cells}
    if gpu == "simulated":
        monkeypatch.setenv("GPUTUTOR_SIMULATE", "T4")

    def run(*ids: str) -> dict[str, Any]:
        names: dict[str, Any] = {}
        for name in ("setup", *ids):
            exec(source[name], names)
        return names

    return run


def test_two_sleeps_take_half_as_long_on_two_streams(lesson: Callable[..., Any]) -> None:
    assert lesson("two-sleeps", "sleeps-ratio")["ratio"] == pytest.approx(2.0, abs=0.1)


def test_no_stream_waits_unless_it_is_told(lesson: Callable[..., Any]) -> None:
    names = lesson("waits", "sleep", "waits-run")
    begins = {}
    for wait in names["WAITS"]:
        words = min((names["waiting"](wait).alt for _ in range(3)), key=begin_of_b)
        begins[wait] = begin_of_b(words)
    free, event, stream, held_event, held = begins.values()
    assert free < 10 < event < 30 < stream, begins
    assert held_event == pytest.approx(event, abs=8), begins
    assert held == pytest.approx(stream, abs=8), begins


def begin_of_b(words: str) -> float:
    """Return the milliseconds at which B begins, by the text alternative of its figure."""
    return float(words.partition("stream 2: B from ")[2].split()[0])


def test_the_missing_wait_is_wrong_and_mended(lesson: Callable[..., Any]) -> None:
    is_right = lesson("missing-wait")["is_right"]
    is_right(True)  # loads what the first run needs
    assert sum(not is_right(False) for _ in range(20)) >= 19
    assert all(is_right(True) for _ in range(100))


def test_backward_runs_on_the_stream_of_forward(lesson: Callable[..., Any]) -> None:
    assert lesson("backward")["seen"] == [True]


def best(run: Callable[[], Any]) -> Any:
    return min((run() for _ in range(3)), key=lambda line: line.duration)


def test_a_copy_overlaps_only_if_it_is_pinned_and_on_its_own_stream(
    lesson: Callable[..., Any],
) -> None:
    run = lesson("sizes", "copy-kernels")["copy_and_kernels"]
    times = {}
    for pin in (False, True):
        alone, own = best(lambda p=pin: run(p, False)), best(lambda p=pin: run(p, True))
        times[pin, False], times[pin, True] = alone.duration, own.duration
        assert run(pin, False).overlap(alone) < 0.2
        assert (own.overlap(alone) > 0.8) is pin, own.overlap(alone)
    assert min(times, key=times.__getitem__) == (True, True)


def test_kernels_overlap_only_if_they_are_small_and_launched_ahead(
    lesson: Callable[..., Any],
) -> None:
    names = lesson("rows", "rows-line")
    for numbers in (names["small"], names["large"]):
        for ahead in (False, True):
            alone, own = (
                best(lambda n=numbers, h=ahead, o=o: names["two_rows"](n, o, h))
                for o in (False, True)
            )
            overlap = own.overlap(alone)
            wanted = numbers == names["small"] and ahead
            assert overlap > 0.8 if wanted else overlap < 0.3, (numbers, ahead, overlap)


def test_a_pipeline_needs_chunks_and_not_too_many(lesson: Callable[..., Any], gpu: str) -> None:
    found = dict(lesson("pipeline-data", "work", "pipeline", "ratios")["ratios"]())
    assert found[1] > 1.8, found
    assert found[4] < found[1] - 0.5, found
    # The kernels take 1.5 copies, so eight chunks cannot do better than 1.17; launches add to it.
    assert min(found.values()) < (1.2 if gpu == "simulated" else 1.3), found
    assert found[32] > min(found.values()) + 0.2, found


def test_a_forgotten_tensor_is_overwritten_unless_its_stream_is_recorded(
    lesson: Callable[..., Any],
) -> None:
    arrives = lesson("record-stream")["arrives"]
    assert [arrives(record)[0] for record in (False, True)] == [9.0, 1.0]


def test_no_experiment_takes_more_than_a_quarter_of_the_memory(lesson: Callable[..., Any]) -> None:
    torch.cuda.empty_cache()
    free, before = torch.cuda.mem_get_info()[0], torch.cuda.memory_allocated()
    for ids in (("sizes",), ("rows", "rows-line"), ("pipeline-data",), ("record-stream",)):
        torch.cuda.reset_peak_memory_stats()
        lesson(*ids)
        assert torch.cuda.max_memory_allocated() - before <= free / 4 + 2**20


@pytest.mark.parametrize("case", lesson_03._CASES)
def test_a_mystery_shows_its_own_fault_and_no_other(
    gpu: str, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[timeline.Timeline] = []
    monkeypatch.setattr(timeline.Timeline, "show", lambda self, _: drawn.append(self))
    lesson_03.mystery(case)
    (spans,) = (line.spans for line in drawn)
    host = [span for span in spans if span.track == "host"]
    first, second = (span for span in spans if span.track != "host")
    # The parts of exercise 03-explain's causes, by what a learner sees of them.
    assert (first.kind != "copy in") == (case == "C")
    assert (host[0].duration > first.duration / 2) == (case == "B")
    assert (host[1].name == "prepare") == (case == "A")
    assert (first.track == second.track) == (case == "D")
    together = max(0.0, min(first.end, second.end) - max(first.start, second.start))
    assert (together > first.duration / 2) == (case == "C")
    if case in "AD":  # a copy that kernels could hide
        assert 1 / 2 < second.duration / first.duration < 2


def test_there_are_four_mysteries() -> None:
    with pytest.raises(ValueError, match="case must be one of A, B, C, D, not 'E'"):
        lesson_03.mystery("E")


def test_a_mystery_fits_into_a_quarter_of_the_memory(gpu: str) -> None:
    torch.cuda.reset_peak_memory_stats()
    free, before = torch.cuda.mem_get_info()[0], torch.cuda.memory_allocated()
    lesson_03.mystery("C")
    assert transfer.sizes()  # the sizes follow from the free memory and the speed
    assert torch.cuda.max_memory_allocated() - before <= free / 4


def test_the_prose_quotes_what_was_recorded() -> None:
    prose = "\n".join(c.source for c in nbformat.read(NOTEBOOK, as_version=4).cells)
    times = [dict(points) for points in recorded.load("streams_h200").series.values()]
    sleeps, *rows = ((line[1], line[2]) for line in times)
    assert f"took {sleeps[0]:.1f} ms on one stream and {sleeps[1]:.1f} ms on two" in prose
    quoted = re.findall(r"^\| \d+ × .+ \| ([\d.]+) ms \| ([\d.]+) ms \|$", prose, re.M)
    assert [tuple(map(float, row)) for row in quoted] == [pytest.approx(r, rel=5e-3) for r in rows]
