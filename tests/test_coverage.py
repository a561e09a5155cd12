"""docs/coverage.md names places and tests that exist."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import nbformat
import pytest
from conformance.test_programs import ALL as PROGRAMS

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs/coverage.md").read_text(encoding="utf-8")
SAID, PROBLEMS = (part for part in TEXT.split("\n## ")[1:])


def rows(text: str) -> list[list[str]]:
    """Return the cells of each row of the tables in `text`, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    heads = {lines.index(line) - 1 for line in lines if line.startswith("| ---")}
    found = []
    for index, line in enumerate(lines):
        if not line.startswith("| ---") and not (
            index + 1 < len(lines) and lines[index + 1].startswith("| ---")
        ):
            found.append([cell.strip() for cell in line.strip("|").split(" | ")])
    assert heads
    return found


ROWS = rows(SAID) + rows(PROBLEMS)


@functools.cache
def functions(path: Path) -> dict[str, ast.AST]:
    """Return the functions of a Python file, those of its classes included."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@functools.cache
def notebook(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


@functools.cache
def headings(path: Path) -> set[str]:
    """Return the headings of a notebook, without the words for core and further."""
    text = "\n".join(c.source for c in notebook(path).cells if c.cell_type == "markdown")
    return {
        re.sub(r" \((core|further)\)$|^\d\. ", "", heading)
        for heading in re.findall(r"^##+ (.+)$", text, re.M)
    }


def missing_test(name: str) -> str | None:
    """Say what keeps `name` from being a test; None if it is one."""
    path, _, rest = name.partition("::")
    function, _, case = rest.rstrip("]").partition("[")
    file = ROOT / path
    if not file.is_file():
        return "there is no such file"
    if file.suffix == ".ipynb":
        cell = next((c for c in notebook(file).cells if c.id == function), None)
        if cell is None or cell.cell_type != "code":
            return "there is no such cell"
        compared = "nbval-check-output" in cell.metadata.get("tags", [])
        return None if compared or "assert " in cell.source else "the cell demands nothing"
    if not function.startswith("test_") or function not in functions(file):
        return "there is no such test"
    if case and case not in PROGRAMS and f'"{case}"' not in file.read_text(encoding="utf-8"):
        return "the test has no such case"
    return None


def missing_place(cell: str) -> str | None:
    """Say what keeps `cell` from naming a section or a function; None if it does."""
    code = re.match(r"`([\w/]+\.py)::(\w+)`", cell)
    if code:
        file = ROOT / code[1]
        return None if file.is_file() and code[2] in functions(file) else "no such function"
    link = re.fullmatch(r"\[(\d\d)\]\(\.\./(notebooks/\1_\w+\.ipynb)\), (.+)", cell)
    if not link or not (ROOT / link[2]).is_file():
        return "no lesson and section"
    return None if link[3] in headings(ROOT / link[2]) else "no such section"


def test_there_are_all_of_them() -> None:
    assert len(rows(SAID)) == 11 and len(rows(PROBLEMS)) == 61
    assert all(len(row) == 4 for row in rows(SAID))
    assert all(len(row) == 3 for row in rows(PROBLEMS))
    assert len({row[0] for row in ROWS}) == len(ROWS)


def test_every_test_that_is_named_exists() -> None:
    for row in ROWS:
        names = re.findall(r"`([^`]+)`", row[-1])
        assert names and row[-1] == ", ".join(f"`{name}`" for name in names), row
        for name in names:
            assert missing_test(name) is None, f"{name}: {missing_test(name)}"


def test_every_section_that_is_named_exists() -> None:
    for row in ROWS:
        assert missing_place(row[-2]) is None, f"{row[-2]}: {missing_place(row[-2])}"


@pytest.mark.parametrize(
    "name",
    [
        "tests/test_nowhere.py::test_peers",
        "tests/test_parallel.py::test_no_such_thing",
        "tests/test_parallel.py::milliseconds",
        "tests/test_doctor_machines.py::test_the_first_finding_is_the_cause[no such machine]",
        "tests/conformance/test_programs.py::test_program[no_such_program]",
        "notebooks/02_move_tensors.ipynb::no-such-cell",
        "notebooks/02_move_tensors.ipynb::setup",
    ],
)
def test_what_is_no_test_is_found(name: str) -> None:
    assert missing_test(name) is not None


@pytest.mark.parametrize(
    "place",
    [
        "`gpututor/explorer.py::no_such_function`: it",
        "[02](../notebooks/02_move_tensors.ipynb), No such section",
        "[02](../notebooks/03_move_tensors.ipynb), Takeaways",
        "somewhere",
    ],
)
def test_what_is_no_place_is_found(place: str) -> None:
    assert missing_place(place) is not None
