"""An environment of one's own for a test: chosen packages of this one, and no network."""

import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

SITE = Path(sysconfig.get_path("purelib"))

#: Lets a Python process reach this machine only, and says who tried more.
NO_NETWORK = """
import socket
_connect, _resolve = socket.socket.connect, socket.getaddrinfo
_HERE = ("127.0.0.1", "::1", "localhost", "", None)
def connect(self, address):
    if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in _HERE:
        raise OSError(f"no network in this test: {address}")
    return _connect(self, address)
def resolve(host, *arguments, **options):
    if host not in _HERE:
        raise socket.gaierror(f"no network in this test: {host}")
    return _resolve(host, *arguments, **options)
socket.socket.connect, socket.getaddrinfo = connect, resolve
"""


def environment(folder: Path, chosen: Callable[[str], bool]) -> Path:
    """Make a virtual environment with some of this one's packages; return its Python.

    The chosen packages are links: what is installed into the new environment stays there.
    """
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(subprocess.check_output([str(python), "-c", ask], text=True).strip())
    for own in site.glob("setuptools*"):  # Python 3.11 and older bring one, too old for torch
        shutil.rmtree(own)
    behind = folder / "behind"
    behind.mkdir()
    for name in {top for package in packages() if chosen(package) for top in tops(package)}:
        (behind / name).symlink_to(SITE / name)
    (site / "behind.pth").write_text(f"{behind}\n", encoding="utf-8")
    (site / "no_network.py").write_text(NO_NETWORK, encoding="utf-8")
    (site / "no_network.pth").write_text("import no_network\n", encoding="utf-8")
    return python


def normal(name: str) -> str:
    """Return a package's name in the one way to write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def packages() -> list[str]:
    """Return the names of all installed packages."""
    return [normal(d.metadata["Name"]) for d in metadata.distributions(path=[str(SITE)])]


def tops(package: str) -> set[str]:
    """Return what a package has put into site-packages, without its scripts."""
    parts = {Path(str(file)).parts[0] for file in metadata.files(package) or ()}
    return {part for part in parts if part not in ("..", "__pycache__") and (SITE / part).exists()}


def needed_by(package: str) -> set[str]:
    """Return a package and, of what is installed, all that it needs."""
    found, ask = set(), [normal(package)]
    while ask:
        name = ask.pop()
        if name in found or name not in packages():
            continue
        found.add(name)
        for line in metadata.requires(name) or ():
            if "extra ==" not in line:
                ask.append(normal(re.match(r"[\w.-]+", line)[0]))
    return found
