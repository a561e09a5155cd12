"""Calls of torch that are the simulator's own, past all that the learner has turned on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_functorch: Any = torch._C._functorch
_is_wrapped = _functorch.is_functorch_wrapped_tensor


@contextmanager
def plainly() -> Iterator[None]:
    """Call torch past every mode that is on: what is made here is the host's own.

    A transform of ``torch.func`` wraps it all the same: see `inner`.
    """
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
        yield


def inner(value: Any) -> Any:
    """Return the tensor inside the wrappers that ``torch.func`` put around `value`."""
    while isinstance(value, torch.Tensor) and _is_wrapped(value):
        value = _functorch.get_unwrapped(value)
    return value
