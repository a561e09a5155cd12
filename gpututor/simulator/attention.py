"""Scaled dot product attention: one fused kernel where CUDA has one.

PyTorch has four ways to compute it on CUDA and takes one by the GPU and the arguments. What each
saves for backward differs, and with it the memory. The values are those of the CPU's operator.
The bytes were measured on an H200 with torch 2.11 for cuDNN and for the memory-efficient kernel;
FlashAttention's follow from ``aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from . import autocast, checks
from .cost import peak
from .footprint import Footprint
from .fused import Output, allocate, launch, new
from .tensor import Tensor, is_simulated

_on_cpu = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_ROUND = 128  # the memory-efficient kernel pads the keys to blocks of this many
_HALF = (torch.float16, torch.bfloat16)


class _Call:
    """One call of fused attention: all that is not a tensor."""

    def __init__(self, kind: str, causal: bool, dropout: float, scale: float | None) -> None:
        self.kind = kind
        self.causal = causal
        self.dropout = dropout
        self.scale = scale
        self.seed = 0
        self.needs_gradients = False

    def run(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Compute it on CPU tensors, in float32 at least, and round once."""
        wide = torch.promote_types(query.dtype, torch.float32)
        q, k, v = query.to(wide), key.to(wide), value.to(wide)
        bias = None if mask is None else mask.to(wide)
        if not self.dropout and bias is None and v.shape[-1] == q.shape[-1]:
            # By name: what is switched on for the learner's thread is not asked here.
            result: torch.Tensor = _on_cpu(q, k, v, 0.0, self.causal, scale=self.scale)[0]
            return result.to(query.dtype)
        scale = 1 / math.sqrt(q.shape[-1]) if self.scale is None else self.scale
        scores = q @ k.transpose(-2, -1) * scale
        if self.causal:
            seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
            scores = scores.masked_fill(~seen, float("-inf"))
        if bias is not None:
            scores = scores + bias
        weights = scores.softmax(-1)
        if self.dropout:
            generator = torch._C.Generator(device="cpu")
            generator.manual_seed(self.seed)
            keep = torch.empty_like(scores).bernoulli_(1 - self.dropout, generator=generator)
            weights = weights * keep / (1 - self.dropout)
        return (weights @ v).to(query.dtype)

    def seconds(self, query: Tensor, key: Tensor) -> float:
        """Return the time of the forward pass, in slow motion."""
        profile = query._geometry.device.profile
        operations = 4.0 * query.numel() * key.shape[-2]
        return max(operations / peak(profile, query.dtype), profile.kernel_seconds) * (
            profile.slowdown
        )


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, call: _Call, *tensors: torch.Tensor) -> torch.Tensor:
        query, _, value = tensors[:3]
        device = query._geometry.device  # type: ignore[attr-defined]
        batch, heads, length = query.shape[:3]
        seeds = []
        if call.kind == "cudnn":
            seeds = [allocate(device, 8), allocate(device, 8)]
        size = (batch, heads, length, value.shape[-1])
        result = new(device, Output(size, query.dtype, _strides(call.kind, query, size)))
        saved: list[torch.Tensor] = []
        takes = Footprint()
        if call.kind == "cudnn":
            takes.groups.append((256,))
        if call.needs_gradients or call.kind == "flash":
            rows = -(-length // 32) * 32 if call.kind == "efficient" else length
            sums = new(device, Output((batch, heads, rows), torch.float32))
            if call.kind == "flash":
                seeds = [allocate(device, 16)]
            sums._block.kept = seeds
            saved.append(sums)
        values = [part.detach() for part in tensors]
        seconds = call.seconds(values[0], values[1])  # type: ignore[arg-type]
        launch(
            "scaled_dot_product_attention",
            lambda *raw: call.run(*raw),
            values,
            [result],
            seconds,
            takes,
        )
        ctx.call = call
        ctx.save_for_backward(*tensors, result, *saved)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        call: _Call = ctx.call
        count = len(ctx.needs_input_grad) - 1
        tensors = [part.detach() for part in ctx.saved_tensors[:count]]
        gradient = gradient.detach()
        if 0 in gradient.stride():
            gradient = gradient.contiguous()
        device = gradient._geometry.device  # type: ignore[attr-defined]
        results = [new(device, Output(tuple(part.shape), part.dtype)) for part in tensors[:3]]

        def gradients_of(*raw: torch.Tensor) -> tuple[torch.Tensor, ...]:
            with torch.enable_grad():
                leaves = [part.detach().requires_grad_() for part in raw[:3]]
                found = call.run(*leaves, *raw[3:count])
                return torch.autograd.grad(found, leaves, raw[count])

        launch(
            "scaled_dot_product_attention_backward",
            gradients_of,
            [*tensors, gradient],
            results,
            2.5 * call.seconds(tensors[0], tensors[1]),
            _backward_takes(call.kind, tensors[0], tensors[1]),
        )
        wanted = ctx.needs_input_grad[1:]
        grads = [part if need else None for part, need in zip(results, wanted, strict=False)]
        return (None, *grads, *(None for _ in range(count - 3)))


def _strides(kind: str, query: torch.Tensor, size: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the strides of a result: batch, position, head, feature, or as the query's."""
    if kind == "cudnn" and query.is_contiguous():
        return None
    _, heads, length, features = size
    return (length * heads * features, features, heads * features, 1)


def _backward_takes(kind: str, query: torch.Tensor, key: torch.Tensor) -> Footprint:
    batch, heads, length, features = query.shape
    takes = Footprint()
    sums = batch * heads * length * 4
    if kind == "efficient":
        keys = key.shape[-2]
        padded = batch * heads * (-(-keys // _ROUND) * _ROUND) * features * 4
        counters = batch * heads * -(-keys // 64) * 16
        result = query.numel() * query.element_size()
        takes.groups += [(result, sums, sums), (sums, padded + counters)]
    elif kind == "cudnn":
        takes.groups.append((batch * heads * length * features * 4 + sums + 256,))
    else:
        rows = -(-length // 128) * 128
        wide = -(-features // 32) * 32
        takes.groups.append((batch * heads * rows * 4, batch * rows * heads * wide * 4))
    return takes


def _choose(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    causal: bool,
    grouped: bool,
) -> str | None:
    """Return which fused kernel CUDA takes; None for the plain formula.

    The order is that of ``aten/src/ATen/native/transformers/cuda/sdp_utils.cpp``; an H200 took
    cuDNN's for half precision.
    """
    parts = (query, key, value)
    if any(part.dim() != 4 or part.numel() == 0 for part in parts) or grouped:
        return None
    if mask is not None and (mask.requires_grad or causal):
        return None
    features, dtype = query.shape[-1], query.dtype
    same = all(part.dtype == dtype and part.shape[:2] == query.shape[:2] for part in parts)
    if not same or key.shape != (*query.shape[:2], key.shape[2], features):
        return None
    capability = query._geometry.device.profile.capability  # type: ignore[attr-defined]
    cuda = torch.backends.cuda
    if dtype in _HALF and features == value.shape[-1] and features % 8 == 0:
        if capability >= (9, 0) and cuda.cudnn_sdp_enabled() and features <= 128:
            return "cudnn"
        if capability >= (8, 0) and cuda.flash_sdp_enabled() and mask is None and features <= 256:
            return "flash"
    aligned = all(part.shape[-1] * part.element_size() % 16 == 0 for part in parts)
    known = dtype in (*_HALF, torch.float32) and (dtype != torch.bfloat16 or capability >= (8, 0))
    if known and aligned and cuda.mem_efficient_sdp_enabled():
        return "efficient"
    return None


def make(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return what stands in for ``torch.nn.functional.scaled_dot_product_attention``."""

    def scaled_dot_product_attention(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        rest = (attn_mask, dropout_p, is_causal)
        parts = (query, key, value) if attn_mask is None else (query, key, value, attn_mask)
        if torch.overrides.has_torch_function(parts):  # tensors of a class of the learner's own
            return torch.overrides.handle_torch_function(
                scaled_dot_product_attention, parts, query, key, value, *rest,
                scale=scale, enable_gqa=enable_gqa,
            )  # fmt: skip
        if not all(is_simulated(part) for part in parts):
            return original(query, key, value, *rest, scale=scale, enable_gqa=enable_gqa)
        checks.usable()
        checks.composite("scaled_dot_product_attention", parts, {})
        lower = autocast.lower_precision()
        if lower is not None:
            query, key, value = query.to(lower), key.to(lower), value.to(lower)
        kind = _choose(query, key, value, attn_mask, is_causal, enable_gqa)
        on_one = all(part.device == query.device for part in parts)
        if kind is None or not on_one or not 0 <= dropout_p < 1:
            if not torch.backends.cuda.math_sdp_enabled():
                raise RuntimeError("No available kernel. Aborting execution.")
            with sdpa_kernel(SDPBackend.MATH):
                return original(query, key, value, *rest, scale=scale, enable_gqa=enable_gqa)
        call = _Call(kind, is_causal, dropout_p, scale)
        tensors = [query, key, value]
        call.needs_gradients = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
        if attn_mask is not None:
            tensors.append(_bias(attn_mask, query))
        if dropout_p:
            device = query._geometry.device  # type: ignore[attr-defined]
            call.seed = device.generator.reserve().initial_seed()
        return _Attention.apply(call, *tensors)  # type: ignore[no-untyped-call]

    return scaled_dot_product_attention


def _bias(mask: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """Return what is added to the scores: a mask of bools becomes 0 and minus infinity."""
    if mask.dtype is not torch.bool:
        return mask
    with torch.no_grad():
        dtype, device = query.dtype, query.device
        seen = torch.zeros((), dtype=dtype, device=device)
        hidden = torch.full((), float("-inf"), dtype=dtype, device=device)
        return torch.where(mask, seen, hidden)


_Attention._backward_cls.__name__ = "ScaledDotProductAttentionBackward0"
