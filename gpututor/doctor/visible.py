"""The variables that hide devices: what `CUDA_VISIBLE_DEVICES` and its like choose."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Choice:
    """What a variable chooses.

    Attributes
    ----------
    chosen : tuple of str
        The entries that count, in order. The first is torch's device 0.
    why : str
        Why the others do not count; empty when all do.
    """

    chosen: tuple[str, ...]
    why: str = ""


def choose(value: str, total: int | None = None, uuids: Sequence[str] = ()) -> Choice:
    """Return what a list of devices chooses, by CUDA's rules.

    Parameters
    ----------
    value : str
        Indices, GPU ids or MIG ids, with commas between. An id may be shortened to its first
        digits.
    total : int, optional
        How many devices there are. Unknown: every index counts.
    uuids : sequence of str
        The devices' ids, whole or shortened. Unknown: every id counts.

    Notes
    -----
    The list ends at the first entry that names no device: ``"0,9,1"`` shows device 0 only, and
    so does ``"0,-1,1"``. An entry given twice hides everything. A number ends at its first
    character that is no digit, spaces in front aside. Source: the CUDA programming guide on
    environment variables, and torch.cuda's own parser of this variable.
    """
    chosen: list[str] = []
    for entry in value.split(","):
        entry = entry.strip()
        if entry.startswith(("GPU-", "MIG-")):
            key = _match(entry, uuids)
            problem = "" if key else f"{entry} names no GPU here, or more than one"
        else:
            number = re.match(r"\+?\d+", entry)
            key = str(int(number[0])) if number and len(number[0]) < 10 else ""
            problem = _wrong_index(entry, key, total)
        if problem:
            return Choice(tuple(chosen), problem)
        if key in chosen:
            return Choice((), f"it names {entry} twice, which hides every GPU")
        chosen.append(key)
    return Choice(tuple(chosen))


def _wrong_index(entry: str, key: str, total: int | None) -> str:
    if not entry:
        return "it is empty, which hides every GPU"
    if not key:
        return f"the list ends at {entry}, which is no GPU"
    if total is not None and int(key) >= total:
        return f"the list ends at {entry}: this machine has {count(total)}, and the first is 0"
    return ""


def _match(entry: str, uuids: Sequence[str]) -> str:
    if entry.startswith("MIG-") or not uuids:  # the driver does not list a slice's id by device
        return entry
    found = [uuid for uuid in uuids if uuid.startswith(entry) or entry.startswith(uuid)]
    return found[0] if len(found) == 1 else ""


def count(number: int) -> str:
    """Return ``"no GPU"``, ``"1 GPU"``, ``"2 GPUs"``."""
    return {0: "no GPU", 1: "1 GPU"}.get(number, f"{number} GPUs")
