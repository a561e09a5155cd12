"""Timelines: what they record on both kinds of GPU, how they are drawn, what they refuse."""

from __future__ import annotations

import time
import types
from collections.abc import Callable

import pytest
import torch

from gpututor import Machine, gantt, timeline
from gpututor.timeline import Span, Timeline


def many(count: int) -> Timeline:
    """Return spans of four streams and three kinds, with gaps."""
    return Timeline(
        [
            Span(f"k{i % 5}", f"stream {i % 4 + 1}", timeline.KINDS[i % 3], i * 1e-5, i * 1e-5 + w)
            for i in range(count)
            for w in (8e-6 if i % 100 else 1e-6,)
            if i % 50 > 5
        ],
        source="made up",
    )


def test_a_timeline_orders_host_and_device(gpu: str) -> None:
    n = 1024 if gpu == "simulated" else 4096
    a = torch.randn(n, n, device="cuda")
    a @ a
    line = timeline.record()
    with line.host("launch"), line.span("matmul"):
        for _ in range(3):
            a @ a
    line.mark("clock read")
    with line.host("wait"):
        torch.cuda.synchronize()
    spans = {span.name: span for span in line.spans}
    launch, matmul, wait = spans["launch"], spans["matmul"], spans["wait"]
    slack = 20e-6 if gpu == "real" else 5e-3  # of the two clocks; see HOST_SLACK
    assert launch.start <= matmul.start + slack
    assert launch.end <= line.marks[0].at <= wait.start
    assert matmul.end <= wait.end + slack
    assert (launch.track, matmul.track) == ("host", "default stream")
    assert launch.duration < matmul.duration


def test_a_simulated_gpus_launches_take_the_host_what_the_model_says(simulated: Machine) -> None:
    x = torch.ones(64, device="cuda")
    line = timeline.record()
    with line.host("launch"), line.span("kernels"):
        for _ in range(40):
            x.neg_()
    line.mark("clock read")
    spans = {span.name: span for span in line.spans}
    assert spans["launch"].duration > 0.9 * spans["kernels"].duration  # they wait for launches
    assert line.marks[0].at >= spans["launch"].end


def test_spans_have_the_time_of_events(gpu: str) -> None:
    stream = torch.cuda.Stream()
    line = timeline.record()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record(stream)
    with line.span("sleep", stream):
        assert torch.cuda.current_stream() == stream  # the block runs on the stream
        torch.cuda._sleep(1_000_000 if gpu == "simulated" else 20_000_000)
    end.record(stream)
    torch.cuda.synchronize()
    (span,) = line.spans
    assert span.duration == pytest.approx(begin.elapsed_time(end) / 1e3, rel=0.1)
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


def test_tracks_are_numbered_by_first_use(gpu: str) -> None:
    one, two = torch.cuda.Stream(), torch.cuda.Stream()
    line = timeline.record()
    for name, stream in (("a", two), ("b", None), ("c", one), ("d", two)):
        with line.span(name, stream):
            torch.cuda._sleep(1000)
    tracks = {span.name: span.track for span in line.spans}
    assert tracks == {"a": "stream 1", "b": "default stream", "c": "stream 2", "d": "stream 1"}
    with line.span("e", one):  # recording goes on after reading
        torch.cuda._sleep(1000)
    assert len(line.spans) == 5


@pytest.mark.usefixtures("simulated")
def test_the_kind_is_a_copy_if_the_name_begins_so() -> None:
    line = timeline.record()
    for name, kind in (("copy in 3", None), ("copy out", None), ("x", None), ("y", "copy out")):
        with line.span(name, kind=kind):
            torch.cuda._sleep(10)
    kinds = {span.name: span.kind for span in line.spans}
    assert kinds == {"copy in 3": "copy in", "copy out": "copy out", "x": "kernel", "y": "copy out"}
    with pytest.raises(ValueError, match="kind must be one of kernel, copy in, copy out"), \
            line.span("z", kind="h2d"):  # fmt: skip
        pass


def test_two_devices_have_tracks_of_their_own(simulate: Callable[[str], Machine]) -> None:
    simulate("T4x2")
    line = timeline.record(0, 1)
    for device in (0, 1):
        with torch.cuda.device(device), line.span(f"sleep {device}"):
            torch.cuda._sleep(300_000)
    assert [span.track for span in line.spans] == ["cuda:0 default stream", "cuda:1 default stream"]
    first, second = line.spans
    assert second.start < first.end  # at the same time, on one axis
    alone = timeline.record(0)
    with pytest.raises(ValueError, match=r"cuda:1 .*timeline\.record\(0, 1\)"), \
            torch.cuda.device(1), alone.span("x"):  # fmt: skip
        pass


# -- overlap, on made-up spans ----------------------------------------------------------------


def test_overlap_is_what_was_saved_of_what_could_be() -> None:
    serial = Timeline([Span("a", "s", "kernel", 0, 4), Span("b", "s", "kernel", 4, 6)])

    def overlap(start: float, end: float) -> float:
        spans = [Span("a", "s", "kernel", 0, 4), Span("b", "t", "kernel", start, end)]
        return Timeline(spans).overlap(serial)

    assert overlap(1, 3) == 1
    assert overlap(3, 5) == 0.5
    assert overlap(4, 6) == 0
    assert overlap(0, 6) == 0  # it waited for the other: nothing was saved
    assert overlap(4, 7) == -0.5


def test_overlap_needs_two_kinds_and_the_same_work() -> None:
    one = Timeline([Span("a", "s", "kernel", 0, 1)])
    two = Timeline([Span("a", "s", "kernel", 0, 1), Span("b", "s", "kernel", 1, 2)])
    with pytest.raises(ValueError, match="different names"):
        one.overlap(one)
    with pytest.raises(ValueError, match="same work"):
        one.overlap(two)
    with pytest.raises(ValueError, match="no span of a device"):
        _ = Timeline([Span("a", "host", "host", 0, 1)]).duration
    with pytest.raises(ValueError, match="nothing to draw"):
        Timeline([]).show()


def test_busy_counts_what_runs_together_once() -> None:
    spans = [Span("a", "s", "kernel", 0, 4), Span("a", "t", "kernel", 2, 5)]
    assert Timeline([*spans, Span("h", "host", "host", 0, 9)]).busy() == {"a": 5}


# -- the figure -------------------------------------------------------------------------------


def test_the_figure_says_everything_in_words_too() -> None:
    spans = [
        Span("read", "host", "host", 0.0, 0.001),
        Span("copy in", "stream 1", "copy in", 0.001, 0.003),
        Span("copy in", "stream 2", "copy in", 0.001, 0.005),
        Span("work", "stream 10", "kernel", 0.003, 0.004),
    ]
    serial = Timeline(
        [Span("copy in", "s", "copy in", 0, 4e-3), Span("work", "s", "kernel", 4e-3, 5e-3)]
    )
    line = Timeline(spans, [timeline.Mark("clock read", 0.0015)], ["A note."], "made up")
    words = line.show("A title", alone=serial).alt
    for part in (
        "A title.", "host: read from 0 to 1 ms.", "stream 1: copy in from 1 to 3 ms.",
        "clock read at 1.5 ms.", "A note.", "Overlap: 1.00", "Source: made up.",
        "copy engine in: copy in from 1 to 3 ms, copy in from 3 to 5 ms.",  # one at a time
    ):  # fmt: skip
        assert part in words, part
    figure = line.figure("A title", alone=serial)
    tracks = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert tracks == ["host", "stream 1", "stream 2", "stream 10", "copy engine in"]
    assert "(ms)" in figure.axes[0].get_xlabel()
    texts = [text.get_text() for text in figure.texts]
    assert {"A title", "Source: made up.", "A note."} <= set(texts)
    assert any("Overlap: 1.00" in text for text in texts)
    assert "clock read" in [text.get_text() for text in figure.axes[0].texts]


def test_a_name_stands_beside_a_bar_that_is_too_narrow_for_it() -> None:
    spans = [
        Span("launch", "host", "host", 0.0, 0.001),
        Span("tight", "host", "host", 0.03, 0.031),  # the next bar leaves no room
        Span("wait", "host", "host", 0.0312, 0.098),
        Span("at the end", "host", "host", 0.0985, 0.1),
        Span("work", "stream 1", "kernel", 0.0, 0.1),
    ]
    figure = Timeline(spans, [], [], "made up").figure("A title")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    places = {text.get_text(): text.get_window_extent() for text in axes.texts}
    assert set(places) == {"launch", "wait", "work"}
    box = places["launch"]
    (low, _), (high, _) = (axes.transData.transform((ms, 0)) for ms in (1, 30))
    assert low < box.x0 and box.x1 < high


@pytest.mark.parametrize("count", [1_000, 10_000])
def test_many_spans_draw_fast_and_thinning_is_said(count: int) -> None:
    line = many(count)
    line.show()
    start = time.process_time()
    picture = line.show()
    assert time.process_time() - start < 1.0
    drawn = sum(
        len(bars.get_paths())
        for bars in line.figure().axes[0].collections
    )  # fmt: skip
    assert drawn <= gantt.MOST_BARS
    assert ("joined" in picture.alt) == (count == 10_000)
    if count == 1_000:
        assert drawn >= len(line.spans)


def test_joined_bars_cover_what_they_join() -> None:
    line = many(10_000)
    tracks = gantt._tracks(line.spans)
    bars, words = gantt._thin(tracks, line.duration)
    assert "joined" in words
    for track, spans in tracks.items():
        for span in spans[::97]:
            assert any(begin <= span.start and span.end <= end for _, begin, end in bars[track])


@pytest.mark.usefixtures("simulated")
def test_it_says_when_the_two_clocks_part() -> None:
    line = timeline.record()
    with line.span("sleep"):
        torch.cuda._sleep(100_000_000)  # 3.1 s in slow motion, of which 2 are waited out
    assert any("a long sleep was not waited out" in note for note in [line.spans, *line.notes][1:])
    assert "The host's clock ran" in line.show().alt


# -- from torch.profiler ----------------------------------------------------------------------


def event(name: str, kind: str, start: float, end: float, **more: object) -> object:
    return types.SimpleNamespace(
        name=name,
        device_type=types.SimpleNamespace(name=kind),
        time_range=types.SimpleNamespace(start=start, end=end),
        **{"device_resource_id": 7, "device_index": 0, "cpu_parent": None, "is_async": False}
        | more,
    )


@pytest.mark.usefixtures("simulated")
def test_a_profile_becomes_a_timeline() -> None:
    outer = event("aten::matmul", "CPU", 0, 90)
    events = [
        outer,
        event("aten::mm", "CPU", 10, 80, cpu_parent=outer),
        event("void cutlass::gemm<float>(int)", "CUDA", 100, 200),
        event("Memcpy HtoD (Pinned -> Device)", "CUDA", 50, 150, device_resource_id=13),
        event("my range", "CUDA", 0, 300, is_user_annotation=True),
    ]
    profile = types.SimpleNamespace(events=lambda: events)
    line = timeline.from_profiler(profile)  # type: ignore[arg-type]
    assert [(span.track, span.kind) for span in line.spans] == [
        ("host", "host"), ("stream 13", "copy in"), ("stream 7", "kernel"),
    ]  # fmt: skip
    assert line.spans[2].start == pytest.approx(100e-6)
    assert "stream 7: gemm from 100 to 200 µs." in line.show().alt


@pytest.mark.filterwarnings("ignore:.*Profiler clears events")  # of PyTorch 2.10
def test_a_profile_without_a_gpu_is_refused() -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        torch.ones(3) + 1
    with pytest.raises(ValueError, match=r"ProfilerActivity\.CUDA"):
        timeline.from_profiler(profile)


def test_a_real_profile_has_kernels_and_copies(gpu: str) -> None:
    if gpu == "simulated":
        pytest.skip("the profiler cannot see a simulated GPU")
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    host = torch.ones(1 << 22).pin_memory()
    with torch.profiler.profile(activities=activities) as profile:
        x = host.to("cuda", non_blocking=True)
        for _ in range(10):
            x.sin_()
        host.copy_(x)
        torch.cuda.synchronize()
    line = timeline.from_profiler(profile)
    kinds = [span.kind for span in line.spans]
    assert kinds.count("copy in") == kinds.count("copy out") == 1
    assert kinds.count("kernel") == 10
    assert "host" in kinds
    assert "torch.profiler" in line.show().alt
