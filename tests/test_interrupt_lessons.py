"""Stopping a cell at any moment leaves everything working: the next cell, and the same again.

The stop is a real SIGINT in the main thread, as the kernel sends it, at a random part of the time
that the work takes by itself.
"""

from __future__ import annotations

import _thread
import gc
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import panels
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import gpututor
from gpututor import child, doctor, exercises, live, memory, parallel, timeline, timing, waits
from gpututor.picture import Picture
from gpututor.simulator import profiles

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="it stops simulated GPUs")
POINTS = 10
PATIENCE = 60  # seconds after which a thread counts as stuck


def hit() -> None:
    """Send the main thread what the kernel sends it."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


def stopped(work: Callable[[], Any], after: float) -> bool:
    """Run work, and interrupt it after so many seconds; tell whether it came to that."""
    lost: list[Any] = []  # Python lets no exception out of a finaliser: a learner stops once more

    def unraisable(error: Any) -> None:
        if not isinstance(error.exc_value, KeyboardInterrupt):
            lost.append(error.exc_value)

    hook, sys.unraisablehook = sys.unraisablehook, unraisable
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(after, hit)
    try:
        timer.start()
        work()
        timer.cancel()
        timer.join()
        time.sleep(0)  # a signal that came late is heard here
    except KeyboardInterrupt:
        timer.join()
        return True
    finally:
        signal.signal(signal.SIGINT, handler)
        sys.unraisablehook = hook
        assert not lost
    return False


def state() -> dict[str, Any]:
    """Return what a cell must leave as it was."""
    gc.collect()
    torch.cuda.synchronize()
    torch._C._cuda_clearCublasWorkspaces()
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
        "bytes": [torch.cuda.memory_allocated(index) for index in devices],
        "processes": processes(),
    }


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
    """Use the GPU: a product, and another on a side stream."""
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
    start = time.perf_counter()
    work()
    takes = time.perf_counter() - start
    works()
    before, threads = state(), set(threading.enumerate())
    count = 0
    for _ in range(points):
        count += stopped(work, takes * chance.random())
        for thread in set(threading.enumerate()) - threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), f"still running: {thread}"
        works()
        assert state() == before
    assert count >= points // 3, f"only {count} of {points} were stopped"


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
    monkeypatch.setenv("GPUTUTOR_SIMULATE", "T4")
    gpututor.stop()
    gpututor.start(gpus=2)


def stop_panel(panel: panels.Panel, points: int) -> None:
    shown = eval(panel.call, panel.space())
    before = shown.controls.copy()
    check(shown.run, points, panel.name)
    assert shown.error is None or isinstance(shown.error, KeyboardInterrupt)
    result = shown.run()
    assert isinstance(result, Picture) or str(result)
    assert shown.error is None and shown.controls == before
    assert "Ready" in shown._status.value and shown._view.value


@pytest.mark.slow
@pytest.mark.parametrize("panel", panels.every(), ids=str)
def test_every_panel(started: None, panel: panels.Panel) -> None:
    stop_panel(panel, POINTS)


FEW = ("00-compare", "02-pieces", "03-waiting", "04-loop_tracks", "05-shares", "06-account")


@pytest.mark.parametrize("panel", [p for p in panels.every() if p.name in FEW], ids=str)
def test_some_panels(started: None, panel: panels.Panel) -> None:
    stop_panel(panel, 2)
