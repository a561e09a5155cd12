"""Lazy modules: parameters that wait for their first input to learn their size.

Until then there are no values. A parameter that has been moved to a simulated device only
remembers the device, and is made there when its size is known.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import parameter

from .copy import replace
from .factories import simulated_device, wanted_device

Mixin: Any = parameter.UninitializedTensorMixin  # type: ignore[attr-defined]
KINDS = (parameter.UninitializedParameter, parameter.UninitializedBuffer)
_WAITS = "_waits_on"  # where it was moved last, in the object's __dict__


def is_lazy(value: object) -> bool:
    """Tell whether `value` is a parameter or buffer without a size."""
    return isinstance(value, Mixin)


def move(value: Any, device: torch.device | None) -> Any:
    """Remember that `value` is to be made on `device`; None leaves it where it is."""
    if device is not None and device.type == "cuda":
        device = simulated_device(device).torch_device
    if device is not None:
        value.__dict__[_WAITS] = device
    return value


def new(original: Callable[..., Any]) -> Any:
    """Return the ``__new__`` of a lazy parameter or buffer, which takes a device."""
    signature = inspect.signature(original)

    def __new__(cls: Any, *args: Any, **kwargs: Any) -> Any:
        given = signature.bind(cls, *args, **kwargs)
        device = wanted_device(given.arguments.get("device")) or torch.get_default_device()
        if device.type != "cuda":
            return original(*given.args, **given.kwargs)
        given.arguments["device"] = torch.device("cpu")
        return move(original(*given.args, **given.kwargs), device)

    return staticmethod(__new__)


def materialize(original: Callable[..., None]) -> Callable[..., None]:
    """Return the ``materialize`` of lazy parameters and buffers."""

    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        target = wanted_device(device) or self.device
        self.__dict__.pop(_WAITS, None)
        if target.type != "cuda":
            original(self, shape, device=target, dtype=dtype)
            return
        original(self, shape, device=torch.device("cpu"), dtype=dtype)
        replace(self, torch.empty(shape, dtype=self.dtype, device=target))

    return materialize


def device(self: Any) -> torch.device:
    """Return where a lazy parameter or buffer is to be made."""
    return self.__dict__.get(_WAITS) or torch.device("cpu")


def data(original: Any) -> property:
    """Return the property ``data``, which tells the device too."""

    def get(self: Any) -> torch.Tensor:
        if self.device.type == "cuda":
            return torch.empty(0, dtype=self.dtype, device=self.device)
        return original.__get__(self)  # type: ignore[no-any-return]

    def put(self: Any, value: torch.Tensor) -> None:
        # Module.to assigns what it has moved, which knows where, or has only cast.
        move(self, value.__dict__.get(_WAITS))
        original.__set__(self, original.__get__(value))

    return property(get, put)
