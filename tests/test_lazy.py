"""Lazy modules on the simulated GPU: moved before their first call, made where they were moved."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

pytestmark = pytest.mark.usefixtures("simulated")


def lazy_network(**where: object) -> nn.Sequential:
    return nn.Sequential(
        nn.LazyConv2d(4, 3, **where),
        nn.LazyBatchNorm2d(**where),
        nn.Flatten(),
        nn.LazyLinear(3, **where),
    )


def check(network: nn.Sequential) -> None:
    out = network(torch.randn(5, 2, 8, 8, device="cuda"))
    assert out.is_cuda
    assert {type(value) for value in network.parameters()} == {type(network[0].weight)}
    for value in (*network.parameters(), *network.buffers()):
        assert value.is_cuda
    assert isinstance(network[0].weight, nn.Parameter)
    assert type(network[3]) is nn.Linear
    optimizer = torch.optim.SGD(network.parameters(), 0.1)
    before = network[3].weight.tolist()
    out.sum().backward()
    optimizer.step()
    assert network[3].weight.tolist() != before
    copy.deepcopy(network).load_state_dict(network.state_dict())


@pytest.mark.parametrize("way", ["to", "cuda", "default", "device", "copied", "there and back"])
def test_a_lazy_network_is_made_where_it_was_moved(way: str) -> None:
    if way == "to":
        network = lazy_network().to("cuda:0")
    elif way == "default":
        with torch.device("cuda"):
            network = lazy_network()
    elif way == "device":
        network = lazy_network(device="cuda")
    elif way == "there and back":
        network = lazy_network().cuda().cpu().to(torch.device("cuda"))
    else:
        network = lazy_network().cuda()
    if way == "copied":  # PyTorch cannot copy a lazy buffer
        network[0], network[3] = copy.deepcopy(network[0]), copy.deepcopy(network[3])
    assert network[0].weight.device == torch.device("cuda:0")
    assert network[1].running_mean.is_cuda
    assert repr(network[0].weight) == "<UninitializedParameter>"
    check(network)


def test_a_lazy_network_takes_the_values_of_another() -> None:
    there = lazy_network().cuda()
    here = lazy_network()
    here(torch.randn(5, 2, 8, 8))
    there.load_state_dict(here.state_dict())
    x = torch.randn(5, 2, 8, 8)
    torch.testing.assert_close(there.eval()(x.cuda()).cpu(), here.eval()(x))


def test_a_lazy_network_with_another_dtype() -> None:
    network = nn.LazyLinear(3).to("cuda", torch.float16)
    assert network(torch.ones(2, 5, device="cuda", dtype=torch.float16)).dtype == torch.float16
    network = nn.LazyLinear(3).cuda().half()
    assert network.weight.device.type == "cuda"
    assert network(torch.ones(2, 5, device="cuda", dtype=torch.float16)).is_cuda


def test_a_lazy_network_of_the_host_stays_there() -> None:
    network = lazy_network()
    assert network[0].weight.device == torch.device("cpu")
    assert not network(torch.randn(5, 2, 8, 8)).is_cuda
