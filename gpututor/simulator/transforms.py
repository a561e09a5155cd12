"""``torch.func`` and forward-mode differentiation on simulated tensors.

A transform hands the learner's function a wrapper made by C++ around each tensor, which says that
it is on the host, as C++ believes. Here the wrapper answers for the tensor inside it. Forward mode
makes zeros for what has no tangent, through an operator of its own, which is sent to the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .inside import Inside
from .operators import aten
from .plain import inner
from .runtime import current
from .tensor import wraps_simulated


def answering(name: str, original: Any) -> property:
    """Return the property `name` of tensors, which a wrapper answers for what it wraps."""

    def get(self: torch.Tensor) -> Any:
        return getattr(inner(self), name) if wraps_simulated(self) else original.__get__(self)

    def refuse(self: torch.Tensor, value: Any) -> None:
        original.__set__(self, value)  # raises what PyTorch's own raises

    return property(get, refuse)


def get_device(original: Callable[..., int]) -> Callable[..., int]:
    """Return ``Tensor.get_device``."""

    def get_device(self: torch.Tensor) -> int:
        return inner(self).get_device() if wraps_simulated(self) else original(self)

    return get_device


class Forward(Inside):
    """Puts the zeros of forward mode on the device of the operator before them."""

    def __init__(self) -> None:
        super().__init__(current().device(), backward=False, simulated=False)

    def _makes(self, func: Any, kwargs: dict[str, Any]) -> bool:
        return self._simulated and func is aten._efficientzerotensor.default


_levels: list[Forward] = []


def enter_dual_level(original: Callable[[], int]) -> Callable[[], int]:
    """Return ``torch.autograd.forward_ad.enter_dual_level``."""

    def enter_dual_level() -> int:
        level = original()
        mode = Forward()
        mode.__enter__()  # type: ignore[no-untyped-call]
        _levels.append(mode)
        return level

    return enter_dual_level


def exit_dual_level(original: Callable[..., None]) -> Callable[..., None]:
    """Return ``torch.autograd.forward_ad.exit_dual_level``."""

    def exit_dual_level(*, level: int | None = None) -> None:
        if _levels:
            _levels.pop().__exit__(None, None, None)  # type: ignore[no-untyped-call]
        original(level=level)

    return exit_dual_level
