"""Lesson 01, Find out whether there is a GPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from .. import doctor
from ..doctor import Facts
from . import Exercise, Wrong
from .solutions import lesson_01 as solutions

# Two that four short checks cannot tell: the one's GPU works, the other's error is a number.
LEFT_OUT = ("the late choice", "the compatible container")


def described() -> dict[str, tuple[Facts, str]]:
    """Return nine machines by what is special about them, each with the device that works."""
    known = {name: machine.facts for name, machine in doctor.machines().items()}
    laptop, desktop = known["the laptop"], known["the Windows desktop"]
    return {
        "a healthy H200": (known["a rented H200"], "cuda"),
        "a build for the CPU beside a T4": (desktop, "cpu"),
        "an AMD GPU, where torch.version.cuda is None": (known["the other company"], "cuda"),
        "a Mac with an Apple GPU": (replace(laptop, mps=True, xpu=False), "mps"),
        "a Mac without one": (replace(laptop, mps=False, xpu=False), "cpu"),
        "a GPU for which the build has no code": (known["the new card"], "cpu"),
        "a MIG slice that works, where device_count() is 0": (known["the slice"], "cuda"),
        "a driver that never answers": (known["the silent job"], "cpu"),
        "an Intel GPU": (
            replace(desktop, torch_version="2.8.0+xpu", devices=None, mps=False, xpu=True),
            "xpu",
        ),
    }


def _check_pick_device(answer: Any) -> str:
    machines = described()
    for what, (facts, right) in machines.items():
        found = answer(replace(facts))
        if found is None:
            raise NotImplementedError
        try:
            kind = torch.device(found).type if isinstance(found, (str, torch.device)) else ""
        except RuntimeError:
            kind = ""
        if not kind:
            raise Wrong('"cuda", "mps", "xpu" or "cpu"', f"{found!r}")
        if kind != right:
            raise Wrong(f'"{right}" on {what}', f'"{kind}"')
    return f"the device that works, on {len(machines)} machines of {len(machines)}."


def _check_order(answer: Any) -> str:
    machines = {n: m for n, m in doctor.machines().items() if n not in LEFT_OUT}
    wrong = []
    for name, machine in machines.items():
        right = doctor.diagnose(machine.facts)[0].verdict
        found = answer(replace(machine.facts))
        if found is None:
            raise NotImplementedError
        if found != right:
            wrong.append(f"{found} on {name}, where it is {right}")
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise Wrong(f"the doctor's verdict on all {len(machines)} machines", wrong[0] + more)
    return f"the cause came first on {len(machines)} machines of {len(machines)}."


EXERCISES = (
    Exercise(
        "01-pick-device",
        _check_pick_device,
        solutions.pick_device,
        (
            "On one of the machines is_available() is True and nothing runs; on another it is "
            "False and the GPU works.",
            "Which of the facts is a proof and no promise? An operation that was tried: "
            "facts.tiny_op.",
            'Without it: facts.mps and facts.xpu say whether another GPU works. Else "cpu".',
        ),
    ),
    Exercise(
        "01-order",
        _check_order,
        solutions.verdict,
        (
            "If the build is for the CPU, what do all later checks say? A check means something "
            "only when those before it passed.",
            "The order is the one of the picture with five boxes.",
            "On two machines a check hits and the GPU works: ask facts.tiny_op before all checks.",
        ),
    ),
)
