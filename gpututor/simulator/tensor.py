"""The simulated tensor: what Python sees as a CUDA tensor and C++ as an ordinary one.

A simulated tensor is a wrapper subclass. Its geometry lives in C++, its values in a view of a
segment of simulated memory (``_raw``), which only the engine's thread reads and writes.
``__torch_dispatch__`` sees every operator below autograd, so that backward passes and optimizers
need nothing of their own. C++ believes the device is the CPU; every question about the device
that can be asked from Python is answered here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import torch
from torch import nn
from torch.utils._python_dispatch import _disable_current_modes

from . import runtime
from .errors import StoppedError
from .plain import inner

if TYPE_CHECKING:
    from .device import Device
    from .memory import Block

_make_wrapper = torch.Tensor._make_wrapper_subclass
_grad: Any = torch._C.TensorBase.grad


class Geometry:
    """Size, stride, dtype and device of a tensor; one object for equal ones.

    Attributes
    ----------
    nbytes : int
        Bytes from the first element to the last.
    """

    __slots__ = ("contiguous", "device", "dtype", "nbytes", "numel", "size", "stride")

    def __init__(
        self, size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype, device: Device
    ) -> None:
        self.size = size
        self.stride = stride
        self.dtype = dtype
        self.device = device
        self.numel = 1
        for length in size:
            self.numel *= length
        extent = 0
        if self.numel:
            extent = 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        self.nbytes = extent * dtype.itemsize
        self.contiguous = extent == self.numel


def geometry(
    size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype, device: Device
) -> Geometry:
    """Return the one `Geometry` of these values."""
    key = (size, stride, dtype)
    known = device.geometries.get(key)
    if known is None:
        if len(device.geometries) > 100_000:
            device.geometries.clear()
        known = device.geometries[key] = Geometry(size, stride, dtype, device)
    return known


class Tensor(torch.Tensor):
    """A tensor on a simulated device."""

    _raw: torch.Tensor
    _block: Block
    _geometry: Geometry

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """Hand an operator to the simulator."""
        return dispatch(func, args, kwargs or {})

    # -- what it is --------------------------------------------------------------------------

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """The simulated device that holds it."""
        return self._geometry.device.torch_device

    @property
    def is_cuda(self) -> bool:  # type: ignore[override]
        """True: to Python this is a CUDA tensor."""
        return True

    @property
    def is_cpu(self) -> bool:  # type: ignore[override]
        """False: its values are not in the host's memory."""
        return False

    def get_device(self) -> int:
        """Return the index of its device."""
        return self._geometry.device.index

    @property
    def _is_param(self) -> bool:
        return isinstance(self, Parameter)

    @_is_param.setter
    def _is_param(self, value: bool) -> None:
        # nn.Parameter(tensor) marks a tensor of another class like this.
        self.__class__ = Parameter if value else Tensor

    @property
    def data(self) -> torch.Tensor:
        """The same values without their history."""
        return wrap_view(self._raw, self)  # with a version counter of its own

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        from .copy import replace

        replace(self, value)

    @property
    def grad(self) -> Any:
        """Its gradient, or None."""
        return _grad.__get__(self)

    @grad.setter
    def grad(self, value: Any) -> None:
        if isinstance(value, torch.Tensor) and value.device != self.device:
            raise RuntimeError(
                f"attempting to assign a gradient with device type '{value.device.type}' to a "
                f"tensor with device type '{self.device.type}'. Please ensure that the gradient "
                "and the tensor are on the same device"
            )
        _grad.__set__(self, value)

    @grad.deleter
    def grad(self) -> None:
        _grad.__delete__(self)

    @property
    def itemsize(self) -> int:  # type: ignore[override]
        """Bytes of one element."""
        return self._geometry.dtype.itemsize

    def data_ptr(self) -> int:
        """Return the address of its first element in the simulated memory."""
        if not self._geometry.numel:
            return 0
        check_alive(self)
        block, dtype = self._block, self._geometry.dtype
        offset = int(self._raw.storage_offset()) - block.first(dtype)
        return block.address + offset * dtype.itemsize

    def untyped_storage(self) -> Any:
        """Return what it and its views share."""
        from .storage import Storage

        return Storage.of(self)

    def storage(self) -> Any:
        """Return its storage as ``torch.TypedStorage``."""
        return self._typed_storage()

    def _typed_storage(self) -> Any:
        with torch._C.DisableTorchFunction():
            return torch.TypedStorage(
                wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True
            )

    def set_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Show another storage, or what another tensor shows."""
        from .storage import set_storage

        return set_storage(self, *args, **kwargs)

    def is_pinned(self, device: Any = None) -> bool:
        """Return False: pinned memory is the host's."""
        return False

    def pin_memory(self, device: Any = None) -> NoReturn:
        """Refuse: only tensors of the host can be pinned."""
        raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")

    def is_shared(self) -> bool:
        """Return True, as for every CUDA tensor."""
        return True

    def share_memory_(self) -> Tensor:
        """Do nothing, as for every CUDA tensor."""
        return self

    # -- to the host -------------------------------------------------------------------------

    def numpy(self, *, force: bool = False) -> Any:
        """Refuse, as a CUDA tensor does, unless forced."""
        if force:
            return self.detach().cpu().numpy(force=True)
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy "
            "the tensor to host memory first."
        )

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.numpy()

    def __array_wrap__(self, *args: Any, **kwargs: Any) -> Any:
        return self.numpy()

    def tolist(self) -> Any:
        """Return its values as nested lists, once they are there."""
        return self.detach().cpu().tolist()

    def __format__(self, spec: str) -> str:
        if self.dim() == 0:
            return self.item().__format__(spec)
        return object.__format__(self, spec)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        from .display import tensor_text

        return tensor_text(self)

    def __dir__(self) -> list[str]:
        names: list[str] = super().__dir__()  # type: ignore[no-untyped-call]
        return [name for name in names if name not in _PRIVATE]

    # -- copies of the object ----------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        from .storage import deepcopy

        return deepcopy(self, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        from .storage import reduce

        return reduce(self)

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        from .errors import NotSimulatedError

        raise NotSimulatedError("Tensor.__dlpack__")

    def __dlpack_device__(self) -> Any:
        return (2, self.get_device())

    @property
    def __cuda_array_interface__(self) -> Any:
        from .errors import NotSimulatedError

        raise NotSimulatedError("Tensor.__cuda_array_interface__")

    def record_stream(self, stream: Any) -> None:
        """Keep its memory from being used again before `stream` is done with it."""
        if not isinstance(stream, torch.Stream):
            raise RuntimeError("unknown parameter type")
        self._block.used_on(runtime.current().state_of(stream))


_PRIVATE = frozenset({"_raw", "_block", "_geometry"})


class Parameter(Tensor, nn.Parameter):
    """An ``nn.Parameter`` on a simulated device."""

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        return "Parameter containing:\n" + super().__repr__()


for _class in (Tensor, Parameter):
    # A learner who asks for the type sees what a CUDA tensor would show.
    _class.__qualname__ = _class.__name__
    _class.__module__ = "torch" if _class is Tensor else "torch.nn.parameter"


def wrap(spec: Geometry, raw: torch.Tensor, block: Block) -> Tensor:
    """Return the tensor that shows `raw`, a view of `block`, to the learner."""
    tensor: Tensor = _make_wrapper(Tensor, spec.size, strides=spec.stride, dtype=spec.dtype)
    tensor._raw = raw
    tensor._block = block
    tensor._geometry = spec
    return tensor


def wrap_view(raw: torch.Tensor, base: Tensor) -> Tensor:
    """Return a tensor over `raw`, a view of `base`'s values."""
    spec = geometry(tuple(raw.shape), raw.stride(), raw.dtype, base._geometry.device)
    block = base._block
    offset = raw.storage_offset() - block.first(raw.dtype)
    if torch.is_inference_mode_enabled() == base.is_inference():
        tensor = _make_wrapper(
            Tensor, spec.size, strides=spec.stride, dtype=spec.dtype, storage_offset=offset
        )
    else:  # a view is of inference mode where its base is
        with torch._C._InferenceMode(base.is_inference()):
            tensor = _make_wrapper(
                Tensor, spec.size, strides=spec.stride, dtype=spec.dtype, storage_offset=offset
            )
    tensor._raw = raw
    tensor._block = block
    tensor._geometry = spec
    if raw.is_conj():
        torch._C._set_conj(tensor, True)
    if raw.is_neg():
        torch._C._set_neg(tensor, True)
    return tensor


def is_simulated(value: object) -> bool:
    """Tell whether `value` is a tensor on a simulated device."""
    return type(value) is Tensor or type(value) is Parameter


def wraps_simulated(value: Any) -> bool:
    """Tell whether `value` is a wrapper of ``torch.func`` around a simulated tensor."""
    inside = inner(value)
    return inside is not value and is_simulated(inside)


_Work = TypeVar("_Work", bound=Callable[..., Any])


def unheard(function: _Work) -> _Work:
    """Keep the work of `function` from dispatch modes: it is the simulator's, not the learner's."""

    @functools.wraps(function)
    def work(*args: Any, **kwargs: Any) -> Any:
        if not torch._C._len_torch_dispatch_stack():
            return function(*args, **kwargs)
        with _disable_current_modes():
            return function(*args, **kwargs)

    return work  # type: ignore[return-value]


def check_alive(tensor: Tensor) -> None:
    """Raise if the device of `tensor` is gone."""
    if not tensor._geometry.device.alive:
        raise StoppedError


def dispatch(func: Any, args: Any, kwargs: Any) -> Any:
    """Run an operator; `operators` puts its own function here."""
    raise RuntimeError("gpututor.simulator.operators was not imported")
