"""The clinic: machine, verdict and score; choosing another machine gives no verdict by accident."""

from __future__ import annotations

import pytest

import gpututor
from gpututor import clinic, doctor

pytestmark = pytest.mark.usefixtures("simulated")


@pytest.fixture(autouse=True)
def nobody_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clinic, "_first", {})


def shown(name: str) -> str:
    """Return a number of the score's picture."""
    return clinic.score().alt.split(f"{name}: ")[1].split()[0]


@pytest.mark.parametrize("name", doctor.machines())
def test_a_look_shows_the_facts_and_gives_nothing_away(name: str) -> None:
    seen = clinic.visit(name)
    labels = [label for label, _ in seen.rows()]
    assert labels[0] == "owner" and "Doctor" not in labels and "source" in labels
    first = seen.report.findings[0]
    assert first.summary not in repr(seen) + seen._repr_html_()
    assert shown("not visited yet") == str(len(doctor.machines()))


def test_a_verdict_shows_the_doctors_beside_it() -> None:
    wrong, right = (clinic.visit("the container", said) for said in ("driver", "visibility"))
    assert not wrong.right and "visibility (you differ)" in repr(wrong) and "--gpus" in repr(wrong)
    assert right.right and "visibility (you agree)" in repr(right)
    assert "dashed" in wrong._repr_html_() and "dashed" not in right._repr_html_()


def test_the_first_verdict_counts() -> None:
    clinic.visit("the container", "driver")
    clinic.visit("the container", "visibility")
    clinic.visit("the new card", "architecture")
    assert shown("right at the first try") == "1" and shown("not right") == "1"
    some = clinic.score(["the container", "the laptop"]).alt
    assert "first try: 0 machines. not right: 1 machines. not visited yet: 1 machines." in some


def test_choosing_another_machine_takes_the_verdict_back() -> None:
    panel = gpututor.explore(clinic.visit, **clinic.controls())
    panel.controls["verdict"].value = "fine"
    assert panel.result.verdict == "fine"
    panel.controls["machine"].value = "the container"
    assert panel.result.machine.name == "the container" and panel.result.verdict is None
    panel.controls["verdict"].value = "fine"
    assert not panel.result.right
    assert clinic._first == {"a rented H200": "fine", "the container": "fine"}


def test_bad_names_are_told() -> None:
    with pytest.raises(ValueError, match=r"no machine 'moon'; there is a rented H200"):
        clinic.visit("moon")
    with pytest.raises(ValueError, match="no machine 'moon'"):
        clinic.score(["moon"])
    with pytest.raises(ValueError, match="'gone' is no verdict: give one of build"):
        clinic.visit("the container", "gone")
    assert not clinic._first


def test_markup_of_a_machine_stays_text() -> None:
    machine = doctor.Recorded("<b>x", "<i>story.", doctor.Facts(tiny_op="<u>no"))
    panel = clinic.Visit(machine, None)._repr_html_()
    assert not any(mark in panel for mark in ("<b>x", "<i>", "<u>"))
