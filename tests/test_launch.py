"""The badges, and the cell that installs, agree with the address in pyproject.toml."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "scripts"))
PATHS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PLACES = ("Colab", "Kaggle", "Binder")


@pytest.fixture(scope="module")
def launch():
    import launch

    return launch


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_badges_and_install_cell_are_those_of_the_address(launch, path):
    title, install, *_ = nbformat.read(path, 4).cells
    assert title.source.splitlines()[2] == launch.badges(path.name)
    assert install.source == launch.install_cell()
    assert install.outputs == []  # silent where the package is there


def test_the_readme_has_the_badges_of_the_first_lesson(launch):
    line = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[2]
    assert line == launch.badges(launch.FIRST)
    assert [place for place in PLACES if f"[![Open in {place}](" in line] == list(PLACES)


def test_the_address_stands_in_one_place(launch):
    """Every file that names it gets it from pyproject.toml, by way of the script."""
    named = launch.address().removeprefix("https://")
    listed = subprocess.run(
        ["git", "grep", "-l", "-F", named], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode == 128:
        pytest.skip("needs git and a clone")
    expected = {"pyproject.toml", "README.md", *(f"notebooks/{path.name}" for path in PATHS)}
    assert set(listed.stdout.split()) == expected


def test_another_address_changes_badges_and_cell_and_is_found(launch, monkeypatch, tmp_path):
    import notebooks

    named = launch.address()
    monkeypatch.setattr(launch, "address", lambda: "https://github.com/someone/else")
    (fault,) = notebooks.problems(PATHS[0])
    assert "stored form" in fault
    (fault,) = notebooks.readme(check=True)
    assert "badges" in fault
    copy = tmp_path / PATHS[0].name
    copy.write_bytes(PATHS[0].read_bytes())
    notebooks.form(copy)
    assert notebooks.problems(copy) == []
    text = copy.read_text(encoding="utf-8")
    assert text.count("someone/else") == 4  # three badges and the cell
    assert named not in text


def test_a_badge_opens_its_own_notebook(launch):
    line, address = launch.badges("x.ipynb"), launch.address()
    owner = address.removeprefix("https://github.com/")
    for link in (
        f"(https://colab.research.google.com/github/{owner}/blob/main/notebooks/x.ipynb)",
        f"(https://kaggle.com/kernels/welcome?src={address}/blob/main/notebooks/x.ipynb)",
        f"(https://mybinder.org/v2/gh/{owner}/main?labpath=notebooks/x.ipynb)",
    ):
        assert link in line


def test_the_install_cell_does_nothing_where_the_package_is(launch):
    code = launch.install_cell().replace("%pip", "raise SystemExit('pip was called')  #")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
