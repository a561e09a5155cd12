"""Measurements made earlier on a named GPU, to be drawn beside the learner's own run.

Each is a small JSON file: ``source`` (``device``, ``torch``, ``date``) and ``series``, which
holds under the name of each line its points ``[x, y]``; ``x`` and ``y`` say quantity and unit.
A file of ``scripts/record.py`` holds several such ``experiments``, with the samples behind the
medians.
"""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Recording:
    """Lines measured earlier.

    Attributes
    ----------
    source : str
        On what, with which torch, and when.
    x, y : tuple of str
        Quantity and unit of both axes.
    series : dict of str to list of (float, float)
        The points of each line, by its name.
    """

    source: str
    x: tuple[str, str]
    y: tuple[str, str]
    series: dict[str, list[tuple[float, float]]]

    def only(self, *names: str) -> Recording:
        """Return a recording of these lines and no others.

        Raises
        ------
        ValueError
            When there is no such line.
        """
        unknown = [name for name in names if name not in self.series]
        if unknown:
            raise ValueError(f"nothing recorded for {unknown[0]!r}; there is {[*self.series]}")
        return Recording(self.source, self.x, self.y, {name: self.series[name] for name in names})


def load(name: str, experiment: str | None = None) -> Recording:
    """Read a recording of the package.

    Parameters
    ----------
    name : str
        Its file's name without ``.json``, such as ``"transfer_h200"``.
    experiment : str, optional
        Which experiment of a file that holds several, as ``scripts/record.py`` writes them.

    Raises
    ------
    ValueError
        When there is none of that name; the message lists those there are.
    """
    known = sorted(path.stem for path in _FOLDER.glob("*.json"))
    if name not in known:
        raise ValueError(f"no recording is called {name!r:.60}; there is {', '.join(known)}")
    data = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    about = data["source"]
    if "experiments" in data:
        several = data["experiments"]
        if experiment not in several:
            raise ValueError(f"{name} has no experiment {experiment!r}; it has {[*several]}")
        data = several[experiment]
    elif experiment is not None:
        raise ValueError(f"{name} holds one experiment: leave out {experiment!r}")
    day = datetime.date.fromisoformat(about["date"])
    return Recording(
        source=f"recorded on {about['device']}, torch {about['torch']}, {day.day} {day:%B %Y}",
        x=tuple(data["x"]),
        y=tuple(data["y"]),
        series={k: [(p[0], p[1]) for p in points] for k, points in data["series"].items()},
    )
