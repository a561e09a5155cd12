"""What copies between host and device cost, and how many a piece of code makes."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from . import arguments, machine

KIB, MIB = 2**10, 2**20
LONGEST = 0.04  # seconds: a copy that takes longer is the last of a row of sizes
MOST = 256 * MIB


def seconds(work: Callable[[], Any], repeats: int = 5) -> float:
    """Return how long the device takes for what `work` launches: the median of a few runs.

    Parameters
    ----------
    work : callable
        Launches work on the current stream.
    repeats : int
        How many runs; one more before them does not count.

    Returns
    -------
    float
        Seconds between two events, one recorded before the work and one after it. Where the host
        takes longer to launch the work than the device to do it, this is the host's time.

    Raises
    ------
    TypeError, ValueError
        When `work` cannot be called, or `repeats` is no whole number from 1 on.
    """
    arguments.work(work)
    arguments.whole(repeats, "repeats")
    times = []
    for _ in range(repeats + 1):
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(float(start.elapsed_time(end)) / 1000)
    return statistics.median(times[1:])


def sizes(first: int = 4 * KIB, factor: int = 4) -> list[int]:
    """Return sizes to copy, in bytes, from `first` on and `factor` times as large each.

    The last is the first whose pinned copy takes over 40 ms, or the last within 256 MiB and a
    quarter of the device's free memory: a row for any device, fast or slow, real or simulated.

    Raises
    ------
    TypeError, ValueError
        When `first` is no whole number from 1 on, or `factor` none from 2 on.
    """
    arguments.whole(first, "first")
    arguments.whole(factor, "factor", 2)
    most = min(MOST, torch.cuda.mem_get_info()[0] // 4)
    row = [first]
    while row[-1] * factor <= most:
        host = torch.empty(row[-1], dtype=torch.uint8, pin_memory=True)
        device = torch.empty(row[-1], dtype=torch.uint8, device="cuda")
        if seconds(functools.partial(device.copy_, host, non_blocking=True), 1) > LONGEST:
            break
        row.append(row[-1] * factor)
    return row


def empty_pinned_cache() -> None:
    """Give back the pinned memory that PyTorch keeps to lend again: pinning costs anew then."""
    # torch.accelerator.empty_host_cache is its public name from torch 2.13 on.
    public = getattr(torch.accelerator, "empty_host_cache", None)
    (public or torch._C._host_emptyCache)()


def limits(device: int | None = None) -> dict[str, float]:
    """Return the published limit of the link to a device, for a figure of rates.

    Returns
    -------
    dict of str to float
        Its name and gigabytes per second; empty where the driver does not say which link it is.
    """
    found = machine.link(device)
    return {} if found is None else {f"{found[0]}, published": found[1]}


class count_copies(TorchFunctionMode):
    """Count the copies between devices that the code in its ``with`` block asks for.

    It sees what the code calls: ``to``, ``cuda``, ``cpu``, ``copy_``, and what reads a number of
    the device, such as ``item``, ``tolist``, ``float(x)``, an ``if`` on a tensor, or ``print``.
    A copy inside PyTorch that no such call asks for is not counted.

    Attributes
    ----------
    to_device, to_host : int
        Copies in each direction.
    bytes_to_device : int
        Bytes of the copies to a device.
    on_device : int
        Calls that are no copies and whose result is on a device.
    """

    def __init__(self) -> None:
        super().__init__()
        self.to_device = 0
        self.to_host = 0
        self.bytes_to_device = 0
        self.on_device = 0
        self._inside = False

    @property
    def total(self) -> int:
        """Copies in both directions."""
        return self.to_device + self.to_host

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run one call of torch's API, and note whether it moved something."""
        kwargs = kwargs or {}
        if self._inside:  # a call that another call makes: counted once, by the outer one
            return function(*args, **kwargs)
        name = getattr(function, "__name__", "")
        self._inside = True
        try:
            result = function(*args, **kwargs)
        finally:
            self._inside = False
        self._note(name, args, kwargs, result)
        return result

    def _note(self, name: str, args: Any, kwargs: Any, result: Any) -> None:
        source = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if name == "copy_" and source is not None:
            source, result = (args[1] if len(args) > 1 else kwargs.get("src")), source
        if name == "__get__":
            return
        arrived = isinstance(result, torch.Tensor) and result.is_cuda
        on_host = source is None or not source.is_cuda
        if name in _MOVES and source is not None and isinstance(result, torch.Tensor):
            self._count(arrived and on_host, not on_host and not arrived, result)
        elif name in _MAKES and args:
            self._count(arrived and on_host, False, result)
        elif name in _READS and source is not None:
            self.to_host += source.is_cuda
        elif arrived:
            self.on_device += 1

    def _count(self, to_device: bool, to_host: bool, moved: torch.Tensor) -> None:
        self.to_device += to_device
        self.to_host += to_host
        self.bytes_to_device += moved.nbytes * to_device


#: Calls that may move a tensor.
_MOVES = {"to", "cuda", "cpu", "copy_", "type", "type_as"}
#: Calls that make a tensor of the host's data.
_MAKES = {"tensor", "as_tensor", "asarray", "new_tensor"}
#: Calls that read numbers, and so copy them to the host where they are on a device.
_READS = {
    "item", "tolist", "__bool__", "__float__", "__int__", "__index__", "__repr__", "__format__",
    "__contains__",
}  # fmt: skip
