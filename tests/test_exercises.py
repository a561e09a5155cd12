"""Exercises: verdicts, hints, solutions; and that every one of the course can be solved."""

import inspect
import re
from pathlib import Path

import pytest
import torch

import gpututor
from gpututor import exercises
from gpututor.exercises import Exercise, Wrong, check, every, find, solution

REAL = torch.cuda.is_available()  # asked before any test simulates


def reference(x):
    """Double it."""
    return 2 * x


def examine(answer):
    seen = answer(3)
    if seen != 6:
        raise Wrong("6 of 3", f"{seen!r} of 3")
    return "6 of 3"


DOUBLE = Exercise("02-double", examine, reference, ("first <hint>", "second", "third"))


@pytest.fixture
def one(monkeypatch):
    """Let there be one exercise, ``02-double``, with no try yet."""
    monkeypatch.setattr(exercises, "every", lambda: [DOUBLE])
    exercises._tries.clear()
    yield DOUBLE
    exercises._tries.clear()


def test_the_package_offers_them():
    assert gpututor.check is check
    assert gpututor.solution is solution


def test_a_right_answer(one):
    verdict = check("02-double", reference)
    assert verdict
    assert verdict.rows() == [("Right", "6 of 3")]
    assert repr(verdict) == "Right:    6 of 3"


def test_a_wrong_answer_says_what_was_seen_and_expected(one):
    verdict = check("02-double", lambda x: x)
    assert not verdict
    assert verdict.rows() == [
        ("Not yet", "3 of 3"),
        ("Expected", "6 of 3"),
        ("Hint 1", "first <hint>"),
    ]
    assert repr(verdict).splitlines() == [
        "Not yet:  3 of 3",
        "Expected: 6 of 3",
        "Hint 1:   first <hint>",
    ]
    assert "first &lt;hint&gt;" in verdict._repr_html_()
    assert re.search('<th style="[^"]*nowrap">Not yet</th>', verdict._repr_html_())


def test_hints_grow_with_each_try_and_start_again(one):
    shown = [len(check("02-double", lambda x: x).hints) for _ in range(5)]
    assert shown == [1, 2, 3, 3, 3]
    assert check("02-double", reference)
    assert len(check("02-double", lambda x: x).hints) == 1


def unwritten(x):
    raise NotImplementedError


@pytest.mark.parametrize("answer", [None, unwritten])
def test_what_is_still_to_be_written_brings_the_first_hint_and_no_more(one, answer):
    for _ in range(3):
        verdict = check("02-double", answer)
        assert not verdict
        assert verdict.rows() == [("Not yet", exercises.UNWRITTEN), ("Hint 1", "first <hint>")]
    assert len(check("02-double", lambda x: x).hints) == 1


def test_an_error_in_the_answer_is_in_the_verdict(one):
    def answer(x):
        raise KeyError("no such\nthing")

    verdict = check("02-double", answer)
    assert verdict.seen == r"your code raised KeyError: 'no such\nthing'"
    assert verdict.expected == "code that runs to its end"
    assert len(verdict.hints) == 1


def test_an_error_names_the_line_of_the_cell(one):
    names = {}
    source = "def answer(x):\n    y = x\n    return y / 0\n"
    exec(compile(source, "/tmp/ipykernel_12/34.py", "exec"), names)
    assert (
        "raised ZeroDivisionError at line 3 of your cell: "
        in check("02-double", names["answer"]).seen
    )


def test_an_answer_that_is_no_function(one):
    assert "your code raised TypeError" in check("02-double", 12).seen


def test_an_interrupt_is_no_verdict(one):
    def answer(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check("02-double", answer)


@pytest.mark.parametrize("call", [lambda n: check(n, reference), solution, find])
@pytest.mark.parametrize("name", ["02-doubel", "double", "", None, 2, ["02-double"]])
def test_an_unknown_name_gives_one_clear_line(one, call, name):
    with pytest.raises(ValueError, match=r"there is no exercise .*; there is 02-double"):
        call(name)


def test_an_unknown_name_lists_its_lesson(monkeypatch):
    names = ("02-a", "02-b", "03-c")
    listed = [Exercise(name, examine, reference, ()) for name in names]
    monkeypatch.setattr(exercises, "every", lambda: listed)
    with pytest.raises(ValueError, match=r"there is 02-a, 02-b$"):
        find("02-c")
    with pytest.raises(ValueError, match=r"there is 02-a, 02-b, 03-c$"):
        find("04-c")


def test_the_solution_is_source_that_passes(one):
    shown = solution("02-double")
    assert shown == inspect.getsource(reference).rstrip()
    assert repr(shown) == str(shown)
    assert shown._repr_html_().startswith("<pre>def reference(x):")
    names = {}
    exec(shown, names)
    assert check("02-double", names["reference"])


# The exercises of the course, whichever there are. tests/test_answers.py has their solutions.

EVERY = every()


def test_names_are_unique_and_begin_with_their_lesson():
    names = [exercise.name for exercise in EVERY]
    assert len(set(names)) == len(names)
    for exercise in EVERY:
        assert re.fullmatch(r"0\d-[a-z0-9-]+", exercise.name)
        module = Path(inspect.getsourcefile(exercise.solution)).stem
        assert module == f"lesson_{exercise.name[:2]}"
        assert exercise.hints
        assert all(hint.strip() for hint in exercise.hints)


@pytest.mark.parametrize("exercise", EVERY, ids=lambda exercise: exercise.name)
def test_no_answer_is_no_pass(exercise, simulated):
    for answer in (None, lambda *_, **__: None, 0):
        assert not check(exercise.name, answer)


@pytest.mark.skipif(not REAL, reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("exercise", EVERY, ids=lambda exercise: exercise.name)
def test_a_real_gpu_takes_the_reference_solution(exercise):
    gpututor.stop()
    if exercise.name.startswith("05") and torch.cuda.device_count() < 2:
        pytest.skip("needs two NVIDIA GPUs")
    verdict = check(exercise.name, exercise.solution)
    assert verdict, verdict
