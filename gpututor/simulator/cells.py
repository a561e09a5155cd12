"""Fused kernels that CUDA has and the CPU has not: cells of recurrent layers, and RMS norm.

PyTorch's CPU code makes these of many operators, which keep more for backward. The values are
those of the CPU's formula; the memory is what an H200 showed with torch 2.11.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import autocast, checks
from .cost import peak
from .footprint import Footprint
from .fused import Output, launch, new
from .tensor import is_simulated

Formula = Callable[..., tuple[torch.Tensor, ...]]


class _Fused(torch.autograd.Function):
    """One kernel forward and one backward, for a formula of a few tensors."""

    @staticmethod
    def forward(
        ctx: Any, name: str, formula: Formula, outputs: Sequence[Output], kept: Any, *tensors: Any
    ) -> Any:
        values = [tensor.detach() for tensor in tensors]
        device = values[0]._geometry.device
        extra = None if kept is None else new(device, kept)
        results = [new(device, output) for output in outputs]
        launch(name, lambda *raw: formula(*raw), values, results, _seconds(values[0]))
        saved = [*tensors] if extra is None else [*tensors, extra]
        ctx.save_for_backward(*saved)
        ctx.name, ctx.formula, ctx.count = name, formula, len(tensors)
        ctx.set_materialize_grads(False)
        return tuple(results) if len(results) > 1 else results[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        count: int = ctx.count
        tensors = [tensor.detach() for tensor in ctx.saved_tensors[:count]]
        given = [gradient is not None for gradient in gradients]
        incoming = [gradient.detach() for gradient in gradients if gradient is not None]
        needed = [place for place in range(count) if ctx.needs_input_grad[4 + place]]
        formula: Formula = ctx.formula

        def gradients_of(*raw: torch.Tensor) -> tuple[torch.Tensor, ...]:
            with torch.enable_grad():
                leaves = [value.detach() for value in raw[:count]]
                for place in needed:
                    leaves[place].requires_grad_()
                found = formula(*leaves)
                used = [value for value, has in zip(found, given, strict=True) if has]
                inputs = [leaves[place] for place in needed]
                return torch.autograd.grad(used, inputs, list(raw[count:]))

        device = tensors[0]._geometry.device
        takes = Footprint()
        results: list[Any] = [None] * count
        for place in needed:
            value = tensors[place]
            results[place] = new(device, Output(tuple(value.shape), value.dtype))
        for gradient in incoming:
            if 0 in gradient.stride() and gradient.numel() > 1:
                takes.held.append(gradient.numel() * gradient.element_size())
        launch(
            f"{ctx.name}_backward",
            gradients_of,
            [*tensors, *incoming],
            [results[place] for place in needed],
            2 * _seconds(tensors[0]),
            takes,
        )
        return (None, None, None, None, *results)


def _seconds(value: Any) -> float:
    profile = value._geometry.device.profile
    moved = 4.0 * value.numel() * value.element_size()
    work = 8.0 * value.numel() / peak(profile, value.dtype)
    return float(max(moved / profile.bandwidth, work, profile.kernel_seconds) * profile.slowdown)


def _lstm(igates: Any, hgates: Any, cx: Any, *biases: Any) -> tuple[torch.Tensor, ...]:
    gates = igates + hgates + sum(biases) if biases else igates + hgates
    into, forget, cell, out = gates.chunk(4, 1)
    cy = forget.sigmoid() * cx + into.sigmoid() * cell.tanh()
    return out.sigmoid() * cy.tanh(), cy


def _gru(igates: Any, hgates: Any, hx: Any, *biases: Any) -> tuple[torch.Tensor, ...]:
    if biases:
        igates, hgates = igates + biases[0], hgates + biases[1]
    (i_reset, i_update, i_new), (h_reset, h_update, h_new) = igates.chunk(3, 1), hgates.chunk(3, 1)
    reset = (i_reset + h_reset).sigmoid()
    update = (i_update + h_update).sigmoid()
    fresh = (i_new + reset * h_new).tanh()
    return ((hx - fresh) * update + fresh,)


def lstm_cell(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return what stands in for ``torch.lstm_cell``."""

    def lstm_cell(
        input: torch.Tensor, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None
    ) -> Any:
        parts = [part for part in (input, *hx, w_ih, w_hh, b_ih, b_hh) if part is not None]
        if not _fits(parts):
            return original(input, hx, w_ih, w_hh, b_ih, b_hh)
        igates, hgates = input.mm(w_ih.t()), hx[0].mm(w_hh.t())
        size, dtype = tuple(hx[1].shape), hx[1].dtype
        kept = Output(tuple(igates.shape), dtype)
        outputs = [Output(size, dtype)] * 2
        biases = () if b_ih is None else (b_ih, b_hh)
        return _Fused.apply("lstm_cell", _lstm, outputs, kept, igates, hgates, hx[1], *biases)  # type: ignore[no-untyped-call]

    return lstm_cell


def gru_cell(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return what stands in for ``torch.gru_cell``."""

    def gru_cell(
        input: torch.Tensor, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None
    ) -> Any:
        parts = [part for part in (input, hx, w_ih, w_hh, b_ih, b_hh) if part is not None]
        if not _fits(parts):
            return original(input, hx, w_ih, w_hh, b_ih, b_hh)
        igates, hgates = input.mm(w_ih.t()), hx.mm(w_hh.t())
        size, dtype = tuple(hx.shape), hx.dtype
        kept = Output((size[0], 5 * size[1]), dtype)
        biases = () if b_ih is None else (b_ih, b_hh)
        outputs = [Output(size, dtype)]
        return _Fused.apply("gru_cell", _gru, outputs, kept, igates, hgates, hx, *biases)  # type: ignore[no-untyped-call]

    return gru_cell


def rms_norm(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return what stands in for ``torch.rms_norm``."""

    def rms_norm(
        input: torch.Tensor,
        normalized_shape: Sequence[int],
        weight: torch.Tensor | None = None,
        eps: float | None = None,
    ) -> Any:
        parts = [input] if weight is None else [input, weight]
        shape = tuple(normalized_shape)
        if not _fits(parts) or not shape or tuple(input.shape[-len(shape) :]) != shape:
            return original(input, normalized_shape, weight, eps)
        if input.numel() == 0 or (weight is not None and tuple(weight.shape) != shape):
            return original(input, normalized_shape, weight, eps)

        def formula(value: Any, *scale: Any) -> tuple[torch.Tensor, ...]:
            return (original(value.float(), shape, *(s.float() for s in scale), eps=eps),)

        if input.dtype is torch.float64:

            def formula(value: Any, *scale: Any) -> tuple[torch.Tensor, ...]:
                return (original(value, shape, *scale, eps=eps),)

        rows = input.numel() // torch.Size(shape).numel()
        output = Output(tuple(input.shape), input.dtype)
        kept = Output((rows,), torch.float32)
        return _Fused.apply("rms_norm", formula, [output], kept, *parts)  # type: ignore[no-untyped-call]

    return rms_norm


def _fits(parts: Sequence[torch.Tensor]) -> bool:
    """Tell whether one kernel does it: simulated tensors of one device and one type."""
    first = parts[0]
    if not all(is_simulated(part) for part in parts) or autocast.lower_precision() is not None:
        return False
    if not all(part.device == first.device and part.dtype == first.dtype for part in parts):
        return False
    checks.usable()
    return first.dtype.is_floating_point and (first.dim() == 2 or len(parts) <= 2)
