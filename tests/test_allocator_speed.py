"""The simulated allocator is quick enough to be in the way of nothing."""

from __future__ import annotations

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "allocator.py"


def test_a_thousand_blocks_alive() -> None:
    """A million steps must take under 10 s: a tenth of them is tried here."""
    spec = importlib.util.spec_from_file_location("allocator_speed", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.seconds(100_000) < 1.0
