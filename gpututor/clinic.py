"""The clinic of lesson 01: recorded machines, the learner's verdict, the doctor's beside it."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

import ipywidgets

from . import doctor, figures, tables
from .arguments import shown
from .doctor.finding import VERDICTS
from .explorer import choice
from .picture import Picture

#: In place of a verdict: only show the machine.
LOOK = "look first"

_first: dict[str, str] = {}  # the learner's first verdict on each machine


class Visit:
    """A machine of the clinic, with the learner's verdict and the doctor's if there is one.

    Attributes
    ----------
    machine : Recorded
        The machine.
    verdict : str or None
        The learner's.
    report : Report
        The doctor's.
    """

    def __init__(self, machine: doctor.Recorded, verdict: str | None) -> None:
        self.machine = machine
        self.verdict = verdict
        self.report = doctor.report(machine.facts)

    @property
    def right(self) -> bool:
        """Whether learner and doctor agree."""
        return self.verdict == self.report.findings[0].verdict

    def rows(self) -> list[tuple[str, str]]:
        """Return what there is to say, as pairs of label and text."""
        return [*self._answer(), *self._symptoms(), *self.report.rows()]

    def _answer(self) -> Iterator[tuple[str, str]]:
        if self.verdict is None:
            return
        first = self.report.findings[0]
        agree = "you agree" if self.right else "you differ"
        yield "You", self.verdict
        yield "Doctor", f"{first.verdict} ({agree}). {first.summary}"
        for text in first.evidence:
            yield "Seen", text
        yield "Do", first.advice[0]

    def _symptoms(self) -> Iterator[tuple[str, str]]:
        facts = self.machine.facts
        yield "owner", f"“{self.machine.story}”"
        for name in ("is_available", "device_count"):
            value = getattr(facts, name)
            yield f"{name}()", "never returned" if value is None else str(value)
        if facts.arch_list:
            yield "code for", " ".join(facts.arch_list)
        operation = facts.tiny_op or "unknown"
        yield "an addition", "did not end" if operation == "timeout" else operation
        if facts.init_error and facts.init_error != facts.tiny_op:
            yield "also said", facts.init_error
        if facts.nvidia_smi_present is not None:
            yield "nvidia-smi", "is there" if facts.nvidia_smi_present else "is not there"
        if facts.cuda_initialized_before_env:
            yield "in this process", "CUDA had started before the variable was set"

    def __repr__(self) -> str:
        return "\n".join([self.machine.name, *(f"{a:<16}{b}" for a, b in self.rows())])

    def _repr_html_(self) -> str:
        body = tables.rows_as_html(self.rows())
        style = "dashed" if self.verdict and not self.right else "solid"
        return (
            f'<div style="border-left:4px {style} currentColor;padding-left:10px;margin:4px 0;'
            f'line-height:1.3"><b>{html.escape(self.machine.name)}</b><table>{body}</table></div>'
        )


def visit(machine: str, verdict: str = LOOK) -> Visit:
    """Look at a machine of the clinic, or say what is wrong with it.

    Parameters
    ----------
    machine : str
        Its name, one of ``gpututor.doctor.machines()``.
    verdict : str
        ``"build"``, ``"driver"``, ``"visibility"``, ``"architecture"``, ``"usability"`` or
        ``"fine"``; the doctor's is shown beside it, and the first one on each machine counts for
        `score`. `LOOK` shows the machine only.

    Raises
    ------
    ValueError
        When there is no such machine or verdict.
    """
    found = _find(machine)
    if verdict not in (LOOK, *VERDICTS):
        raise ValueError(f"{shown(verdict)} is no verdict: give one of {', '.join(VERDICTS)}")
    if verdict == LOOK:
        return Visit(found, None)
    _first.setdefault(machine, verdict)
    return Visit(found, verdict)


def controls() -> dict[str, ipywidgets.Widget]:
    """Return the two controls of `visit`, for `gpututor.explore`.

    Choosing another machine takes the verdict back, so that none is given by accident.
    """
    machine = choice(doctor.machines())
    verdict = choice([LOOK, *VERDICTS])

    def take_back(_: object) -> None:
        verdict.value = LOOK

    machine.observe(take_back, names="value")
    return {"machine": machine, "verdict": verdict}


def score(machines: Sequence[str] | None = None) -> Picture:
    """Draw how many machines the learner's first verdict was right on, and the prediction.

    Parameters
    ----------
    machines : sequence of str, optional
        The names of some machines; by default all.

    Raises
    ------
    ValueError
        When there is no such machine.
    """
    known = doctor.machines()
    names = list(known) if machines is None else list(machines)
    for name in names:
        _find(name)
    visited = [Visit(known[name], _first[name]) for name in names if name in _first]
    right = sum(visit.right for visit in visited)
    return figures.bars(
        {
            "right at the first try": right,
            "not right": len(visited) - right,
            "not visited yet": len(names) - len(visited),
        },
        title="The clinic: your first verdicts",
        x=("number", "machines"),
        guess="01-clinic",
        source="your answers; recorded machines, and the doctor's verdict on them",
    )


def _find(name: str) -> doctor.Recorded:
    known = doctor.machines()
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"there is no machine {shown(name):.33}; there is {', '.join(known)}")
    return known[name]
