"""The published limits of a GPU, to predict the least time that work can take."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from . import arguments, machine
from .scale import number

#: Arithmetic units of one multiprocessor for float32, by compute capability; newer ones have 128.
#: NVIDIA, CUDA C++ Programming Guide, "Arithmetic Instructions".
_CORES = {(7, 0): 64, (7, 2): 64, (7, 5): 64, (8, 0): 64}


@dataclass(frozen=True)
class Roof:
    """What a GPU can do at most.

    Attributes
    ----------
    flops : float
        Operations per second; a multiply and an add count two.
    bandwidth : float
        Bytes per second that its memory moves, reads and writes together.
    source : str
        Where both come from.
    """

    flops: float
    bandwidth: float
    source: str

    def __repr__(self) -> str:
        rates = f"{number(self.flops / 1e12)} TFLOP/s, {number(self.bandwidth / 1e9)} GB/s"
        return f"Roof: {rates}, {self.source}"


def roof(dtype: torch.dtype = torch.float32, device: int | None = None) -> Roof:
    """Return the limits of a device for arithmetic in `dtype`.

    Parameters
    ----------
    dtype : torch.dtype
        The type computed in: ``torch.float32``, or a half precision where it is published.
    device : int, optional
        The index of a CUDA device; by default the current one.

    Returns
    -------
    Roof
        Published rates of the GPUs that can be simulated, divided by the slow motion where it is
        simulated. For another real GPU, what its properties say: float32 and the memory.

    Raises
    ------
    TypeError
        When `dtype` is no type, or `device` no index.
    ValueError
        When no figure is known; the message says how to give your own. Or there is no such device.
    """
    if not isinstance(dtype, torch.dtype):
        raise TypeError(
            f"dtype must be a type of PyTorch's, such as torch.half, not {arguments.shown(dtype)}"
        )
    name, profile = machine.profile(arguments.device_index(device))
    if profile is not None and (dtype in profile.peak or machine.simulated()):
        slow = profile.slowdown if machine.simulated() else 1
        exact = torch.get_float32_matmul_precision() == "highest"
        return Roof(
            profile.flops(dtype, tf32=not exact and not machine.simulated()) / slow,
            profile.bandwidth / slow,
            f"published for the {profile.full_name}" + (f", divided by {slow}" if slow > 1 else ""),
        )
    seen = torch.cuda.get_device_properties(device or torch.cuda.current_device())
    clock, memory, bus = (
        getattr(seen, field, 0) for field in ("clock_rate", "memory_clock_rate", "memory_bus_width")
    )
    if dtype != torch.float32 or not (clock and memory and bus):
        raise ValueError(
            f"no published peak of {name} for {dtype} is known here: take it from its data sheet, "
            'as roofline.Roof(flops=..., bandwidth=..., source="data sheet")'
        )
    cores = seen.multi_processor_count * _CORES.get((seen.major, seen.minor), 128)
    return Roof(
        2.0 * cores * clock * 1e3,
        2.0 * memory * 1e3 * bus / 8,  # two transfers in each cycle
        f"computed from the clocks and units that {name} reports",
    )


def sizes() -> list[int]:
    """Return sizes of square matrices for this device: from too small for it to large."""
    return [64, 128, 256, 512] if machine.simulated() else [256, 1024, 4096, 8192]
