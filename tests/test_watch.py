"""What `gpututor.parallel` says of the devices, and that it leaves no process behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from gpututor import parallel

pytestmark = pytest.mark.usefixtures("two_devices")


def test_it_says_what_each_device_got_held_and_did() -> None:
    net = nn.DataParallel(nn.Linear(256, 512).to("cuda:0"))
    with parallel.watch(net) as seen:
        kept = net(torch.randn(5, 256))
    first, second = seen.rows
    assert (first.device, first.got) == ("cuda:0", [(3, 256)])
    assert (second.device, second.got) == ("cuda:1", [(2, 256)])
    assert first.held == torch.cuda.memory_allocated(0)
    assert second.peak == torch.cuda.max_memory_allocated(1) >= 4 * 257 * 512
    assert first.forward > 0 < second.forward
    assert kept.shape == (5, 512)
    text, table = repr(seen), seen._repr_html_()
    for word in ("cuda:1", "2×256", "held at most", "Source: simulated "):
        assert word in text
        assert word in table
    assert "cuda:0" in seen.picture().alt


def test_it_counts_every_call_and_every_tensor_in_it() -> None:
    class Sum(nn.Module):
        def forward(self, x: torch.Tensor, *, more: dict[str, Any]) -> torch.Tensor:
            return x + more["y"]

    net = Sum()
    with parallel.watch(net) as seen:
        for device in ("cuda:1", "cuda:1"):
            net(torch.ones(2, device=device), more={"y": torch.ones((), device=device)})
    assert [row.got for row in seen.rows] == [[], [(2,), (), (2,), ()]]
    assert "a number" in repr(seen) and "nothing" in repr(seen)


def test_an_error_in_the_block_goes_on_and_leaves_no_hooks() -> None:
    net = nn.DataParallel(nn.Linear(4, 1).to("cuda:0"))
    with pytest.raises(RuntimeError, match="replica 0"), parallel.watch(net) as seen:
        net(torch.randn(4, 3))
    assert [row.got for row in seen.rows] == [[(2, 3)], [(2, 3)]]
    assert not net.module._forward_hooks and not net.module._forward_pre_hooks


def test_it_wants_a_module() -> None:
    with pytest.raises(TypeError, match="watch needs the module"), parallel.watch(3):  # type: ignore[arg-type]
        pass


needs_gloo = pytest.mark.skipif(
    not (torch.distributed.is_available() and torch.distributed.is_gloo_available()),
    reason="this PyTorch has no gloo",
)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    def write(body: str) -> Path:
        path = tmp_path / "program.py"
        path.write_text(f"import torch, torch.distributed as dist, os, time\n{body}\n")
        return path

    return write


@needs_gloo
def test_torchrun_returns_what_was_printed(write: Callable[[str], Path]) -> None:
    script = write(
        "dist.init_process_group('gloo')\n"
        "one = torch.ones(1)\n"
        "dist.all_reduce(one)\n"
        "print(one.item()) if dist.get_rank() == 0 else None\n"
        "dist.barrier()\n"
        "dist.destroy_process_group()\n"
        "import sys; sys.stdout.flush()\n"
        "os._exit(0)  # gloo can abort while Python shuts down"
    )
    assert parallel.torchrun(script, 2) == "2.0\n"


@pytest.mark.parametrize("ends", [("\n", "\n"), ("", "\n\n")])
def test_what_gloo_says_of_itself_is_left_out(ends: tuple[str, str]) -> None:
    said = "[Gloo] Rank {} is connected to 1 peer ranks. Expected number of connected peer ranks is"
    lines = "".join(f"{said.format(rank)} : 1{end}" for rank, end in enumerate(ends))
    assert parallel._CONNECTED.sub("", f"one\n{lines}two\n") == "one\ntwo\n"


@needs_gloo
def test_torchrun_says_why_a_process_failed(write: Callable[[str], Path]) -> None:
    script = write("dist.init_process_group('gloo')\nraise ValueError('my own mistake')")
    with pytest.raises(RuntimeError, match="my own mistake") as caught:
        parallel.torchrun(script, 2)
    assert len(str(caught.value).splitlines()) < 10


@pytest.mark.skipif(sys.platform == "win32", reason="asks ps")
def test_torchrun_leaves_no_process_when_time_is_over(write: Callable[[str], Path]) -> None:
    script = write("open(os.environ['STARTED'], 'a').write('x')\ntime.sleep(600)")
    started = script.with_name("started")
    os.environ["STARTED"] = str(started)
    begin = time.monotonic()
    try:
        with pytest.raises(TimeoutError, match=r"program\.py was not done after 12 s"):
            parallel.torchrun(script, 2, limit=12)
    finally:
        del os.environ["STARTED"]
    assert time.monotonic() - begin < 60
    assert started.read_text().startswith("x"), "no process had begun"
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(script) not in running.stdout


def test_torchrun_wants_a_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="write it first"):
        parallel.torchrun(tmp_path / "none.py")
