"""Exercises: what counts as right, hints, and the one place where a reference solution lives.

Each lesson has a module here, ``lesson_02.py`` for lesson 02, with its ``EXERCISES``. A check
looks at what the learner's code *does*, not at how it is written.
"""

from __future__ import annotations

import html
import importlib
import inspect
import textwrap
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from .. import tables
from ..arguments import shown

UNWRITTEN = "it is still to be written"
ROOM = (
    "code that fits into the memory that is free: delete tensors that earlier cells hold, or "
    "restart the kernel and run the set-up cell"
)


class Wrong(Exception):
    """What an answer got wrong: raised by a check.

    Parameters
    ----------
    expected, seen : str
        What a right answer does, and what this one did.
    """

    def __init__(self, expected: str, seen: str) -> None:
        super().__init__(f"expected {expected}; seen: {seen}")
        self.expected = expected
        self.seen = seen


@dataclass(frozen=True)
class Exercise:
    """One exercise of a lesson.

    Attributes
    ----------
    name : str
        Lesson and exercise, such as ``"02-leftover"``.
    check : callable
        Takes the answer; returns what it saw when the answer is right, raises `Wrong` if not.
    solution : callable
        The reference solution: a function or class whose source is shown.
    hints : tuple of str
        One more is shown with each try.
    """

    name: str
    check: Callable[[Any], str]
    solution: Any
    hints: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """The answer of `check`. It shows itself, and is true when the exercise is done."""

    name: str
    passed: bool
    seen: str
    expected: str = ""
    hints: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.passed

    def rows(self) -> list[tuple[str, str]]:
        """Return what there is to say, as pairs of label and text."""
        if self.passed:
            return [("Right", self.seen)]
        rows = [("Not yet", self.seen)]
        if self.expected:
            rows.append(("Expected", self.expected))
        rows += [(f"Hint {index}", hint) for index, hint in enumerate(self.hints, 1)]
        return rows

    def __repr__(self) -> str:
        return "\n".join(f"{label + ':':<10}{text}" for label, text in self.rows())

    def _repr_html_(self) -> str:
        return tables.as_html(self.rows(), dashed=not self.passed)


class Solution(str):
    """The source of a reference solution. It shows itself as code."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self)}</pre>"


_tries: Counter[str] = Counter()


def check(name: str, answer: Any) -> Verdict:
    """Put an answer to the test.

    Parameters
    ----------
    name : str
        The exercise, such as ``"02-leftover"``.
    answer : object
        What the exercise asks for: mostly a function.

    Returns
    -------
    Verdict
        Whether it is right, what was expected and what was seen, and a hint more with each try.
        An error inside the answer is part of the verdict, and is not raised. What is still to be
        written (None, or a function that raises ``NotImplementedError``) brings the first hint
        and no more.

    Raises
    ------
    ValueError
        When there is no such exercise.
    """
    exercise = find(name)
    if answer is None:
        return _unwritten(exercise)
    try:
        seen = exercise.check(answer)
    except Wrong as wrong:
        return _not_yet(exercise, wrong.seen, wrong.expected)
    except NotImplementedError:
        return _unwritten(exercise)
    except torch.OutOfMemoryError as error:
        return _not_yet(exercise, _in_words(error), ROOM)
    except Exception as error:
        return _not_yet(exercise, _in_words(error), "code that runs to its end")
    _tries.pop(name, None)
    return Verdict(name, True, seen)


def solution(name: str) -> Solution:
    """Return the source of an exercise's reference solution.

    Parameters
    ----------
    name : str
        The exercise, such as ``"02-leftover"``.

    Raises
    ------
    ValueError
        When there is no such exercise.
    """
    return Solution(textwrap.dedent(inspect.getsource(find(name).solution)).rstrip())


def find(name: str) -> Exercise:
    """Return the exercise of that name.

    Raises
    ------
    ValueError
        When there is none; the message lists those of the same lesson.
    """
    known = {exercise.name: exercise for exercise in every()}
    if not isinstance(name, str) or name not in known:
        same_lesson = [other for other in known if other[:2] == str(name)[:2]]
        listed = ", ".join(same_lesson or known) or "none"
        raise ValueError(f"there is no exercise {shown(name)}; there is {listed}")
    return known[name]


def every() -> list[Exercise]:
    """Return all exercises of the course, in the order of its lessons."""
    found: list[Exercise] = []
    for path in sorted(Path(__file__).parent.glob("lesson_*.py")):
        found += importlib.import_module(f".{path.stem}", __name__).EXERCISES
    return found


def _unwritten(exercise: Exercise) -> Verdict:
    hints = exercise.hints[: max(1, _tries[exercise.name])]
    return Verdict(exercise.name, False, UNWRITTEN, hints=hints)


def _not_yet(exercise: Exercise, seen: str, expected: str) -> Verdict:
    _tries[exercise.name] += 1
    hints = exercise.hints[: _tries[exercise.name]]
    return Verdict(exercise.name, False, seen, expected, hints)


def _in_words(error: Exception) -> str:
    """Say what the answer raised, and at which of its lines."""
    first = (str(error).strip().splitlines() or ["no message"])[0]
    here = str(Path(__file__).parent)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if here not in f.filename]
    place = ""
    learners = [f for f in frames if "ipython-input" in f.filename or "ipykernel" in f.filename]
    if learners:
        place = f" at line {learners[-1].lineno} of your cell"
    return f"your code raised {type(error).__name__}{place}: {first}"
