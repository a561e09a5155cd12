"""A launch costs the host little, however many tensors are alive."""

from __future__ import annotations

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "host_time.py"


def test_host_time_per_operator() -> None:
    spec = importlib.util.spec_from_file_location("host_time", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    result = module.measure(rounds=5)
    live = result.pop("live tensors")
    for name, kinds in result.items():
        assert kinds["simulated"] <= kinds["fake"], (name, kinds)
    assert live["10000"] <= 1.5 * live["10"], live
