"""Run a short program in a process of its own, and say which line failed, and when.

Some errors of a GPU end the work of the whole process, and some settings count only if they are
there before CUDA begins. Neither is for the process of a notebook.
"""

from __future__ import annotations

import ast
import contextlib
import html
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .timeline import Timeline

SECONDS = 120.0
_NAME = "<program>"


@dataclass(frozen=True)
class Step:
    """One statement of the program.

    Attributes
    ----------
    line : int
        Its first line, counted from 1.
    text : str
        That line.
    start, end : float
        Seconds since the program began, on the host's clock.
    """

    line: int
    text: str
    start: float
    end: float


@dataclass(frozen=True)
class Outcome:
    """What became of a program. Shows itself as text.

    Attributes
    ----------
    steps : tuple of Step
        The statements that ran; the last one may have failed.
    output : str
        What it printed.
    line : int or None
        The line that raised, None when the program came to its end.
    text : str
        That line; empty when there is none.
    error : str
        Class and first line of what was raised; empty when nothing was.
    """

    steps: tuple[Step, ...]
    output: str
    line: int | None
    text: str
    error: str

    def __repr__(self) -> str:
        if self.line is None:
            return f"It came to its end. {self.output}".strip()
        return f"line {self.line}: {self.text}\n{self.error}"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


def run(
    program: str, environment: Mapping[str, str] | None = None, *, seconds: float = SECONDS
) -> Outcome:
    """Run a program in a new Python process, statement by statement.

    The process sees the same devices as this one if the program calls ``gpututor.start()``.

    Parameters
    ----------
    program : str
        Its source.
    environment : mapping of str to str, optional
        Environment variables to set, such as ``{"CUDA_LAUNCH_BLOCKING": "1"}``.
    seconds : float
        After which it is ended.

    Returns
    -------
    Outcome
        What each statement took, and the error, if there was one.

    Raises
    ------
    SyntaxError
        When `program` is no Python.
    TimeoutError
        When it took longer than `seconds`.
    RuntimeError
        When the process ended before it could report.
    """
    from . import arguments, machine  # not above: the child needs no torch until its program does

    if not isinstance(program, str):
        raise TypeError(f"give the source of a program as a string, not {arguments.shown(program)}")
    if environment is not None and not isinstance(environment, Mapping):
        raise TypeError(f"give variables by their name, not {arguments.shown(environment)}")
    arguments.positive(seconds, "seconds")
    ast.parse(program, _NAME)
    package = str(Path(__file__).parents[1])
    variables = {**os.environ, **machine.environment(), **(environment or {})}
    variables["PYTHONPATH"] = os.pathsep.join(
        filter(None, (package, os.environ.get("PYTHONPATH", "")))
    )
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        try:
            ended = subprocess.run(
                [sys.executable, "-c", "from gpututor import child; child.main()", str(report)],
                input=program, env=variables, timeout=seconds, capture_output=True, text=True,
                encoding="utf-8", errors="replace",
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise TimeoutError(
                f"the program took over {seconds:g} s and was ended: shorten it, or give it more "
                "with seconds="
            ) from None
        if ended.returncode or not report.exists():
            last = (ended.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise RuntimeError(
                f"the process ended with status {ended.returncode} before it could report: {last}"
            )
        data: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    lines = ["", *(line.partition("  #")[0].strip() for line in program.splitlines())]
    return Outcome(
        steps=tuple(Step(line, lines[line], start, end) for line, start, end in data["steps"]),
        output=data["output"],
        line=data["line"],
        text=lines[data["line"] or 0],
        error=data["error"],
    )


def tracks(outcomes: Mapping[str, Outcome], first: int = 1) -> Timeline:
    """Return what the host did in several runs of one program, a track for each run.

    Parameters
    ----------
    outcomes : mapping of str to Outcome
        The runs, by the name of their track.
    first : int
        The line from which on statements are drawn; the time of each run begins there.

    Returns
    -------
    Timeline
        A span for each statement, and a mark where one raised.
    """
    from . import machine  # not above: the child needs neither
    from .arguments import shown
    from .gantt import Mark, Span
    from .timeline import Timeline

    if not isinstance(outcomes, Mapping) or not all(
        isinstance(outcome, Outcome) for outcome in outcomes.values()
    ):
        raise TypeError(f"give outcomes by the name of their track, not {shown(outcomes)}")
    spans, marks = [], []
    for track, outcome in outcomes.items():
        steps = [step for step in outcome.steps if step.line >= first]
        zero = steps[0].start if steps else 0.0
        spans += [Span(s.text, track, "host", s.start - zero, s.end - zero) for s in steps]
        if outcome.line is not None:
            marks.append(Mark(f"{track}: line {outcome.line} fails", outcome.steps[-1].end - zero))
    return Timeline(spans, marks, source=machine.source())


def main() -> None:
    """Be the child: run the program on standard input, and write the report."""
    program = sys.stdin.buffer.read().decode("utf-8")
    space: dict[str, Any] = {"__name__": "__main__"}
    steps: list[tuple[int, float, float]] = []
    output, line, error = io.StringIO(), None, ""
    began = time.perf_counter()
    with contextlib.redirect_stdout(output):
        for statement in ast.parse(program, _NAME).body:
            code = compile(ast.Module([statement], []), _NAME, "exec")
            start = time.perf_counter() - began
            try:
                exec(code, space)
            except BaseException as raised:
                first = (str(raised).splitlines() or [""])[0]
                error = f"{type(raised).__name__}: {first}"
                line = statement.lineno
                # The deepest line of the program itself may be inside a function of it.
                for frame in traceback.extract_tb(raised.__traceback__):
                    if frame.filename == _NAME and frame.lineno is not None:
                        line = frame.lineno
            steps.append((statement.lineno, start, time.perf_counter() - began))
            if error:
                break
    report = {"steps": steps, "output": output.getvalue(), "line": line, "error": error}
    Path(sys.argv[1]).write_text(json.dumps(report), encoding="utf-8")
    os._exit(0)  # a process whose GPU has failed may hang or complain at its end
