"""The panels of the lessons, each with no more of its lesson than it needs."""

import ast
import re
import symtable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import nbformat

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@dataclass(frozen=True)
class Panel:
    """A call of ``explore`` in a lesson.

    Attributes
    ----------
    name : str
        Number of the lesson and id of the cell, and the function's name.
    sources : tuple of str
        What runs before it: the set-up, and what defines the names that it needs. What the cells
        only show is left out.
    call : str
        The call itself.
    """

    name: str
    sources: tuple[str, ...]
    call: str

    def space(self) -> dict[str, Any]:
        """Run what comes before the call, and return its names."""
        names: dict[str, Any] = {}
        for source in self.sources:
            exec(source, names)
        return names

    def __str__(self) -> str:
        return self.name


@cache
def every() -> list[Panel]:
    """Return the panels of all lessons."""
    return [panel for path in NOTEBOOKS for panel in _of(path)]


def _of(path: Path) -> list[Panel]:
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    found, before = [], []
    for cell in cells:
        if re.match(r"%%|# Where the package is missing", cell.source):
            continue
        tree = ast.parse(cell.source)
        shown = [n for n in tree.body if isinstance(n, ast.Expr)]
        before.append((cell.id, [n for n in tree.body if n not in shown or cell.id == "setup"]))
        for node in shown:
            call = ast.unparse(node)
            if call.startswith("gpututor.explore("):
                needed = _needed(before, node)
                name = f"{path.stem[:2]}-{ast.unparse(node.value.args[0])}"
                found.append(Panel(name, tuple(needed), call))
    return found


def _needed(before: list[tuple[str, list[ast.stmt]]], node: ast.stmt) -> list[str]:
    """Return the source of the cells whose names a statement needs, and of the set-up."""
    wanted, needed = _names(ast.unparse(node))[0], []
    for name, statements in reversed(before):
        source = ast.unparse(ast.Module(statements, []))
        used, made = _names(source)
        if name == "setup" or wanted & made:
            wanted = (wanted - made) | used
            needed.insert(0, source)
    return needed


def _names(source: str) -> tuple[set[str], set[str]]:
    """Return the global names that a source uses, in its functions too, and those it makes."""
    module = symtable.symtable(source, "<cell>", "exec")
    used, made, scopes = set(), set(), [module]
    while scopes:
        scope = scopes.pop()
        scopes += scope.get_children()
        for symbol in scope.get_symbols():
            if scope is module and (symbol.is_assigned() or symbol.is_imported()):
                made.add(symbol.get_name())
            if symbol.is_referenced() and (scope is module or symbol.is_global()):
                used.add(symbol.get_name())
    return used, made
