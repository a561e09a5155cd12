"""gpututor: learn to work with CUDA GPUs from PyTorch, live on any machine."""

from __future__ import annotations

from .exercises import check, solution
from .explorer import Explorer, explore
from .machine import Machine, start, stop
from .prediction import predict

__all__ = ["Explorer", "Machine", "check", "explore", "predict", "solution", "start", "stop"]
__version__ = "0.1.0"
