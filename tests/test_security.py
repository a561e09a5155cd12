"""What SECURITY.md says of the package's source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "gpututor"
SOURCES = sorted(PACKAGE.rglob("*.py"))

#: Modules that open connections or make objects out of foreign bytes.
BANNED = {
    *("socket", "ssl", "urllib", "http", "ftplib", "smtplib", "requests", "asyncio", "xmlrpc"),
    *("pickle", "marshal", "shelve", "dill", "cloudpickle"),
}
#: Where other programs are started, from a list of arguments.
STARTS = {"child.py", "parallel.py", "doctor/collect.py", "doctor/probe.py"}
#: Where files are written.
WRITES = {"child.py", "doctor/facts.py"}


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Return each call with the dotted name of what is called, as far as it has one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def faults(source: str, name: str) -> list[str]:
    """Return what in a module's source SECURITY.md denies."""
    tree = ast.parse(source)
    found = []
    for node in ast.walk(tree):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules = [node.module or ""]
        for module in modules:
            if module.split(".")[0] in BANNED:
                found.append(f"imports {module}")
            if module == "subprocess" and name not in STARTS:
                found.append("starts programs")
    for called, node in calls(tree):
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if called in ("eval", "os.system", "os.popen", "__import__"):
            found.append(f"calls {called}")
        if called == "exec" and name != "child.py":
            found.append("calls exec")
        if called.startswith("subprocess."):
            shell = given.get("shell")
            if shell is not None and ast.unparse(shell) != "False":
                found.append("uses a shell")
        if (
            called == "torch.load"
            and ast.unparse(given.get("weights_only", ast.Constant(True))) != "True"
        ):
            found.append("unpickles a checkpoint")
        writes = called.endswith((".write_text", ".write_bytes", ".mkdir", ".savefig"))
        writes |= called == "open" or called.endswith(".open")
        if writes and name not in WRITES and not _in_memory(called, node):
            found.append(f"writes a file: {called}")
    return found


def _in_memory(called: str, node: ast.Call) -> bool:
    """Tell whether a call only fills a buffer, or only reads."""
    if called.endswith(".savefig"):
        return bool(node.args) and ast.unparse(node.args[0]) in ("buffer", "data")
    mode = ast.unparse(node.args[1]) if len(node.args) > 1 else "'r'"
    return called == "open" and "r" in mode


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_source_does_nothing_that_security_md_denies(path: Path) -> None:
    name = path.relative_to(PACKAGE).as_posix()
    assert not faults(path.read_text(encoding="utf-8"), name)


@pytest.mark.parametrize(
    "line",
    [
        "import socket",
        "from urllib.request import urlopen",
        "import pickle",
        "import subprocess",
        "eval(text)",
        "exec(text)",
        "subprocess.run(line, shell=True)",
        "torch.load(path, weights_only=False)",
        "Path(name).write_text(text)",
        "open(name, 'w')",
    ],
)
def test_each_of_these_would_be_found(line: str) -> None:
    assert faults(line, "figures.py")
