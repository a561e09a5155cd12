"""What an operator takes of the device's memory beyond its results, while it runs.

CUDA's operators use cuBLAS's workspaces, which stay, and buffers of their own, which they give
back at once: those show in peaks only. What is here was measured on an H200 with torch 2.11
(``tests/data/memory_programs_h200.json.gz``) or follows from PyTorch's source where it is named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .device import Device

aten = torch.ops.aten

#: Sizes in bytes that are taken together, group after group.
Groups = Sequence[tuple[int, ...]]
Rule = Callable[["Call"], Groups]

_BLAS = {
    aten.mm,
    aten.addmm,
    aten.bmm,
    aten.baddbmm,
    aten.addmv,
    aten.mv,
    aten.dot,
    aten.vdot,
    aten._addmm_activation,
    aten.addbmm,
}
_rules: dict[Any, Rule] = {}


class Call:
    """One call of an operator, with ``meta`` tensors for its arguments and results.

    Attributes
    ----------
    args, kwargs
        The arguments.
    outputs : list of Tensor
        The results.
    device : Device
        Where it runs.
    """

    __slots__ = ("args", "device", "kwargs", "outputs")

    def __init__(
        self, args: Any, kwargs: dict[str, Any], outputs: list[torch.Tensor], device: Device
    ) -> None:
        self.args = args
        self.kwargs = kwargs
        self.outputs = outputs
        self.device = device


def rule(*packets: Any) -> Callable[[Rule], Rule]:
    """Register what says which buffers some operators take."""

    def register(function: Rule) -> Rule:
        for packet in packets:
            _rules[packet] = function
        return function

    return register


def blas(func: Any, call: Call) -> str:
    """Return which workspaces an operator needs: ``""``, ``"cublas"`` or ``"lt"`` for both."""
    packet = func.overloadpacket
    if packet not in _BLAS:
        return ""
    if any(output.numel() == 0 for output in call.outputs):
        return ""
    if packet is aten.addmm and _adds_a_bias(call):
        return "lt"
    return "cublas"


def _adds_a_bias(call: Call) -> bool:
    """Tell whether cuBLASLt does it; ``isInputCompliesAddmmCudaLt`` in ``cuda/Blas.cpp``."""
    bias, _, right = call.args[:3]
    return (
        call.kwargs.get("beta", 1) == 1
        and bias.dim() == 1
        and bias.is_contiguous()
        and not bias.is_complex()
        and right.shape[0] > 1
        and right.shape[1] > 1
    )


def temporaries(func: Any, call: Call) -> Groups:
    """Return the buffers that an operator takes while it runs."""
    found = _rules.get(func) or _rules.get(func.overloadpacket)
    return () if found is None else found(call)
