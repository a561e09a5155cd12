"""What is asked of arguments in more than one place: one line that says what to give instead."""

from __future__ import annotations

import math
import operator
from typing import Any

import torch


def shown(value: Any) -> str:
    """Return any value as a message shows it: one line of at most 60 characters."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a tensor of a GPU that has failed cannot say what it is
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


def work(function: Any) -> None:
    """Raise TypeError unless `function` can be called."""
    if not callable(function):
        raise TypeError(
            f"give a function that launches work, such as lambda: a @ b, not {shown(function)}"
        )


def whole(value: Any, name: str, least: int = 1) -> None:
    """Raise TypeError unless `value` is a whole number, ValueError unless it is `least` or more."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, such as {least + 1}, not {shown(value)}")
    if value < least:
        raise ValueError(f"{name} must be {least} or more, not {value!s:.60}")


def positive(value: Any, name: str) -> None:
    """Raise TypeError unless `value` is a number, ValueError unless it is more than 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, such as 0.5, not {shown(value)}")
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be more than 0 and finite, not {value!s:.60}")


def device_index(device: Any) -> int:
    """Return the index of a CUDA device; the current one's for None.

    Raises
    ------
    TypeError
        When it is no whole number.
    ValueError
        When there is no such device.
    """
    if device is None:
        return torch.cuda.current_device()
    try:
        if isinstance(device, bool):
            raise TypeError
        index = operator.index(device)
    except TypeError:
        raise TypeError(f"device must be a GPU's index, such as 0, not {shown(device)}") from None
    count = torch.cuda.device_count()
    if not 0 <= index < count:
        raise ValueError(f"there is no GPU {index!s:.20}: give an index from 0 to {count - 1}")
    return index
