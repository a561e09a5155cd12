"""Functions that make tensors where ``device=`` says: ``torch.zeros(3, device="cuda")``.

Each is replaced by one that looks at ``device`` (and ``pin_memory``) and otherwise is the
original. PyTorch's own default device finds its way here through `DefaultDevice`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._device import DeviceContext, _device_constructors

from . import checks, pinned, runtime
from .copy import empty, plain, to
from .cost import kernel_time
from .device import Device
from .kernel import Kernel
from .tensor import Tensor, is_simulated, unheard, wraps_simulated

#: Functions that take their values from Python or the host.
_FROM_HOST = {"tensor", "as_tensor", "asarray"}
_EMPTY = {"empty", "empty_strided", "empty_permuted"}
_RANDOM = {"rand", "randn", "randint", "randperm", "normal"}
#: Functions that take geometry from a tensor, and how a new tensor is then filled.
_LIKE: dict[str, Callable[..., Any]] = {
    "empty_like": lambda new: new,
    "zeros_like": lambda new: new.zero_(),
    "ones_like": lambda new: new.fill_(1),
    "full_like": lambda new, value: new.fill_(value),
    "rand_like": lambda new, generator=None: new.uniform_(generator=generator),
    "randn_like": lambda new, generator=None: new.normal_(generator=generator),
    "randint_like": lambda new, *bounds, generator=None: new.random_(
        *(bounds if len(bounds) > 1 else (0, *bounds)), generator=generator
    ),
}
_NOT_SIMULATED = {
    "sparse_coo_tensor",
    "sparse_compressed_tensor",
    "sparse_csr_tensor",
    "sparse_csc_tensor",
    "sparse_bsr_tensor",
    "sparse_bsc_tensor",
    "nested_tensor",
    "empty_quantized",
}


def wanted_device(device: Any) -> torch.device | None:
    """Return what a ``device=`` argument names; a number is a CUDA device."""
    if device is None or isinstance(device, torch.device):
        return device
    if isinstance(device, int) and not isinstance(device, bool):
        if device < 0:
            raise RuntimeError("Device index must not be negative")
        return torch.device("cuda", device)
    return torch.device(device)


def simulated_device(device: torch.device) -> Device:
    """Return the simulated device that `device` names; the simulator is in use from now on."""
    checks.usable()
    torch.cuda._lazy_init()
    return runtime.current().device(device.index)


def make(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """Return what stands in for a factory function."""

    @functools.wraps(original)
    def factory(*args: Any, **kwargs: Any) -> Any:
        device = wanted_device(kwargs.get("device"))
        if device is not None and device.type == "cuda":
            kwargs["device"] = device
            if torch._C._is_torch_function_mode_enabled():
                return torch.overrides.handle_torch_function(factory, (), *args, **kwargs)
            return _on_device(name, original, args, kwargs)
        generator = kwargs.get("generator")
        if (
            checks.is_simulated_generator(generator)
            and (device is not None or not torch._C._len_torch_function_stack())
            and not any(is_simulated(value) for value in args)
        ):
            checks.generator(generator, None)
        if name in _FROM_HOST and args and (device is not None or name == "tensor"):
            args = (_to_host(args[0], device), *args[1:])
        if kwargs.get("pin_memory"):
            del kwargs["pin_memory"]
            requires_grad = kwargs.pop("requires_grad", False)
            return pinned.pin(original(*args, **kwargs)).requires_grad_(requires_grad)
        return original(*args, **kwargs)

    return factory


def _to_host(data: Any, device: torch.device | None) -> Any:
    """Return data for a tensor of the host, where it holds simulated tensors."""
    if is_simulated(data):
        return data if device is None else data.detach().to(device)
    if isinstance(data, (list, tuple)) and any(
        is_simulated(item) or isinstance(item, (list, tuple)) for item in data
    ):
        return [item.tolist() if is_simulated(item) else _to_host(item, device) for item in data]
    return data


@unheard
def _on_device(
    name: str, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> torch.Tensor:
    if name in _NOT_SIMULATED:
        from .errors import NotSimulatedError

        raise NotSimulatedError(f"torch.{name} on a GPU")
    device = simulated_device(kwargs.pop("device"))
    if kwargs.pop("pin_memory", False):
        raise RuntimeError("Only dense CPU tensors can be pinned")
    requires_grad = kwargs.pop("requires_grad", False)
    dtype = kwargs.get("dtype")
    if requires_grad and dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    out = kwargs.get("out")
    if out is not None:
        result: torch.Tensor = original(*args, **kwargs)
        return result
    if name in _FROM_HOST:
        result = _from_host(name, original, args, kwargs, device)
    else:
        generator = kwargs.pop("generator", None)
        with torch._C.DisableTorchFunction():
            like = original(*args, **kwargs, device="meta")
        new = empty(device, tuple(like.shape), like.stride(), like.dtype)
        if name not in _EMPTY:
            fill(name, original, args, kwargs, new, like, generator)
        result = new
    return result.requires_grad_() if requires_grad else result


def _from_host(
    name: str,
    original: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    device: Device,
) -> torch.Tensor:
    data = args[0] if args else kwargs.get("data", kwargs.get("obj"))
    if isinstance(data, torch.Tensor) and name != "tensor":
        copy = bool(kwargs.get("copy"))
        return to(data, device.torch_device, kwargs.get("dtype"), copy=copy)
    if is_simulated(data):
        result = original(*args, **kwargs)
        return to(result, device.torch_device).detach()
    data = _to_host(data, torch.device("cpu"))
    args = (data, *args[1:])
    kwargs.pop("data", None), kwargs.pop("obj", None)
    with torch._C.DisableTorchFunction():
        host = original(*args, **kwargs, device="cpu")
    return to(host, device.torch_device)


def fill(
    name: str,
    original: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    new: Tensor,
    like: torch.Tensor,
    generator: Any,
) -> None:
    """Launch what gives a new tensor its values: `original`, on the host."""
    device = new._geometry.device
    if name == "normal" and len(args) > 1 and isinstance(args[1], (int, float)) and args[1] < 0:
        raise RuntimeError("normal expects std >= 0.0, but found std " + str(args[1]))
    given = dict(kwargs, device="cpu")
    if name in _RANDOM:
        source = device.generator if generator is None else generator
        checks.generator(source, device)
        given["generator"] = source.reserve()
    kernel = Kernel(device, name, original, list(args), given, [], [new._raw])
    seconds, share = kernel_time(
        torch.ops.aten.fill_.Scalar, (), {}, like, (), (like,), device.profile
    )
    stream = runtime.current().launch_stream(device)
    if name not in device.loaded:
        device.load(name)
    end = device.launch(stream, seconds, kernel, share=share)
    new._block.written = end


def empty_like(value: Tensor, **kwargs: Any) -> Tensor:
    """Return an uninitialised tensor of the geometry of `value`, on its device."""
    with torch._C.DisableTorchFunction():
        meta = torch.empty_like(plain(value), **kwargs, device="meta")
    return empty(value._geometry.device, tuple(meta.shape), meta.stride(), meta.dtype)


def make_like(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """Return what stands in for a function such as ``torch.zeros_like``."""
    fill = _LIKE[name]

    @functools.wraps(original)
    def factory(*args: Any, **kwargs: Any) -> Any:
        device = wanted_device(kwargs.get("device"))
        like: Any = args[0] if args else kwargs.get("input")
        simulated = is_simulated(like)
        pin = kwargs.get("pin_memory")
        if not simulated and not pin and (device is None or device.type != "cuda"):
            return original(*args, **kwargs)
        if wraps_simulated(like) and (device is None or device == like.device):
            return original(*args, **dict(kwargs, device=None))  # C++ asks the tensor inside
        return on_device(device or like.device, like, args, kwargs)

    @unheard
    def on_device(
        device: torch.device, like: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> torch.Tensor:
        pin = kwargs.pop("pin_memory", False)
        kwargs.pop("input", None)
        rest = args[1:]
        generator = kwargs.pop("generator", None)
        if "fill_value" in kwargs:
            rest = (kwargs.pop("fill_value"),)
        bounds = [kwargs.pop(key) for key in ("low", "high") if key in kwargs]
        rest = (*rest, *bounds)
        kept = {key: kwargs[key] for key in ("dtype", "memory_format") if key in kwargs}
        with torch._C.DisableTorchFunction():
            meta = torch.empty_like(plain(like), **kept, device="meta")
        size, stride = tuple(meta.shape), meta.stride()
        if device.type == "cuda":
            if pin:
                raise RuntimeError("Only dense CPU tensors can be pinned")
            new: torch.Tensor = empty(simulated_device(device), size, stride, meta.dtype)
        elif pin:
            new = pinned.empty_strided(size, stride, meta.dtype)
        else:
            with torch._C.DisableTorchFunction():
                new = torch.empty_strided(size, stride, dtype=meta.dtype, device=device)
        with torch.no_grad():
            new = fill(new, *rest, **({"generator": generator} if generator is not None else {}))
        return new.requires_grad_() if kwargs.get("requires_grad") else new

    return factory


def make_new(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """Return what stands in for a method such as ``Tensor.new_zeros``."""
    function = {
        "new_empty": "empty",
        "new_zeros": "zeros",
        "new_ones": "ones",
        "new_full": "full",
        "new_tensor": "tensor",
        "new_empty_strided": "empty_strided",
    }[name]

    @functools.wraps(original)
    def method(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        device = wanted_device(kwargs.get("device"))
        if not is_simulated(self) and (device is None or device.type != "cuda"):
            return original(self, *args, **kwargs)
        kwargs["device"] = device or self.device
        if kwargs.get("dtype") is None and not (args and isinstance(args[0], torch.Tensor)):
            kwargs["dtype"] = self.dtype
        if "size" in kwargs and function in ("zeros", "ones", "empty"):
            args = (kwargs.pop("size"),)
        return getattr(torch, function)(*args, **kwargs)

    return method


def originals() -> dict[str, list[tuple[Any, str, Callable[..., Any]]]]:
    """Return every function to replace: kind -> (module, name, original)."""
    modules = (torch, torch.fft, torch.signal.windows)
    constructors = _device_constructors()
    found: dict[str, list[tuple[Any, str, Callable[..., Any]]]] = {"make": [], "like": []}
    for module in modules:
        for name, value in vars(module).items():
            if callable(value) and value in constructors:
                found["make"].append((module, name, value))
    found["make"].append((torch, "normal", torch.normal))
    found["like"] = [(torch, name, getattr(torch, name)) for name in _LIKE]
    return found


class DefaultDevice:
    """Makes PyTorch's default device find the functions that stand in for the originals."""

    def __init__(self, replacements: dict[Callable[..., Any], Callable[..., Any]]) -> None:
        self._replacements = replacements
        self._original: Callable[..., Any] = DeviceContext.__torch_function__

    def method(self) -> Callable[..., Any]:
        """Return the ``__torch_function__`` of ``DeviceContext``."""
        replacements, original = self._replacements, self._original

        def __torch_function__(
            self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if self.device.type == "cuda" and func in replacements:
                kwargs = dict(kwargs or {})
                if kwargs.get("device") is None:
                    kwargs["device"] = self.device
                return replacements[func](*args, **kwargs)
            return original(self, func, types, args, kwargs)

        return __torch_function__
