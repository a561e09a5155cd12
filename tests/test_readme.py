"""What README.md says to run, and to install, is what the project's files hold."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest brings it to Python 3.10

ROOT = Path(__file__).parents[1]
INSTALL = "python3 -m venv .venv && .venv/bin/python -m pip install -r requirements.txt && "
REGISTRY_HOST = re.compile(
    r"\b(?:pypi|pythonhosted|download(?:-r2)?\.pytorch|anaconda|npmjs)\.(?:org|com|io)\b"
    r"|\b(?:pypi|conda|registry)\.[a-z0-9-]+\.(?:org|com|io)\b",
    re.IGNORECASE,
)


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def section(title):
    """Return the text of README.md below ``## title``, up to the next ``##``."""
    return re.split(r"^## ", read("README.md").split(f"\n## {title}\n", 1)[1], flags=re.M)[0]


def commands():
    """Return the lines of README.md's first two shell blocks."""
    first, second = re.findall(r"^```sh\n(.*?)^```$", read("README.md"), re.M | re.S)[:2]
    return first.splitlines(), second.splitlines()


def name_of(requirement):
    return re.match(r"[\w-]+", requirement)[0]


@pytest.fixture(scope="module")
def project():
    return tomllib.loads(read("pyproject.toml"))["project"]


@pytest.fixture(scope="module")
def requirements(project):
    """Return what a reader of the course installs, as pyproject.toml has it."""
    return project["dependencies"] + project["optional-dependencies"]["lab"]


def tracked_files():
    """Return the project's files: git's where this is a clone, else all that is not hidden."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode == 0:
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        paths = [p for p in ROOT.rglob("*") if not p.relative_to(ROOT).parts[0].startswith(".")]
    return [path for path in paths if path.is_file()]


def test_two_commands_of_one_line_each():
    first, second = commands()
    assert first == [INSTALL + ".venv/bin/jupyter lab --allow-root notebooks/00_start_here.ipynb"]
    assert second == [INSTALL + ".venv/bin/python -m pytest"]


def test_ci_runs_the_test_command_word_for_word():
    _, (command,) = commands()
    assert command in [line.strip() for line in read(".ci/run").splitlines()]


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps no executable bit")
def test_ci_script_can_be_executed():
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_requirements_are_those_of_the_project(requirements):
    lines = [line for line in read("requirements.txt").splitlines() if not line.startswith("#")]
    assert lines == [*requirements, "-e ."]


def test_conda_installs_python_pip_and_the_requirements(project):
    lines = read("environment.yml").split("dependencies:\n", 1)[1].splitlines()
    python, *rest = [line.strip() for line in lines]
    assert python.startswith("- python" + project["requires-python"])
    assert rest == ["- pip", "- pip:", "- -r requirements.txt"]


def test_each_dependency_has_its_line(requirements, project):
    requirements = requirements + project["optional-dependencies"]["browser"]
    rows = re.findall(r"^\| `([\w-]+)` \| (.+) \|$", section("Dependencies"), re.M)
    assert [name for name, _ in rows] == [name_of(requirement) for requirement in requirements]


def test_lessons_said_to_be_ready_are_those_that_exist():
    ready = re.findall(r"^\| \[.+\]\((notebooks/.+?)\) .*\| ready \|$", section("Lessons"), re.M)
    planned = re.findall(r"^\| (\d\d) .*\| planned \|$", section("Lessons"), re.M)
    notebooks = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
    assert ready == [f"notebooks/{name}" for name in notebooks]
    assert sorted([name[:2] for name in notebooks] + planned) == [f"{n:02}" for n in range(8)]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_to_files(page):
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", read(page))
    missing = [t for t in targets if "://" not in t and not (ROOT / t).is_file()]
    assert not missing


def test_no_file_names_the_host_of_a_package_registry():
    named = {}
    for path in tracked_files():
        text = path.read_bytes().decode("utf-8", errors="ignore")
        if found := REGISTRY_HOST.search(text):
            named[str(path.relative_to(ROOT))] = found[0]
    assert not named
