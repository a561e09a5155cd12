"""The fifth verdict: the GPU is there; whether it does anything."""

from __future__ import annotations

from collections.abc import Iterator

from . import advice
from .case import Case
from .finding import Finding


def usability(case: Case) -> Iterator[Finding]:
    """Find what keeps a visible GPU from working."""
    verdict, cause = case.error
    states = _states(case)
    modes = {gpu.mode for gpu in case.gpus}
    if cause == "crash" and case.stopped_in == "import":
        return
    if verdict == "usability":
        summary, steps = _SPOKEN[cause]
        if cause == "busy" and modes == {"prohibited"}:
            summary, steps = _PROHIBITED
        if case.place in ("colab", "kaggle"):
            steps = _LENT.get(cause, steps)
        yield Finding("usability", summary, (case.text, *states), steps, "certain")
        return
    if case.operation == "timeout":
        yield _hang(case, states)
    elif modes == {"prohibited"} and case.available is not False:
        yield Finding(
            "usability",
            _PROHIBITED[0],
            tuple(states),
            _PROHIBITED[1],
            "likely",
        )
    elif any(gpu.mig for gpu in case.gpus) and not case.count and not case.available:
        yield Finding(
            "usability",
            "The GPU is divided (MIG), and this process was given no slice.",
            (*states, *_text(case)),
            (
                "Look with nvidia-smi -L for slices (MIG-...). If there is none, an "
                "administrator must make one: sudo nvidia-smi mig -cgi ... -C",
                "A process uses one slice: DataParallel over slices is not possible.",
            ),
            "likely" if case.error[1] in ("", "no device") else "possible",
        )
    elif case.operation == "error" and case.available and not verdict:
        yield Finding(
            "usability",
            "The GPU is visible, and a small addition on it fails.",
            (*_text(case), *states),
            (
                f"{advice.restart(case)}, and try again. If it stays, look at nvidia-smi and at "
                "the system's log (sudo dmesg) for messages with Xid.",
            ),
            "likely",
        )


def notes(case: Case) -> Iterator[Finding]:
    """Find what a working GPU may still withhold."""
    if any(gpu.mig for gpu in case.gpus):
        yield Finding(
            "usability",
            "The GPU is divided (MIG): a process uses one slice of it.",
            tuple(_states(case)),
            (
                "Choose a slice by its id: CUDA_VISIBLE_DEVICES=MIG-... (nvidia-smi -L lists "
                "them). DataParallel over slices is not possible.",
            ),
            "certain",
        )
    if any(gpu.mode.startswith("exclusive") for gpu in case.gpus):
        yield Finding(
            "usability",
            "The GPU takes one process at a time (exclusive mode).",
            tuple(_states(case)),
            ("End one notebook's kernel before another uses the GPU.",),
            "certain",
        )
    for gpu in case.gpus:
        if gpu.memory and gpu.used is not None and gpu.used > 0.8 * gpu.memory:
            yield Finding(
                "usability",
                f"{gpu.name} has little memory free.",
                (f"{gpu.used:.1f} of {gpu.memory:.1f} GiB are in use", *_others(gpu.processes)),
                (_RELEASE,),
                "certain",
            )


def _hang(case: Case, states: list[str]) -> Finding:
    if case.stopped_in == "import" or (not case.torch and not case.driver_seen):
        return Finding(
            "usability",
            "Importing PyTorch did not end within the time limit.",
            ("the probe ran out of time while importing torch",),
            (
                "Run the doctor again: the first import on a slow disk takes long. If it stays, "
                "reinstall PyTorch.",
            ),
            "likely" if case.stopped_in else "possible",
        )
    return Finding(
        "usability",
        "The GPU or its driver did not answer within the time limit.",
        ("a small addition in a process of its own did not end", *_text(case), *states),
        (
            "Restart the runtime or the computer: a driver that hangs cannot be mended from Python."
            if case.place not in ("slurm", "kubernetes")
            else "Ask for another node, and tell the administrators: the driver here hangs.",
            "If it may just be slow (many GPUs, first use after a restart), run the doctor again.",
        ),
        "likely",
    )


def _text(case: Case) -> list[str]:
    return [case.text] if case.text else []


def _states(case: Case) -> list[str]:
    rows = []
    for gpu in case.gpus:
        if gpu.mode and gpu.mode not in ("default", "0"):
            rows.append(f"{gpu.name}: compute mode {gpu.mode}")
        if gpu.mig:
            rows.append(f"{gpu.name}: MIG is on")
        rows += [f"{gpu.name}: {row}" for row in _others(gpu.processes)]
    return rows


def _others(processes: int | None) -> list[str]:
    return [f"{processes} other process{'es' * (processes > 1)} on it"] if processes else []


_PROHIBITED = (
    "The GPU's compute mode forbids every program.",
    ("Ask the administrator for the mode DEFAULT: sudo nvidia-smi -c DEFAULT",),
)
_RELEASE = (
    "Shut down the kernels of other notebooks, and end your own old processes: nvidia-smi lists "
    "who holds the memory."
)
_SPOKEN: dict[str, tuple[str, tuple[str, ...]]] = {
    "busy": (
        "The GPU is visible, and busy: it takes no new process.",
        (
            "End what holds it (nvidia-smi lists the processes; often it is your own old kernel), "
            "or choose another GPU.",
            "Look at the compute mode: in EXCLUSIVE_PROCESS one process has it alone. On a "
            "virtual GPU, look at its licence.",
        ),
    ),
    "memory": (
        "The GPU works, and its memory is full.",
        (_RELEASE, "Or choose another GPU with CUDA_VISIBLE_DEVICES."),
    ),
    "ecc": (
        "The GPU's memory has an error that cannot be corrected.",
        (
            "Restart the computer. If it comes back, the card is defective: tell the "
            "administrator (nvidia-smi -q -d ECC).",
        ),
    ),
    "lost": (
        "The GPU has dropped out: the driver can no longer reach it.",
        (
            "Restart the computer. If it comes back, look at power, heat and the slot: sudo "
            "dmesg shows it as Xid 79.",
        ),
    ),
    "fork": (
        "CUDA had started before this process was forked, and cannot start again in it.",
        (
            'Use the start method "spawn" (torch.multiprocessing), or ask nothing of CUDA before '
            "the fork.",
            "torch.cuda.is_available() counts as asking, unless PYTORCH_NVML_BASED_CUDA_CHECK=1 "
            "is set.",
        ),
    ),
    "poisoned": (
        "A kernel failed, and no work on the GPU of this process can go on.",
        (
            "Restart the Python process. With CUDA_LAUNCH_BLOCKING=1 the error shows where it "
            "happens.",
        ),
    ),
    "licence": (
        "The GPU refuses this operation: often a virtual GPU without a licence, or with a "
        "profile for graphics only.",
        ("Ask the administrator for a compute profile and a licence for the virtual GPU.",),
    ),
    "crash": (
        "A small addition on the GPU ends the whole process.",
        (
            "Reinstall PyTorch in a new environment. If it still crashes, update the driver.",
            "Look whether other packages bring a CUDA of their own.",
        ),
    ),
}
_LENT: dict[str, tuple[str, ...]] = {
    "memory": ("Restart the session: what earlier cells hold is released.", _RELEASE),
    "busy": ("Restart the session. If it stays busy, disconnect and ask for another GPU.",),
    "ecc": ("Disconnect the session and ask for another GPU: this one is defective.",),
    "lost": ("Disconnect the session and ask for another GPU: this one is defective.",),
    "poisoned": ("Restart the session, and run the notebook from the top.",),
}
