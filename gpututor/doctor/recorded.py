"""Machines that come with the package: some were collected, some are described in reports."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files

from .facts import Facts


@dataclass(frozen=True)
class Recorded:
    """A machine of the clinic.

    Attributes
    ----------
    name : str
        What it is called.
    story : str
        What its owner tells.
    facts : Facts
        What was collected there, or follows from a report. ``facts.source`` says which.
    """

    name: str
    story: str
    facts: Facts


def machines() -> dict[str, Recorded]:
    """Return the recorded machines by name, in the order of the clinic."""
    found = {}
    folder = files("gpututor").joinpath("recorded", "machines")
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        if file.name.endswith(".json"):
            data = json.loads(file.read_text(encoding="utf-8"))
            name = str(data["name"])
            found[name] = Recorded(name, str(data["story"]), Facts.from_dict(data))
    return found
