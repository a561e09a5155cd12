"""Small programs of everyday PyTorch on CUDA, run on real GPUs and on the simulator.

One module per group. Each program prints text that does not depend on the device's model, its
clock, its addresses or its free memory, so that a recording from any CUDA machine is the answer.
"""

from __future__ import annotations

from collections import Counter

from . import (
    asynchrony,
    errors_api,
    errors_mixed,
    memory_simple,
    movement,
    random_state,
    streams,
    system,
    values,
)
from ._program import Program

__all__ = ["PROGRAMS", "Program"]

PROGRAMS: list[Program] = [
    *errors_mixed.PROGRAMS,
    *errors_api.PROGRAMS,
    *movement.PROGRAMS,
    *values.PROGRAMS,
    *random_state.PROGRAMS,
    *streams.PROGRAMS,
    *asynchrony.PROGRAMS,
    *memory_simple.PROGRAMS,
    *system.PROGRAMS,
]

_twice = [name for name, count in Counter(p.name for p in PROGRAMS).items() if count > 1]
if _twice:
    raise ValueError(f"programs need unique names; these are given twice: {', '.join(_twice)}")
