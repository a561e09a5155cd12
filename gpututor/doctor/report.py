"""Show a diagnosis: as text of 80 columns, as a panel, as JSON, as a table of a class."""

from __future__ import annotations

import html
import json
import os
import re
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path

from .. import tables
from .advice import dotted
from .case import Case, read
from .collect import collect
from .diagnose import diagnose
from .facts import Facts, FactsError, plain

WIDTH = 80
LEARNER, DEVICE = 18, 22  # columns of the table; a long name widens the first, up to twice
_SIMULATED = "A simulated GPU is not looked at: this is about the real machine."


class Report:
    """One machine's facts and findings, shown as text or as a panel.

    Attributes
    ----------
    facts : Facts
        What is known.
    findings : list of Finding
        What follows, the cause first.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.findings = diagnose(facts)

    @property
    def usable(self) -> bool:
        """Whether a GPU can be used."""
        return any(finding.verdict == "fine" for finding in self.findings)

    @property
    def title(self) -> str:
        """The answer, in one line."""
        first = self.findings[0]
        answer = "a GPU works here" if self.usable else "no GPU can be used here"
        return f"{answer} (verdict: {first.verdict})"

    def to_json(self) -> str:
        """Return facts and findings as JSON. `Facts.from_json` reads the facts in it."""
        data = {
            "usable": self.usable,
            "verdict": self.findings[0].verdict,
            "findings": [asdict(finding) for finding in self.findings],
            "facts": asdict(self.facts),
        }
        return json.dumps(data, indent=1, ensure_ascii=True, default=plain) + "\n"

    def __repr__(self) -> str:
        lines = textwrap.wrap(f"gpututor doctor: {self.title}", WIDTH)
        for place, finding in enumerate(self.findings, 1):
            head = f"{place}. {finding.verdict} ({finding.confidence}): "
            lines += ["", *_wrapped(head, finding.summary, "   ")]
            for text in finding.evidence:
                lines += _wrapped("   seen  ", _short(text), " " * 9)
            for text in finding.advice:
                lines += _wrapped("   do    ", text, " " * 9)
        lines += ["", "This machine"]
        for label, text in self.rows():
            lines += _wrapped(f"   {label:<9}", text, " " * 12)
        return "\n".join([*lines, "", *textwrap.wrap(_SIMULATED, WIDTH)])

    def _repr_html_(self) -> str:
        parts = [f"<p><b>gpututor doctor: {html.escape(self.title)}</b></p><ol>"]
        for finding in self.findings:
            head = f"{finding.verdict} ({finding.confidence}): {finding.summary}"
            rows = [("Seen", _short(text)) for text in finding.evidence]
            rows += [("Do", text) for text in finding.advice]
            parts.append(
                f"<li><b>{html.escape(head)}</b><table>{tables.rows_as_html(rows)}</table></li>"
            )
        parts.append(f"</ol><table>{tables.rows_as_html(self.rows())}</table>")
        parts.append(f"<p>{html.escape(_SIMULATED)}</p>")
        return (
            '<div style="border-left:4px solid currentColor;padding-left:10px;margin:4px 0">'
            f"{''.join(parts)}</div>"
        )

    def rows(self) -> list[tuple[str, str]]:
        """Return what the machine is, as pairs of label and text."""
        return list(_known(self.facts, read(self.facts)))


def report(facts: Facts | None = None) -> Report:
    """Diagnose this machine, or another from its facts.

    Parameters
    ----------
    facts : Facts, optional
        Another machine's facts. Without them this machine is looked at, which takes seconds.

    Returns
    -------
    Report
        It shows itself as a panel in a notebook and as text elsewhere.
    """
    return Report(collect() if facts is None else facts)


def class_table(folder: str | Path) -> tuple[str, bool, list[str]]:
    """Say for many learners' files who can do what.

    Parameters
    ----------
    folder : str or Path
        A folder with files of facts, ``*.json``. A file's name is the learner's.

    Returns
    -------
    table : str
        One row for each file, in 80 columns.
    usable : bool
        Whether every learner has a GPU that works.
    problems : list of str
        The files that hold no facts, each with the reason.

    Raises
    ------
    FactsError
        When the folder is not there or holds no such file.
    """
    if not isinstance(folder, (str, Path)):
        raise TypeError(f"give the path of a folder, not {folder!r:.60}")
    path = Path(folder)
    if not os.path.isdir(path):  # which is False, too, for what can be no path
        raise FactsError(f"{plain(path.name or path):.60}: no such folder")
    files = sorted(path.glob("*.json"))
    if not files:
        raise FactsError(f"{plain(path.name or path):.60}: no files *.json in this folder")
    rows, problems, reports = [], [], []
    for file in files:
        try:
            found = Report(Facts.load(file))
        except FactsError as error:
            problems.append(str(error))
            continue
        reports.append(found)
        rows.append((plain(file.stem), *_abilities(found)))
    names = max((len(row[0]) for row in rows), default=0)
    widths = (min(max(names, LEARNER), 2 * LEARNER), DEVICE)
    heads = ("learner", "lessons run on", "first finding")
    lines = [_row(widths, *heads), "-" * WIDTH]
    lines += [_row(widths, *row) for row in rows]
    able = sum(item.usable for item in reports)
    lines += ["", f"{able} of {len(reports)} have a GPU that works; the others can simulate one."]
    return "\n".join(lines), able == len(files), problems


def _abilities(found: Report) -> tuple[str, str]:
    case = read(found.facts)
    first = next((item for item in found.findings if item.verdict == "fine"), found.findings[0])
    if not found.usable:
        return "simulated GPU", f"{first.verdict}: {first.summary}"
    name = case.gpus[0].name if case.gpus else "a GPU"
    number = case.count or 1
    if number == 1:
        return name, "fine; lesson 05 (two GPUs) simulated"
    return f"{number} x {name}", "fine; lesson 05 (two GPUs) too"


def _row(widths: tuple[int, int], *texts: str) -> str:
    """Return a row of the table, with as many lines as its longest text needs."""
    learner, device = widths
    every = (learner, device, WIDTH - learner - device - 4)
    cells = [_cell(text, width) for text, width in zip(texts, every, strict=True)]
    lines = zip_longest(*cells, fillvalue="")
    return "\n".join(f"{a:<{learner}}  {b:<{device}}  {c}".rstrip() for a, b, c in lines)


def _cell(text: str, width: int) -> list[str]:
    """Wrap a text. A word that is too long, such as a file's name, breaks after its marks."""
    words = []
    for word in text.split():
        part = ""
        for piece in re.split(r"(?<=[-_.,+@])", word):
            if part and len(part + piece) > width:
                words.append(part)
                part = ""
            part += piece
        words.append(part)
    return textwrap.wrap(" ".join(words), width, break_on_hyphens=False)


def _known(facts: Facts, case: Case) -> Iterator[tuple[str, str]]:
    built = {
        "cuda": f"for CUDA {dotted(case.build) or 'of unknown version'}",
        "rocm": f"for ROCm {case.hip}",
        "cpu": "for the CPU",
        "mac": "for macOS",
        "xpu": "for Intel GPUs",
    }.get(case.kind, "build unknown")
    yield "system", ", ".join(filter(None, [plain(facts.os or "unknown"), _where(case)]))
    yield "PyTorch", f"{case.torch}, {built}" if case.torch else "not found"
    driver = plain(facts.driver_version) if case.driver else "not found"
    if case.driver_cuda:
        driver += f", runs up to CUDA {dotted(case.driver_cuda)}"
    if case.driver or case.kind != "rocm":  # AMD's has no version here
        yield "driver", driver
    for index, gpu in enumerate(case.gpus):
        details = [gpu.name]
        if gpu.capability:
            details.append(f"capability {dotted(gpu.capability)}")
        if gpu.memory:
            details.append(f"{gpu.memory:.1f} GiB")
        if gpu.mig:
            details.append("divided (MIG)")
        if gpu.mode not in ("", "default", "0"):
            details.append(f"compute mode {gpu.mode}")
        if gpu.uuid:
            details.append(gpu.uuid)
        yield f"GPU {index}", ", ".join(details)
    if not case.gpus:
        yield "GPUs", "none listed"
    for name, value in case.env.items():
        yield "variable", f"{name}={value!r}"
    if facts.source:
        yield "source", plain(facts.source)


def _where(case: Case) -> str:
    return "" if case.place in ("linux", "windows", "mac") else case.place


def _short(text: str) -> str:
    return text if len(text) <= 300 else text[:297] + "..."


def _wrapped(head: str, text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        head + text,
        WIDTH,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
