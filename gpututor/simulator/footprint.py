"""What an operator takes of the device's memory beyond its results.

CUDA's operators use cuBLAS's workspaces, which stay, and buffers of their own, which they give
back at once: those show in peaks only. Some results lie in a larger storage than they need.
All of it was measured on an H200 with torch 2.11 (``tests/data/memory_programs_h200.json.gz``);
where a rule follows from PyTorch's source, it names the function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .device import Device

aten = torch.ops.aten


class Call:
    """One call of an operator, with ``meta`` tensors for its arguments and results."""

    __slots__ = ("args", "device", "kwargs", "outputs", "schema")

    def __init__(
        self,
        func: Any,
        args: Any,
        kwargs: dict[str, Any],
        outputs: list[torch.Tensor],
        device: Device,
    ) -> None:
        self.schema = func._schema
        self.args = args
        self.kwargs = kwargs
        self.outputs = outputs
        self.device = device

    def get(self, name: str, default: Any = None) -> Any:
        """Return the argument of this name."""
        for place, argument in enumerate(self.schema.arguments):
            if argument.name == name:
                if place < len(self.args):
                    return self.args[place]
                return self.kwargs.get(name, argument.default_value)
        return default


class Footprint:
    """What one call takes.

    Attributes
    ----------
    blas : str
        Which workspaces it needs: ``""``, ``"cublas"``, or ``"lt"`` for cuBLASLt's too.
    held : list of int
        Bytes of buffers taken after the results and kept until the operator is launched.
    groups : list of tuple of int
        Bytes of buffers that are taken together, group after group.
    storages : dict of int to int
        Bytes of the storage of a result, by its place, where it is not the result's own size.
    """

    __slots__ = ("blas", "groups", "held", "storages")

    def __init__(self) -> None:
        self.blas = ""
        self.held: list[int] = []
        self.groups: list[tuple[int, ...]] = []
        self.storages: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self.blas or self.held or self.groups or self.storages)


Rule = Callable[[Call, Footprint], None]
_rules: dict[Any, Rule] = {}


def rule(*packets: Any) -> Callable[[Rule], Rule]:
    """Register what says which buffers some operators take."""

    def register(function: Rule) -> Rule:
        for packet in packets:
            _rules[packet] = function
        return function

    return register


def of(func: Any, call: Call) -> Footprint:
    """Return the footprint of a call."""
    footprint = Footprint()
    found = _rules.get(func) or _rules.get(func.overloadpacket)
    if found is not None and call.outputs:
        found(call, footprint)
    return footprint


def nbytes(tensor: torch.Tensor) -> int:
    """Return the bytes of all elements of a tensor."""
    return tensor.numel() * tensor.element_size()


# -- matrix products -----------------------------------------------------------------------------


@rule(
    aten.mm,
    aten.addmm,
    aten.bmm,
    aten.baddbmm,
    aten.addbmm,
    aten.mv,
    aten.addmv,
    aten.dot,
    aten.vdot,
    aten._addmm_activation,
    aten._euclidean_dist,
)
def _product(call: Call, footprint: Footprint) -> None:
    if any(output.numel() == 0 for output in call.outputs):
        return
    footprint.blas = "lt" if _adds_a_bias(call) else "cublas"
    matrices = [value for value in call.args[:3] if isinstance(value, torch.Tensor)]
    footprint.held += [nbytes(matrix) for matrix in matrices[-2:] if not _fits_blas(matrix)]


def _adds_a_bias(call: Call) -> bool:
    """Tell whether cuBLASLt does it; ``isInputCompliesAddmmCudaLt`` in ``cuda/Blas.cpp``."""
    if call.schema.name != "aten::addmm":
        return False
    bias, _, right = call.args[:3]
    return (
        call.get("beta") == 1
        and bias.dim() == 1
        and bias.is_contiguous()
        and not bias.is_complex()
        and right.shape[0] > 1
        and right.shape[1] > 1
    )


def _fits_blas(matrix: torch.Tensor) -> bool:
    """Tell whether cuBLAS takes a matrix as it lies; ``prepare_matrix_for_cublas``."""
    if matrix.dim() < 2:
        return True
    (rows, columns), (down, across) = matrix.shape[-2:], matrix.stride()[-2:]
    return (across == 1 and down >= max(1, columns)) or (down == 1 and across >= max(1, rows))


@rule(aten.linalg_inv_ex, aten._linalg_solve_ex, aten._linalg_det, aten.linalg_lu_factor_ex)
def _factorization(call: Call, footprint: Footprint) -> None:
    footprint.blas = "cublas"


# -- reductions ----------------------------------------------------------------------------------

_THREADS = 512  # of a block that reduces; ``setReduceConfig`` in ``cuda/Reduce.cuh``
_LEAST, _MOST = 16, 256  # values that a thread takes
_ACCUMULATED = {  # bytes of what one block leaves to the others, where it is not one number
    "std": 16,
    "var": 16,
    "std_mean": 16,
    "var_mean": 16,
    "argmax": 16,
    "argmin": 16,
}


@rule(
    aten.sum,
    aten.nansum,
    aten.mean,
    aten.prod,
    aten.std,
    aten.var,
    aten.std_mean,
    aten.var_mean,
    aten.norm,
    aten.linalg_vector_norm,
    aten.max.default,
    aten.min.default,
    aten.amax,
    aten.amin,
    aten.any,
    aten.all,
    aten.argmax,
    aten.argmin,
    aten.count_nonzero,
)
def _reduction(call: Call, footprint: Footprint) -> None:
    value, name = call.args[0], call.schema.name.removeprefix("aten::")
    counts = name == "count_nonzero"
    if counts:
        footprint.held.append(value.numel())
    size = 8 if value.dtype.itemsize == 8 else 4
    if counts or (name in ("sum", "prod") and not value.dtype.is_floating_point):
        size = 8
        if counts or value.dtype.itemsize < 8:
            footprint.held.append(value.numel() * 8)  # it is first made to 64-bit integers
    elif name in ("any", "all"):
        size = 1
    elif name in _ACCUMULATED:
        size = _ACCUMULATED[name] * (2 if value.dtype is torch.float64 else 1)
    elif name in ("max", "min", "amax", "amin") and not value.dtype.is_floating_point:
        size = value.dtype.itemsize
    if all(output.numel() == 1 for output in call.outputs):
        blocks = _blocks(value.numel(), call.device)
        if blocks > 1:
            footprint.groups.append((blocks * size, 4))


def _blocks(count: int, device: Device) -> int:
    """Return how many blocks of threads reduce `count` values to one."""
    each = -(-count // _THREADS)
    if each < _MOST:
        return 1
    profile = device.profile
    most = profile.multiprocessors * (profile.threads_per_multiprocessor // _THREADS)
    return max(min(most, -(-each // _LEAST)), -(-each // _MOST))


@rule(aten.logsumexp)
def _logsumexp(call: Call, footprint: Footprint) -> None:
    footprint.groups.append((nbytes(call.args[0]), nbytes(call.outputs[0])))


# -- losses --------------------------------------------------------------------------------------


def _elementwise(call: Call) -> int:
    """Return the bytes of the loss of every element, before it is reduced."""
    first, second = call.args[:2]
    shape = torch.broadcast_shapes(first.shape, second.shape)
    return int(shape.numel() * call.outputs[0].element_size())


@rule(aten.mse_loss, aten.smooth_l1_loss)
def _reduced_loss(call: Call, footprint: Footprint) -> None:
    if call.get("reduction"):  # the result lies where the loss of every element lay
        footprint.storages[0] = _elementwise(call)
        footprint.held.append(_elementwise(call))


@rule(aten.binary_cross_entropy, aten.soft_margin_loss)
def _reduced_in_place(call: Call, footprint: Footprint) -> None:
    if call.get("reduction"):
        footprint.storages[0] = _elementwise(call)
        footprint.groups.append((call.outputs[0].element_size(),))


@rule(aten.huber_loss)
def _huber(call: Call, footprint: Footprint) -> None:
    if call.get("reduction"):
        footprint.held.append(_elementwise(call))


@rule(aten.binary_cross_entropy_with_logits)
def _with_logits(call: Call, footprint: Footprint) -> None:
    if call.get("reduction"):
        footprint.held += [_elementwise(call)] * 2


@rule(aten.multi_margin_loss)
def _margin(call: Call, footprint: Footprint) -> None:
    if call.get("reduction"):
        footprint.held.append(call.args[0].shape[0] * call.args[0].element_size())


@rule(aten.log_sigmoid_forward)
def _log_sigmoid(call: Call, footprint: Footprint) -> None:
    footprint.storages[1] = 0  # CUDA keeps no buffer for backward


# -- normalisation -------------------------------------------------------------------------------


@rule(aten.native_batch_norm)
def _batch_norm(call: Call, footprint: Footprint) -> None:
    if not call.get("training") and call.args[0].dim() > 3:
        footprint.storages.update({1: 0, 2: 0})


@rule(aten.native_group_norm)
def _group_norm(call: Call, footprint: Footprint) -> None:
    if call.get("weight") is not None or call.get("bias") is not None:
        count = call.get("N") * call.get("C") * 4
        footprint.groups.append((count, count))


@rule(aten.native_group_norm_backward)
def _group_norm_backward(call: Call, footprint: Footprint) -> None:
    _dense(call, footprint)
    channels = call.get("N") * call.get("C") * 4
    groups = call.get("N") * call.get("group") * 4
    more = (channels,) if call.get("weight") is not None else ()
    footprint.groups.append((channels, channels, groups, groups, *more))


@rule(aten.native_batch_norm_backward)
def _batch_norm_backward(call: Call, footprint: Footprint) -> None:
    weight = call.get("weight")
    if weight is None:
        return
    if call.args[0].dim() > 3:  # cuDNN's
        _dense(call, footprint)
    else:
        footprint.groups.append((nbytes(weight), nbytes(weight)))


@rule(
    aten.native_layer_norm_backward,
    aten.convolution_backward,
    aten.embedding_dense_backward,
    aten.upsample_nearest2d_backward,
    aten.upsample_bilinear2d_backward,
    aten.upsample_bicubic2d_backward,
    aten.reflection_pad1d_backward,
    aten.max_pool2d_with_indices_backward,
    aten.col2im,
)
def _dense(call: Call, footprint: Footprint) -> None:
    """Write out a gradient that is one number shown many times."""
    gradient = call.args[0]
    if 0 in gradient.stride() and gradient.numel() > 1:
        footprint.held.append(nbytes(gradient))


@rule(aten._safe_softmax)
def _safe_softmax(call: Call, footprint: Footprint) -> None:
    count, value = call.outputs[0].numel(), call.outputs[0]
    if count:
        footprint.groups.append((count, count // value.shape[-1], value.element_size()))


# -- others --------------------------------------------------------------------------------------


@rule(aten.im2col)
def _unfold(call: Call, footprint: Footprint) -> None:
    footprint.held.append(nbytes(call.args[0]))


@rule(aten.abs)
def _abs(call: Call, footprint: Footprint) -> None:
    if call.args[0].is_complex():
        footprint.held.append(nbytes(call.args[0]))


_SMALL_SORT = 4096  # elements in a row, up to which rows are sorted at once


@rule(aten.sort)
def _sort(call: Call, footprint: Footprint) -> None:
    value, dim = call.args[0], call.get("dim", -1)
    if value.dim() > 1 and value.shape[dim] <= _SMALL_SORT:
        footprint.groups.append((value.shape[dim] * 8,))
