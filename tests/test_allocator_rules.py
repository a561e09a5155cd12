"""Rules of the allocator that the recorded programs of an H200 seldom reach, one by one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from gpututor import Machine
from gpututor.simulator import memory_blocks
from gpututor.simulator.device import Device
from gpututor.simulator.engine import Engine
from gpututor.simulator.memory import Allocator, amount
from gpututor.simulator.memory_blocks import AddressSpace, Block
from gpututor.simulator.memory_settings import Settings
from gpututor.simulator.profiles import PROFILES

MIB, GIB = 1 << 20, 1 << 30


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.stop()


def device_of(engine: Engine, conf: str = "", index: int = 0) -> Device:
    settings = Settings()
    settings.parse(conf)
    return Device(index, PROFILES["T4"], GIB, engine, settings)


@pytest.fixture
def device(engine: Engine) -> Device:
    return device_of(engine)


def sizes(memory: Allocator) -> list[list[int]]:
    """Return the bytes of each segment's pieces, negative where one is free."""
    return [
        [-piece.size if piece.free else piece.size for piece in segment.pieces()]
        for segment in memory.segments()
    ]


# -- addresses -------------------------------------------------------------------------------


def test_devices_have_addresses_of_their_own(engine: Engine) -> None:
    first, second = (device_of(engine, index=index).memory for index in (0, 1))
    addresses = [memory.allocate(MIB, 0).address for memory in (first, second)]
    assert addresses[0] - addresses[1] == 1 << 40
    assert 0 < addresses[1] < addresses[0] < 0x7F00_0000_0000


def test_a_range_may_fill_its_region() -> None:
    space = AddressSpace(GIB)
    assert space.take(26 * MIB) == GIB - 26 * MIB  # the context has the other 6 MiB
    assert space.take(2 * MIB) < GIB - 32 * MIB


def test_what_is_kept_keeps_its_whole_region() -> None:
    space = AddressSpace(GIB)
    address = GIB - 64 * MIB
    space.keep_only([(address, 2 * MIB)])
    assert space.take(30 * MIB) == address + 2 * MIB


def test_a_segments_buffer_is_aligned_and_large_enough(device: Device) -> None:
    device.memory.allocate(3 * MIB, 0)
    (segment,) = device.memory.segments()
    assert segment.storage.nbytes() == segment.size + 512
    assert (segment.storage.data_ptr() + segment.shift) % 512 == 0
    assert 0 <= segment.shift < 512


def test_more_than_the_host_has_is_reserved_on_linux_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(memory_blocks.torch, "UntypedStorage", full)
    if sys.platform == "linux":
        storage = memory_blocks._host_buffer(MIB)
        assert storage.nbytes() == MIB and storage.device.type == "cpu"
        storage.fill_(7)
        assert storage[MIB - 1] == 7
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        memory_blocks._host_buffer(MIB)


def test_a_block_of_nothing() -> None:
    block = Block(None, 0)
    assert block.address == 0 and block.first(torch.float32) == 0
    view = block.view((0, 3), (3, 1), torch.float16)
    assert view.shape == (0, 3) and view.dtype is torch.float16 and view.device.type == "cpu"


# -- which block is taken --------------------------------------------------------------------


def test_a_block_of_exactly_the_limit_is_kept_for_a_large_request(engine: Engine) -> None:
    """``max_split_size_mb``: from the limit on, blocks serve requests from the limit on."""
    memory = device_of(engine, "max_split_size_mb:20").memory
    block = memory.allocate(5 * MIB, 0)
    assert sizes(memory) == [[5 * MIB, -15 * MIB]]
    del block
    again = memory.allocate(5 * MIB, 0)
    assert len(sizes(memory)) == 2
    large = memory.allocate(20 * MIB, 0)
    assert len(sizes(memory)) == 2
    assert again and large


@pytest.mark.parametrize(("cached", "taken"), [(60, False), (58, True)])
def test_a_large_block_may_be_less_than_20_mib_too_large(
    engine: Engine, cached: int, taken: bool
) -> None:
    memory = device_of(engine, "max_split_size_mb:20").memory
    block = memory.allocate(cached * MIB, 0)
    del block
    kept = memory.allocate(40 * MIB, 0)
    assert len(sizes(memory)) == (1 if taken else 2)
    assert kept


def test_no_block_grows_old_before_there_is_a_limit(engine: Engine) -> None:
    """``garbage_collection_threshold`` counts searches from when the process has a fraction."""
    device = device_of(engine, "garbage_collection_threshold:0.5")
    memory, side = device.memory, device.new_stream(0).stream_id
    old, young = (memory.allocate(size * MIB, 0) for size in (40, 60))
    del old
    memory.collect()
    others = [memory.allocate(3 * MIB, side) for _ in range(5)]  # all from one segment of 20 MiB
    del young
    memory.collect()
    memory.fraction = 160 * MIB / GIB
    kept = memory.allocate(70 * MIB, 0)  # 80 MiB may stay: the older one alone would be enough
    assert sorted(sum(map(abs, parts)) // MIB for parts in sizes(memory)) == [20, 70]
    assert others and kept


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (512, "512 bytes"),
        (1024, "1024 bytes"),
        (1536, "1.50 KiB"),
        (MIB, "1024.00 KiB"),
        (20 * MIB, "20.00 MiB"),
        (GIB, "1024.00 MiB"),
        (3 * GIB, "3.00 GiB"),
    ],
)
def test_amounts_are_written_as_pytorch_writes_them(nbytes: int, text: str) -> None:
    assert amount(nbytes) == text


# -- other streams ---------------------------------------------------------------------------


def test_a_block_waits_for_what_was_queued_when_it_was_freed(
    engine: Engine, device: Device
) -> None:
    memory, side = device.memory, device.new_stream(0)
    block = memory.allocate(4 * MIB, 0)
    block.used_on(side)
    device.sleep(side, 10**9)
    end = side.end
    del block  # nothing looks at it yet
    device.sleep(side, 10**12)
    engine.jump(end)
    engine.wait(end)
    kept = memory.allocate(4 * MIB, 0)
    assert sizes(memory) == [[4 * MIB, -16 * MIB]], "it waits for what came later, too"
    assert kept
    engine.jump(side.end)


# -- after an interrupt ----------------------------------------------------------------------


def test_the_cache_is_emptied_after_an_interrupt_too(device: Device) -> None:
    memory = device.memory
    block = memory.allocate(12 * MIB, 0)
    del block
    memory._changing += 1  # as an interrupt in the middle of a change leaves it
    memory.empty_cache()
    assert memory.reserved() == 0 and memory._changing == 0


def test_a_full_segment_has_no_empty_piece_after_an_interrupt(device: Device) -> None:
    memory = device.memory
    blocks = [memory.allocate(size, 0) for size in (12 * MIB, 5 * MIB, MIB)]
    before = sizes(memory)
    memory._changing += 1
    memory.collect()
    assert sizes(memory) == before and [12 * MIB] in before
    assert blocks


# -- the memory history ----------------------------------------------------------------------


def trace() -> list[dict[str, Any]]:
    found = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(None)
    return [event for event in found if event["action"] != "snapshot"]


def test_the_history_says_which_stream_and_which_address(simulated: Machine) -> None:
    side = torch.cuda.Stream()
    torch.cuda.memory._record_memory_history(context="alloc")  # frees have their block's
    with torch.cuda.stream(side):
        x = torch.empty(12 * MIB, dtype=torch.uint8, device="cuda")
        address = x.data_ptr()
        del x
        torch.cuda.empty_cache()
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(4 * GIB, dtype=torch.uint8, device="cuda")
    events = trace()
    assert [event["action"] for event in events] == [
        *("segment_alloc", "alloc", "free_requested", "free_completed", "segment_free", "oom")
    ]
    assert {event["stream"] for event in events} == {side.cuda_stream} != {0}
    assert {event["addr"] for event in events[:-1]} == {address}
    of_alloc = events[1]["frames"]
    assert of_alloc and events[2]["frames"] == events[3]["frames"] == of_alloc


def test_the_cache_of_large_blocks_is_given_back_first(simulated: Machine) -> None:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        kept = [torch.empty(n, dtype=torch.uint8, device="cuda") for n in (512, 12 * MIB)]
    kept += [torch.empty(n, dtype=torch.uint8, device="cuda") for n in (512, 14 * MIB)]
    kept.clear()
    torch.cuda.memory._record_memory_history()
    torch.cuda.empty_cache()
    freed = [
        (event["size"] // MIB, event["stream"])
        for event in trace()
        if event["action"] == "segment_free"
    ]
    assert freed == [(14, 0), (12, side.cuda_stream), (2, 0), (2, side.cuda_stream)]
