"""Change the code in small ways, and see whether the tests notice.

``python scripts/mutants.py allocator`` draws some of all the small changes (a ``<`` that becomes
``<=``, an argument left out, a value that becomes None) of the files of one concern, runs the
tests of that concern on each, and lists the changes that no test saw, with file and line.
docs/mutants.md says what came of it, and why the ones that are left may stay.

The changes are made, and the tests run, by mutmut in a copy of the project:
``pip install -e '.[mutants]'``. It works where processes can fork: not on Windows. It changes what
stands in functions, without properties, and so no constant of a module. Changes of nothing but a
text with spaces in it, which people read, are drawn with ``--texts`` only.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

_SPINNER = tuple("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
DIAGNOSING = ["advice", "architecture", "build", "case", "diagnose", "driver", "errors"]
DIAGNOSING += ["facts", "finding", "usability", "versions", "visibility", "visible"]
#: What is changed, by concern, and the tests that should notice.
CONCERNS = {
    "allocator": (
        ["memory", "memory_blocks", "memory_statistics"],
        "gpututor/simulator/{}.py",
        ["allocator", "memory_property", "allocator_rules", "memory_api", "interrupts"],
    ),
    "doctor": (
        DIAGNOSING,
        "gpututor/doctor/{}.py",
        ["doctor_facts", "doctor_machines", "doctor_rules"],
    ),
    "exercises": (
        ["__init__", *(f"lesson_{number:02}" for number in range(8))],
        "gpututor/exercises/{}.py",
        ["exercises", "answers", "answers_05", "answers_06", "answers_07", "lesson_03"],
    ),
}
COPIED = ["gpututor", "tests", "notebooks", "scripts", "docs"]
COPIED += ["conftest.py", "pyproject.toml", "README.md"]
FRAMES = "tests/test_memory_api.py::test_history_says_where"  # of which mutmut adds its own
#: What mutmut's exit codes of a run mean where they are no failed test.
UNSEEN = {0: "survived", 5: "no test", 33: "no test"}
SLOW = {-24: "too slow", 24: "too slow", 36: "too slow", 152: "too slow", 255: "too slow"}


class Mutant(NamedTuple):
    """One changed function: mutmut's name of it, and where and what was changed."""

    name: str
    path: Path
    line: int
    before: str
    after: str
    text_only: bool


def prepare(folder: Path, files: list[str], tests: list[str], seconds: float) -> None:
    """Copy the project into `folder`, and say there what mutmut is to do."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder)
    also = [name for name in COPIED if name not in ("gpututor", "tests", "pyproject.toml")]
    with (folder / "pyproject.toml").open("a", encoding="utf-8") as project:
        project.write(
            "\n[tool.mutmut]\n"
            'source_paths = ["gpututor"]\n'
            f"only_mutate = {json.dumps(files)}\n"
            f"also_copy = {json.dumps(also)}\n"
            f"pytest_add_cli_args_test_selection = {json.dumps(tests)}\n"
            f'pytest_add_cli_args = ["-n", "0", "-p", "no:cacheprovider", "--deselect={FRAMES}"]\n'
            'process_isolation = "forkserver"\n'  # torch has threads, which a fork would lose
            f"timeout_multiplier = 3.0\ntimeout_constant = {seconds:.1f}\n"
        )


def mutmut(folder: Path, names: list[str], processes: int) -> str:
    """Run mutmut on the mutants of these names; return what it said."""
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(processes), *names]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    lines = (done.stdout + done.stderr).replace("\r", "\n").splitlines()
    return "\n".join([line for line in lines if line[:1] not in _SPINNER][-40:])


def results(folder: Path, files: list[str]) -> dict[str, int | None]:
    """Return each mutant's exit code of the tests; None where they did not run."""
    found: dict[str, int | None] = {}
    for file in files:
        path = folder / "mutants" / f"{file}.meta"
        if path.exists():
            found.update(json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"])
    return found


def functions(tree: ast.AST) -> dict[str, ast.FunctionDef]:
    """Return all functions by name, methods as ``Class.name``."""
    found: dict[str, ast.FunctionDef] = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                found.setdefault(prefix + child.name, child)
            visit(child, f"{child.name}." if isinstance(child, ast.ClassDef) else prefix)

    visit(tree, "")
    return found


def without_prose(function: ast.FunctionDef) -> str:
    """Return a function's tree as text, with the words of its sentences left out."""
    tree = ast.parse(ast.unparse(function))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.name = ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            node.value = " "
    return ast.dump(tree)


def mutants(folder: Path, file: str) -> Iterator[Mutant]:
    """Give every mutant of a file that mutmut has made."""
    changed = (folder / "mutants" / file).read_text(encoding="utf-8")
    real = functions(ast.parse((ROOT / file).read_text(encoding="utf-8")))
    made, lines = functions(ast.parse(changed)), changed.splitlines()
    plain: dict[ast.FunctionDef, str] = {}
    module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    for place, function in made.items():
        mangled, found, number = place.rpartition("__mutmut_")
        if not found or not number.isdigit():
            continue
        owner, _, mangled = mangled.rpartition(".")
        original = made[f"{owner}.{mangled}__mutmut_orig" if owner else f"{mangled}__mutmut_orig"]
        parts = mangled.split("ǁ") if "ǁ" in mangled else mangled.split("_", 1)
        source = real[".".join(parts[1:])]
        if original not in plain:
            plain[original] = without_prose(original)
        old, new = (lines[part.lineno : part.end_lineno] for part in (original, function))
        before, after, skipped = difference(old, new)
        prose = plain[original] == without_prose(function)
        yield Mutant(
            f"{module}.{mangled}__mutmut_{number}",
            Path(file), source.lineno + 1 + skipped, before, after, prose,
        )  # fmt: skip


def difference(old: list[str], new: list[str]) -> tuple[str, str, int]:
    """Return the first lines that differ, without spaces around, and how many are before them."""
    skipped = 0
    while skipped < min(len(old), len(new)) and old[skipped] == new[skipped]:
        skipped += 1
    same = 0
    while same < min(len(old), len(new)) - skipped and old[-1 - same] == new[-1 - same]:
        same += 1
    before, after = (lines[skipped : len(lines) - same] for lines in (old, new))
    return " ".join(map(str.strip, before)), " ".join(map(str.strip, after)), skipped


def main() -> int:
    """Draw mutants and try them; return 1 where one survived."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("concern", choices=CONCERNS)
    parser.add_argument("--files", nargs="*", help="only these of the concern, such as visible")
    parser.add_argument("--tests", nargs="*", help="other tests, such as tests/test_memory.py")
    parser.add_argument("--count", type=int, default=100, help="how many are drawn")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing")
    parser.add_argument("--line", help="only mutants of this line, as survivors are listed")
    parser.add_argument("--texts", action="store_true", help="changes of sentences, too")
    parser.add_argument(
        "--seconds", type=float, default=5, help="for one mutant, beside its tests'"
    )
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    names, pattern, tests = CONCERNS[options.concern]
    tests = options.tests or [f"tests/test_{name}.py" for name in tests]
    files = [pattern.format(name) for name in options.files or names]
    files = [file for file in files if (ROOT / file).exists()]
    if not files or options.count < 1:
        parser.error("there is nothing to change: see --files and --count")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        prepare(folder, files, [test for test in tests if (ROOT / test).exists()], options.seconds)
        said = mutmut(folder, ["made.only"], options.processes)  # of this name there is none
        every = [mutant for file in files for mutant in mutants(folder, file)]
        if not every:
            print(said)
            return 2
        choice = [mutant for mutant in every if options.texts or not mutant.text_only]
        if options.line:
            choice = [m for m in choice if f"{m.path.as_posix()}:{m.line}" == options.line]
        drawn = random.Random(options.seed).sample(choice, min(options.count, len(choice)))
        said = mutmut(folder, [mutant.name for mutant in drawn], options.processes)
        codes = results(folder, files)
    ends: Counter[str] = Counter()
    for mutant in sorted(drawn, key=lambda mutant: (mutant.path, mutant.line)):
        code = codes.get(mutant.name)
        end = "not tried" if code is None else UNSEEN.get(code) or SLOW.get(code, "killed")
        ends[end] += 1
        if end != "killed":
            print(f"{mutant.path}:{mutant.line}: {end}\n  - {mutant.before}\n  + {mutant.after}")
    print(f"{len(every)} mutants, {len(choice)} to choose from, {len(drawn)} drawn:", dict(ends))
    if ends["not tried"]:
        print(said)
    return 0 if ends["killed"] + ends["too slow"] == len(drawn) else 1


if __name__ == "__main__":
    sys.exit(main())
