"""gpututor: learn to work with CUDA GPUs from PyTorch, live on any machine."""

from __future__ import annotations

from .machine import Machine, start, stop

__all__ = ["Machine", "start", "stop"]
__version__ = "0.1.0"
