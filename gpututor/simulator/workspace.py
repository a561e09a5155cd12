"""The workspaces of cuBLAS: memory that PyTorch takes at the first matrix product and keeps.

PyTorch gives each cuBLAS handle one workspace for each stream it is used on, and cuBLASLt, which
adds a bias, one of its own (``aten/src/ATen/cuda/CublasHandlePool.cpp``). A thread has one handle
for each device, which another thread takes over when it ends. Autograd's backward pass runs in a
thread of its own, so it has a handle of its own too. They show in ``memory_allocated``.
"""

from __future__ import annotations

import os
import re
import threading
import warnings
import weakref
from collections import deque
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from .device import Device, StreamState
    from .memory_blocks import Block

_backward_node = torch._C._current_autograd_node
_BACKWARD = -1  # the handle of the backward pass
_KIB = 1024


def workspace_bytes(capability: tuple[int, int]) -> int:
    """Return the bytes of one cuBLAS workspace.

    That is 32 MiB from Hopper on and 8.1 MiB before, unless ``CUBLAS_WORKSPACE_CONFIG`` says
    otherwise, as in ``:4096:8``. Source: ``parseChosenWorkspaceSize`` of torch 2.11.
    """
    text = os.environ.get("CUBLAS_WORKSPACE_CONFIG")
    default = 32 * _KIB * _KIB if capability >= (9, 0) else (2 * 4096 + 8 * 16) * _KIB
    if not text:
        return default
    found = re.findall(r":([0-9]+):([0-9]+)", text)
    if not found:
        warnings.warn(
            "Could not parse CUBLAS_WORKSPACE_CONFIG, using default workspace size of "
            f"{default} bytes.",
            stacklevel=2,
        )
        return default
    return sum(int(size) * _KIB * int(count) for size, count in found)


def lt_workspace_bytes() -> int:
    """Return the bytes of one cuBLASLt workspace: 1 MiB, or ``CUBLASLT_WORKSPACE_SIZE`` KiB."""
    text = os.environ.get("CUBLASLT_WORKSPACE_SIZE", "")
    return (int(text) if text.isdecimal() else 1024) * _KIB


class _Token:
    """Stands for a thread; gone when the thread is."""

    __slots__ = ("__weakref__", "handle")

    def __init__(self, handle: int) -> None:
        self.handle = handle


class Workspaces:
    """The cuBLAS handles and workspaces of one device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._local = threading.local()
        self._count = 0
        self._threads: dict[weakref.ref[_Token], int] = {}
        self._ended: deque[weakref.ref[_Token]] = deque()
        self._blocks: dict[tuple[bool, int, int], Block] = {}
        self._dropout: Block | None = None

    def take(self, stream: StreamState, lt: bool) -> None:
        """Make the workspaces that a product on `stream` needs, unless they are there."""
        handle = _BACKWARD if _backward_node() is not None else self._handle()
        number = stream.stream_id
        if (False, handle, number) not in self._blocks:
            size = workspace_bytes(self._device.profile.capability)
            self._blocks[False, handle, number] = self._device.memory.allocate(size, number)
        if lt and (True, handle, number) not in self._blocks:
            size = lt_workspace_bytes()
            self._blocks[True, handle, number] = self._device.memory.allocate(size, number)

    def take_dropout(self, stream: StreamState) -> None:
        """Make the state of cuDNN's random numbers for dropout in an RNN: 24 bytes a thread."""
        if self._dropout is None:
            profile = self._device.profile
            threads = profile.multiprocessors * profile.threads_per_multiprocessor
            size = threads * 24
            self._dropout = self._device.memory.allocate(size, stream.stream_id)

    def _handle(self) -> int:
        token = getattr(self._local, "token", None)
        if token is None:
            handle = None
            if self._ended:  # a thread that is gone leaves its handle
                handle = self._threads.pop(self._ended.pop(), None)
            if handle is None:
                handle, self._count = self._count, self._count + 1
            token = self._local.token = _Token(handle)
            self._threads[weakref.ref(token, self._ended.append)] = handle
        return int(token.handle)

    def blocks(self) -> list[Block]:
        """Return all workspaces."""
        blocks = list(self._blocks.values())
        return blocks if self._dropout is None else [*blocks, self._dropout]

    def clear(self) -> None:
        """Free all workspaces: ``torch._C._cuda_clearCublasWorkspaces``."""
        self._blocks.clear()
