"""`stop` leaves torch as it was."""

from __future__ import annotations

import contextlib
import sys
import threading
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

import gpututor


def _picture() -> dict[str, dict[str, Any]]:
    """Return the attributes of torch, its loaded submodules, its classes and threading."""
    owners: dict[str, Any] = {"threading": threading}
    for name, module in sorted(sys.modules.items()):
        if isinstance(module, ModuleType) and name.split(".")[0] == "torch":
            owners[name] = module
    for kind in (
        torch.Tensor,
        nn.Parameter,
        nn.Module,
        torch.UntypedStorage,
        torch.autocast,
        torch.utils._device.DeviceContext,
        threading.Thread,
    ):
        owners[f"{kind.__module__}.{kind.__qualname__}"] = kind
    return {name: dict(vars(owner)) for name, owner in owners.items()}


def _differences(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> list[str]:
    found = []
    for owner, attributes in before.items():
        now = after[owner]
        for name in attributes.keys() | now.keys():
            if attributes.get(name, "absent") is not now.get(name, "absent"):
                found.append(f"{owner}.{name}")
    return sorted(found)


def _use_it() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 2)).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(2):
        net(torch.randn(3, 4, device="cuda")).sum().backward()
        optimizer.step()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), torch.autocast("cuda", dtype=torch.float16):
        net(torch.ones(1, 4, device="cuda"))
    torch.cuda.is_bf16_supported()
    torch.cuda.memory_summary()
    torch.cuda.synchronize()
    with contextlib.suppress(RuntimeError):
        torch.cuda.set_device(7)


def test_stop_leaves_torch_attribute_for_attribute() -> None:
    gpututor.stop()
    gpututor.start(simulate="T4")  # once before the picture: torch itself imports things lazily
    _use_it()
    gpututor.stop()
    before = _picture()
    gpututor.start(simulate="T4x2")
    changed = _differences(before, _picture())
    assert "torch.zeros" in changed and "torch.cuda.Stream" in changed  # the picture can tell
    _use_it()
    gpututor.stop()
    assert _differences(before, _picture()) == []
    # Python also names a thread whose start was interrupted, and that never ran.
    alive = [thread.name for thread in threading.enumerate() if thread.is_alive()]
    assert "simulated-gpu" not in alive


def test_tensors_that_outlive_stop_say_so() -> None:
    gpututor.start(simulate="T4")
    a, one = torch.ones(3, device="cuda"), torch.ones((), device="cuda")
    stream, storage = torch.cuda.Stream(), a.untyped_storage()
    gpututor.stop()
    for use in (
        lambda: a + 1,
        lambda: a.cpu(),
        lambda: one.item(),
        lambda: a[0],
        lambda: repr(a),
        lambda: a.tolist(),
        lambda: a.to("cpu"),
        stream.synchronize,
        lambda: a.add_(1),
        lambda: a.set_(storage),
        lambda: a.resize_(4),
        lambda: a.unsqueeze_(0),
    ):
        with pytest.raises(RuntimeError, match="stopped"):
            use()


def test_start_again_changes_nothing_for_the_same_wish() -> None:
    first = gpututor.start(simulate="T4x2")
    value = torch.ones(3, device="cuda:1")
    assert gpututor.start(simulate="T4x2") is first
    assert value.sum().item() == 3
    other = gpututor.start(simulate="T4")
    assert other is not first and torch.cuda.device_count() == 1
    gpututor.stop()
