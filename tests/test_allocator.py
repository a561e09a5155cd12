"""The simulated allocator answers as the caching allocator of a real H200 did, byte for byte."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from gpututor.simulator.device import Device
from gpututor.simulator.engine import Engine
from gpututor.simulator.profiles import PROFILES

PATH = Path(__file__).parent / "data" / "allocator_traces_h200.json.gz"
TRACES: list[dict[str, Any]] = json.loads(gzip.decompress(PATH.read_bytes()))

#: What a trace calls a statistic -> what PyTorch calls it.
STATISTICS = {
    "allocated": ("allocated_bytes", "current"),
    "reserved": ("reserved_bytes", "current"),
    "active": ("active_bytes", "current"),
    "requested": ("requested_bytes", "current"),
    "inactive_split": ("inactive_split_bytes", "current"),
    "segments": ("segment", "current"),
    "allocations": ("allocation", "current"),
    "peak_allocated": ("allocated_bytes", "peak"),
    "peak_reserved": ("reserved_bytes", "peak"),
}


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: f"{trace['kind']}-{trace['seed']}")
def test_trace(trace: dict[str, Any]) -> None:
    device = Device(0, PROFILES["H200"], trace["total_memory"], Engine())
    blocks = {}
    for number, step in enumerate(trace["steps"]):
        if step["op"] == "alloc":
            blocks[step["id"]] = device.memory.allocate(step["bytes"], step["stream"])
        elif step["op"] == "free":
            del blocks[step["id"]]
        else:
            assert step["op"] == "empty_cache"
            device.memory.empty_cache()
        found = device.memory.statistics()
        for name, (kind, part) in STATISTICS.items():
            assert found[kind]["all"][part] == step["after"][name], (number, step["op"], name)
