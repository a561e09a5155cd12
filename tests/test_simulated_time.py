"""The simulated GPU's clock: launches, loading, late failures, and what it refuses to time."""

from __future__ import annotations

import logging
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
import torch

import gpututor
from gpututor import Machine
from gpututor.simulator import device, runtime
from gpututor.simulator.errors import NotSimulatedError

LAUNCH = 5e-6 * 50  # seconds: the T4's at 1/50


def seconds(call: Callable[[], object]) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - start


@pytest.mark.usefixtures("simulated")
def test_the_first_call_of_a_kernel_loads_it() -> None:
    x = torch.ones(8, device="cuda")
    y = torch.ones(9, device="cuda")
    x.cos()
    torch.cuda.synchronize()  # the thread runs, torch has imported what it needs
    held: list[float] = []
    engine = runtime.current().engine
    hold = engine.hold
    engine.hold = lambda value: (held.append(value), hold(value))[1]  # type: ignore[method-assign]
    first, again, other = seconds(x.sin), seconds(x.sin), seconds(y.sin)
    assert held == [device.LOADING]  # once for a kernel, whatever the shape
    assert first > device.LOADING > 0
    assert first > again and first > 0 and other > 0


@pytest.mark.usefixtures("simulated")
def test_loading_is_on_the_hosts_clock_and_not_in_event_times() -> None:
    x = torch.ones(8, device="cuda")
    found = []
    for _ in range(3):
        torch.cuda.synchronize()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        x.tan_()
        end.record()
        end.synchronize()
        found.append(start.elapsed_time(end))
    # The launches of the kernel and of the event; the kernel itself is shorter than a launch.
    assert found[1:] == pytest.approx([2 * LAUNCH * 1e3] * 2, rel=1e-3)


def test_each_start_loads_anew(simulate: Callable[[str], Machine]) -> None:
    for _ in range(2):
        simulate("T4")
        torch.ones(3, device="cuda").sin()
        assert "sin" in runtime.current().device(0).loaded


@pytest.mark.usefixtures("simulated")
def test_a_launch_costs_the_host_its_time() -> None:
    x = torch.ones(8, device="cuda")
    x.neg_()
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(100):
        x.neg_()
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) / 1e3 == pytest.approx(101 * LAUNCH, rel=0.02)


@pytest.mark.usefixtures("simulated")
def test_a_pageable_copy_blocks_the_host_and_a_pinned_one_does_not() -> None:
    host = torch.ones(4 << 20, dtype=torch.uint8)
    x = torch.empty_like(host, device="cuda")
    for source, blocks in ((host, True), (host.pin_memory(), False)):
        for target in (x, x.cpu() if blocks else source):
            torch.cuda.synchronize()
            start = time.perf_counter()
            target.copy_(x if target is not x else source, non_blocking=True)
            returned = time.perf_counter() - start
            torch.cuda.synchronize()
            whole = time.perf_counter() - start
            assert (returned > 0.9 * whole) == blocks


@pytest.mark.usefixtures("simulated")
def test_a_kernel_that_waits_gets_in_as_another_drains_but_ends_after_it() -> None:
    resource = device.Resource()
    assert resource.reserve(0.0, 10.0, 5.0, 0.0) == (0.0, 0.0)  # five waves of 2 s each
    assert resource.reserve(1.0, 4.0, 3.0, 0.0) == (10.0, 8.0)
    assert resource.reserve(9.0, 1.0, 0.5, 0.0) == (14.0, 9.0)
    assert resource.reserve(14.0, 1.0, 0.5, 0.0) == (14.0, 14.0)  # half and half
    assert resource.reserve(14.0, 1.0, 0.6, 0.0) == (15.0, 15.0)
    assert resource.reserve(15.0, 1.0, 0.6, 0.0) == (16.0, 15.0)  # there is room for some blocks


BLOCKING = """
    import os, sys, time
    if "inside" in sys.argv:
        os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
    import torch, gpututor
    gpututor.start(simulate="T4")
    x = torch.ones(4, device="cuda")
    i = torch.tensor([9], device="cuda")
    torch.cuda.synchronize()
    try:
        x[i]
    except RuntimeError as error:
        print("at the launch:", str(error).splitlines()[0])
    else:
        try:
            torch.cuda.synchronize()
        except RuntimeError as error:
            print("late:", str(error).splitlines()[0])
"""


@pytest.mark.parametrize(
    ("variable", "argument", "where"),
    [("", "", "late"), ("1", "", "at the launch"), ("", "inside", "at the launch")],
)
def test_launch_blocking(
    variable: str, argument: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_LAUNCH_BLOCKING", raising=False)
    if variable:
        monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", variable)
    code = [sys.executable, "-c", textwrap.dedent(BLOCKING), argument]
    done = subprocess.run(code, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == f"{where}: CUDA error: device-side assert triggered\n", done.stderr


@pytest.mark.usefixtures("simulated")
def test_a_failure_on_a_side_stream_poisons_every_stream() -> None:
    x = torch.ones(4, device="cuda")
    index = torch.tensor([9], device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        x[index]  # returns
    time.sleep(0.05)
    for call in (lambda: x + 1, torch.cuda.synchronize, lambda: x.sum().item()):
        with pytest.raises(RuntimeError, match="device-side assert triggered"):
            call()


def test_a_failure_nobody_waited_for_is_logged(
    simulate: Callable[[str], Machine], caplog: pytest.LogCaptureFixture
) -> None:
    for told in (False, True):
        simulate("T4")
        x = torch.ones(4, device="cuda")
        x[torch.tensor([9], device="cuda")]
        deadline = time.perf_counter() + 5
        while runtime.current().engine.failure is None and time.perf_counter() < deadline:
            time.sleep(0.01)
        if told:
            with pytest.raises(RuntimeError, match="device-side assert"):
                torch.cuda.synchronize()
        caplog.clear()
        gpututor.stop()
        errors = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert len(errors) == (0 if told else 1)


@pytest.mark.usefixtures("simulated")
def test_asking_a_dead_worker_raises_and_does_not_go_on_for_ever() -> None:
    class Deadly:
        def start(self) -> None:
            raise ValueError("wrong")

        def finish(self) -> None:
            """Do nothing."""

        def failed(self, error: BaseException) -> None:
            raise SystemExit("the worker dies")

    event = torch.cuda.Event()
    engine = runtime.current().engine
    engine.submit(engine.now(), engine.now(), Deadly())
    torch.cuda._sleep(100)
    event.record()
    with pytest.raises(RuntimeError, match="the worker dies"):
        for _ in range(500):
            event.query()
            time.sleep(0.01)


NOTEBOOK = {
    "a failed assertion": "x[torch.tensor([9], device='cuda')]",
    "an exception in the thread": """
from gpututor.simulator.kernel import Kernel
def broken(self): raise LookupError("planted")
Kernel.start = broken
y = x + 1""",
}


@pytest.mark.parametrize("kind", [*NOTEBOOK, "none"])
def test_a_notebook_fails_if_a_stream_does(kind: str, tmp_path: Path) -> None:
    planted = NOTEBOOK.get(kind, "x + 1")
    cells = [
        "import torch, gpututor\ngpututor.start(simulate='T4')",
        "x = torch.ones(4, device='cuda')\nside = torch.cuda.Stream()\ntorch.cuda.synchronize()",
        f"with torch.cuda.stream(side):\n{textwrap.indent(planted.strip(), '    ')}",
        "torch.cuda.synchronize()",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    path = tmp_path / "planted.ipynb"
    nbformat.write(book, path)
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", str(tmp_path)]
    command += ["-q", "-p", "no:cacheprovider", "--nbval-lax", "--nbval-current-env", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode == 0) == (kind == "none"), done.stdout + done.stderr
    if kind == "a failed assertion":
        assert "device-side assert triggered" in done.stdout
    if kind == "an exception in the thread":
        assert "planted" in done.stdout


@pytest.mark.filterwarnings("ignore:.*Profiler clears events")  # of PyTorch 2.10
@pytest.mark.usefixtures("simulated")
def test_the_profiler_refuses_to_trace_a_simulated_gpu() -> None:
    activity = torch.profiler.ProfilerActivity
    for activities in ([activity.CUDA], [activity.CPU, activity.CUDA]):
        with pytest.raises(NotSimulatedError, match=r"CUDA activity of torch\.profiler"):
            torch.profiler.profile(activities=activities)
    with pytest.raises(NotSimulatedError, match=r"CUDA activity of torch\.profiler"):
        torch.autograd.profiler.profile(use_device="cuda")
    assert activity.CUDA not in torch.profiler.supported_activities()
    with torch.profiler.profile() as profile:  # the host is profiled as ever
        torch.ones(3, device="cuda") + 1
    assert len(profile.events()) > 0
