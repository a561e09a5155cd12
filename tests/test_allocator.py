"""The simulated allocator answers as the caching allocator of a real H200 did, byte for byte."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from gpututor.simulator.device import Device
from gpututor.simulator.engine import Engine
from gpututor.simulator.memory_settings import Settings
from gpututor.simulator.profiles import PROFILES

PATH = Path(__file__).parent / "data" / "allocator_traces_h200.json.gz"
TRACES: list[dict[str, Any]] = json.loads(gzip.decompress(PATH.read_bytes()))
GIB = 1 << 30

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
COUNTS = {"retries": "num_alloc_retries", "ooms": "num_ooms"}


class Replay:
    """Runs the steps of a trace on a simulated device."""

    def __init__(self, trace: dict[str, Any]) -> None:
        settings = Settings()
        settings.parse(trace.get("conf", ""))
        self.engine = Engine()
        self.device = Device(0, PROFILES["H200"], trace["total_memory"], self.engine, settings)
        self.streams = {0: self.device.default}
        self.blocks: dict[int, Any] = {}

    def stream(self, number: int) -> Any:
        while number not in self.streams:
            self.streams[len(self.streams)] = self.device.new_stream(0)
        return self.streams[number]

    def step(self, step: dict[str, Any]) -> str | None:
        """Do one step; return the first line of the error it raised, if any."""
        memory, op = self.device.memory, step["op"]
        if op == "alloc":
            try:
                block = memory.allocate(step["bytes"], self.stream(step["stream"]).stream_id)
            except torch.OutOfMemoryError as error:
                return str(error)
            self.blocks[step["id"]] = block
        elif op == "free":
            self.blocks.pop(step["id"], None)
        elif op == "empty_cache":
            self.catch_up()
            memory.empty_cache()
        elif op == "limit":
            memory.fraction = step["bytes"] / memory.capacity
        elif op == "reset_peak":
            memory.reset_peak()
        elif op == "record_stream" and step["id"] in self.blocks:
            self.blocks[step["id"]].used_on(self.stream(step["stream"]))
        elif op == "record_stream":
            pass  # its allocation failed
        elif op == "busy":
            self.device.sleep(self.stream(step["stream"]), 10**12)
        else:
            assert op == "sync"
            self.catch_up()
            self.device.synchronize()
        return None

    def catch_up(self) -> None:
        """Set the clock forward to where all streams are done, rather than wait for it."""
        self.engine.jump(max(stream.end for stream in self.device.streams()))


@pytest.mark.parametrize(
    "trace", TRACES, ids=lambda trace: f"{trace['kind']}-{trace['seed']}-{trace.get('conf', '')}"
)
def test_trace(trace: dict[str, Any]) -> None:
    replay = Replay(trace)
    try:
        for number, step in enumerate(trace["steps"]):
            where = (number, step["op"])
            message = replay.step(step)
            assert (message is not None) == step.get("oom", False), where
            if message is not None:
                assert parts(message) == parts(step["message"]), where
            found = replay.device.memory.stats()
            for name, (kind, part) in STATISTICS.items():
                assert found[kind]["all"][part] == step["after"][name], (*where, name)
            for name, counted in COUNTS.items():
                assert found[counted] == step["after"][name], (*where, name)
        if "final_segments" in trace:
            assert sorted(map(str, structure(replay))) == sorted(map(str, trace["final_segments"]))
    finally:
        replay.engine.stop()


#: Peaks that depend on the order in which blocks that waited for several streams become free at
#: once. PyTorch keeps those streams in a hash table by address.
TRANSIENT = ("inactive_split.", "inactive_split_bytes.")

PATH_STATISTICS = PATH.parent / "allocator_statistics_h200.json.gz"
RECORDED: dict[str, Any] = json.loads(gzip.decompress(PATH_STATISTICS.read_bytes()))


@pytest.mark.parametrize(
    "trace", RECORDED["traces"], ids=lambda trace: f"{trace['kind']}-{trace['seed']}"
)
def test_every_statistic(trace: dict[str, Any]) -> None:
    """Compare all that ``torch.cuda.memory_stats`` says, after every step."""
    names = RECORDED["statistics"]
    expected = dict.fromkeys(names, 0)
    replay = Replay(trace)
    try:
        for number, step in enumerate(trace["steps"]):
            where = (number, step["op"])
            message = replay.step(step)
            if message is not None:
                assert parts(message) == parts(step["message"]), where
            assert (message is not None) == step.get("oom", False), where
            expected.update({names[int(k)]: value for k, value in step["changed"].items()})
            found = flattened(replay.device.memory.stats())
            assert sorted(found) == sorted(names)
            for name, value in expected.items():
                if trace["kind"] == "record_stream" and name.startswith(TRANSIENT):
                    if name.endswith(".current"):
                        assert found[name] == value, (*where, name)
                    continue
                assert found[name] == value, (*where, name)
        assert sorted(map(str, structure(replay))) == sorted(map(str, trace["final_segments"]))
    finally:
        replay.engine.stop()


def flattened(stats: dict[str, Any], prefix: str = "") -> dict[str, int]:
    """Return nested statistics as ``torch.cuda.memory_stats`` does."""
    found: dict[str, int] = {}
    for name, value in stats.items():
        if isinstance(value, dict):
            found.update(flattened(value, f"{prefix}{name}."))
        else:
            found[prefix + name] = value
    return found


def parts(message: str) -> list[str]:
    """Return the sentences of an out-of-memory message that do not depend on the machine.

    A real device also holds the process's context, and what others use of it.
    """
    sentences = message.replace("; ", ". ").split(". ")
    machine = ("memory in use", "has a total capacity")
    return [part for part in sentences if not any(word in part for word in machine)]


def structure(replay: Replay) -> list[dict[str, Any]]:
    """Return the segments as the traces give them."""
    found = []
    for segment in replay.device.memory.segments():
        blocks, piece = [], segment.first
        while piece is not None:
            state = "active_allocated" if piece.events is None else "active_pending_free"
            blocks.append([piece.size, "inactive" if piece.free else state])
            piece = piece.next
        kind = "small" if segment.small else "large"
        found.append({"total_size": segment.size, "segment_type": kind, "blocks": blocks})
    return found
