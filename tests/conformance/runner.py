"""Run one program and say what it printed, in the form that recordings use."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import types
import warnings
from typing import TypedDict

import torch

# Programs run in a module of this name, so that what they define can be pickled.
MODULE = "conformance_program"

# Where in PyTorch's source a warning comes from differs between its versions.
_ORIGIN = re.compile(r" \(Triggered internally at .*\)$")


class Outcome(TypedDict):
    """What a program printed, and the warnings it gave."""

    out: str
    warnings: list[str]


def run(code: str) -> Outcome:
    """Execute `code` with ``torch`` imported and return its text.

    Returns
    -------
    dict
        ``out`` is the standard output without its last line end. Where an exception ended the
        program, one more line says ``RAISED module.Class :: first line of the message``.
        ``warnings`` holds ``Class: first line`` of each warning, once each, in order.
    """
    module = types.ModuleType(MODULE)
    module.__dict__["torch"] = torch
    sys.modules[MODULE] = module
    stdout = io.StringIO()
    raised = []
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(stdout):
        warnings.simplefilter("always")
        # Python says this, with the process's number, of each fork beside a thread.
        warnings.filterwarnings("ignore", "This process .* multi-threaded", DeprecationWarning)
        try:
            exec(compile(code, f"<{MODULE}>", "exec"), module.__dict__)
        except Exception as error:
            kind = type(error)
            raised = [f"RAISED {kind.__module__}.{kind.__qualname__} :: {_first_line(error)}"]
    lines = [line for line in (stdout.getvalue().rstrip("\n"), *raised) if line]
    said = [f"{w.category.__name__}: {_ORIGIN.sub('', _first_line(w.message))}" for w in caught]
    return Outcome(out="\n".join(lines), warnings=list(dict.fromkeys(said)))


def _first_line(message: object) -> str:
    return str(message).split("\n", 1)[0]
