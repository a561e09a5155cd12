"""Which GPU a lesson runs on: the machine's own, or a simulated one; said aloud.

Nothing else in the package knows that there is a simulator.
"""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import dataclass, field, replace

import torch

from . import nvml, tables
from .arguments import shown
from .scale import amount
from .simulator import install, profiles

VARIABLE = "GPUTUTOR_SIMULATE"
DEFAULT = "T4"
MOST_GPUS = 64
ENOUGH = 1 << 30  # bytes free: as much as a simulated device has, on which every lesson runs

_log = logging.getLogger("gpututor")


@dataclass(frozen=True)
class Machine:
    """The devices that ``torch.cuda`` now shows, and where they come from.

    Attributes
    ----------
    devices : tuple of str
        The name of each device.
    simulated : bool
        Whether they are simulated.
    reason : str
        Why these devices and no others, in one sentence.
    speed : str
        How fast they are.
    memory : tuple of int
        Bytes of each device.
    note : str
        What to look out for; empty where there is nothing.
    torch_version : str
        PyTorch's version.
    """

    devices: tuple[str, ...]
    simulated: bool
    reason: str
    speed: str
    memory: tuple[int, ...]
    note: str = ""
    torch_version: str = field(default_factory=lambda: torch.__version__)

    def rows(self) -> list[tuple[str, str]]:
        """Return what there is to say, as pairs of label and text."""
        rows = [
            (f"cuda:{index}", f"{name}, {_amount(size)} of memory")
            for index, (name, size) in enumerate(zip(self.devices, self.memory, strict=True))
        ]
        rows.append(("Source", f"{'simulated' if self.simulated else 'real'}. {self.reason}"))
        rows.append(("Speed", self.speed))
        if self.note:
            rows.append(("Note", self.note))
        rows.append(("PyTorch", self.torch_version))
        return rows

    def __repr__(self) -> str:
        return "\n".join(f"{label:<8}{text}" for label, text in self.rows())

    def _repr_html_(self) -> str:
        return tables.as_html(self.rows())

    def _ipython_display_(self) -> None:
        if not _shown_in_this_cell(self):
            from IPython.display import display

            display({"text/plain": repr(self), "text/html": self._repr_html_()}, raw=True)


_running: Machine | None = None
_wish: tuple[str | None, int] | None = None  # what start was last asked for
_shown_at: tuple[int, int] | None = None  # which machine was shown, and in which cell


def start(gpus: int = 1, simulate: str | None = None) -> Machine:
    """Make CUDA devices available: real ones if there are enough, else simulated ones.

    Parameters
    ----------
    gpus : int
        How many devices the lesson needs, from 1 to 64.
    simulate : str, optional
        Simulate this instead of looking for real devices: ``"T4"``, ``"T4x2"``,
        ``"H200x1@140GiB"``. The environment variable ``GPUTUTOR_SIMULATE`` does the same.

    Returns
    -------
    Machine
        The devices. It shows itself as a panel.

    Raises
    ------
    TypeError, ValueError
        When `gpus` or `simulate` (or the variable) is not as above; one line says what is.

    Notes
    -----
    Calling it again with the same wish changes nothing. With another wish, or where the simulated
    GPU has failed, a running simulation ends, and its tensors with it. Real devices are used as
    they are: nothing in torch is patched.
    """
    global _running, _wish
    if isinstance(gpus, bool) or not isinstance(gpus, int):
        raise TypeError(f"gpus must be a whole number, such as 1 or 2, not {shown(gpus)}")
    if not 1 <= gpus <= MOST_GPUS:
        raise ValueError(f"gpus must be from 1 to {MOST_GPUS}, not {gpus!s:.60}")
    wish = simulate if simulate is not None else os.environ.get(VARIABLE) or None
    failure = install.failure() if simulated() else None
    if _running is not None and _wish == (wish, gpus) and failure is None:
        return _show(_running)
    if wish is not None:
        spec = _parse(wish, simulate is None)
        if spec.count < gpus:
            spec = replace(spec, count=gpus)
        asked = f"the variable {VARIABLE}" if simulate is None else "start()"
        machine = _simulate(spec, f"Asked for by {asked}: {wish}.")
    else:
        _end()
        missing = _missing(gpus)
        if missing is None:
            machine = _real(gpus)
        else:
            machine = _simulate(profiles.parse(f"{DEFAULT}x{gpus}"), missing)
    if failure is not None:
        before = f"The simulated GPU before failed: {failure}. A real one would need a new process."
        machine = replace(machine, reason=f"{machine.reason} {before}")
    _running, _wish = machine, (wish, gpus)
    return _show(machine)


def source(device: int | None = None) -> str:
    """Say where a number measured now comes from, for the source line of a figure.

    Parameters
    ----------
    device : int, optional
        The index of a CUDA device; by default the current one.

    Returns
    -------
    str
        Such as ``"simulated T4 (1/50 speed)"`` or ``"measured on NVIDIA H200, torch 2.11.0"``.

    Raises
    ------
    RuntimeError
        When there is no device: `start` has not been called.
    """
    if _running is None and not torch.cuda.is_available():
        raise RuntimeError("there is no GPU to measure on: call gpututor.start() first")
    name = torch.cuda.get_device_name(device)
    if simulated():
        return name[0].lower() + name[1:]
    return f"measured on {name}, torch {torch.__version__.partition('+')[0]}"


def link(device: int | None = None) -> tuple[str, float] | None:
    """Return the link between the host and a device, and its published limit.

    Parameters
    ----------
    device : int, optional
        The index of a CUDA device; by default the current one.

    Returns
    -------
    tuple of str and float, or None
        Such as ``("PCIe 3.0 x16", 15.75)``: generation and lanes, and gigabytes per second in each
        direction, from the signalling rate and encoding in the PCI Express base specification. A
        simulated device's is divided as all its rates are. None where the driver does not say.
    """
    if _running is not None and _running.simulated:
        profile = install.profile()
        return profile.link_name, _PCIE[profile.link_name] / profile.slowdown
    name = nvml.pcie_link(str(torch.cuda.get_device_properties(device).uuid))
    return None if name not in _PCIE else (name, _PCIE[name])


#: Gigabytes per second each way: gigatransfers per second, times lanes, times 128/130, by 8.
_PCIE = {
    f"PCIe {generation}.0 x{lanes}": rate * lanes * 128 / 130 / 8
    for generation, rate in ((3, 8), (4, 16), (5, 32))
    for lanes in (1, 2, 4, 8, 16)
}


def profile(device: int | None = None) -> tuple[str, profiles.Profile | None]:
    """Return the name of a device, and the published figures of that GPU where they are known.

    Parameters
    ----------
    device : int, optional
        The index of a CUDA device; by default the current one.
    """
    name = torch.cuda.get_device_name(device)
    if simulated():
        return name, install.profile()
    known = (item for item in profiles.PROFILES.values() if item.full_name == name)
    return name, next(known, None)


def environment() -> dict[str, str]:
    """Return the variables with which ``start()`` in another process finds the same devices."""
    return {VARIABLE: _wish[0]} if _wish is not None and _wish[0] is not None else {}


def simulated() -> bool:
    """Tell whether the devices that ``torch.cuda`` shows are simulated."""
    return _running is not None and _running.simulated


def stop() -> None:
    """Leave torch exactly as it was before `start`. Simulated tensors cannot be used any more."""
    global _running, _wish
    _end()
    _running = _wish = None


def _end() -> None:
    install.uninstall()


def _parse(wish: str, from_environment: bool) -> profiles.Spec:
    try:
        return profiles.parse(wish)
    except (TypeError, ValueError) as error:
        if not from_environment:
            raise
        raise ValueError(f"the environment variable {VARIABLE} is wrong: {error}") from None


def _missing(gpus: int) -> str | None:
    """Return why the machine's own devices will not do, or None if they will."""
    if not torch.cuda.is_available():
        if torch.version.cuda is None and torch.version.hip is None:
            return "This PyTorch was built without CUDA, so it cannot use a GPU."
        return "PyTorch finds no usable NVIDIA GPU here (torch.cuda.is_available() is False)."
    count = torch.cuda.device_count()
    if count < gpus:
        has = "1 GPU" if count == 1 else f"{count} GPUs"
        return f"This machine has {has} and the lesson needs {gpus}: every device is simulated."
    for index in range(gpus):
        try:
            torch.ones(1, device=f"cuda:{index}").add_(1).item()
        except RuntimeError as error:
            first = (str(error).splitlines() or ["no message"])[0]
            return f"cuda:{index} is there but does not work: {first}."
    return None


def _real(gpus: int) -> Machine:
    indices = range(torch.cuda.device_count())
    properties = [torch.cuda.get_device_properties(index) for index in indices]
    return Machine(
        devices=tuple(item.name for item in properties),
        simulated=False,
        reason="This machine's own.",
        speed="its own",
        memory=tuple(item.total_memory for item in properties),
        note=_crowded(gpus),  # no other: to ask a device makes a context there
    )


def _crowded(gpus: int) -> str:
    """Say which of the first `gpus` real devices have too little memory free for the lessons."""
    free = {f"cuda:{index}": torch.cuda.mem_get_info(index)[0] for index in range(gpus)}
    few = [f"{name} has {amount(size)} free" for name, size in free.items() if size < ENOUGH]
    if not few:
        return ""
    return (
        f"{', '.join(few)}, and experiments may run out of memory. Shut down other notebooks' "
        "kernels (nvidia-smi lists who uses a GPU), or simulate: "
        f'gpututor.start(simulate="{DEFAULT}").'
    )


def _simulate(spec: profiles.Spec, reason: str) -> Machine:
    _end()
    install.install(spec)
    name = spec.profile.device_name
    if not _in_notebook():
        _log.warning("%s The GPU is simulated: %s.", reason, name)
    return Machine(
        devices=(name,) * spec.count,
        simulated=True,
        reason=reason,
        speed=(
            f"slow motion: every rate of a real {spec.profile.name} divided by "
            f"{spec.profile.slowdown}"
        ),
        memory=(spec.memory,) * spec.count,
    )


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def _show(machine: Machine) -> Machine:
    """Show the machine in a notebook, whether or not the cell does."""
    global _shown_at
    if _in_notebook():
        from IPython.display import display

        display(machine)
        _shown_at = (id(machine), _cell())
    return machine


def _cell() -> int:
    ipython = sys.modules["IPython"]
    return int(ipython.get_ipython().execution_count)


def _shown_in_this_cell(machine: Machine) -> bool:
    return _in_notebook() and _shown_at == (id(machine), _cell())


def _amount(nbytes: int) -> str:
    gib = nbytes / 2**30
    return f"{gib:.0f} GiB" if gib == int(gib) else f"{gib:.1f} GiB"
