"""Tensors that PyTorch makes for itself inside an operator or a backward formula.

C++ code that needs zeros "like the input" asks for them on the device it believes the input is
on: the host. While such code runs, a dispatch mode answers with tensors of the simulated device.
It is on during a backward pass with simulated tensors, and inside the composite functions that
are known to make tensors; nowhere else, so that the host's own work does not pay for it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from . import checks, factories, runtime
from .copy import empty
from .device import Device
from .operators import aten, run
from .plain import inner
from .tensor import Tensor, is_simulated, unheard

_node = torch._C._current_autograd_node

_MAKERS = {
    func
    for packet in (
        aten.zeros,
        aten.ones,
        aten.full,
        aten.empty,
        aten.empty_strided,
        aten.arange,
        aten.eye,
        aten.linspace,
        aten.scalar_tensor,
        aten.rand,
        aten.randn,
        aten.randperm,
        aten.tril_indices,
        aten.triu_indices,
    )
    for func in (getattr(packet, name) for name in packet.overloads())
    if "out" not in [argument.name for argument in func._schema.arguments]
}
_EMPTY = {aten.empty.memory_format, aten.empty_strided.default}


def _run(func: Any, args: Any, kwargs: Any) -> Any:
    """Run an operator; where other modes are on, they hear of it first."""
    if torch._C._len_torch_dispatch_stack():
        return func(*args, **kwargs)
    return run(func, args, kwargs)


class Inside(TorchDispatchMode):
    """Makes new tensors simulated ones.

    Parameters
    ----------
    device : Device
        Where they are made, until a simulated tensor of another device is met.
    backward : bool
        Only inside the backward formulas of simulated tensors.
    simulated : bool
        Whether it begins among simulated tensors.
    """

    def __init__(self, device: Device, backward: bool, simulated: bool = True) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._device = device
        self._backward = backward
        self._simulated = simulated

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Spare every operator the wrapper that keeps ``torch.compile`` out: it is refused here."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator, or make a tensor."""
        kwargs = kwargs or {}
        for value in args:
            kind = type(value)
            if kind is list or kind is tuple:
                value = next((item for item in value if is_simulated(item)), None)
            if is_simulated(value):
                self._device = value._geometry.device
                self._simulated = True
                return _run(func, args, kwargs)
        if self._makes(func, kwargs):
            return self._make(func, args, kwargs)
        if any(is_simulated(value) for value in pytree.tree_leaves(kwargs)):
            return _run(func, args, kwargs)
        self._simulated = self._simulated and not args
        return func(*args, **kwargs)

    def _makes(self, func: Any, kwargs: dict[str, Any]) -> bool:
        """Tell whether this call makes a tensor that belongs on a simulated device."""
        device = kwargs.get("device")
        if func not in _MAKERS or (device is not None and device.type != "cpu"):
            return False
        # In a backward pass that crosses devices: where the operator before this one ran.
        return not self._backward or (self._simulated and _node() is not None)

    @unheard
    def _make(self, func: Any, args: Any, kwargs: Any) -> Tensor:
        kept = {
            name: value for name, value in kwargs.items() if name not in ("device", "pin_memory")
        }
        like = func(*args, **kept, device="meta")
        new = empty(self._device, tuple(like.shape), like.stride(), like.dtype)
        if func is aten._efficientzerotensor.default:
            new.zero_()
        elif func not in _EMPTY:
            factories.fill(func.overloadpacket.__name__, func, args, kept, new, like, None)
        return new


# PyTorch's older vmap, behind ``is_grads_batched``, wraps a tensor so that its device is hidden.
_hides_device = torch._C._functorch.is_legacy_batchedtensor


def backward(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function through which every backward pass goes."""

    @functools.wraps(original)
    def run_backward(outputs: Any, *args: Any, **kwargs: Any) -> Any:
        for place, pair in enumerate(zip(outputs, args[0] if args else (), strict=False)):
            output, gradient = pair
            if (
                isinstance(output, torch.Tensor)
                and isinstance(gradient, torch.Tensor)
                and output.device != gradient.device
                and not _hides_device(gradient)
            ):
                raise RuntimeError(
                    f"invalid gradient at index {place} - expected device {output.device} but "
                    f"got {gradient.device}"
                )
        first = next((inner(value) for value in outputs if is_simulated(inner(value))), None)
        simulated = first is not None
        simulation = runtime.current()
        device = first._geometry.device if first is not None else simulation.device()
        simulation.begin_backward()
        with Inside(device, backward=True, simulated=simulated):
            return original(outputs, *args, **kwargs)

    return run_backward


def composite(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return what stands in for a function that makes tensors inside."""

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        leaves = pytree.tree_leaves((args, kwargs))
        if torch.overrides.has_torch_function(leaves):  # tensors of a class of the learner's own
            return torch.overrides.handle_torch_function(function, leaves, *args, **kwargs)
        first = next((inner(leaf) for leaf in leaves if is_simulated(inner(leaf))), None)
        if first is None:
            return original(*args, **kwargs)
        checks.composite(original.__name__, args, kwargs)
        with Inside(first._geometry.device, backward=False):
            return original(*args, **kwargs)

    return function


#: (where, names): the composite functions of PyTorch that make tensors inside.
COMPOSITES: list[tuple[Any, tuple[str, ...]]] = [
    (
        torch,
        (
            "bilinear",
            "block_diag",
            "cartesian_prod",
            "cdist",
            "combinations",
            "corrcoef",
            "cosine_embedding_loss",
            "cosine_similarity",
            "cov",
            "cross_entropy_loss",
            "ctc_loss",
            "cumprod",
            "diff",
            "gradient",
            "histogramdd",
            "istft",
            "kron",
            "margin_ranking_loss",
            "meshgrid",
            "mvlgamma",
            "nanquantile",
            "nuclear_norm",
            "pinverse",
            "prod",
            "quantile",
            "range",
            "stft",
            "take_along_dim",
            "tensordot",
            "trapezoid",
            "trapz",
            "triplet_margin_loss",
            "vander",
            "hinge_embedding_loss",
        ),
    ),
    (
        torch.Tensor,
        (
            "cov",
            "istft",
            "mvlgamma",
            "mvlgamma_",
            "nanquantile",
            "pinverse",
            "quantile",
            "stft",
            "cumprod",
            "prod",
            "corrcoef",
            "diff",
            "take_along_dim",
        ),
    ),
    (torch.linalg, ("cond", "matrix_rank", "pinv", "vander", "lstsq", "matrix_norm", "norm")),
    (
        torch.nn.functional,
        (
            "cosine_similarity",
            "ctc_loss",
            "multi_head_attention_forward",
            "interpolate",
            "embedding_bag",
            "fold",
            "affine_grid",
        ),
    ),
    (torch.special, ("multigammaln",)),
    (torch.fft, ("hfft", "ihfft", "hfft2", "hfftn", "ihfft2", "ihfftn")),
]
