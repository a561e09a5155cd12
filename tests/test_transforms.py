"""``torch.func``, forward mode and dispatch modes on the simulated GPU do what they do on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import func
from torch.autograd import forward_ad
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

import gpututor.simulator.errors

pytestmark = pytest.mark.usefixtures("simulated")

WEIGHT, BIAS, POINT = torch.randn(4, 3), torch.randn(4), torch.randn(3)
BATCH = torch.randn(6, 3)


def layer(weight: torch.Tensor, bias: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return one layer's output; inside a transform the device is asked for."""
    return F.linear(x, weight, bias).tanh() + torch.zeros(4, device=x.device)


def forward_tangent(weight: torch.Tensor, bias: torch.Tensor, x: torch.Tensor) -> Any:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        return forward_ad.unpack_dual(layer(weight, bias, dual)).tangent


TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": func.grad(lambda *args: layer(*args).sum(), argnums=(0, 2)),
    "jacrev": func.jacrev(layer, argnums=(0, 1, 2)),
    "jacfwd": func.jacfwd(layer, argnums=2),
    "hessian": func.hessian(layer, argnums=2),
    "hessian of hessian": func.jacfwd(func.hessian(layer, argnums=2), argnums=2),
    "jvp": lambda w, b, x: func.jvp(lambda y: layer(w, b, y), (x,), (torch.ones_like(x),)),
    "hvp": lambda w, b, x: func.jvp(
        func.grad(lambda y: layer(w, b, y).sum()), (x,), (torch.ones_like(x),)
    ),
    "forward mode": forward_tangent,
    "vectorized jacobian": lambda w, b, x: torch.autograd.functional.jacobian(
        lambda y: layer(w, b, y), x, vectorize=True
    ),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_compute_what_the_cpu_computes(name: str) -> None:
    transform = TRANSFORMS[name]
    wanted = transform(WEIGHT, BIAS, POINT)
    found = transform(WEIGHT.cuda(), BIAS.cuda(), POINT.cuda())
    assert all(leaf.is_cuda for leaf in torch.utils._pytree.tree_leaves(found))
    moved = torch.utils._pytree.tree_map(lambda leaf: leaf.cpu(), found)
    torch.testing.assert_close(moved, wanted)


@pytest.mark.parametrize("name", ["jacrev", "hessian", "jvp"])
def test_transforms_of_batches(name: str) -> None:
    batched = func.vmap(TRANSFORMS[name], in_dims=(None, None, 0))
    found = batched(WEIGHT.cuda(), BIAS.cuda(), BATCH.cuda())
    moved = torch.utils._pytree.tree_map(lambda leaf: leaf.cpu(), found)
    torch.testing.assert_close(moved, batched(WEIGHT, BIAS, BATCH))


def test_gradients_of_a_batch_at_once() -> None:
    x = torch.arange(3.0, device="cuda", requires_grad=True)
    (found,) = torch.autograd.grad(x**2, x, torch.eye(3, device="cuda"), is_grads_batched=True)
    assert torch.equal(found.cpu(), torch.diag(2 * x.detach().cpu()))


def test_a_forward_level_leaves_the_hosts_own_work_alone() -> None:
    with forward_ad.dual_level():
        here = forward_ad.make_dual(POINT, torch.ones_like(POINT))
        there = forward_ad.make_dual(POINT.cuda(), torch.ones(3, device="cuda"))
        for x, weight in ((here, WEIGHT), (there, WEIGHT.cuda()), (here, WEIGHT)):
            value, tangent = forward_ad.unpack_dual(F.linear(x, weight))
            assert value.device == tangent.device == weight.device
        assert not torch.zeros(3).is_cuda


def test_random_masks_under_vmap_differ() -> None:
    x = torch.ones(4, 1000, device="cuda")
    found = func.vmap(F.dropout, randomness="different")(x).cpu()
    assert set(found.unique().tolist()) == {0.0, 2.0}
    assert not torch.equal(found[0], found[1])


def test_inside_a_transform_a_tensor_knows_its_device() -> None:
    seen: list[Any] = []

    def look(x: torch.Tensor) -> torch.Tensor:
        seen.append((x.device, x.is_cuda, x.is_cpu, x.get_device(), x.to(x.device) is x))
        return x.double().sum()

    func.vmap(look)(BATCH.cuda())
    func.vmap(look)(BATCH)
    assert seen[0] == (torch.device("cuda:0"), True, False, 0, True)
    assert seen[1] == (torch.device("cpu"), False, True, -1, True)


def test_a_move_inside_a_transform_is_refused_by_name() -> None:
    for x, target in ((BATCH.cuda(), "cpu"), (BATCH, "cuda")):
        with pytest.raises(gpututor.simulator.errors.NotSimulatedError, match="inside a transform"):
            func.vmap(lambda row: row.to(target))(x)  # noqa: B023
    torch.cuda.synchronize()


def test_a_mode_that_counts_hears_of_attention_and_of_backward() -> None:
    counts = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        attention = torch.nn.MultiheadAttention(8, 2).to(device)
        x = torch.randn(5, 3, 8).to(device)
        with FlopCounterMode(display=False) as counter:
            attention(x, x, x)[0].sum().backward()
        counts.append(counter.get_total_flops())
    assert counts[0] == counts[1]


def test_a_class_of_the_learners_own_hears_of_functions() -> None:
    heard: list[Any] = []

    class Mine(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            heard.append(function)
            return super().__torch_function__(function, types, args, kwargs or {})

    query = torch.randn(1, 2, 4, 8, device="cuda")
    bias = torch.zeros(4, 4).as_subclass(Mine)
    F.scaled_dot_product_attention(torch.randn(1, 2, 4, 8), query.cpu(), query.cpu(), bias)
    assert F.scaled_dot_product_attention in heard
    from torch.nn.attention.bias import causal_lower_right

    biased = F.scaled_dot_product_attention(query, query, query, causal_lower_right(4, 4))
    causal = F.scaled_dot_product_attention(query, query, query, is_causal=True)
    torch.testing.assert_close(biased, causal)


def test_a_mode_that_computes_is_not_told_of_the_simulators_own_work() -> None:
    norms = []

    class Norms(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = function(*args, **(kwargs or {}))
            norms.append(result.detach().double().norm().item())  # not to be had of meta tensors
            return result

    with Norms():
        x = torch.ones(4, device="cuda")
        y = torch.ones_like(x, device="cuda") + x.cuda(0).cpu().cuda()
    assert norms[-1] == 4.0
    assert y.is_cuda


@pytest.mark.parametrize("transform", [func.grad, func.hessian, func.jacfwd])
def test_what_a_transform_leaves_behind_is_plain(transform: Callable[..., Any]) -> None:
    """The first tensors of a dtype are made inside one; later ones lie at the same place."""

    def work(x: torch.Tensor) -> torch.Tensor:
        ones = torch.ones(3, dtype=torch.float64, device=x.device)  # first: before any conversion
        return (x.double() ** 3 * ones * x).sum().float()

    wanted = transform(work)(POINT)
    point = POINT.cuda()
    for _ in range(2):
        torch.testing.assert_close(transform(work)(point).cpu(), wanted)
        assert float(torch.ones(7, dtype=torch.float64, device="cuda").sum()) == 7
        values = [torch.ones(3, dtype=torch.float64, device="cuda") for _ in range(4)]
        assert [float(torch.ops.aten.alias(value).sum()) for value in values] == 4 * [3.0]
