"""Wrong arguments of the helpers get one line that says what to give instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import gpututor
from gpututor import (
    Machine,
    child,
    clinic,
    doctor,
    live,
    memory,
    parallel,
    recorded,
    roofline,
    timeline,
    timing,
    transfer,
)
from gpututor import waits as waiting
from gpututor.doctor import Facts

NAN = float("nan")
WRONG: list[Any] = [None, -1, NAN, "x", "x" * 100_000, 10**25, [], torch.ones(2)]


def entered(manager: Any) -> Any:
    with manager:
        pass


#: What takes one argument that none of WRONG is.
TAKERS: dict[str, Callable[[Any], Any]] = {
    "start": lambda value: gpututor.start(gpus=value),
    "timing.clocks": timing.clocks,
    "timing.device_time": timing.device_time,
    "transfer.seconds": transfer.seconds,
    "waits.find": waiting.find,
    "memory.account": memory.account,
    "memory.peak": memory.peak,
    "memory.read_message": memory.read_message,
    "memory.limit": lambda value: entered(memory.limit(value)),
    "timeline.from_profiler": timeline.from_profiler,
    "parallel.watch": lambda value: entered(parallel.watch(value)),
    "parallel.torchrun": parallel.torchrun,
    "recorded.load": recorded.load,
    "child.tracks": child.tracks,
    "live.board": live.board,
}
#: What takes a number besides, and the name that it has.
NUMBERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "leaks": (lambda value: memory.leaks(most=value), "most"),
    "seconds": (lambda value: transfer.seconds(step, value), "repeats"),
    "sizes, first": (lambda value: transfer.sizes(value), "first"),
    "sizes, factor": (lambda value: transfer.sizes(factor=value), "factor"),
    "device_time": (lambda value: timing.device_time(step, samples=value), "samples"),
    "clocks": (lambda value: timing.clocks(step, seconds=value), "seconds"),
    "run": (lambda value: child.run("x = 1", seconds=value), "seconds"),
    "torchrun": (lambda value: parallel.torchrun(__file__, value), "processes"),
    "torchrun, limit": (lambda value: parallel.torchrun(__file__, limit=value), "limit"),
    "board": (lambda value: live.board(value, loss="nats"), "total"),
}
#: What takes one thing of a kind, and says which.
OTHERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "account, model": (lambda value: memory.account(step, model=value), "torch.nn.Module"),
    "account, optimizer": (lambda value: memory.account(step, optimizer=value), "Optimizer"),
    "roof": (roofline.roof, "torch.half"),
    "run, environment": (lambda value: child.run("x = 1", value), "by their name"),
    "tracks": (lambda value: child.tracks({"a": value}), "by the name of their track"),
    "diagnose": (doctor.diagnose, "facts"),
    "class_table": (doctor.class_table, "folder"),
    "load": (Facts.load, ": "),
    "from_dict": (Facts.from_dict, "facts: "),
    "report": (doctor.report, "facts"),
    "visit": (lambda value: clinic.visit(value, "build"), "there is no machine"),
    "check": (lambda value: gpututor.check(value, step), "there is no exercise"),
}
#: What takes the index of a device, or None.
DEVICES: dict[str, Callable[[Any], Any]] = {
    "numbers": memory.numbers,
    "map": memory.map,
    "leaks": memory.leaks,
    "watch": memory.watch,
    "peak": lambda value: memory.peak(lambda: None, value),
    "limit": lambda value: entered(memory.limit(1 << 20, value)),
    "account": lambda value: memory.account(step, device=value),
    "roof": lambda value: roofline.roof(device=value),
    "record": timeline.record,
}


def step() -> None:
    torch.ones(2, device="cuda")


def short(value: Any) -> str:
    """Return the beginning of a value's text: no address of a function is in it."""
    return repr(value)[:9]


def said(take: Callable[[Any], Any], value: Any) -> str:
    """Return what was said to a wrong value, one line."""
    with pytest.raises((TypeError, ValueError, FileNotFoundError)) as caught:
        take(value)
    text = str(caught.value)
    assert "\n" not in text and len(text) < 400, text
    raised = caught.traceback[-1]
    assert "gpututor" in str(raised.path), f"raised by {raised.path}: {text}"
    return text


@pytest.mark.parametrize("name", TAKERS)
@pytest.mark.parametrize("value", WRONG, ids=lambda value: repr(value)[:12])
def test_wrong_arguments(simulated: Machine, name: str, value: Any) -> None:
    said(TAKERS[name], value)


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("value", [-1, 1, 10**25, NAN, "x", 0.5, [], True], ids=repr)
def test_wrong_devices(simulated: Machine, name: str, value: Any) -> None:
    assert "index" in said(DEVICES[name], value)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [None, 0, -1, NAN, "x", [], step, True, torch.ones(2)], ids=short)
def test_wrong_numbers(simulated: Machine, name: str, value: Any) -> None:
    take, argument = NUMBERS[name]
    assert f"{argument} must be" in said(take, value)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("value", [-1, NAN, "x" * 100_000, [], step, b"x"], ids=short)
def test_wrong_kinds(simulated: Machine, name: str, value: Any) -> None:
    take, kind = OTHERS[name]
    assert kind in said(take, value)


@pytest.mark.parametrize("value", [None, -1, NAN, [], b"x = 1"], ids=repr)
def test_wrong_programs(value: Any) -> None:
    said(child.run, value)
