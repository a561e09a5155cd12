"""A notebook copied alone into an empty folder, with only a wheel beside it and no network."""

import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import alone
import nbformat
import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "scripts"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows wants a right for links"),
]
SECONDS = 300


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    import bundle

    return bundle.wheel(tmp_path_factory.mktemp("wheel"), "--no-build-isolation")


@pytest.fixture
def python(tmp_path):
    """Return the Python of an environment that has all but gpututor, as Colab has."""
    return alone.environment(tmp_path / "environment", lambda name: name != "gpututor")


@pytest.fixture
def run(tmp_path, python):
    """Return a function that runs this Python in an empty folder."""
    folder = tmp_path / "empty"
    folder.mkdir()
    return Run(python, folder)


class Run:
    """Runs a Python in a folder, as if the clone were not there."""

    def __init__(self, python, folder):
        self.python, self.folder = str(python), folder

    def __call__(self, *arguments):
        ours = ("PYTHON", "GPUTUTOR")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        home = str(self.folder.parent)
        environment.update(HOME=home, JUPYTER_DATA_DIR=home, PIP_RETRIES="0")
        return subprocess.run(
            [self.python, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )


def convert(run, name, *options, first=None):
    """Run a copy of a notebook, or of its first cells; return the cells."""
    notebook = nbformat.read(ROOT / "notebooks" / name, 4)
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


def test_the_bundle_installs_by_one_command_where_there_is_torch(tmp_path, capsys):
    """Needs the network, or pip's cache, to make the bundle; none to install it."""
    import bundle

    archive = tmp_path / "course.zip"
    assert bundle.main(["--without-torch", str(archive)]) == 0, capsys.readouterr().err
    with zipfile.ZipFile(archive) as file:
        file.extractall(tmp_path)
    folder = tmp_path / "gpututor"
    assert not list((folder / "wheels").glob("torch-*"))
    python, *install = shlex.split(bundle.INSTALL)
    assert python == "python3"
    assert bundle.INSTALL in (folder / "START.txt").read_text(encoding="utf-8")
    of_torch = alone.needed_by("torch")
    run = Run(alone.environment(tmp_path / "environment", of_torch.__contains__), folder)
    assert "No module named" in run("-c", "import ipywidgets").stderr
    done = run(*install, "--quiet")
    assert done.returncode == 0, done.stderr
    done = run("-m", "jupyterlab", "--version")
    assert done.returncode == 0, done.stderr
    done = run("-m", "gpututor", "doctor", "--json")
    assert done.returncode in (0, 1), done.stderr
    execute = ("-m", "nbconvert", "--log-level=ERROR", "--to", "notebook", "--execute")
    done = run(*execute, "--output", "ran.ipynb", "notebooks/00_start_here.ipynb")
    assert done.returncode == 0, done.stderr
