"""What PyTorch's CUDA operators check before they launch: devices, dtypes, generators.

Which operators leave the check to TensorIterator, and which arguments the generated check names
in which order, follows ``native_functions.yaml`` (``device_check: NoCheck``) of torch 2.11 to
2.14; the answers of a real GPU to the programs of ``tests/conformance`` are the proof.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from . import runtime, tensor
from .errors import NotSimulatedError, argument_on_other_device, different_devices
from .random import Generator

if TYPE_CHECKING:
    from .device import Device
    from .operators import Operator

Named = list[tuple[str, torch.Tensor]]

_PUT = {"index_put", "_index_put_impl", "_unsafe_index_put"}
_TAKE = {"index", "_unsafe_index"}
# fmt: off
#: Operators that TensorIterator checks: scalars of the host may take part.
_ITERATED = {
    "add", "sub", "mul", "div", "rsub", "floor_divide", "true_divide", "remainder", "fmod", "pow",
    "atan2", "copysign", "hypot", "heaviside", "xlogy", "special_xlog1py", "special_zeta",
    "maximum", "minimum", "fmax", "fmin", "eq", "ne", "lt", "le", "gt", "ge", "bitwise_and",
    "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "__lshift__",
    "__rshift__", "logical_and", "logical_or", "logical_xor", "lerp", "addcmul", "addcdiv", "where",
    "mse_loss", "smooth_l1_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "index_fill", "fill", "allclose", "isclose", "copy",
}
# fmt: on
#: Argument names where the kernel behind an operator calls them otherwise.
_RENAMED = {("embedding", "indices"): "index", ("mv", "self"): "mat", ("dot", "other"): "tensor"}
_PRODUCTS = {
    "mm": ("addmm_cuda", "self", "mat2"),
    "addmm": ("addmm_cuda", "mat1", "mat2"),
    "bmm": ("baddbmm_cuda", "self", "mat2"),
    "baddbmm": ("baddbmm_cuda", "batch1", "batch2"),
    "mv": ("addmv_impl_cuda", "self", "vec"),
    "addmv": ("addmv_impl_cuda", "mat", "vec"),
    "dot": ("dot", "self", "tensor"),
    "vdot": ("vdot", "self", "other"),
}
_SCALARS = {
    torch.int8: "Char",
    torch.int16: "Short",
    torch.int32: "Int",
    torch.int64: "Long",
    torch.uint8: "Byte",
    torch.bool: "Bool",
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.float32: "Float",
    torch.float64: "Double",
    torch.complex64: "ComplexFloat",
    torch.complex128: "ComplexDouble",
}
_C_TYPES = {"Half": "c10::Half", "BFloat16": "c10::BFloat16", "Float": "float", "Double": "double"}


def _named(operator: Operator, args: Any, kwargs: Any) -> Named:
    """Return the tensors of a call with their arguments' names: ``out`` first, then in order."""
    found: Named = []
    names = operator.names
    places = [place for place, name in enumerate(names) if name == "out"]
    places += [place for place, name in enumerate(names) if name != "out"]
    for place in places:
        name = names[place]
        value = args[place] if place < len(args) else kwargs.get(name)
        for leaf in pytree.tree_leaves(value):
            if isinstance(leaf, torch.Tensor):
                found.append((_RENAMED.get((operator.base, name), name), leaf))
    if operator.base == "mv" and len(found) == 2:
        found.reverse()  # the result is made like the vector, and comes first
    return found


def common_device(operator: Operator, args: Any, kwargs: Any) -> Device:
    """Return the simulated device a call runs on.

    Raises
    ------
    RuntimeError
        CUDA's own, when the tensors are on several devices and the operator does not allow it.
    """
    named = _named(operator, args, kwargs)
    simulated: list[Any] = [value for _, value in named if tensor.is_simulated(value)]
    if not simulated:
        raise NotSimulatedError(f"{operator.func} of these arguments")
    for value in simulated:
        tensor.check_alive(value)
    device: Device = simulated[0]._geometry.device
    first = named[0][1].device
    if all(value.device == first for _, value in named):
        return device
    base = operator.base
    if base == "_ctc_loss":
        return device  # the lengths may be the host's
    if base in _TAKE or base in _PUT:
        _check_indices(named, base in _PUT)
    elif base == "masked_fill":
        _check_masked_fill(named)
    elif base == "convolution":
        _check_convolution(args, named)
    elif base in _ITERATED or base.startswith(("_foreach", "bitwise", "special_")):
        _check_iterator(operator, named, device)
    elif named[0][0] == "out" and base in ("sum", "mean", "prod", "amax", "amin", "all", "any"):
        raise RuntimeError(
            f"Expected out tensor to have device {device.torch_device}, but got {first} instead"
        )
    else:
        for name, value in named:
            if value.device != first:
                raise argument_on_other_device(name, value.device, first, operator.name)
    return device


def _check_iterator(operator: Operator, named: Named, device: Device) -> None:
    common = next(value.device for _, value in named if value.device.type != "cpu")
    written = {name for _, name in operator.writes}
    for name, value in named:
        if value.device == common:
            continue
        scalar = value.dim() == 0 and value.device.type == "cpu" and name not in written
        if not scalar:
            _check_broadcast([value for _, value in named])
            raise different_devices(common, value.device)


def _check_broadcast(values: list[torch.Tensor]) -> None:
    """Raise if the shapes do not fit, which TensorIterator looks at first."""
    with torch._C.DisableTorchFunction():
        shapes = [torch.empty(value.shape, device="meta") for value in values]
        if len(shapes) == 2:
            broadcast_error(tuple(shapes[0].shape), tuple(shapes[1].shape))


def broadcast_error(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """Raise TensorIterator's error if `a` and `b` do not broadcast."""
    for back in range(1, min(len(a), len(b)) + 1):
        if a[-back] != b[-back] and 1 not in (a[-back], b[-back]):
            place = max(len(a), len(b)) - back
            raise RuntimeError(
                f"The size of tensor a ({a[-back]}) must match the size of tensor b ({b[-back]}) "
                f"at non-singleton dimension {place}"
            )


def _check_indices(named: Named, puts: bool) -> None:
    target = named[0][1]
    for name, value in named[1:]:
        if name == "indices":
            if not puts and value.device.type != "cpu" and value.device != target.device:
                raise RuntimeError(
                    "indices should be either on cpu or on the same device as the indexed tensor "
                    f"({target.device})"
                )
        elif value.device != target.device and value.dim() != 0:
            raise different_devices(
                *sorted((target.device, value.device), key=lambda place: place.type == "cpu")
            )


def _check_masked_fill(named: Named) -> None:
    values = dict(named)
    target, mask = values["self"], values["mask"]
    if mask.device != target.device:
        raise RuntimeError(
            f"expected self and mask to be on the same device, but got mask on {mask.device} and "
            f"self on {target.device}"
        )
    if target.device.type == "cpu":
        raise RuntimeError("masked_fill_: Expected inputs to be on same device")


def _check_convolution(args: Any, named: Named) -> None:
    given, weight, bias = args[0], args[1], args[2]
    for name, value in (("weight", weight), ("bias", bias)):
        if value is None or value.device == given.device:
            continue
        if given.device.type == "cuda" and value.device.type == "cpu":
            raise RuntimeError(
                f"Input type ({given.type()}) and {name} type ({value.type()}) should be the same"
            )
        if given.device.type == "cpu" and name == "weight" and _takes_onednn(args):
            raise RuntimeError(
                f"Input type ({given.type()}) and weight type ({value.type()}) should be the same "
                "or input should be a MKLDNN tensor and weight is a dense tensor"
            )
        raise argument_on_other_device(name, value.device, given.device, "__slow_conv2d_forward")


def _takes_onednn(args: Any) -> bool:
    """Tell whether PyTorch would give this convolution on the host to oneDNN (Convolution.cpp)."""
    given, weight, _, stride, _, dilation = args[:6]
    groups = args[8]
    kernel = weight.shape[2:]
    worth = (
        any(step != 1 for step in (*stride, *dilation))
        or given.shape[0] >= 16
        or any(length != 1 for length in kernel)
        or torch.get_num_threads() > 1
    )
    large = (
        groups > 1
        or (len(kernel) > 1 and all(length > 3 for length in kernel))
        or given.shape[0] > 1
        or given.numel() > 20480
    )
    return bool(given.dtype == torch.float32 and worth and large)


def supported(operator: Operator, args: Any, kwargs: Any) -> None:
    """Raise where CUDA has no kernel for the dtypes, or no place to write to."""
    for position, name in operator.writes:
        value = args[position] if position < len(args) else kwargs.get(name)
        if isinstance(value, torch.Tensor) and any(
            step == 0 and length > 1
            for length, step in zip(value.shape, value.stride(), strict=True)
        ):
            raise RuntimeError(
                "unsupported operation: more than one element of the written-to tensor refers to "
                "a single memory location. Please clone() the tensor before performing the "
                "operation."
            )
    if operator.base == "multinomial":
        _check_multinomial(*args, **{k: v for k, v in kwargs.items() if k != "generator"})
    if operator.base == "convolution" and args[0].dtype != args[1].dtype:
        raise RuntimeError(
            f"Input type ({args[0].type()}) and weight type ({args[1].type()}) should be the same"
        )
    product = _PRODUCTS.get(operator.base)
    if product is not None:
        _check_product(operator, dict(_named(operator, args, kwargs)), *product)


def _is_dense(value: torch.Tensor) -> bool:
    steps = zip(value.shape, value.stride(), strict=True)
    return 1 + sum((length - 1) * step for length, step in steps) == value.numel()


def overlap(raw: list[Any]) -> None:
    """Raise where an operator would read, in another place, what it writes (MemoryOverlap.cpp)."""
    target = raw[0]
    for value in raw[1:]:
        if not isinstance(value, torch.Tensor) or not target.numel() or not value.numel():
            continue
        if not (_is_dense(target) and _is_dense(value)):
            continue  # too hard to tell, PyTorch finds too
        start, other = target.data_ptr(), value.data_ptr()
        end, other_end = start + target.nbytes, other + value.nbytes
        same = (start, end) == (other, other_end) and target.stride() == value.stride()
        if not same and start < other_end and other < end:
            raise RuntimeError(
                "unsupported operation: some elements of the input tensor and the written-to "
                "tensor refer to a single memory location. Please clone() the tensor before "
                "performing the operation."
            )


def _check_multinomial(weights: Any, count: int, replacement: bool = False) -> None:
    if not replacement and count > weights.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )


def _check_product(
    operator: Operator, values: dict[str, torch.Tensor], kernel: str, left: str, right: str
) -> None:
    a = values[_RENAMED.get((operator.base, left), left)].dtype
    b = values[right].dtype
    one, other = _SCALARS.get(a, str(a)), _SCALARS.get(b, str(b))
    if a != b:
        if operator.base == "mm":
            raise RuntimeError(
                "expected mat1 and mat2 to have the same dtype, but got: "
                f"{_C_TYPES.get(one, one)} != {_C_TYPES.get(other, other)}"
            )
        if operator.base == "addmm":
            raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {one} and {other}")
        return
    if not a.is_floating_point and not a.is_complex:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{one}'")


def generator(value: Any, device: Device | None) -> None:
    """Raise unless `value` is a generator for `device`; None is the host.

    Raises
    ------
    RuntimeError
        PyTorch's own: the generator is of another device.
    """
    wanted = "cpu" if device is None else "cuda"
    found = value.device.type
    if found != wanted:
        raise RuntimeError(f"Expected a '{wanted}' device type for generator but found '{found}'")


def is_simulated_generator(value: Any) -> bool:
    """Tell whether `value` is a generator of simulated devices."""
    return type(value) is Generator


def usable() -> None:
    """Raise in a forked child, as CUDA does."""
    if runtime.current().forked:
        runtime.refuse_fork()


def composite(name: str, args: Any, kwargs: Any) -> None:
    """Raise where a composite function looks at devices before any of its kernels does."""
    if name == "scaled_dot_product_attention":
        query, key, value = (
            args[place] if place < len(args) else kwargs[word]
            for place, word in enumerate(("query", "key", "value"))
        )
        if not query.device == key.device == value.device:
            raise RuntimeError(
                "Expected query, key, and value to have the same device type, but got "
                f"query.device: {query.device} key.device: {key.device} and value.device: "
                f"{value.device} instead."
            )
    elif name == "meshgrid":
        if len({leaf.device for leaf in pytree.tree_leaves(args)}) > 1:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
    elif name == "stft":
        window = kwargs.get("window", args[4] if len(args) > 4 else None)
        if window is not None and window.device != args[0].device:
            raise RuntimeError(
                "stft input and window must be on the same device but got self on "
                f"{args[0].device} and window on {window.device}"
            )
    elif name == "take_along_dim":
        indices = args[1] if len(args) > 1 else kwargs["indices"]
        if indices.device != args[0].device:
            place = args[0].device
            raise RuntimeError(
                f"Expected tensor to have {place} Device, but got tensor with {indices.device} "
                "Device (while checking arguments for torch.take_along_dim():)"
            )
