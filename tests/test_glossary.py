"""The glossary of lesson 00 leads to explanations, and no term comes before its own.

What counts is the prose of what every reader reads, in the order of reading: sections marked
*further* are left out. Not counted are the title and table of a lesson (a lesson's own title cell
promises what it will explain, and *Where to go next* what the next one will), the names of lessons,
the glossary itself, and code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
#: Words with another meaning in plain prose: they cannot be searched for.
AMBIGUOUS = {"block": "also what stands below a `with`"}


@dataclass(frozen=True)
class Section:
    """What stands under one heading."""

    lesson: str
    heading: str
    core: bool
    prose: str


def plain(text: str) -> str:
    """Leave out code, and the names of lessons beside their links."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return re.sub(r"(\[\d\d\]\(\w+\.ipynb\)), \*[^*]+\*", r"\1", text)


def sections() -> list[Section]:
    """Return all sections of all lessons in the order of reading."""
    found = []
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        title, *rest = [cell.source for cell in cells if cell.cell_type == "markdown"]
        found.append(Section(path.name, "", True, plain(title)))
        core = True
        for part in re.split(r"^(?=##)", plain("\n\n".join(rest)), flags=re.M)[1:]:
            level, heading = re.match(r"(##+) (.+)", part).groups()  # type: ignore[union-attr]
            if level == "##" or "(core)" in heading or "(further)" in heading:
                core = "(further)" not in heading
            name = re.sub(r" \((core|further)\)$", "", heading)
            found.append(Section(path.name, name, core, part))
    return found


SECTIONS = sections()
GLOSSARY = next(section for section in SECTIONS if section.heading == "Glossary")
ROWS = re.findall(
    r"^\| (.+?) \| (.+?) \| \[(\d\d)\]\((\w+\.ipynb)\), (.+?) \|$", GLOSSARY.prose, re.M
)
TERMS = [row[0] for row in ROWS]


def uses(term: str, text: str) -> bool:
    """Tell whether `text` uses the term, in singular or plural, in any case."""
    words = r"[\s-]".join(map(re.escape, re.split(r"[ -]", term)))
    return re.search(rf"(?<![\w.]){words}(e?s|e?d|ing)?(?![\w])", text, re.I) is not None


def place(row: tuple[str, ...]) -> int:
    """Return which section a row of the glossary leads to."""
    return next(
        index for index, s in enumerate(SECTIONS) if (s.lesson, s.heading) == (row[3], row[4])
    )


def early(row: tuple[str, ...]) -> list[str]:
    """Return the sections that use a term before it is explained."""
    term, lesson, until = row[0], row[3], place(row)
    return [
        f"{section.lesson}: {section.heading or 'title'}"
        for section in SECTIONS[:until]
        if section.core
        and uses(term, section.prose)
        and section.heading not in ("Where to go next", "Glossary")
        and (section.heading or section.lesson != lesson)
    ]


def test_the_glossary_is_in_order_and_short() -> None:
    lines = [line for line in GLOSSARY.prose.splitlines() if line.startswith("| ")]
    assert len(ROWS) == len(lines) - 2 >= 40
    assert sorted(TERMS, key=str.lower) == TERMS and len(set(TERMS)) == len(TERMS)
    assert all(len(short) <= 100 and not short.endswith(".") for _, short, *_ in ROWS)
    assert set(AMBIGUOUS) <= set(TERMS)


@pytest.mark.parametrize("row", ROWS, ids=TERMS)
def test_the_place_exists_and_has_the_term(row: tuple[str, ...]) -> None:
    assert row[3].startswith(row[2])
    assert uses(row[0], SECTIONS[place(row)].prose)


@pytest.mark.parametrize("row", ROWS, ids=TERMS)
def test_no_term_comes_before_its_explanation(row: tuple[str, ...]) -> None:
    if row[0] not in AMBIGUOUS:
        assert early(row) == []


def test_a_term_that_comes_early_is_found() -> None:
    assert early(("host", "", "07", "07_train_on_the_gpu.ipynb", "Takeaways"))
    assert uses("warm-up", "after a warm-up") and uses("copy engine", "two copy engines")
    assert not uses("event", "prevented") and not uses("rank", "frank")
