"""The first verdict: whether this PyTorch is made for this GPU at all."""

from __future__ import annotations

from collections.abc import Iterator

from . import advice
from .case import Case, amd
from .finding import Finding


def build(case: Case) -> Iterator[Finding]:
    """Find what is wrong with the installed PyTorch."""
    verdict, cause = case.error
    if cause == "crash" and case.stopped_in == "import":
        verdict, cause = "build", "broken"
    version = f"torch.__version__ is {case.torch}" if case.torch else "no version of torch is known"
    if verdict == "build" and cause in _IMPORT:
        summary, steps = _IMPORT[cause]
        if cause == "no torch" and case.python > (3, 14):
            steps = (
                "Use Python 3.10 to 3.14: a new Python has no PyTorch wheels in its first months.",
                *steps,
            )
        seen = (version, case.text) if case.torch else (case.text,)
        yield Finding("build", summary, seen, steps, "certain")
    elif case.kind == "mac":
        works = "torch.backends.mps.is_available() says whether this Mac has one that works."
        yield Finding(
            "build",
            "macOS has no CUDA: no PyTorch for it has.",
            (version, "the system is macOS"),
            (
                'Use the Apple GPU with torch.device("mps"). ' + works,
                "For CUDA use Colab, Kaggle or another computer. " + advice.SIMULATED,
            ),
            "certain",
        )
    elif case.kind == "xpu":
        yield Finding(
            "build",
            "This PyTorch is built for Intel GPUs, not for CUDA.",
            (version, "torch.version.cuda is None"),
            (
                'Use the Intel GPU with torch.device("xpu").',
                "For an NVIDIA GPU: " + advice.cuda_build(case)[0],
            ),
            "certain",
        )
    elif case.kind == "cpu" and amd(case):
        yield Finding(
            "build",
            "This PyTorch is built for the CPU only, and the GPU is AMD's.",
            (version, "torch.version.cuda and torch.version.hip are None"),
            (f"Install the PyTorch build for ROCm: the line is at {advice.SELECTOR}",),
            "certain",
        )
    elif case.kind == "cpu":
        # Colab's and Kaggle's PyTorch is a CPU build just because the session has no GPU.
        lent = case.place in ("colab", "kaggle") and not case.driver_seen and case.nodes is not True
        evidence = [version, "torch.version.cuda and torch.version.hip are None"]
        evidence += [f"the driver lists {gpu.name}" for gpu in case.gpus[:1]]
        yield Finding(
            "build",
            "This PyTorch is built for the CPU only: it has no CUDA in it.",
            tuple(evidence),
            advice.cuda_build(case),
            "possible" if lent else "certain",
        )
    elif case.kind == "rocm" and (case.driver_seen or case.pci == ("nvidia",)) and not amd(case):
        yield Finding(
            "build",
            "This PyTorch is built for AMD GPUs (ROCm), and the GPU is NVIDIA's.",
            (version, f"torch.version.hip is {case.hip or 'set'}"),
            advice.cuda_build(case),
            "certain",
        )
    elif case.kind == "cuda" and amd(case):
        yield Finding(
            "build",
            "This PyTorch is built for NVIDIA GPUs (CUDA), and the GPU is AMD's.",
            (version, *(f"the GPU is {gpu.name}" for gpu in case.gpus[:1])),
            (f"Install the PyTorch build for ROCm: the line is at {advice.SELECTOR}",),
            "certain",
        )
    elif not case.torch and not case.kind:
        yield Finding(
            "build",
            "Nothing is known of a PyTorch on this machine.",
            (version,),
            ("Install PyTorch, and run python -m gpututor doctor in the same environment.",),
            "possible",
        )


_IMPORT: dict[str, tuple[str, tuple[str, ...]]] = {
    "no torch": (
        "PyTorch is not installed in the Python that runs here.",
        (
            f"Install it into this Python: the line is at {advice.SELECTOR}",
            "In a notebook use %pip install: it takes the kernel's Python, not another one.",
        ),
    ),
    "shadowed": (
        "Something else than PyTorch is imported as torch.",
        (
            "Rename your own file torch.py, or folder torch, beside the notebook, and remove its "
            "__pycache__.",
            "If there is none, reinstall PyTorch.",
        ),
    ),
    "broken": (
        "PyTorch is installed and cannot be loaded: its libraries are broken or mixed.",
        (
            "Reinstall PyTorch in a new environment: one installer for all of it, pip or conda, "
            "not both.",
            "If a library's name is in the error, look whether LD_LIBRARY_PATH puts another "
            "version of it in front.",
        ),
    ),
}
