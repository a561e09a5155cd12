"""The memory API of ``torch.cuda``: settings, history, snapshots, and what is refused."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.cuda import _memory_viz

from gpututor import Machine
from gpututor.simulator import runtime
from gpututor.simulator.errors import NotSimulatedError
from gpututor.simulator.memory_settings import Settings

MIB = 2**20


def set_settings(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # some versions announce another name
        torch.cuda.memory._set_allocator_settings(text)


# -- settings: the errors are those of torch 2.11 on an H200 --


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("foo:1", ValueError, "Unrecognized key 'foo' in Accelerator allocator config."),
        ("max_split_size_mb:10", ValueError, "max_split_size_mb too small, must be >= 20"),
        ("max_split_size_mb", RuntimeError, "Index out of bounds in ConfigTokenizer"),
        ("max_split_size_mb:64;x:1", ValueError, "'1'"),
        ("roundup_power2_divisions:3", ValueError, "the divisions has to be power of 2"),
        ("roundup_power2_divisions:[255:1]", ValueError, "the intervals have to be power of 2"),
        ("roundup_power2_divisions:[256:1", RuntimeError, "Index out of bounds"),
        ("garbage_collection_threshold:2", ValueError, "set it in (0.0, 1.0)"),
        ("expandable_segments:yes", ValueError, "Expected 'True' or 'False' at index 2"),
        ("backend:foo", ValueError, "options are native and cudaMallocAsync"),
        ("expandable_segments:True", NotSimulatedError, "expandable_segments:True is not"),
        ("backend:cudaMallocAsync", NotSimulatedError, "cudaMallocAsync is not simulated"),
    ],
)
def test_refused_settings(
    simulated: Machine, text: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        set_settings(text)
    assert message in str(caught.value)
    assert runtime.current().settings.text == ""


def test_settings_take_effect(simulated: Machine) -> None:
    make()
    torch.cuda.empty_cache()
    set_settings("max_split_size_mb:64, roundup_power2_divisions:[1:8,4:4,>:0]")
    assert torch.cuda.memory_stats()["max_split_size"] == 64 * MIB
    x = torch.empty(1_100_000, dtype=torch.uint8, device="cuda")
    assert torch.cuda.memory_allocated() == MIB + MIB // 8
    set_settings("")
    y = torch.empty(1_100_000, dtype=torch.uint8, device="cuda")
    assert torch.cuda.memory_allocated() == MIB + MIB // 8 + 1_100_288
    del x, y


def test_divisions_by_size() -> None:
    settings = Settings()
    settings.parse("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]")
    divisions = settings.roundup_power2_divisions
    assert divisions == [1] * 9 + [2, 4] + [8] * 5


@pytest.mark.parametrize("name", ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"])
def test_environment(
    name: str, monkeypatch: pytest.MonkeyPatch, simulate: Callable[[str], Machine]
) -> None:
    monkeypatch.setenv(name, "max_split_size_mb:32")
    simulate("T4")
    torch.zeros(1, device="cuda")
    assert torch.cuda.memory_stats()["max_split_size"] == 32 * MIB


# -- history and snapshots --


def make() -> torch.Tensor:
    return torch.zeros(MIB, device="cuda")


def test_history(simulated: Machine, tmp_path: Path) -> None:
    torch.cuda.memory._record_memory_history(max_entries=1000)
    x = make()
    y = make()
    del x
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(100_000_000)
    y.record_stream(side)
    del y
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
    z = make()
    path = tmp_path / "snapshot.pickle"
    torch.cuda.memory._dump_snapshot(str(path))
    torch.cuda.memory._record_memory_history(None)
    snapshot = pickle.loads(path.read_bytes())
    trace = snapshot["device_traces"][0]
    actions = [entry["action"] for entry in trace]
    assert actions == [
        *("segment_alloc", "alloc", "alloc", "free_requested", "free_completed"),
        *("free_requested", "free_completed", "segment_free", "oom"),
        *("segment_alloc", "alloc", "snapshot"),
    ]
    alloc = trace[1]
    assert alloc["size"] == 4 * MIB and alloc["stream"] == 0
    assert "device_free" in trace[8] and "addr" not in trace[8]
    block = next(b for s in snapshot["segments"] for b in s["blocks"] if b["state"] != "inactive")
    assert block["address"] == z.data_ptr()
    # PyTorch's own viewers open it.
    assert "cudaMalloc" in _memory_viz.trace(snapshot)

    def plainly(lines: str) -> str:
        return lines  # they would load a program that draws them

    assert "make" in _memory_viz.memory(snapshot, plainly)
    assert "stream_0" in _memory_viz.segments(snapshot, plainly)
    for plot in (_memory_viz.trace_plot, _memory_viz.segment_plot):
        assert "<html" in plot(snapshot).lower() or "<!doctype" in plot(snapshot).lower()
    assert "segments" in _memory_viz.segsum(snapshot)
    assert "stream" in _memory_viz.compare(snapshot["segments"], [], plainly)


def test_history_says_where(simulated: Machine) -> None:
    torch.cuda.memory._record_memory_history()
    x = make()
    snapshot = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(None)
    block = next(b for s in snapshot["segments"] for b in s["blocks"] if b["state"] != "inactive")
    assert block["address"] == x.data_ptr()
    for frames in (snapshot["device_traces"][0][1]["frames"], block["frames"]):
        assert frames[0] == {
            "filename": __file__,
            "line": make.__code__.co_firstlineno + 1,
            "name": "make",
        }


def test_history_options(simulated: Machine) -> None:
    for arguments in (("foo",), ("all", "foo"), ("all", "all", "foo")):
        with pytest.raises(RuntimeError, match="expected"):
            torch.cuda.memory._record_memory_history(*arguments)
    torch.cuda.memory._record_memory_history("all", context=None, max_entries=3)
    for _ in range(5):
        make()
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    assert len(trace) == 3 and all("frames" not in entry for entry in trace)
    torch.cuda.memory._record_memory_history(None)
    assert torch.cuda.memory._snapshot()["device_traces"] == [[]]


def test_pending_block(simulated: Machine) -> None:
    x, side = make(), torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(100_000_000)
    x.record_stream(side)
    del x
    (segment,) = torch.cuda.memory_snapshot()
    assert [block["state"] for block in segment["blocks"]] == ["active_pending_free", "inactive"]
    assert segment["active_size"] == 4 * MIB and segment["allocated_size"] == 0
    stats = torch.cuda.memory_stats()
    assert stats["active_bytes.all.current"] == 4 * MIB and torch.cuda.memory_allocated() == 0
    torch.cuda.synchronize()
    make()
    assert torch.cuda.memory_stats()["active_bytes.all.current"] == 0


# -- the rest of the API --


def test_old_names(simulated: Machine) -> None:
    x = make()
    with pytest.warns(FutureWarning, match="renamed to `torch.cuda.memory_reserved`"):
        assert torch.cuda.memory_cached() == 20 * MIB
    with pytest.warns(FutureWarning, match="resets /all/ peak memory stats"):
        torch.cuda.reset_max_memory_allocated()
    del x
    summary = torch.cuda.memory_summary()
    assert "PyTorch CUDA memory summary, device ID 0" in summary and "20480 KiB" in summary
    assert torch.cuda.memory_stats_as_nested_dict()["segment"]["all"]["current"] == 1


def test_fraction(simulated: Machine) -> None:
    assert torch.cuda.get_per_process_memory_fraction() == 1.0
    torch.cuda.set_per_process_memory_fraction(0.0625)
    assert torch.cuda.get_per_process_memory_fraction() == 0.0625
    with pytest.raises(torch.OutOfMemoryError, match=r"64\.00 MiB allowed; Of the allocated"):
        torch.zeros(17 * MIB, device="cuda")
    with pytest.raises(TypeError, match="must be `float`"):
        torch.cuda.set_per_process_memory_fraction(2)


def test_pinned_memory(simulated: Machine) -> None:
    make()
    assert torch.cuda.host_memory_stats()["active_bytes.current"] == 0
    x = torch.zeros(1000).pin_memory()
    stats = torch.cuda.host_memory_stats()
    assert stats["active_bytes.current"] == 4096 and stats["active_requests.peak"] >= 1
    del x


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.cuda.caching_allocator_alloc(100),
        lambda: torch.cuda.MemPool(),
        lambda: torch.cuda.list_gpu_processes(),
        lambda: torch.cuda.memory.caching_allocator_enable(False),
    ],
)
def test_refused(simulated: Machine, call: Callable[[], Any]) -> None:
    make()
    with pytest.raises(NotSimulatedError, match="is not simulated"):
        call()


# -- reuse across streams --


@pytest.mark.parametrize("recorded", [False, True])
def test_a_block_reused_too_early(simulated: Machine, recorded: bool) -> None:
    """Without ``record_stream`` the side stream reads the next tensor; with it, never."""
    side, wrong = torch.cuda.Stream(), 0
    for _ in range(20):
        x = torch.ones(MIB, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(3_000_000)
            y = x * 1
        if recorded:
            x.record_stream(side)
        del x
        z = torch.full((MIB,), 7.0, device="cuda")
        torch.cuda.synchronize()
        wrong += y.mean().item() != 1
        del y, z
    assert wrong == 0 if recorded else wrong >= 19
