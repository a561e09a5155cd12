"""Whatever a control is given: a figure, or one clear line; no hang, no memory beyond its bound."""

from __future__ import annotations

import decimal
import fractions
import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ipywidgets
import panels
import pytest
import torch
from signals import stopped
from traitlets import TraitError

import gpututor
from gpututor.arguments import shown
from gpututor.explorer import READY, Explorer
from gpututor.simulator import profiles

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="it fills simulated GPUs")
LONGEST = 60  # seconds for one run
HOST = 4 << 30  # bytes by which this process may grow: two simulated GPUs, pinned memory, figures


class Array:
    """Answers as an array of numpy's does."""

    def __eq__(self, other: object) -> Any:
        return Array()

    def __bool__(self) -> bool:
        raise ValueError("The truth value of an array is ambiguous")

    def __repr__(self) -> str:
        return "array([[0, 1],\n       [2, 3]])"

    __hash__ = None  # type: ignore[assignment]


class Broken:
    """Fails at everything."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    def __repr__(self) -> str:
        raise RuntimeError("no words")

    __hash__ = object.__hash__


KINDS: list[Callable[[random.Random], Any]] = [
    lambda r: r.randint(-10, 10),
    lambda r: r.choice([-1, 1]) * 10 ** r.randint(2, 40),
    lambda r: 2 ** r.randint(0, 70) + r.randint(-1, 1),
    lambda r: r.uniform(-10, 10),
    lambda r: r.choice([float("nan"), float("inf"), -float("inf"), -0.0, 1e308, 5e-324]),
    lambda r: r.choice([None, True, False, ..., NotImplemented]),
    lambda r: "".join(chr(r.choice([r.randint(32, 126), r.randint(0, 0x2FFF)])) for _ in range(9)),
    lambda r: r.choice(["", "1", "nan", "True", "x" * 10**5, "two\nlines", "<b>", "\0", "\ud800"]),
    lambda r: [r.randint(0, 9)] * r.randint(0, 3),
    lambda r: tuple(range(r.randint(0, 3))),
    lambda r: r.choice([{}, {"a": 1}, set(), {1}, b"", b"1", range(10**9), object(), int, len]),
    lambda r: r.choice([1j, decimal.Decimal("NaN"), decimal.Decimal(1), fractions.Fraction(7, 2)]),
    lambda r: r.choice([torch.ones(()), torch.ones(2, 2), torch.tensor(1), torch.float32]),
    lambda r: r.choice([Array(), Broken()]),
]


def one_line(text: str) -> bool:
    return "\n" not in text and 0 < len(text) < 600


def throw(panel: Explorer, values: int, chance: random.Random) -> None:
    """Throw values at the controls of a panel, from code and as a browser would."""
    function, panel._function = panel._function, lambda **_: "a run that takes no time"
    for _ in range(values):
        name, control = chance.choice(list(panel.controls.items()))
        value, before = chance.choice(KINDS)(chance), panel.values
        way = chance.choice(["set", "value", "browser"])
        try:
            if way == "set":
                panel.set(**{name: value})
                assert control.value == value
            elif way == "value":
                control.value = value
            else:
                control.set_state({"index" if hasattr(control, "index") else "value": value})
        except (ValueError, TraitError) as error:
            if way == "set":
                assert str(error).startswith(f"{name} cannot be "), error
                assert one_line(str(error))
                assert panel.values == before
        except (TypeError, OverflowError, RuntimeError, AttributeError):
            assert way != "set"  # a widget's own words to code that speaks to it
        if value is None and way == "value" and control.value is None:
            with pytest.raises(ValueError, match=f"{name} cannot be None: choose one of "):
                panel.run()  # ipywidgets refuses it, and yet sets it
            control.value = before[name]
        assert valid(control), f"{name} is {control.value!r} after {way} of {shown(value)}"
        assert panel.error is None
        assert READY in panel._status.value
    panel._function = function


def valid(control: Any) -> bool:
    """Tell whether a control has a value that it can show."""
    value = control.value
    if hasattr(control, "options"):
        return any(value is option for option in choices(control))
    if isinstance(control, ipywidgets.Text):
        return type(value) is str
    if isinstance(control, ipywidgets.Checkbox):
        return type(value) is bool
    return type(value) is int and control.min <= value <= control.max


def choices(control: Any) -> list[Any]:
    """Return values in the range of a control; of a text, some."""
    if hasattr(control, "options"):
        return [o[1] if isinstance(o, tuple) else o for o in control.options]
    if isinstance(control, ipywidgets.Checkbox):
        return [False, True]
    if isinstance(control, ipywidgets.Text):
        return ["0", "0,9,1", "", "x", "-1", "1,1", " 0 , 2", "GPU-12", "٣", "9" * 30, "\x00"]
    return list(range(control.min, control.max + 1))


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start two simulated devices that are ten times as fast as a lesson's."""
    profile = replace(profiles.PROFILES["T4"], slowdown=5)
    monkeypatch.setattr(profiles, "PROFILES", {"T4": profile})
    monkeypatch.setenv("GPUTUTOR_SIMULATE", "T4")
    gpututor.stop()
    gpututor.start(gpus=2)


def built(panel: panels.Panel) -> Explorer:
    shown: Explorer = eval(panel.call, panel.space())
    return shown


def host() -> int:
    """Return the bytes of memory that this process has (Linux; 0 elsewhere)."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096
    except OSError:
        return 0


def bounded(work: Callable[[], Any]) -> None:
    """Run work: it ends, in the memory that it may have."""
    before = host()
    assert not stopped(work, LONGEST), f"still running after {LONGEST} s"
    assert host() < before + HOST
    for index in range(torch.cuda.device_count()):
        total = torch.cuda.get_device_properties(index).total_memory
        assert torch.cuda.max_memory_reserved(index) <= total


def run_random(panel: Explorer, runs: int, seconds: float, chance: random.Random) -> None:
    """Run random combinations of values in range: so many, or as many as the seconds hold."""
    end = time.perf_counter() + seconds
    for count in range(runs):
        if count >= 2 and time.perf_counter() > end:
            break
        values = {name: chance.choice(choices(c)) for name, c in panel.controls.items()}
        bounded(lambda values=values: panel.set(**values))
        assert panel.result is not None and panel._view.value
        assert panel.error is None
        assert READY in panel._status.value


def give(panel: Explorer, seconds: float, chance: random.Random) -> None:
    """Give the function itself values that no control would let through, for so long.

    A function may refuse them in any words, or take them. Large numbers are left out: a million
    pieces take minutes, and a million layers all memory, on any machine.
    """
    controls, end = panel.controls, time.perf_counter() + seconds
    wrong = [None, 0, -1, -(10**25), float("nan"), float("inf"), "", "x", [], {}, (), ...]
    wrong += [Array(), Broken(), torch.ones(2, 2), chance.uniform(0, 2)]
    given = [(name, value) for name in controls for value in wrong]
    chance.shuffle(given)
    for name, value in given:
        if time.perf_counter() > end:
            break
        panel.controls = {**controls, name: Given(value)}
        bounded(lambda: try_to(panel.run))
        panel.controls = controls
        if panel.error is not None:
            assert one_line(panel.error), panel.error
            assert "⚠" in panel._status.value
    panel.run()
    assert panel.error is None and READY in panel._status.value


class Given:
    """A control that holds anything."""

    def __init__(self, value: Any) -> None:
        self.value = value


def try_to(work: Callable[[], Any]) -> None:
    try:
        work()
    except KeyboardInterrupt:
        raise
    except Exception:  # the panel has said what it is
        pass


@pytest.mark.parametrize("panel", panels.every(), ids=str)
@pytest.mark.slow
def test_any_value(fast: None, panel: panels.Panel) -> None:
    """10,000 values for all panels; of each 50 runs, and wrong values to its function, or as many
    as a few seconds hold.
    """
    chance = random.Random(panel.name)
    explorer = built(panel)
    throw(explorer, -(-10_000 // len(panels.every())), chance)
    run_random(explorer, 50, 2.0, chance)
    give(explorer, 1.5, chance)


FEW = ("01-visible", "03-waiting", "04-loop_tracks", "06-rounding", "06-by_hand", "07-switches")


@pytest.mark.parametrize("name", FEW)
def test_some_values(fast: None, name: str) -> None:
    (panel,) = (panel for panel in panels.every() if panel.name == name)
    chance = random.Random(name)
    explorer = built(panel)
    throw(explorer, 50, chance)
    run_random(explorer, 2, 0.0, chance)
