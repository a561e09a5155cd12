"""Calls of torch that are the simulator's own, past all that the learner has turned on.

``with plainly(), undispatched():`` calls it past every mode. Both are guards written in C: Python
looks for an interrupt between the beginning of a context manager of its own and the block, and
what that had turned off would stay off.
"""

from __future__ import annotations

from typing import Any

import torch

plainly = torch._C.DisableTorchFunction
undispatched = torch._C._DisableTorchDispatch

_functorch: Any = torch._C._functorch
_is_wrapped = _functorch.is_functorch_wrapped_tensor


def inner(value: Any) -> Any:
    """Return the tensor inside the wrappers that ``torch.func`` put around `value`."""
    while isinstance(value, torch.Tensor) and _is_wrapped(value):
        value = _functorch.get_unwrapped(value)
    return value
