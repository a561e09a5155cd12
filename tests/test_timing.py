"""Four clocks that differ as they should, and one time of the device that is right."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import pytest
import torch

import gpututor
from gpututor import timing
from gpututor.timing import Clocks, DeviceTime

REAL = torch.cuda.is_available()  # asked before any test simulates


def matmul(n: int) -> Callable[[], object]:
    a = torch.randn(n, n, device="cuda")
    return lambda: a @ a


@pytest.mark.usefixtures("simulated")
def test_the_clocks_differ_as_they_should() -> None:
    found = timing.clocks(matmul(1024), seconds=0.1)
    naive, synchronized, events, loop = (reading.median for reading in found.readings)
    model = 2 * 1024**3 / 8.1e12 * 50  # seconds: T4's float32 peak at 1/50
    assert naive < 0.2 * events
    assert events == pytest.approx(model, rel=0.05)
    assert synchronized > 0.95 * model
    assert loop > 0.95 * model
    assert found.first >= 0.95 * model
    for reading in found.readings[:3]:
        assert reading.low <= reading.median <= reading.high
        assert 5 <= reading.samples <= 50


@pytest.mark.usefixtures("simulated")
def test_short_work_costs_its_launch_except_to_the_device() -> None:
    short = matmul(64)
    found = timing.clocks(short, seconds=0.05)
    alone = timing.device_time(short)
    model = 2.6e-6 * 50  # the profile's shortest kernel
    launch = 5e-6 * 50
    assert found.events.median > launch
    assert found.benchmark.median > 0.9 * launch
    assert alone.median == pytest.approx(model, rel=0.01)


@pytest.mark.parametrize("n", [64, 512, 1024])
@pytest.mark.usefixtures("simulated")
def test_device_time_is_the_model_whatever_the_length(n: int) -> None:
    found = timing.device_time(matmul(n))
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    work = matmul(n)
    torch.cuda._sleep(2_000_000)  # launches are hidden behind it
    start.record()
    for _ in range(10):
        work()
    end.record()
    torch.cuda.synchronize()
    assert found.median == pytest.approx(start.elapsed_time(end) / 1e4, rel=0.01)
    assert found.low == pytest.approx(found.high, rel=1e-3)  # the model does not vary


@pytest.mark.usefixtures("simulated")
def test_device_time_says_what_it_holds() -> None:
    found = timing.device_time(matmul(64), samples=2)
    assert "not simulated" in found.how and "behind" in found.how
    assert "not launching" in found.measures
    assert "has none" in found.cache
    for text in (repr(found), found._repr_html_()):
        assert "µs" in text and "Source: simulated T4" in text and "Cache" in text
    assert "2 samples of" in repr(found)


@pytest.mark.usefixtures("simulated")
def test_clocks_show_units_count_and_source() -> None:
    found = timing.clocks(matmul(64), seconds=0.02)
    for text in (repr(found), found._repr_html_()):
        assert "CUDA events" in text and "µs" in text and "Source: simulated T4" in text
        assert "first call" in text
    picture = found.show()
    assert "ms" in picture.alt and "simulated T4" in picture.alt


def test_the_table_says_when_the_computer_is_too_slow() -> None:
    reading = timing._reading("x", [0.1, 0.2], 1, "y")
    shown = Clocks(reading, reading, reading, reading, 1.0, "here", "It could not keep up.")
    assert "could not keep up" in repr(shown) and "could not keep up" in shown._repr_html_()


WAITING: dict[str, Callable[[torch.Tensor], object]] = {
    "item": lambda x: x.sum().item(),
    "copy": lambda x: x.cpu(),
    "mask": lambda x: x[x > 0],
    "synchronize": lambda x: torch.cuda.synchronize(),
}


def refuses(kind: str) -> None:
    x = torch.ones(8, device="cuda")
    start = time.perf_counter()
    with pytest.raises(ValueError, match="waits for the device"):
        timing.device_time(lambda: WAITING[kind](x))
    assert time.perf_counter() - start < 2
    assert torch.cuda.get_sync_debug_mode() == 0
    assert (x + 1).sum().item() == 16  # nothing is broken


@pytest.mark.parametrize("kind", WAITING)
@pytest.mark.usefixtures("simulated")
def test_device_time_refuses_what_waits(kind: str) -> None:
    refuses(kind)


def test_bad_arguments_say_what_to_do() -> None:
    with pytest.raises(TypeError, match="give a function"):
        timing.clocks(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="give a function"):
        timing.device_time(torch.ones(2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="samples must be 1"):
        timing.device_time(lambda: None, samples=0)
    with pytest.raises(ValueError, match="seconds must be more than 0"):
        timing.clocks(lambda: None, seconds=0.0)


@pytest.mark.usefixtures("simulated")
def test_an_error_of_the_function_is_its_own() -> None:
    x = torch.ones(3, 4, device="cuda")
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        timing.device_time(lambda: x @ x)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        timing.clocks(lambda: x @ x)


def test_durations_have_three_digits_and_a_unit() -> None:
    assert timing.duration(3.14159e-6) == "3.14 µs"
    assert timing.duration(0.0215) == "21.5 ms"
    assert timing.duration(1.234) == "1.23 s"


# -- on a real GPU ----------------------------------------------------------------------------


@pytest.fixture
def real() -> None:
    if not REAL:
        pytest.skip("needs an NVIDIA GPU")
    gpututor.stop()


def profiled(work: Callable[[], object], calls: int = 20) -> float:
    """Return the seconds of one call by ``torch.profiler``: the sum of its kernels."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(calls):
            work()
        torch.cuda.synchronize()
    times: dict[str, list[float]] = {}
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            times.setdefault(event.name, []).append(event.time_range.elapsed_us())
    return (
        sum(statistics.median(found) * round(len(found) / calls) for found in times.values()) / 1e6
    )


@pytest.mark.usefixtures("real")
def test_device_time_is_the_kernels_own() -> None:
    testing = pytest.importorskip("triton.testing")
    for n in (256, 1024, 4096, 8192):
        a, b = (torch.randn(n, n, device="cuda", dtype=torch.float16) for _ in range(2))

        def work(a: torch.Tensor = a, b: torch.Tensor = b) -> torch.Tensor:
            return a @ b

        work()  # and no do_bench until the end: the heat of it would slow the profiled kernels
        rounds = [(timing.device_time(work), profiled(work)) for _ in range(3)]
        ours = statistics.median(found.median for found, _ in rounds)
        kernel = statistics.median(own for _, own in rounds)
        if kernel > 100e-6:
            assert ours == pytest.approx(kernel, rel=0.05), n
        else:
            theirs = testing.do_bench(work, return_mode="median") / 1e3
            assert abs(ours - kernel) < abs(theirs - kernel), n
        assert "graph" in rounds[0][0].how
        assert "warm" in rounds[0][0].cache


@pytest.mark.usefixtures("real")
def test_what_cannot_be_captured_is_queued_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    work = matmul(1024)
    graph: DeviceTime = timing.device_time(work)

    def refuse() -> None:
        raise RuntimeError("no graphs today")

    monkeypatch.setattr(torch.cuda, "CUDAGraph", refuse)
    queued = timing.device_time(work)
    assert "no graphs today" in queued.how
    assert queued.median == pytest.approx(graph.median, rel=0.2)


@pytest.mark.parametrize("kind", WAITING)
@pytest.mark.usefixtures("real")
def test_device_time_refuses_what_waits_on_a_real_gpu(kind: str) -> None:
    refuses(kind)


@pytest.mark.usefixtures("real")
def test_the_clocks_differ_on_a_real_gpu() -> None:
    a = torch.randn(4096, 4096, device="cuda")
    found = timing.clocks(lambda: a @ a, seconds=0.1)
    assert found.naive.median < 0.5 * found.events.median
    assert found.events.median == pytest.approx(found.synchronized.median, rel=0.1)
    assert found.benchmark.median == pytest.approx(found.events.median, rel=0.1)
    assert not found.note and "measured on NVIDIA" in repr(found)
