"""Guesses: what is taken as one, where it is kept, and what is said about it."""

import pytest

import gpututor
from gpututor import prediction
from gpututor.prediction import kept, predict


@pytest.fixture(autouse=True)
def forget():
    yield
    prediction._kept.clear()


def said(asked):
    return asked._says.value


def test_the_package_offers_it():
    assert gpututor.predict is predict


def test_unanswered_is_fine():
    asked = predict("speed", "How fast?", unit="GB/s")
    assert asked.value is None
    assert kept("speed") is None
    assert repr(asked) == "Predict: How fast? (no guess yet)"


@pytest.mark.parametrize("move", ["python", "browser", "guess"])
def test_a_number_is_kept_and_said(move):
    asked = predict("speed", "How fast?", unit="GB/s")
    if move == "python":
        asked._entry.value = "2.5"
    elif move == "browser":
        asked._entry.set_state({"value": "2.5"})
    else:
        asked.guess(2.5)
    assert asked.value == kept("speed") == 2.5
    assert "Kept: 2.5 GB/s." in said(asked)
    assert repr(asked) == "Predict: How fast? (your guess: 2.5 GB/s)"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        (" 2,5 ", 2.5),
        ("0,125", 0.125),
        ("1,000", 1000),
        ("1,234,567.5", 1234567.5),
        ("1e3", 1000),
        ("-3", -3),
        ("50 GB/s", 50),
        ("50GB/s", 50),
    ],
)
def test_numbers_as_people_write_them(text, number):
    asked = predict("speed", "How fast?", unit="GB/s")
    asked._entry.value = text
    assert asked.value == number


@pytest.mark.parametrize("text", ["240×", "240 ×", "240x", "240 x"])
def test_a_factor_may_be_written_with_its_sign(text):
    asked = predict("speed", "How many times?", unit="×")
    asked.guess(text)
    assert asked.value == 240


@pytest.mark.parametrize("text", ["fast", "1.2.3", "nan", "inf", "50 ms", "1 000 000 no"])
def test_what_is_no_number_is_said_and_not_kept(text):
    asked = predict("speed", "How fast?", unit="GB/s")
    asked.guess(3)
    asked._entry.value = text
    assert asked.value is None
    assert "is not a number: write one like 2.5" in said(asked)
    assert 'role="alert"' in said(asked)
    with pytest.raises(ValueError, match="is not a number"):
        asked.guess(text)


def test_a_guess_can_be_taken_back():
    asked = predict("speed", "How fast?", unit="GB/s")
    asked.guess(3)
    asked._entry.value = ""
    assert asked.value is None
    assert said(asked) == '<span role="status"></span>'


def test_a_text_without_a_unit():
    asked = predict("why", "Why?")
    asked.guess("the <link>")
    assert kept("why") == "the <link>"
    assert "Kept: the &lt;link&gt;." in said(asked)


def test_choices():
    asked = predict("which", "Which?", ["pinned", "pageable"])
    assert asked.value is None
    asked.guess("pinned")
    assert kept("which") == "pinned"
    with pytest.raises(ValueError, match="'both' is none of the choices: pinned, pageable"):
        asked.guess("both")
    assert kept("which") == "pinned"
    asked._entry.value = ""
    assert kept("which") is None


def test_choices_with_a_unit_are_numbers():
    asked = predict("factor", "How many times?", ["1", "10", "100"], unit="×")
    asked.guess("10")
    assert kept("factor") == 10.0
    asked.guess(100)
    assert kept("factor") == 100.0
    with pytest.raises(ValueError, match="'many' is not a number"):
        predict("factor", "How many times?", ["1", "many"], unit="×")


@pytest.mark.parametrize(
    ("guess", "arguments"),
    [
        (2.5, {"unit": "ms"}),
        ("because", {}),
        ("a", {"choices": ["a", "b"]}),
        ("1000000", {"unit": "ms"}),
    ],
)
def test_asking_again_keeps_the_guess(guess, arguments):
    predict("again", "What?", **arguments).guess(guess)
    asked = predict("again", "What?", **arguments)
    assert asked.value is not None
    assert asked._entry.value == str(guess)
    assert "Kept: " in said(asked)


def test_asking_something_else_under_the_name_begins_empty():
    predict("again", "Why?").guess("because")
    assert predict("again", "How long?", unit="ms")._entry.value == ""
    assert predict("again", "Which?", ["a", "b"])._entry.value == ""


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("", "What?"), TypeError, "name must be a text that is not empty"),
        (("a", " "), TypeError, "question must be a text that is not empty"),
        ((3, "What?"), TypeError, "name must be a text"),
        (("a", "What?", "yes"), TypeError, "choices must be texts"),
        (("a", "What?", [1, 2]), TypeError, "choices must be texts"),
        (("a", "What?", ["yes"]), ValueError, "at least two"),
        (("a", "What?", None, 3), TypeError, "unit must be a text such as 'ms'"),
    ],
)
def test_bad_questions_give_one_clear_line(arguments, error, message):
    with pytest.raises(error, match=message):
        predict(*arguments)


def test_what_a_notebook_gets(monkeypatch):
    outputs = []
    monkeypatch.setattr(prediction, "display", lambda data, raw: outputs.append(data))
    asked = predict("speed", "How fast?", unit="GB/s")
    asked._ipython_display_()
    (data,) = outputs
    assert data == {
        "text/plain": "Predict: How fast? (no guess yet)",
        "application/vnd.jupyter.widget-view+json": {
            "version_major": 2,
            "version_minor": 0,
            "model_id": asked.panel.model_id,
        },
    }


def test_the_entry_has_a_label_and_room():
    asked = predict("which", "Which?", ["a rather long answer to choose " * 2, "b"])
    assert asked._entry.description == "your guess"
    assert float(asked._entry.layout.width.removesuffix("em")) > 40


def test_what_is_chosen_before_a_guess_has_room_too():
    asked = predict("which", "Which?", ["yes", "no"])
    assert "gpututor-choice" in asked._entry._dom_classes
    assert float(asked._entry.layout.width.removesuffix("em")) > 28  # for "no guess yet"
    assert "max-width: none" in asked.panel.children[0].value
