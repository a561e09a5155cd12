"""Inference mode on the simulated GPU: the same values, and the same rules, as on a CPU."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from test_values import NETWORKS
from torch.nn import functional as F

pytestmark = pytest.mark.usefixtures("simulated")

WORK: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a cast": lambda x: (x + x).double(),
    "a transposed copy": lambda x: (x + x).t().reshape(-1),
    "flattened": lambda x: (x * 2).t().flatten().contiguous(),
    "linear": lambda x: F.linear(x + 1, x, x[:, 0]),
    "parts": lambda x: torch.cat((x + 1).t().chunk(2)[::-1]),
    "softmax": lambda x: F.softmax(x, -1).argmax(1, keepdim=True),
    "a mean": lambda x: x.view(2, -1).mean(1).to(torch.float16).float(),
    "in place": lambda x: x.clone().mul_(3)[1:].add_(1),
    "attention": lambda x: F.scaled_dot_product_attention(*[(x + 0)[None, None]] * 3),
}


@pytest.mark.parametrize("name", WORK)
def test_work_in_inference_mode(name: str) -> None:
    x = torch.arange(48.0).view(8, 6).sin()
    work = WORK[name]
    wanted = work(x)
    given = x.cuda()
    for _ in range(3):  # the first call of an operator takes longer than the next
        with torch.inference_mode():
            found = work(given)
            assert found.is_cuda
            assert found.is_inference()
            torch.testing.assert_close(found.cpu(), wanted)
        torch.testing.assert_close(found.cpu(), wanted)  # and printed, viewed, moved later
        assert str(found.view(-1)[:2]).startswith("tensor(")


@pytest.mark.parametrize("network", NETWORKS)
def test_networks_in_inference_mode(network: str) -> None:
    make, shape = NETWORKS[network]
    torch.manual_seed(0)
    model = make().eval()
    x = torch.randn(shape)
    there = copy.deepcopy(model).cuda()
    with torch.inference_mode():
        torch.testing.assert_close(there(x.cuda()).cpu(), model(x), rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(there(x.cuda()).cpu(), model(x), rtol=1e-4, atol=1e-5)


def test_a_view_is_of_inference_mode_where_its_base_is() -> None:
    x = torch.ones(3, device="cuda")
    with torch.inference_mode():
        y = x + 1
        assert [x[:2].is_inference(), x.detach().is_inference(), y[:2].is_inference()] == [
            False,
            False,
            True,
        ]
        x.add_(1)
    assert y.view(3, 1).is_inference()
    assert x.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x.requires_grad_().mul(y)


def test_copies_to_the_host_in_inference_mode() -> None:
    x = torch.arange(4.0, device="cuda")
    with torch.inference_mode():
        host, pinned = torch.empty(4), torch.empty(4, pin_memory=True)
        host.copy_(x)
        pinned.copy_(x, non_blocking=True)
        torch.cuda.synchronize()
        assert host.tolist() == pinned.tolist() == x.numpy(force=True).tolist() == [0, 1, 2, 3]
