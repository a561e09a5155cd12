"""The second verdict: whether there is a driver, and whether it runs this build."""

from __future__ import annotations

from collections.abc import Iterator

from . import advice
from .advice import LENT, dotted
from .case import Case
from .finding import Finding
from .versions import driver_fits


def absent(case: Case) -> bool:
    """Return whether nothing at all speaks of an NVIDIA driver here."""
    return not case.driver_seen and case.smi is not True and case.nodes is not True


def driver(case: Case) -> Iterator[Finding]:
    """Find what is wrong with NVIDIA's driver."""
    if case.kind in ("mac", "xpu"):
        return
    if case.kind == "rocm":
        yield from _amd(case)
        return
    verdict, cause = case.error
    lent = case.place in LENT
    if verdict == "driver" and cause in _SPOKEN and not (lent and cause == "library"):
        summary, steps = _SPOKEN[cause]
        blame = "certain"
        if cause == "unknown":  # torch's own text names a variable set too late as another cause
            blame = "possible" if case.late else "likely"
        yield Finding("driver", summary, (case.text,), _placed(case, cause, steps), blame)
    elif verdict == "driver" and cause == "old driver" and not absent(case):
        yield _old(case, "certain")
    elif driver_fits(case.build, case.driver_cuda, case.driver, case.driver_system) is False:
        works = case.available is True
        yield _old(case, "possible" if works else "certain")
    elif lent and not (case.nodes and case.smi and not case.driver_seen):
        return  # what is missing there is not the driver's fault: see visibility
    elif cause in ("no driver", "old driver", "library") and case.driver_seen:
        yield Finding(
            "driver",
            "The driver answers, and its CUDA library (libcuda) is not found.",
            (case.text, *_seen(case)),
            (
                "Put /usr/lib/wsl/lib in front of LD_LIBRARY_PATH, and remove any NVIDIA driver "
                "that was installed inside WSL."
                if case.wsl
                else "Reinstall the whole driver, its CUDA library (libcuda1, "
                "libnvidia-compute) with it, and restart.",
            ),
            "likely",
        )
    elif not case.driver_seen and case.smi is True and case.available is not True:
        yield Finding(
            "driver",
            "NVIDIA's driver is installed and does not answer.",
            (
                "nvidia-smi is there, and no driver version and no device could be read",
                *_said(case),
            ),
            advice.load_driver(case),
            "certain"
            if cause == "no driver"
            else "possible"
            if case.operation == "timeout"
            else "likely",
        )
    elif absent(case) and case.available is not True and not case.jetson:
        yield _missing(case)
    elif (
        case.nodes is False
        and case.available is not True
        and case.driver_seen
        and case.driver_system == "linux"
        and not case.jetson
    ):
        yield Finding(
            "driver",
            "The driver answers, and its device files (/dev/nvidia*) are missing.",
            (*_seen(case), "no file /dev/nvidia*"),
            ("Load the module: sudo nvidia-modprobe -u -c=0. Or restart the computer.",),
            "likely",
        )


def _old(case: Case, confidence: str) -> Finding:
    has = f"CUDA {dotted(case.driver_cuda)}" if case.driver_cuda else "an older CUDA"
    needs = f"for CUDA {dotted(case.build)}" if case.build else "for a newer CUDA"
    evidence = [*_seen(case), f"this PyTorch is built {needs}", *_said(case)]
    return Finding(
        "driver",
        f"NVIDIA's driver is too old: it runs {has}, and this PyTorch is built {needs}.",
        tuple(evidence),
        advice.newer_driver(case),
        confidence,
    )


def _missing(case: Case) -> Finding:
    evidence = []
    if case.smi is False:
        evidence.append("nvidia-smi is not there")
    if case.nodes is False:
        evidence.append("no device file of a driver" if not case.wsl else "no file /dev/dxg")
    evidence += _said(case)
    if case.pci and "nvidia" not in case.pci:
        makers = ", ".join(sorted(set(case.pci)))
        return Finding(
            "driver",
            "This computer has no NVIDIA GPU, so there is nothing for a driver to drive.",
            (f"graphics on the bus: {makers}", *evidence),
            ("Use Colab, Kaggle or another computer for a real GPU. " + advice.SIMULATED,),
            "likely",
        )
    told = case.error[1] == "no driver"
    return Finding(
        "driver",
        "No NVIDIA driver is installed, or there is no NVIDIA GPU.",
        tuple(evidence) or ("nothing speaks of an NVIDIA driver",),
        advice.install_driver(case),
        "certain" if told else "likely" if case.smi is False else "possible",
    )


def _amd(case: Case) -> Iterator[Finding]:
    if case.available is True or case.place in LENT or case.driver_seen:
        return
    if case.nodes is False:
        yield Finding(
            "driver",
            "AMD's driver is not there: no file /dev/kfd.",
            ("no device file of a driver", *_said(case)),
            ("Install AMD's driver (amdgpu, ROCm) for your system, and restart.",),
            "likely",
        )


def _seen(case: Case) -> list[str]:
    rows = []
    if case.driver:
        rows.append(f"driver {dotted(case.driver)}")
    if case.driver_cuda:
        rows.append(f"the driver runs up to CUDA {dotted(case.driver_cuda)}")
    return rows or [f"the driver lists {gpu.name}" for gpu in case.gpus[:1]]


def _said(case: Case) -> list[str]:
    return [case.text] if case.text else []


def _placed(case: Case, cause: str, steps: tuple[str, ...]) -> tuple[str, ...]:
    """Return the advice for a spoken cause, bent to the place."""
    if cause in ("forward", "pair", "ptx") and case.container:
        where = "Windows" if case.wsl else "the host"
        return (
            f"Update the NVIDIA driver of {where}, or use an image with an older CUDA. The "
            "container's own CUDA library does not fit the driver.",
            "Remove cuda-compat packages from the image: they serve data centre GPUs only.",
        )
    if cause == "ptx":
        return advice.newer_driver(case)
    if cause == "library":
        return advice.install_driver(case)
    if cause in ("unknown", "start") and case.driver_system == "windows":
        return ("Restart Windows, then update its NVIDIA driver.", *steps[1:])
    return steps


_SPOKEN: dict[str, tuple[str, tuple[str, ...]]] = {
    "mismatch": (
        "The driver was updated, and the old one is still running.",
        (
            "Restart the computer: the kernel still runs the old driver, and the libraries are "
            "those of the new one.",
        ),
    ),
    "pair": (
        "The driver's kernel module and its CUDA library are of different versions (error 803).",
        (
            "Restart the computer. If that is not enough, reinstall the driver, and look for a "
            "second libcuda in LD_LIBRARY_PATH.",
        ),
    ),
    "forward": (
        "A CUDA library newer than the driver is in use, and this GPU does not allow it "
        "(error 804).",
        (
            "Update the NVIDIA driver, and remove cuda-compat packages or their folder from "
            "LD_LIBRARY_PATH.",
            "PyTorch itself is not at fault.",
        ),
    ),
    "fabric": (
        "The GPUs are joined by NVSwitch, and the service that starts it is not running "
        "(error 802).",
        (
            "Start NVIDIA's fabric manager, of exactly the driver's version: sudo systemctl "
            "enable --now nvidia-fabricmanager",
            "In a container or a virtual machine that is for the host's administrator.",
        ),
    ),
    "stub": (
        "A stub stands in for the driver's CUDA library (error 34).",
        ("Remove the toolkit's folder stubs from LD_LIBRARY_PATH: it is for linking only.",),
    ),
    "library": (
        "The driver's CUDA library (libcuda) is not found.",
        ("Install NVIDIA's driver.",),
    ),
    "ptx": (
        "This GPU needs code that the driver must compile, and the driver is older than the "
        "build's CUDA (error 222).",
        ("Update the NVIDIA driver.",),
    ),
    "unknown": (
        "The driver is in a bad state (error 999).",
        (
            "Restart the computer. After sleep, reloading the module is often enough: sudo "
            "rmmod nvidia_uvm; sudo modprobe nvidia_uvm",
            "If you changed CUDA_VISIBLE_DEVICES in this process, restart it first.",
        ),
    ),
    "start": (
        "The driver is there and cannot start.",
        (
            "Restart the computer, and look with nvidia-smi whether the driver lists the GPU.",
            "If it is not listed, reinstall the driver.",
        ),
    ),
}
