"""The record that describes one conformance program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class Program:
    """A small program whose printed text must be the same on every CUDA device.

    Attributes
    ----------
    name : str
        Unique among all programs.
    group : str
        What it is about; the name of the module that holds it.
    code : str
        Source, run in a fresh process with ``torch`` imported. Its last words may be an error.
    gpus : int
        CUDA devices it needs. With more devices present it prints the same.
    """

    name: str
    group: str
    code: str
    gpus: int = 1


def in_group(group: str) -> Callable[..., Program]:
    """Return ``program(name, code, gpus=1)``, which dedents `code` and files it under `group`."""

    def program(name: str, code: str, gpus: int = 1) -> Program:
        return Program(name, group, dedent(code).strip(), gpus)

    return program
