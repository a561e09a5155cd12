"""What an out-of-memory message says: its numbers, and what follows from them."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from ..scale import amount

_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZE = r"([\d.]+) (bytes|[KMGT]iB)"
#: Attribute -> its wordings, from torch 1.x to 2.14.
_PATTERNS = {
    "asked": (rf"Tried to allocate {_SIZE}",),
    "total": (rf"total capacity of {_SIZE}", rf"{_SIZE} total capacity"),
    "free": (rf"of which {_SIZE} is free", rf"{_SIZE} free"),
    "allocated": (rf"{_SIZE} is allocated by PyTorch", rf"{_SIZE} already allocated"),
    "cached": (rf"{_SIZE} is reserved by PyTorch but unallocated",),
    "reserved": (rf"{_SIZE} reserved in total by PyTorch", rf"{_SIZE} cached"),
    "allowed": (rf"{_SIZE} allowed", rf"Allowed memory limit: {_SIZE}"),
}


@dataclass(frozen=True)
class Message:
    """The numbers of an out-of-memory message, in bytes. Made by `read_message`.

    Attributes
    ----------
    asked : int
        What the allocator tried to take: a whole segment, not the tensor alone.
    free : int
        What the driver has left.
    allocated, cached : int
        What live tensors hold, and what PyTorch keeps besides.
    total : int or None
        The device's memory, where the message says it.
    allowed : int or None
        The limit of this process, where one was set.
    """

    asked: int
    free: int
    allocated: int
    cached: int
    total: int | None = None
    allowed: int | None = None

    @property
    def verdict(self) -> str:
        """What the numbers say, in one sentence."""
        if self.cached >= self.asked:
            return "fragmentation: enough is cached, but not in one piece"
        if self.allowed is not None and self.allocated + self.cached + self.asked > self.allowed:
            return "this process has reached the limit that was set for it"
        if self.free >= self.asked:
            return (
                "not the GPU's memory: enough is free, so look for a limit of the process, of the "
                "host's memory (Windows: the page file), or a process that came and went"
            )
        return "the GPU is full: use less, or find out who else is on it"

    def rows(self) -> list[tuple[str, str]]:
        """Return name and amount of each number, and the verdict."""
        named = {
            "asked": self.asked,
            "free": self.free,
            "allocated": self.allocated,
            "cached": self.cached,
            "limit": self.allowed,
        }
        rows = [(name, amount(size)) for name, size in named.items() if size is not None]
        return [*rows, ("verdict", self.verdict)]

    def __repr__(self) -> str:
        return "\n".join(f"{name:<10}{text}" for name, text in self.rows())

    def _repr_html_(self) -> str:
        cells = "".join(
            f'<tr><th style="text-align:left">{name}</th>'
            f'<td style="text-align:left">{html.escape(text)}</td></tr>'
            for name, text in self.rows()
        )
        return f"<table>{cells}</table>"


def read_message(error: BaseException | str) -> Message:
    """Read the numbers of an out-of-memory message.

    Parameters
    ----------
    error : BaseException or str
        The ``torch.OutOfMemoryError``, or its text, from any version of PyTorch since 1.0.

    Raises
    ------
    ValueError
        When it is another message.
    """
    text = " ".join(str(error).split())
    found: dict[str, int] = {}
    for name, patterns in _PATTERNS.items():
        for pattern in patterns:
            match = re.search(pattern, text)
            if match:
                found[name] = int(float(match[1]) * _UNITS[match[2]])
                break
    reserved = found.pop("reserved", None)
    if reserved is not None and "allocated" in found:
        found["cached"] = max(0, reserved - found["allocated"])
    if not {"asked", "free", "allocated", "cached"} <= found.keys():
        raise ValueError(f"this is no out-of-memory message of PyTorch's: {text[:80]!r}")
    return Message(**found)
