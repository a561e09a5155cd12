"""The three numbers of a GPU's memory: what tensors hold, PyTorch keeps, the driver has given."""

from __future__ import annotations

import gc
import html
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from .. import arguments, machine
from ..scale import amount


@dataclass(frozen=True)
class Numbers:
    """The state of a device's memory, in bytes.

    Attributes
    ----------
    allocated : int
        What live tensors hold, rounded up as the allocator rounds; ``memory_allocated``.
    reserved : int
        What PyTorch has taken from the driver, for these tensors and the next ones;
        ``memory_reserved``.
    used : int
        What the driver has given to anybody: ``mem_get_info``. On a real device this counts the
        process's context and all other processes too.
    total : int
        The device's memory.
    source : str
        Where the numbers come from.
    """

    allocated: int
    reserved: int
    used: int
    total: int
    source: str

    @property
    def cached(self) -> int:
        """Bytes that PyTorch keeps and no tensor holds."""
        return self.reserved - self.allocated

    def rows(self) -> list[tuple[str, str, str]]:
        """Return name, amount and meaning of each number."""
        return [
            ("allocated", amount(self.allocated), "held by live tensors"),
            ("reserved", amount(self.reserved), "taken by PyTorch, for these tensors or the next"),
            ("used", amount(self.used), f"given away by the driver, of {amount(self.total)}"),
        ]

    def __repr__(self) -> str:
        lines = [f"{name:<10}{size:>10}  {text}" for name, size, text in self.rows()]
        return "\n".join([*lines, f"Source: {self.source}."])

    def _repr_html_(self) -> str:
        cells = "".join(
            f'<tr><th style="text-align:left;padding:2px 12px 2px 0">{name}</th>'
            f'<td style="text-align:right;white-space:nowrap;padding:2px 12px 2px 0">{size}</td>'
            f'<td style="text-align:left;padding:2px 0">{html.escape(text)}</td></tr>'
            for name, size, text in self.rows()
        )
        return f"<table>{cells}</table><p>Source: {html.escape(self.source)}.</p>"


def numbers(device: int | None = None) -> Numbers:
    """Return the three numbers of a device's memory.

    Parameters
    ----------
    device : int, optional
        The index of a CUDA device; by default the current one.
    """
    device = arguments.device_index(device)
    free, total = torch.cuda.mem_get_info(device)
    return Numbers(
        torch.cuda.memory_allocated(device),
        torch.cuda.memory_reserved(device),
        total - free,
        total,
        machine.source(device),
    )


def peak(work: Callable[[], Any], device: int | None = None) -> float:
    """Return the most memory that some work has allocated at any time, above the start, in MiB.

    It runs twice: the first run takes what libraries keep, and only the second is measured. The
    peaks of ``torch.cuda.memory_stats`` are reset.

    Parameters
    ----------
    work : callable
        Called without arguments.
    device : int, optional
        The index of a CUDA device; by default the current one.
    """
    arguments.work(work)
    device = arguments.device_index(device)
    work()
    gc.collect()
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    work()
    return float(torch.cuda.max_memory_allocated(device) - before) / 2**20
