"""Methods of ``torch.Tensor`` that name a device or ask about one.

They serve ordinary tensors, whose methods they replace while the simulator runs, and simulated
ones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from . import checks, lazy, pinned, runtime
from .copy import replace
from .copy import to as copy_to
from .errors import NotSimulatedError
from .factories import simulated_device, wanted_device
from .plain import inner
from .tensor import Tensor, check_alive, is_simulated, wraps_simulated

_TYPES = {
    "Float": torch.float32,
    "Double": torch.float64,
    "Half": torch.float16,
    "BFloat16": torch.bfloat16,
    "Byte": torch.uint8,
    "Char": torch.int8,
    "Short": torch.int16,
    "Int": torch.int32,
    "Long": torch.int64,
    "Bool": torch.bool,
    "ComplexFloat": torch.complex64,
    "ComplexDouble": torch.complex128,
}
_TYPE_NAMES = {dtype: name for name, dtype in _TYPES.items()}


def _wanted(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Read the arguments of ``Tensor.to`` in all their forms."""
    wanted: dict[str, Any] = {"device": None, "dtype": None}
    names = ["dtype", "non_blocking", "copy"]
    if args:
        first, args = args[0], args[1:]
        if isinstance(first, torch.dtype):
            wanted["dtype"], names = first, names[1:]
        elif isinstance(first, torch.Tensor):
            wanted["device"], wanted["dtype"], names = first.device, first.dtype, names[1:]
        else:
            wanted["device"] = first
    wanted.update(zip(names, args, strict=False))
    other = kwargs.get("other")
    if other is not None:
        wanted["device"], wanted["dtype"] = other.device, other.dtype
    wanted.update((name, value) for name, value in kwargs.items() if name != "other")
    wanted["device"] = wanted_device(wanted["device"])
    return wanted


def _move(tensor: torch.Tensor, wanted: dict[str, Any]) -> torch.Tensor:
    if is_simulated(tensor):
        check_alive(tensor)  # type: ignore[arg-type]
    device = wanted["device"] or tensor.device
    if device.type == "cuda":
        device = simulated_device(device).torch_device
    if inner(tensor) is not tensor and device != tensor.device:
        raise NotSimulatedError("a move to another device inside a transform of torch.func")
    memory_format = wanted.get("memory_format") or torch.preserve_format
    return copy_to(
        tensor,
        device,
        wanted["dtype"],
        bool(wanted.get("non_blocking")),
        bool(wanted.get("copy")),
        memory_format,
    )


def to(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return ``Tensor.to``."""

    def to(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if not is_simulated(self):
            # The original answers for the host's own business, and for wrong arguments.
            first = args[0] if args else kwargs.get("device", kwargs.get("other"))
            names_device = first is not None and not isinstance(first, torch.dtype)
            if not names_device:
                return original(self, *args, **kwargs)
        wanted = _wanted(args, kwargs)
        if lazy.is_lazy(self):
            kept = self if wanted["dtype"] is None else original(self, wanted["dtype"])
            return lazy.move(kept, wanted["device"])  # type: ignore[no-any-return]
        on_host = not is_simulated(self) and not wraps_simulated(self)
        if on_host and (wanted["device"] is None or wanted["device"].type != "cuda"):
            return original(self, *args, **kwargs)
        return _move(self, wanted)

    return to


def cuda(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``Tensor.cuda``."""

    def cuda(
        self: torch.Tensor,
        device: Any = None,
        non_blocking: bool = False,
        memory_format: torch.memory_format = torch.preserve_format,
    ) -> torch.Tensor:
        wanted = wanted_device(device)
        if wanted is not None and wanted.type != "cuda":
            raise RuntimeError("Invalid device, must be cuda device")
        if lazy.is_lazy(self):
            return lazy.move(self, wanted or torch.device("cuda"))  # type: ignore[no-any-return]
        return _move(
            self,
            {
                "device": wanted or torch.device("cuda"),
                "dtype": None,
                "non_blocking": non_blocking,
                "memory_format": memory_format,
            },
        )

    return cuda


def cpu(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return ``Tensor.cpu``."""

    def cpu(
        self: torch.Tensor, memory_format: torch.memory_format = torch.preserve_format
    ) -> torch.Tensor:
        if lazy.is_lazy(self):
            return lazy.move(self, torch.device("cpu"))  # type: ignore[no-any-return]
        if not is_simulated(self) and not wraps_simulated(self):
            return original(self, memory_format=memory_format)
        wanted = {"device": torch.device("cpu"), "dtype": None, "memory_format": memory_format}
        return _move(self, wanted)

    return cpu


def type_(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``Tensor.type``."""

    def type(
        self: torch.Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any
    ) -> Any:
        if dtype is None:
            if not is_simulated(self):
                return original(self)
            return f"torch.cuda.{_TYPE_NAMES.get(self.dtype, 'Float')}Tensor"
        name = dtype if isinstance(dtype, str) else _legacy_name(dtype)
        if name is None:  # a torch.dtype: the device stays
            return (
                original(self, dtype, non_blocking, **kwargs)
                if not is_simulated(self)
                else _move(self, {"device": None, "dtype": dtype})
            )
        words = name.split(".")
        wanted = _TYPES.get(words[-1].removesuffix("Tensor"))
        if wanted is None or (not is_simulated(self) and "cuda" not in words):
            return original(self, dtype, non_blocking, **kwargs)
        device = torch.device("cuda" if "cuda" in words else "cpu")
        if is_simulated(self) and device.type == "cuda":
            device = self.device
        return _move(self, {"device": device, "dtype": wanted, "non_blocking": non_blocking})

    return type


def _legacy_name(dtype: Any) -> str | None:
    if isinstance(dtype, torch.dtype):
        return None
    return f"{dtype.__module__}.{dtype.__name__}"


def pin_memory(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``Tensor.pin_memory``."""

    def pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
        if is_simulated(self) or self.layout != torch.strided:
            raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")
        simulated_device(torch.device("cuda"))
        if pinned.is_pinned(self):
            return self
        return pinned.pin(self.detach()).requires_grad_(self.requires_grad)

    return pin_memory


def is_pinned(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``Tensor.is_pinned``."""

    def is_pinned(self: torch.Tensor, device: Any = None) -> bool:
        return not is_simulated(self) and pinned.is_pinned(self)

    return is_pinned


def data(original: Any) -> property:
    """Return ``Tensor.data``, which can make an ordinary tensor a simulated one."""

    def get(self: torch.Tensor) -> torch.Tensor:
        value: torch.Tensor = original.__get__(self)
        return value

    def put(self: torch.Tensor, value: torch.Tensor) -> None:
        if is_simulated(self) or is_simulated(value):
            replace(self, value)
        else:
            original.__set__(self, value)

    def remove(self: torch.Tensor) -> None:
        original.__delete__(self)

    return property(get, put, remove)


def tensor_split(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``torch.tensor_split``, which wants its indices on the host."""

    def tensor_split(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()):
            if is_simulated(value):
                raise RuntimeError(
                    "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on "
                    f"{value.device}"
                )
        return original(self, *args, **kwargs)

    return tensor_split


#: Methods that draw random numbers.
DRAWING = (
    "bernoulli",
    "bernoulli_",
    "cauchy_",
    "exponential_",
    "geometric_",
    "log_normal_",
    "multinomial",
    "normal_",
    "random_",
    "uniform_",
)


def drawing(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that draws on the host only with generators of the host."""

    @functools.wraps(original)
    def draw(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if not is_simulated(self) and checks.is_simulated_generator(kwargs.get("generator")):
            checks.generator(kwargs["generator"], None)
        return original(self, *args, **kwargs)

    return draw


def type_as(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``Tensor.type_as``."""

    def type_as(self: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return self.to(other.device, other.dtype)

    return type_as


def copy_(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``Tensor.copy_``, whose gradient goes back to the source's device."""

    def copy_(self: torch.Tensor, src: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
        crosses = is_simulated(self) != is_simulated(src)
        if crosses and src.requires_grad and torch.is_grad_enabled():
            src = src.to(self.device)
        result: torch.Tensor = original(self, src, non_blocking)
        return result

    return copy_


def new(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``Tensor.new``, an old way to make a tensor like another."""

    def new(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if not is_simulated(self):
            return original(self, *args, **kwargs)
        if len(args) == 1 and not isinstance(args[0], (int, torch.Size)):
            return torch.tensor(args[0], dtype=self.dtype, device=self.device)
        size = args[0] if args and isinstance(args[0], torch.Size) else args
        return torch.empty(size or (0,), dtype=self.dtype, device=self.device)

    return new


def one_hot(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``torch.nn.functional.one_hot``: on CUDA a class too large fails on the device."""

    def one_hot(tensor: torch.Tensor, num_classes: int = -1) -> torch.Tensor:
        if not is_simulated(tensor):
            return original(tensor, num_classes)  # type: ignore[no-any-return]
        if tensor.dtype != torch.int64:
            raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
        if num_classes < 0:
            num_classes = int(tensor.max().item()) + 1
        new = torch.zeros((*tensor.shape, num_classes), dtype=torch.int64, device=tensor.device)
        return new.scatter_(-1, tensor.unsqueeze(-1), 1)

    return one_hot


def set_default_tensor_type(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``torch.set_default_tensor_type``."""

    def set_default_tensor_type(t: Any, /) -> None:
        name = t if isinstance(t, str) else _legacy_name(t)
        if name is None or not name.startswith("torch.cuda."):
            if torch.get_default_device().type == "cuda":
                torch.set_default_device(None)
            original(t)
            return
        torch.set_default_dtype(_TYPES[name.split(".")[-1].removesuffix("Tensor")])
        torch.set_default_device("cuda")

    return set_default_tensor_type


#: Method name -> what makes its replacement from the original.
METHODS: dict[str, Callable[[Any], Any]] = {
    "to": to,
    "cuda": cuda,
    "cpu": cpu,
    "type": type_,
    "pin_memory": pin_memory,
    "is_pinned": is_pinned,
    "data": data,
    "type_as": type_as,
    "copy_": copy_,
    "new": new,
}


def heard(name: str, method: Any) -> Any:
    """Let a ``TorchFunctionMode`` hear of a method of tensors, as it does of PyTorch's own."""
    if not callable(method):
        return method

    @functools.wraps(method)
    def hearing(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if torch._C._is_torch_function_mode_enabled():
            replaced = name in METHODS and runtime.running() is not None
            public = getattr(torch.Tensor, name) if replaced else hearing
            return torch.overrides.handle_torch_function(public, (self,), self, *args, **kwargs)
        return method(self, *args, **kwargs)

    return hearing


for _name in ("to", "cuda", "cpu", "type"):
    # The simulated class keeps its own, so that a tensor that outlives the simulator says so.
    setattr(Tensor, _name, heard(_name, METHODS[_name](getattr(torch.Tensor, _name))))
for _name in ("tolist", "numpy", "__format__", "__repr__"):
    setattr(Tensor, _name, heard(_name, Tensor.__dict__[_name]))


class LegacyType(type):
    """Makes ``isinstance(x, torch.cuda.FloatTensor)`` look at device and dtype."""

    dtype: torch.dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return is_simulated(instance) and instance.dtype == cls.dtype  # type: ignore[attr-defined]


def legacy_types() -> dict[str, LegacyType]:
    """Return stand-ins for ``torch.cuda.FloatTensor`` and its like."""

    def build(dtype: torch.dtype) -> Callable[..., Any]:
        def __new__(cls: Any, *args: Any, device: Any = None) -> Any:
            target = wanted_device(device) or torch.device("cuda")
            if len(args) == 1 and not isinstance(args[0], (int, torch.Size)):
                return torch.tensor(args[0], dtype=dtype, device=target)
            size = args[0] if args and isinstance(args[0], torch.Size) else args
            return torch.empty(size or (0,), dtype=dtype, device=target)

        return __new__

    found = {}
    for name, dtype in _TYPES.items():
        full = f"{name}Tensor"
        if hasattr(torch.cuda, full):
            body = {"__new__": build(dtype), "dtype": dtype, "__module__": "torch.cuda"}
            found[full] = LegacyType(full, (), body)
    return found
