"""Checkpoints of the simulated GPU are everybody's."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from torch import nn

pytestmark = pytest.mark.usefixtures("simulated")


def _network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)).cuda()


def _trained() -> tuple[nn.Module, torch.optim.Optimizer]:
    net = _network()
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.randn(6, 4, device="cuda")).sum().backward()
    optimizer.step()
    return net, optimizer


@pytest.mark.parametrize("with_map", [True, False])
def test_a_checkpoint_loads_without_gpututor(tmp_path: Path, with_map: bool) -> None:
    net, optimizer = _trained()
    path = tmp_path / "checkpoint.pt"
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, path)
    code = f"""
        import sys, torch
        kept = torch.load({str(path)!r}, weights_only=True{', map_location="cpu"' * with_map})
        assert "gpututor" not in sys.modules
        weight = kept["net"]["0.weight"]
        assert type(weight) is torch.Tensor
        assert weight.device.type == {"cpu" if with_map else "cuda"!r}
        print(weight.flatten().tolist())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    if with_map or done.returncode == 0:  # without the map only where there is a real GPU
        assert done.returncode == 0, done.stderr
        assert eval(done.stdout) == net[0].weight.flatten().tolist()
    else:  # as a CUDA checkpoint is refused
        assert "Attempting to deserialize object on a CUDA device" in done.stderr


def test_a_checkpoint_comes_back(tmp_path: Path) -> None:
    net, optimizer = _trained()
    path = tmp_path / "checkpoint.pt"
    torch.save([net.state_dict(), optimizer.state_dict()], path)
    weights, state = torch.load(path, weights_only=True)
    assert weights["0.weight"].device == torch.device("cuda:0")
    other = _network()
    other.load_state_dict(weights)
    again = torch.optim.Adam(other.parameters())
    again.load_state_dict(state)
    x = torch.randn(6, 4, device="cuda")
    for model, optim in ((net, optimizer), (other, again)):
        optim.zero_grad()
        model(x).sum().backward()
        optim.step()
    for one, two in zip(net.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one.cpu(), two.cpu())


def test_views_share_their_storage_in_a_file() -> None:
    x = torch.arange(1000.0, device="cuda")
    buffer = io.BytesIO()
    torch.save([x, x[10:20], x.view(10, 100).t()], buffer)
    assert buffer.tell() < 2 * x.nbytes
    buffer.seek(0)
    a, b, c = torch.load(buffer)
    a[12] = -1
    assert b[2].item() == -1 and c[12, 0].item() == -1


def test_copies_and_pickles_keep_what_they_are() -> None:
    net, _ = _trained()
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        for one, two in zip(net.parameters(), other.parameters(), strict=True):
            assert isinstance(two, nn.Parameter) and two.device == one.device
            assert two.data_ptr() != one.data_ptr()
            torch.testing.assert_close(two.cpu(), one.cpu())
