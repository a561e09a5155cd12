"""gpututor: learn to work with CUDA GPUs from PyTorch, live on any machine."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import doctor
    from .exercises import check, solution
    from .explorer import Explorer, explore
    from .machine import Machine, start, stop
    from .prediction import predict

__all__ = [
    "Explorer",
    "Machine",
    "check",
    "doctor",
    "explore",
    "predict",
    "solution",
    "start",
    "stop",
]
__version__ = "0.1.0"

# Each name is imported when it is first used: `python -m gpututor doctor` must work where
# importing torch fails, and importing this package is the first thing that command does.
_HOME = {
    "Explorer": "explorer",
    "Machine": "machine",
    "check": "exercises",
    "explore": "explorer",
    "predict": "prediction",
    "solution": "exercises",
    "start": "machine",
    "stop": "machine",
}


#: Modules that are there after ``import gpututor`` alone.
_MODULES = {
    "child", "clinic", "diagrams", "doctor", "exercises", "figures", "live", "machine", "memory",
    "parallel", "recorded", "roofline", "timeline", "timing", "transfer", "waits",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
