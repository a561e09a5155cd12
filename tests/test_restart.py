"""Starting the simulated machine again and again in one process leaves nothing behind."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable

import pytest
import torch
from torch import nn

import gpututor
from gpututor import Machine


def use() -> None:
    """Do what makes threads, host buffers, events and pending work."""
    x = torch.randn(256, 256, device="cuda", requires_grad=True)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        total = (x @ x).relu().sum()
    torch.cuda.current_stream().wait_stream(side)
    total.backward()
    net = nn.DataParallel(nn.Linear(4, 4).cuda())
    net(torch.randn(4, 4, device="cuda")).sum().item()
    torch.randn(5).pin_memory()
    torch.cuda.Event().record()
    torch.cuda._sleep(1_000_000_000)  # not done when the machine stops


def count() -> tuple[int, int, int]:
    """Return the threads, the open files and the tensors of this process."""
    gc.collect()
    files = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    tensors = sum(issubclass(type(item), torch.Tensor) for item in gc.get_objects())
    return threading.active_count(), files, tensors


@pytest.mark.parametrize("times", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_nothing_is_left(simulate: Callable[[str], Machine], times: int) -> None:
    simulate("T4x2")
    use()
    gpututor.stop()
    before = count()
    for _ in range(times):
        simulate("T4x2")
        use()
        gpututor.stop()
    assert count() == before
