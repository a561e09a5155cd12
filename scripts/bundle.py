"""Make one archive from which the whole course is installed without a network.

``python scripts/bundle.py`` writes ``dist/gpututor-VERSION-PLATFORM.zip``: notebooks, docs, and the
wheels of the package and of all that it needs, for this machine's system and Python. The PyTorch
in it is the one that pip takes here. ``--without-torch`` leaves PyTorch out, for machines that
have it: the archive is then 50 MB or so instead of some GB.

After unpacking, the command in START.txt installs it.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest brings it to Python 3.10

ROOT = Path(__file__).parents[1]
INSTALL = 'python3 -m pip install --no-index --find-links wheels "gpututor[lab]"'
START = f"""\
The gpututor course, to be installed without a network.

In this folder, in a virtual environment if you like, run:

    {INSTALL}

Then open the first notebook:

    python3 -m jupyterlab notebooks/00_start_here.ipynb

On Windows, write py instead of python3.
Made for {{platform}} and Python {{python}}{{torch}}.
"""


def wheel(folder: Path, *options: str) -> Path:
    """Build the package's wheel from a copy of its sources, so that nothing is left in the clone.

    `options` are pip's, such as ``--no-build-isolation`` where there is no network.
    """
    with tempfile.TemporaryDirectory() as copy:
        source = Path(copy)
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "gpututor", source / "gpututor", ignore=ignore)
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, source)
        _pip("wheel", "--no-deps", *options, "--wheel-dir", str(folder), str(source))
    (built,) = folder.glob("gpututor-*.whl")
    return built


def requirements(torch: bool) -> list[str]:
    """Return what the course needs, as pyproject.toml has it, with or without torch."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    every = project["dependencies"] + project["optional-dependencies"]["lab"]
    return [line for line in every if torch or re.match(r"[\w-]+", line)[0] != "torch"]


def bundle(archive: Path, torch: bool = True) -> None:
    """Write the archive."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "gpututor"
        for part in ("notebooks", "docs"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns(".*"))
        for part in ("README.md", "CONTRIBUTING.md", "LICENSE"):
            shutil.copy(ROOT / part, folder)
        python = "{}.{}".format(*sys.version_info)
        without = "" if torch else ", on a machine that has PyTorch"
        text = START.format(platform=sysconfig.get_platform(), python=python, torch=without)
        (folder / "START.txt").write_text(text, encoding="utf-8")
        wheel(folder / "wheels")
        # Builds a wheel where there is none to download: the target may not be able to.
        _pip("wheel", "--wheel-dir", str(folder / "wheels"), *requirements(torch))
        archive.parent.mkdir(parents=True, exist_ok=True)
        half = archive.with_suffix(".part")  # on a full disk nothing looks like an archive
        try:
            with zipfile.ZipFile(half, "w", zipfile.ZIP_STORED) as file:  # wheels are compressed
                for path in sorted(folder.rglob("*")):
                    file.write(path, path.relative_to(name))
            half.replace(archive)
        finally:
            half.unlink(missing_ok=True)


def _pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", *arguments, "--quiet"], check=True)


def main(arguments: list[str] | None = None) -> int:
    """Make the archive; return 0 when it is made, 1 when pip could not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--without-torch", action="store_true", help="the target has PyTorch")
    parser.add_argument("archive", nargs="?", type=Path, help="the file to write; dist/... if none")
    options = parser.parse_args(arguments)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    python = "py{}{}".format(*sys.version_info)
    name = f"gpututor-{version['version']}-{sysconfig.get_platform()}-{python}.zip"
    archive = options.archive or ROOT / "dist" / name
    try:
        bundle(archive, torch=not options.without_torch)
    except subprocess.CalledProcessError:
        print("no archive was made: pip says above what it could not get", file=sys.stderr)
        return 1
    except OSError as error:
        print(
            f"no archive was made: {error}. Free some space, or name another file", file=sys.stderr
        )
        return 1
    print(f"{archive}: {archive.stat().st_size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
