"""gpututor: learn to work with CUDA GPUs from PyTorch, live on any machine."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import doctor
    from .machine import Machine, start, stop

__all__ = ["Machine", "doctor", "start", "stop"]
__version__ = "0.1.0"

# A name is looked up when it is first used, so that `python -m gpututor doctor` works where
# importing torch fails.
_HOME = {"Machine": "machine", "start": "machine", "stop": "machine"}


def __getattr__(name: str) -> Any:
    if name == "doctor":
        return importlib.import_module(".doctor", __name__)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
