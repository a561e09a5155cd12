"""What the texts of torch, CUDA and NVIDIA's driver mean."""

from __future__ import annotations

import re

# Each: verdict, cause, pattern. The first that matches counts, so what says more stands first.
# The names and numbers are those of cudaError_t in the CUDA Runtime API; the sentences are
# torch's (c10/cuda/CUDAFunctions.cpp, torch/cuda/__init__.py) and NVML's.
_TABLE: list[tuple[str, str, str]] = [
    ("build", "no torch", r"No module named '?torch'?(?![\w.])"),
    ("build", "shadowed", r"partially initialized module 'torch'|module 'torch' has no attribute"),
    ("build", "no cuda", r"not compiled with CUDA|compiled without CUDA"),
    ("visibility", "nvml lost", r"initialize NVML: Unknown Error"),
    ("driver", "mismatch", r"library version mismatch"),
    ("driver", "forward", r"forward compatibility was attempted|\berror:? 804\b"),
    ("driver", "pair", r"unsupported display driver|\berror:? 803\b"),
    ("driver", "fabric", r"system not yet initialized|\berror:? 802\b"),
    ("driver", "stub", r"stub library|\berror:? 34\b"),
    ("driver", "library", r"libcuda\.so|libnvidia-ml\.so|nvcuda\.dll|libnvidia-ptxjit"),
    (
        "driver",
        "old driver",
        r"driver on your system is too old|driver version is insufficient"
        r"|not supported (?:in|by) the installed CUDA driver|\berror:? 35\b",
    ),
    (
        "driver",
        "no driver",
        r"Found no NVIDIA driver|Driver Not Loaded|communicate with the NVIDIA driver",
    ),
    (
        "build",
        "broken",
        r"cannot open shared object|undefined symbol|DLL load failed|WinError (?:126|127|1114|193)"
        r"|version [`'].*?' not found|Library not loaded|cudart functions unavailable"
        r"|SIGILL|\bImportError\b|No module named|symbol not found",
    ),
    ("driver", "ptx", r"unsupported toolchain|\berror:? 222\b"),
    (
        "architecture",
        "no code",
        r"no kernel image|not compatible with the current PyTorch|include kernels for this GPU"
        r"|invalid device function|ARCH_MISMATCH|builds for release .* support this GPU"
        r"|\berror:? (?:209|98)\b",
    ),
    ("usability", "fork", r"in forked subprocess|initialization error"),
    (
        "usability",
        "lost",
        r"fallen off the bus|GPU is lost|\bXid\b|hardware (?:error|stack)|device.*is lost",
    ),
    ("usability", "ecc", r"\bECC\b|\berror:? 214\b"),
    ("usability", "memory", r"out of memory|ALLOC_FAILED"),
    (
        "usability",
        "busy",
        r"busy or unavailable|exclusive|prohibited|\berror:? 46\b|MPS (?:client|server)",
    ),
    (
        "usability",
        "poisoned",
        r"device-side assert|illegal (?:memory access|instruction was)"
        r"|unspecified launch failure|misaligned address",
    ),
    ("usability", "licence", r"operation not supported|unlicensed|licen[cs]e"),
    ("usability", "crash", r"\bSIG[A-Z]{3,}\b|ended with exit status"),
    ("visibility", "permission", r"permission|\bEACCES\b"),
    ("visibility", "ordinal", r"invalid device ordinal|\berror:? 101\b"),
    ("driver", "unknown", r"CUDA unknown error|unknown error|\berror:? 999\b"),
    ("driver", "start", r"CUDA driver initialization failed"),
    (
        "visibility",
        "no device",
        r"No (?:CUDA|HIP) GPUs are available|no CUDA-capable device|\berror:? 100\b",
    ),
]
_PATTERNS = [(verdict, cause, re.compile(text, re.I)) for verdict, cause, text in _TABLE]


def meaning(text: str) -> tuple[str, str]:
    """Return the verdict and the cause that a text speaks of, or two empty strings."""
    for verdict, cause, pattern in _PATTERNS:
        if pattern.search(text):
            return verdict, cause
    return "", ""
