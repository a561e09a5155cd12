"""What PyTorch's CUDA operators check before they launch: devices, dtypes, generators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from . import runtime, tensor
from .errors import NotSimulatedError, argument_on_other_device, different_devices

if TYPE_CHECKING:
    from .device import Device
    from .operators import Operator

_INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}
_INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool)
#: Matrix products that CUDA has no integer kernel for, and the name it gives itself.
_NO_INTEGERS = {
    "mm": "addmm_cuda",
    "addmm": "addmm_cuda",
    "bmm": "baddbmm_cuda",
    "baddbmm": "baddbmm_cuda",
    "mv": "addmv_impl_cuda",
    "addmv": "addmv_impl_cuda",
    "dot": "dot",
    "vdot": "vdot",
}


def _named(operator: Operator, args: Any, kwargs: Any) -> list[tuple[str, torch.Tensor]]:
    """Return the tensors of a call with the names of their arguments, in the schema's order."""
    found = []
    for position, name in enumerate(operator.names):
        value = args[position] if position < len(args) else kwargs.get(name)
        for leaf in pytree.tree_leaves(value):
            if isinstance(leaf, torch.Tensor):
                found.append((name, leaf))
    return found


def common_device(operator: Operator, args: Any, kwargs: Any) -> Device:
    """Return the simulated device a call runs on.

    Raises
    ------
    RuntimeError
        CUDA's own, when the tensors are on several devices and the operator does not allow it.
    """
    named = _named(operator, args, kwargs)
    simulated = [value for _, value in named if tensor.is_simulated(value)]
    if not simulated:
        raise NotSimulatedError(f"{operator.func} of these arguments")
    for value in simulated:
        tensor.check_alive(value)  # type: ignore[arg-type]
    device: Device = simulated[0]._geometry.device  # type: ignore[attr-defined]
    places = {value.device for _, value in named}
    if len(places) == 1:
        return device
    if operator.name in _INDEXING:
        _check_indices(operator, args, kwargs)
        return device
    if torch.Tag.pointwise in operator.func.tags or operator.name in _ITERATED:
        _check_iterator(operator, named, device)
        return device
    first = named[0][1].device
    for name, value in named:
        if value.device != first:
            raise argument_on_other_device(name, value.device, first, operator.name)
    return device


_ITERATED = {"where", "lerp", "lerp_", "copy_", "index_fill_", "fill_", "masked_fill_"}


def _check_iterator(
    operator: Operator, named: list[tuple[str, torch.Tensor]], device: Device
) -> None:
    common = device.torch_device
    written = {name for _, name in operator.writes}
    for name, value in named:
        if value.device == common:
            continue
        scalar = value.dim() == 0 and value.device.type == "cpu" and name not in written
        if not scalar:
            raise different_devices(common, value.device)


def _check_indices(operator: Operator, args: Any, kwargs: Any) -> None:
    named = _named(operator, args, kwargs)
    target = named[0][1]
    for name, value in named[1:]:
        if name == "indices":
            if value.device.type != "cpu" and value.device != target.device:
                raise RuntimeError(
                    "indices should be either on cpu or on the same device as the indexed tensor "
                    f"({target.device})"
                )
        elif value.device != target.device and not (
            value.dim() == 0 and value.device.type == "cpu"
        ):
            raise different_devices(target.device, value.device)


def supported(operator: Operator, args: Any, kwargs: Any) -> None:
    """Raise where CUDA has no kernel for the dtype though the CPU has one."""
    kernel = _NO_INTEGERS.get(operator.name)
    if kernel is None:
        return
    for _, value in _named(operator, args, kwargs):
        if value.dtype in _INTEGERS:
            name = torch._utils._element_size and _SCALAR_NAMES[value.dtype]
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{name}'")


_SCALAR_NAMES = {
    torch.int8: "Char",
    torch.int16: "Short",
    torch.int32: "Int",
    torch.int64: "Long",
    torch.uint8: "Byte",
    torch.bool: "Bool",
}


def generator(value: Any, device: Device) -> None:
    """Raise unless `value` is a generator of `device`'s kind.

    Raises
    ------
    RuntimeError
        PyTorch's own: the generator is of another device.
    """
    if getattr(value, "device", None) == device.torch_device:
        return
    kind = getattr(getattr(value, "device", None), "type", "cpu")
    if kind == "cuda":
        return
    raise RuntimeError(f"Expected a 'cuda' device type for generator but found '{kind}'")


def usable() -> None:
    """Raise in a forked child, as CUDA does."""
    simulation = runtime.current()
    if simulation.forked:
        runtime.refuse_fork()
