"""Where the course starts with one click: the badges, and the cell that installs the package.

The repository's address stands in ``pyproject.toml`` and nowhere else; ``scripts/notebooks.py``
writes what is made of it here into README.md and the notebooks.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest brings it to Python 3.10

ROOT = Path(__file__).parents[1]
BRANCH = "main"
INSTALL = "install"  # the id of the cell

#: What README.md's badges open.
FIRST = "00_start_here.ipynb"

_CELL = """\
# Where the package is missing, as in Colab: install it, and leave torch as it is.
from importlib.util import find_spec
from pathlib import Path

if not find_spec("gpututor"):
    wheels = [*Path().glob("gpututor*.whl"), *Path("/kaggle/input").glob("**/gpututor*.whl")]
    source = wheels[0] if wheels else "{address}/archive/{branch}.zip"
    %pip install --quiet {{"--no-deps" if find_spec("torch") else ""}} "{{source}}"
"""


def address() -> str:
    """Return the repository's address, such as ``https://github.com/owner/name``."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return str(tomllib.loads(text)["project"]["urls"]["Repository"]).rstrip("/")


def badges(name: str) -> str:
    """Return one line of Markdown: three badges that open a notebook, each in another place."""
    repository = address()
    owner_and_name = repository.removeprefix("https://github.com/")
    file = f"notebooks/{name}"
    places = {
        "Colab": (
            "https://colab.research.google.com/assets/colab-badge.svg",
            f"https://colab.research.google.com/github/{owner_and_name}/blob/{BRANCH}/{file}",
        ),
        "Kaggle": (
            "https://kaggle.com/static/images/open-in-kaggle.svg",
            f"https://kaggle.com/kernels/welcome?src={repository}/blob/{BRANCH}/{file}",
        ),
        "Binder": (
            "https://mybinder.org/badge_logo.svg",
            f"https://mybinder.org/v2/gh/{owner_and_name}/{BRANCH}?labpath={file}",
        ),
    }
    return " ".join(
        f"[![Open in {place}]({picture})]({link})" for place, (picture, link) in places.items()
    )


def with_badges(text: str, name: str) -> str:
    """Return Markdown that begins with a title, with the badges of a notebook below the title."""
    title, _, rest = text.partition("\n")
    rest = re.sub(r"\A\n*(?:\[!\[Open in .*\n*)?", "", rest)
    return f"{title}\n\n{badges(name)}\n\n{rest}"


def install_cell() -> str:
    """Return the code of the cell that installs the package where it is missing."""
    return _CELL.format(address=address(), branch=BRANCH).rstrip("\n")


def dress(notebook: nbformat.NotebookNode, name: str) -> None:
    """Give a notebook its badges and its cell that installs, in place."""
    cells = notebook.cells
    if not cells or not cells[0].source.startswith("# "):
        return  # without a title it is no lesson
    cells[0].source = with_badges(cells[0].source, name).rstrip("\n")
    if len(cells) < 2 or cells[1].get("id") != INSTALL:
        cells.insert(1, nbformat.v4.new_code_cell(id=INSTALL))
    cells[1].source = install_cell()
