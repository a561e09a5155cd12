"""`gpututor.memory`: the map, the numbers, the account, and who holds a tensor."""

from __future__ import annotations

import contextlib
import gc
import json
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from gpututor import Machine, memory

MIB = 2**20


def test_numbers(simulated: Machine) -> None:
    x = torch.zeros(MIB, device="cuda")
    found = memory.numbers()
    assert found.allocated == x.nbytes
    assert found.reserved == 20 * MIB == found.used
    assert found.cached == found.reserved - found.allocated
    assert "4 MiB" in repr(found) and "of 1 GiB" in repr(found)
    assert "Source: simulated T4" in repr(found) and "<table>" in found._repr_html_()


def test_map(simulated: Machine) -> None:
    assert "no memory" in memory.map().alt
    parts = [torch.zeros(count, device="cuda") for count in (100, 3 * MIB, MIB)]
    del parts[1]
    alt = memory.map().alt
    assert "3 segments of 34 MiB" in alt
    assert "Held by tensors: 4 MiB in 2 blocks" in alt
    assert "Lost to rounding: 112 bytes" in alt
    assert "the largest 16 MiB" in alt and "Source: simulated T4" in alt


def test_map_of_many_blocks_is_quick(simulated: Machine) -> None:
    blocks = [torch.empty(10, device="cuda") for _ in range(10_000)]
    del blocks[::3]
    memory.map()
    start = time.perf_counter()
    alt = memory.map().alt
    assert time.perf_counter() - start < 1
    assert "6666 blocks" in alt


def test_account(simulated: Machine) -> None:
    net = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    x = torch.randn(64, 256, device="cuda")
    weights = sum(-(-p.nbytes // 512) * 512 for p in net.parameters())

    def step() -> torch.Tensor:
        out = net(x)
        loss = (out - x).square().mean()
        del out
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    account = memory.account(step, model=net, optimizer=optimizer)
    rows = {row.text: row for row in account.rows}
    assert isinstance(account.result, torch.Tensor)
    before, forward = rows["before the step"], rows["out = net(x)"]
    assert before.kinds["weights"] == weights and before.kinds["gradients"] == 0
    assert before.kinds["other"] == x.nbytes
    # What each ReLU and each Linear saves, and the result.
    assert forward.kinds["activations"] == 64 * 512 * 4 + 64 * 256 * 4
    assert forward.kinds["workspace"] == 8_519_680 + MIB  # cuBLAS's and cuBLASLt's on a T4
    assert rows["loss.backward()"].kinds["gradients"] == weights
    assert rows["optimizer.step()"].kinds["optimizer state"] == 2 * weights
    assert rows["optimizer.zero_grad()"].kinds["gradients"] == 0
    for row in account.rows:
        assert row.peak >= row.allocated
    assert rows["return loss.detach()"].allocated == torch.cuda.memory_allocated()
    assert "optimizer.step()" in account.picture().alt
    assert "gradients" in repr(account) and "In MiB. Source: simulated T4" in repr(account)
    assert "gradi&shy;ents" in account._repr_html_()  # on a narrow page too, all columns are seen
    with pytest.raises(TypeError, match="account needs a function"):
        memory.account(len)


def test_holders_by_name(simulated: Machine) -> None:
    x = torch.zeros(1000, device="cuda")
    losses = [None, x]
    cache = {"last": {"value": x}}
    net = nn.Linear(3, 3).cuda()

    def outer() -> Callable[[], torch.Tensor]:
        kept = x
        return lambda: kept

    hook = outer()
    names = " | ".join(memory.holders(x))
    assert "losses[1] in test_holders_by_name()" in names
    assert "cache['last']['value']" in names
    assert "closure of test_holders_by_name.<locals>.outer.<locals>.<lambda>(): kept" in names
    assert "the variable x in" in names
    assert "net.weight" in " ".join(memory.holders(net.weight))
    del losses, cache, hook, outer
    assert memory.holders(x) == ["the variable x in test_holders_by_name(), which is running"]


def test_tensors_of_a_stopped_gpu(simulate: Callable[[str], Machine]) -> None:
    simulate("T4")
    old = torch.zeros(1000, device="cuda")
    place = old.data_ptr()
    simulate("T4")
    new = torch.zeros(1000, device="cuda")
    assert new.data_ptr() == place
    assert memory.holders(new) == [
        "the variable new in test_tensors_of_a_stopped_gpu(), which is running"
    ]
    assert len(memory.leaks().rows) == 1
    for ask in (old.data_ptr, old.untyped_storage().data_ptr, lambda: memory.holders(old)):
        with pytest.raises(RuntimeError, match="was stopped by gpututor"):
            ask()


def test_a_summed_loss(simulated: Machine) -> None:
    net = nn.Linear(256, 256).cuda()
    x = torch.randn(512, 256, device="cuda")
    total = torch.zeros((), device="cuda")
    for _ in range(3):
        total = total + net(x).sigmoid().sum()
    found = memory.leaks()
    saved = [row for row in found.rows if "saved for backward" in row.what]
    assert len(saved) == 3  # the results of the sigmoid
    for row in saved:
        assert any("graph behind the variable total" in holder for holder in row.holders)
    assert "graph behind the variable total" in repr(found)
    total = total.detach()
    assert not [row for row in memory.leaks().rows if "saved for backward" in row.what]
    del total


IN_A_NOTEBOOK = """
    import json, sys, gpututor
    from IPython.core.interactiveshell import InteractiveShell
    shell = InteractiveShell.instance()
    shell.run_cell("import torch, gpututor; from gpututor import memory")
    shell.run_cell("gpututor.start(simulate='T4');")
    shell.run_cell("torch.zeros(1 << 20, device='cuda')", store_history=True)
    shell.run_cell('''
    def fails():
        big = torch.zeros(1 << 21, device='cuda')
        raise ValueError('no')
    fails()
    ''', store_history=True)
    shell.run_cell("rows = memory.leaks().rows; found = [(r.nbytes, r.holders) for r in rows]")
    found = shell.user_ns["found"]
    shell.run_cell("del rows, found")
    shell.run_cell("said = memory.free_notebook(); left = torch.cuda.memory_allocated()")
    print("FOUND" + json.dumps([found, shell.user_ns["said"], shell.user_ns["left"]]))
"""


def test_what_a_notebook_holds() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(IN_A_NOTEBOOK)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "FOUND" in done.stdout, done.stdout + done.stderr
    found, said, left = json.loads(done.stdout.partition("FOUND")[2])
    held = {size: " | ".join(names) for size, names in found}
    assert "Out[1], the notebook's memory of a cell's result" in held[4 * MIB]
    assert "the last traceback: big in fails(), line" in held[8 * MIB]
    assert left == 0 and said.startswith("freed 12 MiB")


def test_watch(simulated: Machine) -> None:
    view = memory.watch()
    assert "not updated yet" in repr(view)
    with pytest.raises(ValueError, match="nothing to draw yet"):
        view.picture()
    for count in (1, 2, 3):
        x = torch.zeros(count * MIB, device="cuda")
        assert view.update().allocated >= x.nbytes
    assert "allocated: held by tensors" in view.picture().alt
    assert view._view.value.startswith("<img")
    data, _ = view._bundle()
    assert "application/vnd.jupyter.widget-view+json" in data and "image/png" in data


def test_arguments(simulated: Machine) -> None:
    with pytest.raises(TypeError, match="holders needs a tensor"):
        memory.holders([1])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="most must be 1 or more"):
        memory.leaks(most=0)


@pytest.mark.parametrize(
    "fails",
    [
        lambda x: torch.empty(1 << 40, device="cuda"),
        lambda x: x.repeat(1 << 20),
        lambda x: x[:3] + x[:5],
        lambda x: torch.mm(x.view(512, 512), x.view(512, 512).half()),
    ],
    ids=["a tensor", "a result", "two shapes", "two types"],
)
def test_an_error_that_is_over_holds_nothing(
    simulated: Machine, fails: Callable[[torch.Tensor], Any]
) -> None:
    def work() -> None:
        fails(torch.zeros(1 << 18, device="cuda"))

    gc.collect()
    gc.disable()  # what a cycle holds would be freed at some time, not at once
    try:
        with contextlib.suppress(RuntimeError):
            work()
        after = torch.cuda.memory_allocated()
    finally:
        gc.enable()
    assert after == 0


def test_limit(simulated: Machine) -> None:
    kept = torch.zeros(MIB, device="cuda")
    with pytest.raises(torch.OutOfMemoryError), memory.limit(30 * MIB):
        inside = torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
        del inside
        torch.empty(32 * MIB, dtype=torch.uint8, device="cuda")
    assert torch.empty(100 * MIB, dtype=torch.uint8, device="cuda").is_cuda
    for wrong in (0, 2**40):
        with pytest.raises(ValueError, match="give a limit from 1 to"), memory.limit(wrong):
            pass
    with memory.limit(50 * MIB), pytest.raises(ValueError, match="holds here already"):
        memory.limit(100 * MIB).__enter__()
    assert kept.is_cuda


OLD = (
    "CUDA out of memory. Tried to allocate 1.39 GiB (GPU 0; 6.00 GiB total capacity; 4.04 GiB "
    "already allocated; 478.00 MiB free; 4.15 GiB reserved in total by PyTorch)"
)
NEW = (
    "CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of 14.58 GiB of "
    "which {free} is free. Process 2216 has 612.00 MiB memory in use. Including non-PyTorch "
    "memory, this process has 518.00 MiB memory in use. {allowed}Of the allocated memory 8.00 GiB "
    "is allocated by PyTorch, and {cached} is reserved by PyTorch but unallocated."
)


def test_an_out_of_memory_message_in_numbers(simulated: Machine) -> None:
    found = memory.read_message(OLD)
    assert found.free == 478 * MIB and "the GPU is full" in found.verdict
    assert found.cached == int(4.15 * 2**30) - int(4.04 * 2**30)
    cases = {
        ("512.00 MiB", "100.00 MiB", "4.00 GiB", ""): "fragmentation",
        ("64.00 MiB", "6.00 GiB", "20.00 MiB", ""): "look for a limit",
        ("64.00 MiB", "6.00 GiB", "20.00 MiB", "8.05 GiB allowed; "): "the limit that was set",
        ("64.00 MiB", "0 bytes", "20.00 MiB", ""): "the GPU is full",
    }
    for (asked, free, cached, allowed), verdict in cases.items():
        text = NEW.format(asked=asked, free=free, cached=cached, allowed=allowed)
        assert verdict in memory.read_message(text).verdict
    with memory.limit(MIB), pytest.raises(torch.OutOfMemoryError) as error:
        torch.empty(3 * MIB, dtype=torch.uint8, device="cuda")
    found = memory.read_message(error.value)
    assert (found.asked, found.allocated, found.cached) == (20 * MIB, 0, 0)
    assert "20 MiB" in repr(found) and "<table>" in found._repr_html_()
    with pytest.raises(ValueError, match="no out-of-memory message"):
        memory.read_message("no")
