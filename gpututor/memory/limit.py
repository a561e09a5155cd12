"""A limit on the memory that PyTorch may take, for the length of a block."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from .. import arguments
from ..scale import amount

SLACK = 512  # bytes: a fraction of the device's memory is rounded down


@contextlib.contextmanager
def limit(nbytes: int, device: int | None = None) -> Iterator[None]:
    """Let PyTorch take at most `nbytes` more from a device, in a ``with`` block.

    It gives back what the allocator has cached, calls
    ``torch.cuda.set_per_process_memory_fraction``, and puts the former fraction back at the end,
    also after an error. So running out of memory can be practised, and no other process notices.

    Parameters
    ----------
    nbytes : int
        How much more than what cannot be given back now. The context and the libraries of a real
        device come on top of it: the limit counts what PyTorch's allocator takes.
    device : int, optional
        The index of a CUDA device; by default the current one.

    Raises
    ------
    ValueError
        When `nbytes` is below 1, or is more than the driver has free.
    """
    if not isinstance(nbytes, (int, float)):
        raise TypeError(f"give a limit as a number of bytes, not {arguments.shown(nbytes)}")
    number = arguments.device_index(device)
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info(number)
    if not 1 <= nbytes <= free:
        raise ValueError(
            f"give a limit from 1 to the {free} bytes that are free, not {nbytes}; to free more, "
            "delete tensors that earlier cells hold, or restart the kernel"
        )
    allowed = torch.cuda.memory_reserved(number) + nbytes + SLACK
    before = torch.cuda.get_per_process_memory_fraction(number)
    if allowed > total * before:
        raise ValueError(f"a limit of {amount(total * before)} holds here already: give less")
    torch.cuda.set_per_process_memory_fraction(min(1.0, allowed / total), number)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(before, number)
