"""The third verdict: whether this process may see the GPU."""

from __future__ import annotations

from collections.abc import Iterator

from . import advice
from .advice import LENT
from .case import Case
from .driver import absent
from .finding import Finding
from .visible import count


def visibility(case: Case) -> Iterator[Finding]:
    """Find what hides the GPUs from this process."""
    if case.kind in ("mac", "xpu"):
        return
    if case.place in LENT and case.available is not True:
        yield from _lent(case)
    yield from variables(case)
    verdict, cause = case.error
    if verdict == "visibility" and cause in _SPOKEN:
        summary, steps = _SPOKEN[cause]
        yield Finding("visibility", summary, (case.text, *_set(case)), steps, "certain")
    elif case.kind == "rocm" and case.nodes and case.available is False and not _hidden(case):
        yield Finding(
            "visibility",
            "AMD's driver is there, and this user may not open the GPU.",
            ("device files are there", "torch.cuda.is_available() is False"),
            (
                "Add yourself to the groups render and video: sudo usermod -aG render,video "
                "$USER, then log in again.",
            ),
            "likely",
        )
    elif cause == "no device" and case.driver_seen and not _mig(case):
        if _hidden(case) or case.late or case.place in LENT:
            return
        yield Finding(
            "visibility",
            "The driver answers, and CUDA shows this process no GPU.",
            (case.text, *_set(case)),
            (
                "Look for a line that sets CUDA_VISIBLE_DEVICES in the notebook or the shell, and "
                f"remove it. {advice.restart(case)} afterwards.",
                "If there is none, restart the computer.",
            ),
            "possible",
        )


def variables(case: Case) -> Iterator[Finding]:
    """Find variables that hide GPUs, or that were set too late to do so."""
    works = case.operation == "ok" or bool(case.available and case.operation == "")
    for name, value in case.variables:
        choice = case.choice(value)
        evidence = [f"{name}={value!r}"]
        if case.gpus:
            evidence.append(f"the driver lists {count(len(case.gpus))}")
        if case.count is not None:
            evidence.append(f"torch.cuda.device_count() is {case.count}")
        shown = case.count if case.count is not None else -1
        if case.late and (not works or shown not in (-1, len(choice.chosen))):
            yield Finding(
                "visibility",
                f"{name} was set too late: CUDA had started in this process, and reads it once.",
                (*evidence, "CUDA was initialised before"),
                (
                    f"{advice.restart(case)}, and set {name} before torch first asks for a GPU, "
                    "best before Python starts.",
                ),
                "likely",
            )
        elif not choice.chosen and not works and not case.available:
            shows = case.gpus or case.driver or case.nodes or case.kind == "rocm"
            yield Finding(
                "visibility",
                f"{name} hides every GPU from this process.",
                (*evidence, choice.why),
                advice.show_devices(case, name),
                "certain" if shows and shown <= 0 else "likely",
            )
        elif not works and not case.available and case.error[1] == "no device" and shown <= 0:
            known = bool(case.gpus)
            yield Finding(
                "visibility",
                f"{name} is set, and shows no GPU that this machine has.",
                (*evidence, case.text),
                advice.show_devices(case, name),
                "possible" if known and not _identities(value) else "likely",
            )
    if case.late and not case.variables and not works and case.driver_seen:
        yield Finding(
            "visibility",
            "A variable was changed too late: CUDA had started in this process.",
            ("CUDA was initialised before the variables got their value",),
            (f"{advice.restart(case)}, and change variables before torch first asks for a GPU.",),
            "likely",
        )


def _lent(case: Case) -> Iterator[Finding]:
    """Find a session or a container that was given no GPU."""
    spoken = case.error[1] in ("no driver", "library", "old driver", "no device")
    evidence = [f"this is {_PLACES.get(case.place, case.place.capitalize())}"]
    evidence += ["nvidia-smi is not there"] if case.smi is False else []
    evidence += ["no device file of a driver"] if case.nodes is False else []
    evidence += [case.text] if case.error[0] in ("driver", "visibility") else []
    hidden = case.env.get("NVIDIA_VISIBLE_DEVICES")
    if case.container and hidden in ("", "none", "void"):
        evidence.append(f"NVIDIA_VISIBLE_DEVICES={hidden!r} asks the container for no GPU")
    bare = absent(case) or (not case.driver_seen and case.nodes is not True)
    if bare and case.kind == "rocm" and case.nodes is None:
        return
    if bare:
        nothing = case.smi is False or case.nodes is False
        yield Finding(
            "visibility",
            "This session has no GPU."
            if case.place in ("colab", "kaggle", "slurm")
            else "The container was started without a GPU.",
            tuple(evidence),
            advice.ask_for_gpu(case),
            "certain" if nothing or spoken else "likely",
        )
    elif case.container and case.nodes is False:
        yield Finding(
            "visibility",
            "The container has the driver's programs, and no device.",
            tuple(evidence),
            advice.ask_for_gpu(case),
            "likely",
        )
    elif case.container and case.error[1] in ("no driver", "library"):
        yield Finding(
            "visibility",
            "The container has the GPU, and not the driver's CUDA library.",
            tuple(evidence),
            (
                "Set NVIDIA_DRIVER_CAPABILITIES=compute,utility when the container starts: with "
                "utility alone nvidia-smi works and CUDA does not.",
                *advice.ask_for_gpu(case)[1:],
            ),
            "likely",
        )
    elif case.container and case.error[1] == "no device" and not _hidden(case) and not _mig(case):
        yield Finding(
            "visibility",
            "The container has the driver, and no device that CUDA may open.",
            tuple(evidence),
            advice.ask_for_gpu(case),
            "likely",
        )


def _hidden(case: Case) -> bool:
    return any(not case.choice(value).chosen for _, value in case.variables)


def _mig(case: Case) -> bool:
    return any(gpu.mig for gpu in case.gpus)


def _identities(value: str) -> bool:
    return "GPU-" in value or "MIG-" in value


def _set(case: Case) -> list[str]:
    return [f"{name}={value!r}" for name, value in case.variables]


_PLACES = {
    "colab": "Colab",
    "kaggle": "Kaggle",
    "slurm": "a Slurm job",
    "container": "a container",
    "docker": "a Docker container",
    "podman": "a Podman container",
    "kubernetes": "a Kubernetes pod",
    "apptainer": "an Apptainer container",
}
_SPOKEN = {
    "nvml lost": (
        "The container had a GPU and lost it while running.",
        (
            "Restart the container: its access to the GPU was dropped, as when systemd reloads "
            "on the host.",
            "To keep it, name the devices: docker run --gpus all --device /dev/nvidia0 ...",
        ),
    ),
    "permission": (
        "This user may not open the GPU.",
        (
            "Ask for the right to open /dev/nvidia* (or /dev/kfd): often membership of the groups "
            "video and render, then log in again.",
        ),
    ),
    "ordinal": (
        "The code asks for a device number that this process does not have.",
        (
            'Count from 0 inside the process: the first visible GPU is "cuda:0", whatever number '
            "CUDA_VISIBLE_DEVICES gives it.",
            "Compare with torch.cuda.device_count().",
        ),
    ),
}
