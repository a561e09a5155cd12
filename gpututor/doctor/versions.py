"""Which driver runs which build, and which build runs on which GPU."""

from __future__ import annotations

import re
from collections.abc import Sequence

Version = tuple[int, ...]

# The oldest driver that runs every minor version of a major one: NVIDIA, CUDA Compatibility,
# "Minor Version Compatibility", and the CUDA 11 to 13 release notes.
_OLDEST: dict[int, dict[str, Version]] = {
    11: {"linux": (450, 80, 2), "windows": (452, 39)},
    12: {"linux": (525, 60, 13), "windows": (528, 33)},
    13: {"linux": (580, 65, 6), "windows": (580,)},
}
# Before 11 each version has its own: CUDA 12 release notes, table of toolkit drivers.
_OLDEST_BEFORE_11: dict[Version, dict[str, Version]] = {
    (10, 2): {"linux": (440, 33), "windows": (441, 22)},
    (10, 1): {"linux": (418, 39), "windows": (418, 96)},
    (10, 0): {"linux": (410, 48), "windows": (411, 31)},
    (9, 2): {"linux": (396, 26), "windows": (397, 44)},
    (9, 1): {"linux": (390, 46), "windows": (391, 29)},
    (9, 0): {"linux": (384, 81), "windows": (385, 54)},
}
# Processors with the GPU on the same chip share no machine code with cards: the CUDA programming
# guide on binary compatibility. 10.1 and 11.0 are one chip, renamed in CUDA 13.
_ON_CHIP = frozenset({(5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0)})


def number(text: str) -> Version:
    """Return a version's numbers: ``"12.4"`` and ``"12040"`` are ``(12, 4)``; none is ``()``."""
    found = re.match(r"[^\d]{0,3}(\d{1,9}(?:\.\d{1,9})*)", text.strip())
    if not found:
        return ()
    parts = tuple(int(part) for part in found[1].split("."))
    if len(parts) == 1 and parts[0] >= 1000:  # as cudaDriverGetVersion gives it
        return parts[0] // 1000, parts[0] % 1000 // 10
    return parts


def oldest_driver(build: Version, system: str) -> Version:
    """Return the oldest driver for a build's CUDA version, or ``()`` where it is not known.

    Parameters
    ----------
    build : tuple of int
        The CUDA version that PyTorch was built with.
    system : str
        ``"linux"`` or ``"windows"``; inside WSL the driver is the one of Windows.
    """
    table = _OLDEST.get(build[0]) if build and build[0] >= 11 else _OLDEST_BEFORE_11.get(build[:2])
    return (table or {}).get(system, ())


def driver_fits(build: Version, cuda: Version, driver: Version, system: str) -> bool | None:
    """Return whether a driver runs a build; None when too little is known.

    Parameters
    ----------
    build : tuple of int
        The CUDA version that PyTorch was built with.
    cuda : tuple of int
        The highest CUDA version of the driver.
    driver : tuple of int
        The driver's own version.
    system : str
        ``"linux"`` or ``"windows"``.

    Notes
    -----
    A newer driver runs every older build. From CUDA 11 on, a driver of the same major version
    is enough, if it is not older than the first that promises it.
    """
    if not build:
        return None
    oldest = oldest_driver(build, system)
    if cuda:
        if cuda[:2] >= build[:2]:
            return True
        if build[0] < 11 or cuda[0] < build[0]:
            return False
        return not (oldest and driver and driver < oldest)
    if driver and oldest:
        return driver >= oldest
    return None


def runs_on(code: str, capability: Version) -> bool | None:
    """Return whether code of a build runs on a GPU; None for what is no NVIDIA code.

    Parameters
    ----------
    code : str
        ``"sm_86"`` is machine code: for the same major version, from this minor version on.
        ``"compute_86"`` is PTX: for this capability and every later one.
        With ``a`` at the end it is for this capability only, with ``f`` for its family.
    capability : tuple of int
        The GPU's, such as ``(8, 9)``.

    Notes
    -----
    Source: the CUDA programming guide on compute capabilities and binary compatibility.
    """
    found = re.fullmatch(r"(sm|compute)_(\d{2,3})([af]?)", code.strip())
    if not found:
        return None
    built = int(found[2]) // 10, int(found[2]) % 10
    gpu = capability[0], capability[1] if len(capability) > 1 else 0
    if gpu == built:
        return True
    if found[3] == "a":
        return False
    if found[1] == "compute" and not found[3]:
        return gpu >= built
    if {gpu, built} == {(10, 1), (11, 0)}:
        return True
    if {gpu, built} & _ON_CHIP:
        return False
    return gpu[0] == built[0] and gpu[1] >= built[1]


def has_code(arch_list: Sequence[str], capability: Version) -> str | None:
    """Return how a build serves a GPU: ``"machine code"``, ``"PTX"``, ``""``; None if unknown."""
    if not capability:
        return None
    answers = {code: runs_on(code, capability) for code in arch_list}
    known = {code: answer for code, answer in answers.items() if answer is not None}
    if not known:
        return None
    good = [code for code, answer in known.items() if answer]
    if any(code.startswith("sm_") for code in good):
        return "machine code"
    return "PTX" if good else ""
