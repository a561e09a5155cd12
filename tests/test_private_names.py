"""Every private name of torch that the package needs is in docs/private_names.md, and exists."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from gpututor import Machine

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "gpututor"
PAGE = ROOT / "docs/private_names.md"


def dotted(node: ast.expr) -> str:
    """Return ``a.b.c`` for such a chain of attributes, else nothing."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def is_private(name: str) -> bool:
    """Tell whether it is a name of torch that begins with one underscore somewhere."""
    parts = name.split(".")
    return parts[0] == "torch" and any(re.match(r"_(?!_)", part) for part in parts)


def private_names(source: str) -> set[str]:
    """Return the private names of torch that some source imports or spells out."""
    known, found = {"torch": "torch"}, set()
    nodes = list(ast.walk(ast.parse(source)))
    for node in nodes:
        if isinstance(node, ast.Import):
            for each in node.names:
                if each.asname:
                    known[each.asname] = each.name
                found.add(each.name)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for each in node.names:
                known[each.asname or each.name] = f"{node.module}.{each.name}"
                found.add(f"{node.module}.{each.name}")
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            first, _, rest = dotted(node).partition(".")
            if first in known:
                found.add(f"{known[first]}.{rest}")
    return {name for name in found if is_private(name)}


def in_package() -> dict[str, set[str]]:
    """Return which files of the package use each name."""
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for name in private_names(path.read_text(encoding="utf-8")):
            found.setdefault(name, set()).add(path.relative_to(PACKAGE).as_posix())
    return found


def on_page() -> dict[str, tuple[set[str], list[str]]]:
    """Return the files and the tests that the page gives for each name."""
    rows = re.findall(r"^\| `(torch[\w.]+)` \| (.+?) \| (.+?) \|$", PAGE.read_text("utf-8"), re.M)
    return {
        name: (set(re.findall(r"`(.+?)`", files)), re.findall(r"`(.+?)`", tests))
        for name, files, tests in rows
    }


def look_up(name: str) -> Any:
    """Import what can be imported of a dotted name, and get the rest."""
    parts = name.split(".")
    thing: Any = importlib.import_module(parts[0])
    for index, part in enumerate(parts[1:], 2):
        if not hasattr(thing, part):
            importlib.import_module(".".join(parts[:index]))
        thing = getattr(thing, part)
    return thing


def test_the_page_lists_each_name_and_where_it_is_used() -> None:
    assert {name: files for name, (files, _) in on_page().items()} == in_package()


def test_each_name_has_tests_that_are_there() -> None:
    for name, (_, tests) in on_page().items():
        assert tests, name
        for test in tests:
            assert (ROOT / "tests" / test).exists(), (name, test)


@pytest.mark.parametrize("name", on_page())
def test_this_torch_has_the_name(name: str, simulated: Machine) -> None:
    torch.cuda.init()  # which sets some of them
    look_up(name)


def test_a_new_private_name_is_seen() -> None:
    source = "from torch._a import b\nimport torch as t\nfrom torch import c\nx = t.d._e(c._f.g)\n"
    assert private_names(source) == {"torch._a.b", "torch.d._e", "torch.c._f.g"}
    assert not private_names("import torch\ntorch.__version__, torch.nn.Linear._x\n") - {
        "torch.nn.Linear._x"
    }
