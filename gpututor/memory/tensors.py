"""The tensors of a device that Python knows of, and where their bytes lie."""

from __future__ import annotations

import gc

import torch


def address(tensor: torch.Tensor) -> int:
    """Return where the storage of a tensor begins, as ``torch.cuda.memory_snapshot`` says it.

    Raises
    ------
    RuntimeError
        When the tensor has no memory: it is a fake one, or its simulated GPU was stopped.
    """
    return int(tensor.untyped_storage().data_ptr())


def on(device: torch.device) -> list[torch.Tensor]:
    """Return the strided tensors whose memory is on `device`; a CUDA device has its index."""
    return [
        value
        for value in gc.get_objects()
        if issubclass(type(value), torch.Tensor)
        and value.device == device
        and value.layout == torch.strided
        and _has_memory(value)
    ]


def _has_memory(tensor: torch.Tensor) -> bool:
    try:
        address(tensor)
    except RuntimeError:
        return False
    return True
