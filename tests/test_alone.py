"""A notebook copied alone into an empty folder, with only a wheel beside it and no network."""

import os
import shutil
import subprocess
import sys

import alone
import nbformat
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows wants a right for links"),
]
SECONDS = 300


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return alone.wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def python(tmp_path):
    """Return the Python of an environment that has all but gpututor, as Colab has."""
    return alone.environment(tmp_path / "environment", lambda name: name != "gpututor")


@pytest.fixture
def run(tmp_path, python):
    """Return a function that runs something in the folder, as if the clone were not there."""
    folder = tmp_path / "empty"
    folder.mkdir()
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "GPUTUTOR"))}
    environment.update(HOME=str(folder), JUPYTER_DATA_DIR=str(tmp_path), PIP_RETRIES="0")

    def run(*arguments):
        return subprocess.run(
            [str(python), *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )

    run.folder = folder
    return run


def convert(run, name, *options, first=None):
    """Run a copy of a notebook, or of its first cells; return the cells."""
    notebook = nbformat.read(alone.ROOT / "notebooks" / name, 4)
    notebook.cells = notebook.cells[:first]
    nbformat.write(notebook, run.folder / name)
    to = ("--to", "notebook", "--execute", "--output", "ran.ipynb")
    done = run("-m", "nbconvert", "--log-level=ERROR", *to, *options, name)
    assert done.returncode == 0, done.stderr
    return nbformat.read(run.folder / "ran.ipynb", 4).cells


@pytest.mark.parametrize("name", ["00_start_here.ipynb", "07_train_on_the_gpu.ipynb"])
def test_it_runs_to_its_end(run, wheel, name):
    shutil.copy(wheel, run.folder)
    assert "No module named 'gpututor'" in run("-c", "import gpututor").stderr
    cells = convert(run, name)
    assert all(cell.execution_count for cell in cells if cell.cell_type == "code")
    where = run("-c", "import gpututor; print(gpututor.__file__)").stdout
    assert where.startswith(str(run.folder.parent / "environment"))


def test_without_a_wheel_it_asks_the_repository_and_says_what_failed(run):
    _, install, _, setup, *_ = convert(run, "00_start_here.ipynb", "--allow-errors", first=4)
    said = "".join(output.get("text", "") for output in install.outputs)
    assert "/archive/main.zip" in said
    assert "no network in this test" in said
    assert setup.outputs[0].evalue == "No module named 'gpututor'"
