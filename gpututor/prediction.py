"""The learner's guesses, kept by name so that the experiments' figures can mark them."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence

import ipywidgets
from IPython.display import display

from .arguments import shown
from .explorer import STYLE, choice, room_of

_kept: dict[str, float | str] = {}
_OPEN = "no guess yet"


def kept(name: str) -> float | str | None:
    """Return the guess kept under `name`, or None when there is none."""
    return _kept.get(name)


class Prediction:
    """A question, and the guess that the learner gave. Made by `predict`.

    Attributes
    ----------
    name : str
        Under which the guess is kept.
    value : float or str or None
        The guess: a number where the question has a unit, else a text. None until there is one.
    """

    def __init__(
        self, name: str, question: str, choices: Sequence[str] | None, unit: str | None
    ) -> None:
        self.name = name
        self._question = question
        self._unit = unit
        self._says = ipywidgets.HTML()
        before = _kept.get(name)
        if choices:
            known = next((text for text in choices if self._read(text) == before), "")
            options = [(_OPEN, ""), *((text, text) for text in choices)]
            self._entry: ipywidgets.Widget = choice(options)
            self._entry.value = known
        else:
            fits = before is not None and isinstance(before, str) == (unit is None)
            self._entry = ipywidgets.Text(
                value=_text(before) if fits and before is not None else "",
                continuous_update=False,
            )
        self._entry.description = "your guess"
        self._entry.style.description_width = "initial"
        wide = 23 + 0.62 * len(self._entry.description) if choices else 18
        self._entry.layout.width = f"{wide + room_of(self._entry):.0f}em"
        self._entry.layout.max_width = "98%"
        self._entry.observe(self._changed, names="value")
        label = ipywidgets.HTML(f"{STYLE}<b>Predict:</b> {html.escape(question)}")
        row = [self._entry, ipywidgets.Label(unit or ""), self._says]
        self.panel = ipywidgets.VBox([label, ipywidgets.HBox(row)])
        self._answer()

    @property
    def value(self) -> float | str | None:
        """The guess, or None until there is one."""
        return kept(self.name)

    def guess(self, value: float | str) -> None:
        """Give the guess in code instead of in the panel.

        Parameters
        ----------
        value : float or str
            The guess.

        Raises
        ------
        ValueError
            When it is no number and the question has a unit, or is none of the choices.
        """
        text = _text(value)
        if isinstance(self._entry, ipywidgets.SelectionSlider):
            options = [option for _, option in self._entry.options if option]
            if text not in options:
                raise ValueError(f"{text!r} is none of the choices: {', '.join(options)}")
        self._read(text)
        self._entry.value = text

    def _changed(self, _: object) -> None:
        _kept.pop(self.name, None)
        text = self._entry.value.strip()
        problem = ""
        if text:
            try:
                _kept[self.name] = self._read(text)
            except ValueError as error:
                problem = str(error)
        self._answer(problem)

    def _read(self, text: str) -> float | str:
        return text if self._unit is None else _number(text, self._unit)

    def _answer(self, problem: str = "") -> None:
        said = (
            ""
            if self.value is None
            else f"Kept: {self._words()}. You will see it beside the result."
        )
        role = "alert" if problem else "status"
        self._says.value = f'<span role="{role}">{html.escape(problem or said)}</span>'

    def _words(self) -> str:
        return _OPEN if self.value is None else f"{_text(self.value)} {self._unit or ''}".strip()

    def __repr__(self) -> str:
        guess = self._words() if self.value is None else f"your guess: {self._words()}"
        return f"Predict: {self._question} ({guess})"

    def _ipython_display_(self) -> None:
        view = {"version_major": 2, "version_minor": 0, "model_id": self.panel.model_id}
        data = {"text/plain": repr(self), "application/vnd.jupyter.widget-view+json": view}
        display(data, raw=True)


def predict(
    name: str, question: str, choices: Sequence[str] | None = None, unit: str | None = None
) -> Prediction:
    """Ask for a guess before an experiment. A figure marks it beside the result.

    Parameters
    ----------
    name : str
        Under which the guess is kept; asking again under the same name keeps it.
    question : str
        What to guess.
    choices : sequence of str, optional
        The answers to choose from; without them the learner writes one. Where there is a unit,
        each is a number.
    unit : str, optional
        The unit of the answer, which then has to be a number.

    Returns
    -------
    Prediction
        As a cell's last value it shows itself. Giving no guess is fine.

    Raises
    ------
    TypeError, ValueError
        When `name` or `question` is no text, or `choices` are not at least two texts, and
        numbers where there is a unit.
    """
    for what, text in (("name", name), ("question", question)):
        if not isinstance(text, str) or not text.strip():
            raise TypeError(f"{what} must be a text that is not empty, not {shown(text)}")
    if unit is not None and not isinstance(unit, str):
        raise TypeError(f"unit must be a text such as 'ms', not {shown(unit)}")
    if choices is not None:
        if isinstance(choices, str) or not all(isinstance(c, str) and c for c in choices):
            raise TypeError(f"choices must be texts, such as ['yes', 'no'], not {shown(choices)}")
        if len(choices) < 2:
            raise ValueError("choices must be at least two: one leaves nothing to guess")
        for choice in choices if unit is not None else ():
            _number(choice, unit or "")
    return Prediction(name, question, choices, unit)


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.12g}"


def _number(text: str, unit: str) -> float:
    """Read a number as people write it: with its unit, a decimal comma, or commas at thousands."""
    digits = text.strip().removesuffix(unit).removesuffix("x" if unit == "×" else "").strip()
    thousands = re.fullmatch(r"[1-9]\d{0,2}(,\d{3})+(\.\d*)?", digits)
    try:
        value = float(digits.replace(",", "" if thousands else "."))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not a number: write one like 2.5")
    return value
