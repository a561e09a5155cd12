"""Stopping a cell at any moment leaves everything working: the next cell, and the same again.

The stop is a real SIGINT in the main thread, as the kernel sends it, at a random part of the time
that the work takes by itself.
"""

from __future__ import annotations

import gc
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import panels
import pytest
import torch
from signals import stopped
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import gpututor
from gpututor import child, doctor, live, memory, parallel, timeline, timing, waits
from gpututor.explorer import READY, STOPPED
from gpututor.simulator import profiles

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="it stops simulated GPUs")
POINTS = 10
LONGEST = 0.8  # seconds: what takes longer does the same again and again
#: What goes backward: PyTorch's autograd of the CPU, on which the simulator stands, keeps what is
#: left of a pass that was stopped, at most what it held. CUDA's threads drop it.
TRAINS = (
    "training", "two devices", "settings", "05-pays", "05-shares", "06-account", "06-less",
    "06-summed", "07-switches",
)  # fmt: skip
PATIENCE = 60  # seconds after which a thread or a process counts as stuck


def state() -> dict[str, Any]:
    """Return what a cell must leave as it was."""
    devices = range(torch.cuda.device_count())
    return {
        "modes": torch.overrides._get_current_function_mode_stack(),
        "default device": torch.get_default_device(),
        "current device": torch.cuda.current_device(),
        "streams": [torch.cuda.current_stream(index).stream_id for index in devices],
        "gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "autocast": torch.is_autocast_enabled("cuda"),
        "waits reported": torch.cuda.get_sync_debug_mode(),
        "limit": [torch.cuda.get_per_process_memory_fraction(index) for index in devices],
    }


def held() -> list[int]:
    """Return the bytes that tensors hold on each device, the libraries' workspaces left out."""
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()
    return [torch.cuda.memory_allocated(index) for index in range(torch.cuda.device_count())]


def processes() -> set[str]:
    """Return the living processes that this one has started, and theirs (Linux)."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            environment = (path / "environ").read_bytes()
        except OSError:
            continue
        if f"{MARK}={os.getpid()}".encode() in environment:
            found.add((path / "cmdline").read_text(encoding="utf-8", errors="replace"))
    return found


MARK = "GPUTUTOR_TEST_STARTED_BY"


def works() -> None:
    """Use the GPU: a product, and another on a side stream.

    What was stopped may have left work behind that writes to memory which is free by now, as on a
    real GPU: that is waited for first.
    """
    torch.cuda.synchronize()
    x = torch.arange(12.0).view(3, 4)
    expected, side = x @ x.T, torch.cuda.Stream()
    y = x.cuda()
    assert torch.equal((y @ y.T).cpu(), expected)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(1000)
        z = y @ y.T
    torch.cuda.current_stream().wait_stream(side)
    assert torch.equal(z.cpu(), expected)
    assert side.query()


def check(work: Callable[[], Any], points: int, name: str) -> None:
    """Stop work at some points of its time, and look each time at what it leaves."""
    chance = random.Random(name)
    work()  # loads what is loaded once
    for index in range(torch.cuda.device_count()):
        torch.cuda.reset_peak_memory_stats(index)
    start = time.perf_counter()
    work()
    takes = min(LONGEST, time.perf_counter() - start)
    left = [torch.cuda.max_memory_allocated(i) * (name in TRAINS) for i in range(len(held()))]
    works()
    before, most, threads = state(), held(), set(threading.enumerate())
    count = 0
    moments = [takes * chance.random() for _ in range(points)]
    while moments:
        moment = moments.pop()
        count += stopped(work, moment)
        for thread in set(threading.enumerate()) - threads:
            # The interrupt may have come between asking for the thread and its first step.
            if thread._started.wait(1):
                thread.join(PATIENCE)
            assert not thread.is_alive(), f"still running: {thread}"
        end = time.perf_counter() + PATIENCE
        while processes() and time.perf_counter() < end:
            time.sleep(0.01)  # what was ended may take a moment to be gone
        assert not processes()
        works()
        assert state() == before
        most = [then + more for then, more in zip(most, left, strict=True)]
        assert all(now <= then for now, then in zip(held(), most, strict=True)), (held(), most)
        if not moments and not count and moment > 0.001:
            moments = [moment / 2]  # it took less time than when it was timed
    assert count or takes < 0.05, "it was never stopped"


@pytest.fixture(autouse=True)
def marked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let children be known; start and stop work at the end."""
    monkeypatch.setenv(MARK, str(os.getpid()))
    yield
    gpututor.stop()
    gpututor.start(simulate="T4")
    works()
    gpututor.stop()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start two simulated devices, ten times as fast as a lesson's: the work is the same."""
    fast = replace(profiles.PROFILES["T4"], slowdown=5)
    monkeypatch.setattr(profiles, "PROFILES", {"T4": fast})
    monkeypatch.setenv("GPUTUTOR_SIMULATE", "T4")
    gpututor.stop()
    gpututor.start(gpus=2)


def stop_panel(panel: panels.Panel, points: int) -> None:
    shown = eval(panel.call, panel.space())
    controls = shown.controls.copy()
    check(shown.run, points, panel.name)
    assert shown.error in (None, STOPPED)
    assert shown.set(**shown.values) is shown.result is not None
    assert shown.error is None and shown.controls == controls
    assert READY in shown._status.value and shown._view.value


@pytest.mark.slow
@pytest.mark.parametrize("panel", panels.every(), ids=str)
def test_every_panel(started: None, panel: panels.Panel) -> None:
    stop_panel(panel, POINTS)


FEW = ("03-waiting", "04-loop_tracks", "05-shares", "06-account", "07-switches")


@pytest.mark.parametrize("name", FEW)
def test_some_panels(started: None, name: str) -> None:
    (panel,) = (panel for panel in panels.every() if panel.name == name)
    stop_panel(panel, 3)


def training() -> None:
    """Train as lesson 07 does: mixed precision, copies on a side stream, a board."""
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 4)).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    scaler = torch.amp.GradScaler("cuda")
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    data = TensorDataset(torch.randn(512, 64), torch.randint(4, (512,)))
    with live.board(8, loss="nats") as board:
        for x, target in DataLoader(data, batch_size=64, pin_memory=True):
            with torch.cuda.stream(side):
                x, target = x.to("cuda", non_blocking=True), target.to("cuda", non_blocking=True)
            main.wait_stream(side)
            x.record_stream(main)
            target.record_stream(main)
            with torch.autocast("cuda", torch.float16):
                loss = nn.functional.cross_entropy(net(x), target)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            board.update(loss=loss.item())


def on_two_devices() -> None:
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)).cuda()
    split = nn.DataParallel(net, device_ids=[0, 1])
    with parallel.watch(split):
        for _ in range(5):
            split(torch.randn(16, 64)).sum().backward()


def on_a_timeline() -> None:
    line = timeline.record(0, 1)
    for index in (0, 1):
        with torch.cuda.device(index), line.host("launch"), line.span("products"):
            x = torch.ones(256, 256, device="cuda")
            for _ in range(20):
                x = x @ x
    line.show()


def settings() -> None:
    """Do what sets something for a while, again and again: it is put back."""
    for _ in range(3):
        with memory.limit(100 << 20), torch.device("cuda"), memory.watch() as view:
            x = torch.ones(1000)
            view.update()
        waits.find(lambda x=x: x.sum().item())
        with torch.cuda.device(1), torch.inference_mode(), torch.cuda.stream(torch.cuda.Stream()):
            (torch.ones(1000, device="cuda") * 2).sum().item()
        torch.utils.checkpoint.checkpoint(torch.sin, x.requires_grad_(), use_reentrant=True)


def seconds_of(work: Callable[[], Any]) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


PROGRAM = """import torch, gpututor
gpututor.start()
total = torch.ones(4, device="cuda").sum().item()"""
SCRIPT = """import os, torch.distributed as dist
dist.init_process_group("gloo")
dist.barrier()
print(os.environ["RANK"], flush=True)
os._exit(0)"""

WORKS: dict[str, Callable[[Path], Any]] = {
    "training": lambda folder: training(),
    "two devices": lambda folder: on_two_devices(),
    "timeline": lambda folder: on_a_timeline(),
    "settings": lambda folder: settings(),
    "timing": lambda folder: timing.clocks(lambda: torch.ones(9, device="cuda"), seconds=0.1),
    "check": lambda folder: gpututor.check("00-stopwatch", seconds_of),
    "child": lambda folder: child.run(PROGRAM),
    "doctor": lambda folder: doctor.collect(),
    "torchrun": lambda folder: parallel.torchrun(folder / "script.py"),
}
OUTSIDE = ("child", "doctor", "torchrun")  # they take seconds, most of them for imports


def stop_work(name: str, folder: Path, points: int) -> None:
    (folder / "script.py").write_text(SCRIPT, encoding="utf-8")
    check(lambda: WORKS[name](folder), points, name)


@pytest.mark.parametrize("name", [name for name in WORKS if name not in OUTSIDE])
def test_works(started: None, tmp_path: Path, name: str) -> None:
    stop_work(name, tmp_path, 3)


# Python's subprocess drops its handle of a child that it has just ended; the children are looked
# at above, by their mark.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.slow
@pytest.mark.parametrize("name", WORKS)
def test_every_work(started: None, tmp_path: Path, name: str) -> None:
    stop_work(name, tmp_path, POINTS)
