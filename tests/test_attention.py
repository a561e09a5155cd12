"""Fused attention of the simulated GPU: the CPU's values whichever kernel is switched on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import func
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from gpututor import Machine

MASK = torch.ones(5, 5, dtype=torch.bool).tril()
WAYS = {"plain": {}, "causal": {"is_causal": True}, "masked": {"attn_mask": MASK}}


@pytest.mark.parametrize("backend", [SDPBackend.MATH, SDPBackend.EFFICIENT_ATTENTION, None])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("features", [8, 16])
def test_values_and_gradients(
    simulated: Machine, backend: SDPBackend | None, way: str, features: int
) -> None:
    given = [torch.randn(2, 3, 5, 8), torch.randn(2, 3, 5, 8), torch.randn(2, 3, 5, features)]
    here = [part.clone().requires_grad_() for part in given]
    there = [part.cuda().requires_grad_() for part in given]
    wanted = F.scaled_dot_product_attention(*here, **WAYS[way])
    kept = {key: v.cuda() if isinstance(v, torch.Tensor) else v for key, v in WAYS[way].items()}
    if backend is None:
        found = F.scaled_dot_product_attention(*there, **kept)
    else:
        with sdpa_kernel(backend):  # it ends before the kernel has run
            found = F.scaled_dot_product_attention(*there, **kept)
    torch.testing.assert_close(found.cpu(), wanted)
    wanted.square().sum().backward()
    found.square().sum().backward()
    for one, other in zip(here, there, strict=True):
        torch.testing.assert_close(other.grad.cpu(), one.grad)


@pytest.mark.parametrize(
    ("gpu", "backend", "runs"),
    [
        ("T4", SDPBackend.FLASH_ATTENTION, False),  # needs compute capability 8
        ("T4", SDPBackend.EFFICIENT_ATTENTION, True),
        ("A100", SDPBackend.FLASH_ATTENTION, True),
    ],
)
def test_a_backend_the_gpu_has_not_is_refused_at_once(
    simulate: Callable[[str], Machine], gpu: str, backend: SDPBackend, runs: bool
) -> None:
    simulate(gpu)
    x = torch.randn(1, 2, 4, 8, device="cuda", dtype=torch.float16)
    with sdpa_kernel(backend):
        if runs:
            assert F.scaled_dot_product_attention(x, x, x).shape == x.shape
        else:
            with pytest.raises(RuntimeError, match="No available kernel"):
                F.scaled_dot_product_attention(x, x, x)
    torch.cuda.synchronize()


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_attention_under_vmap(simulated: Machine) -> None:
    x = torch.randn(3, 2, 2, 4, 8)
    attend = func.vmap(lambda part: F.scaled_dot_product_attention(part, part, part))
    torch.testing.assert_close(attend(x.cuda()).cpu(), attend(x))
