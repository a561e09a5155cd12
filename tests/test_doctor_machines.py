"""Described machines: the verdict is the cause, and the first advice fits the platform.

Each has the listed keys only, as a learner's file may.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from gpututor.doctor import Facts, Finding, diagnose

CU121 = ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]
CU126 = CU121
CU128 = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]
NO_DRIVER = (
    "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA "
    "GPU and installed a driver from http://www.nvidia.com/Download/index.aspx"
)
NO_GPUS = "RuntimeError: No CUDA GPUs are available"
NOT_COMPILED = "AssertionError: Torch not compiled with CUDA enabled"
UNEXPECTED = (
    "Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling "
    "NumCudaDevices() that might have already set an error? Error "
)
UNKNOWN = (
    "CUDA initialization: CUDA unknown error - this may be due to an incorrectly set up "
    "environment, e.g. changing env variable CUDA_VISIBLE_DEVICES after program start. Setting "
    "the available devices to be zero."
)
NO_IMAGE = (
    "RuntimeError: CUDA error: no kernel image is available for execution on the device CUDA "
    "kernel errors might be asynchronously reported at some other API call"
)
BUSY = "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable"


def gpu(name: str = "Tesla T4", capability: str | None = "7.5", **more: Any) -> dict[str, Any]:
    kept = {"name": name, "capability": capability, "memory_gib": 16.0}
    return {**kept, "mig": False, "compute_mode": "Default", **more}


ADA = gpu("NVIDIA GeForce RTX 4090", "8.9")
AMPERE = gpu("NVIDIA A100-SXM4-40GB", "8.0")
MIG = gpu("NVIDIA A100-SXM4-40GB", "8.0", mig=True)


def healthy(**changes: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "os": "Linux x86_64",
        "wsl": False,
        "container": "none",
        "platform": "none",
        "torch_version": "2.8.0+cu128",
        "torch_cuda": "12.8",
        "torch_hip": None,
        "arch_list": CU128,
        "driver_version": "570.133.20",
        "driver_cuda": "12.8",
        "nvidia_smi_present": True,
        "devices": [gpu()],
        "device_nodes_present": True,
        "env": {},
        "cuda_initialized_before_env": False,
        "is_available": True,
        "device_count": 1,
        "init_error": None,
        "tiny_op": "ok",
    }
    return {**facts, **changes}


def blind(**changes: Any) -> dict[str, Any]:
    """Describe a machine whose torch sees no GPU, while the driver lists one."""
    seen = {"is_available": False, "device_count": 0, "init_error": NO_GPUS, "tiny_op": NO_GPUS}
    return healthy(**{**seen, **changes})


def bare(**changes: Any) -> dict[str, Any]:
    """Describe a machine with nothing of NVIDIA in it."""
    nothing = {
        "driver_version": None,
        "driver_cuda": None,
        "nvidia_smi_present": False,
        "devices": None,
        "device_nodes_present": False,
        "init_error": NO_DRIVER,
        "tiny_op": NO_DRIVER,
    }
    return blind(**{**nothing, **changes})


def cpu_build(**changes: Any) -> dict[str, Any]:
    build = {
        "torch_version": "2.8.0+cpu",
        "torch_cuda": None,
        "arch_list": [],
        "init_error": NOT_COMPILED,
        "tiny_op": NOT_COMPILED,
    }
    return blind(**{**build, **changes})


def rocm(**changes: Any) -> dict[str, Any]:
    build = {
        "torch_version": "2.8.0+rocm6.3",
        "torch_cuda": None,
        "torch_hip": "6.3.42134",
        "arch_list": ["gfx90a", "gfx942", "gfx1100"],
        "driver_version": None,
        "driver_cuda": None,
        "nvidia_smi_present": False,
        "devices": None,
    }
    return healthy(**{**build, **changes})


def visible(value: str, **changes: Any) -> dict[str, Any]:
    return blind(env={"CUDA_VISIBLE_DEVICES": value}, **changes)


def shown(value: str, **changes: Any) -> dict[str, Any]:
    return healthy(env={"CUDA_VISIBLE_DEVICES": value}, **changes)


def failing(text: str, **changes: Any) -> dict[str, Any]:
    """Describe a machine whose GPU is visible, and fails the tiny operation with a text."""
    return healthy(tiny_op=text, **changes)


def missing(text: str, **changes: Any) -> dict[str, Any]:
    unknown = {"torch_version": None, "torch_cuda": None, "arch_list": None}
    return blind(**{**unknown, "init_error": text, "tiny_op": text, **changes})


WINDOWS: dict[str, Any] = {
    "os": "Windows AMD64",
    "device_nodes_present": None,
    "driver_version": "566.36",
    "driver_cuda": "12.7",
}
WSL: dict[str, Any] = {"wsl": True, "driver_version": "566.36", "driver_cuda": "12.7"}
COLAB: dict[str, Any] = {"platform": "colab", "container": "docker"}
KAGGLE: dict[str, Any] = {"platform": "kaggle", "container": "docker"}
JETSON: dict[str, Any] = {
    "os": "Linux aarch64",
    "driver_version": "540.3.0",
    "driver_cuda": "12.6",
    "devices": [gpu("Orin", "8.7")],
}

# name: facts, verdict, what the first advice must say (a pattern)
MACHINES: dict[str, tuple[dict[str, Any], str, str]] = {
    # all is well, and what looks like a fault is none
    "a T4 that works": (healthy(), "fine", "cuda"),
    "RTX 4090, sm_89 absent beside sm_86": (healthy(devices=[ADA]), "fine", "cuda"),
    "RTX 4090, nothing tried": (
        healthy(devices=[ADA], tiny_op=None, arch_list=["sm_80", "sm_86"]),
        "fine",
        "cuda",
    ),
    "A10 (8.6) with sm_80 only": (
        healthy(devices=[gpu("NVIDIA A10", "8.6")], arch_list=["sm_80"], tiny_op=None),
        "fine",
        "cuda",
    ),
    "H200 with sm_90a beside sm_90": (
        healthy(devices=[gpu("NVIDIA H200", "9.0")], arch_list=["sm_90", "sm_90a"], tiny_op=None),
        "fine",
        "cuda",
    ),
    "GB10 (12.1) with sm_120": (
        healthy(devices=[gpu("NVIDIA GB10", "12.1")], arch_list=CU128, tiny_op=None),
        "fine",
        "cuda",
    ),
    "a newer GPU through PTX": (
        healthy(
            devices=[gpu("NVIDIA RTX PRO 6000", "12.0")],
            arch_list=["sm_80", "sm_90", "compute_90"],
            torch_cuda="12.4",
            tiny_op=None,
        ),
        "fine",
        "cuda",
    ),
    "B300 (10.3) with sm_100f": (
        healthy(devices=[gpu("NVIDIA B300", "10.3")], arch_list=["sm_100f"], tiny_op=None),
        "fine",
        "cuda",
    ),
    "driver newer than the build": (
        healthy(driver_version="580.95.05", driver_cuda="13.0", torch_cuda="11.8"),
        "fine",
        "cuda",
    ),
    "driver older than the build, same major version": (
        healthy(driver_version="535.104.05", driver_cuda="12.2", torch_cuda="12.8"),
        "fine",
        "cuda",
    ),
    "forward compatibility package on a data centre GPU": (
        healthy(driver_version="535.104.05", driver_cuda="13.0", torch_cuda="13.0"),
        "fine",
        "cuda",
    ),
    "old driver by its number, and it works": (
        healthy(driver_version="470.57.02", driver_cuda="11.4", torch_cuda="12.1"),
        "fine",
        "cuda",
    ),
    "ROCm: True, and version.cuda None": (rocm(), "fine", "cuda"),
    "ROCm, nothing tried": (rocm(tiny_op=None), "fine", "cuda"),
    "ROCm with an MI250 that works": (
        rocm(devices=[gpu("AMD Instinct MI250X", "9.0")]),
        "fine",
        "cuda",
    ),
    "MIG slice: count 0, and it works": (
        shown("MIG-8932f937-d72c-4106-c12f-20bd9faed9f6", devices=[MIG], device_count=0)
        | {"is_available": False},
        "fine",
        "cuda",
    ),
    "MIG slice in the old form": (
        shown("MIG-GPU-8932f937-d72c-4106-c12f-20bd9faed9f6/1/0", devices=[MIG]),
        "fine",
        "cuda",
    ),
    "GPU chosen by a shortened id": (shown("GPU-8932f937"), "fine", "cuda"),
    "0,9 on one GPU": (shown("0,9"), "fine", "cuda"),
    "0,9,1 shows the first of two": (shown("0,9,1", devices=[ADA, ADA]), "fine", "cuda"),
    "spaces after the comma": (shown("0, 1", devices=[ADA, ADA], device_count=2), "fine", "cuda"),
    "1 on two GPUs": (shown("1", devices=[ADA, ADA]), "fine", "cuda"),
    "HIP_VISIBLE_DEVICES does nothing to CUDA": (
        healthy(env={"HIP_VISIBLE_DEVICES": "-1"}),
        "fine",
        "cuda",
    ),
    "initialised early, variable in force": (
        shown("0", cuda_initialized_before_env=True),
        "fine",
        "cuda",
    ),
    "initialised early, no variable": (healthy(cuda_initialized_before_env=True), "fine", "cuda"),
    "container with its GPU": (healthy(container="docker"), "fine", "cuda"),
    "WSL with its GPU": (healthy(**WSL), "fine", "cuda"),
    "Windows with its GPU": (healthy(**WINDOWS), "fine", "cuda"),
    "Colab with a T4": (healthy(**COLAB), "fine", "cuda"),
    "Kaggle with two T4s": (healthy(**KAGGLE, devices=[gpu(), gpu()], device_count=2), "fine", ""),
    "Jetson with NVIDIA's build": (
        healthy(**JETSON, arch_list=["sm_87"], torch_version="2.5.0a0+nv24.08"),
        "fine",
        "cuda",
    ),
    "Jetson without nvidia-smi": (
        healthy(**JETSON | {"devices": None, "driver_version": None}, nvidia_smi_present=False),
        "fine",
        "cuda",
    ),
    "exclusive mode, alone": (
        healthy(devices=[gpu(compute_mode="Exclusive_Process")]),
        "fine",
        "cuda",
    ),
    "two unlike GPUs": (
        healthy(devices=[gpu("NVIDIA GeForce GTX 745", "5.0"), ADA], device_count=2),
        "fine",
        "cuda",
    ),
    "driver by its number only": (healthy(driver_cuda=None, tiny_op=None), "fine", "cuda"),
    # build
    "Windows, plain pip, driver there": (cpu_build(**WINDOWS), "build", "Reinstall.*pip"),
    "Windows, plain pip, no driver": (
        cpu_build(**WINDOWS | {"driver_version": None, "driver_cuda": None})
        | {"devices": [], "nvidia_smi_present": False},
        "build",
        "Reinstall",
    ),
    "Linux, CPU wheel, driver there": (cpu_build(), "build", "Reinstall PyTorch with CUDA"),
    "Linux, CPU wheel, no driver": (
        cpu_build(driver_version=None, driver_cuda=None, devices=None)
        | {"nvidia_smi_present": False, "device_nodes_present": False},
        "build",
        "Reinstall",
    ),
    "conda's CPU build": (
        cpu_build(torch_version="2.7.1", conda=True),
        "build",
        "conda install",
    ),
    "CPU wheel and an empty variable": (
        cpu_build(env={"CUDA_VISIBLE_DEVICES": ""}),
        "build",
        "Reinstall",
    ),
    "CPU wheel in a container without a GPU": (
        cpu_build(container="docker", driver_version=None, driver_cuda=None, devices=None)
        | {"nvidia_smi_present": False, "device_nodes_present": False},
        "build",
        "image",
    ),
    "CPU wheel in Colab with a T4": (cpu_build(**COLAB), "build", "delete runtime"),
    "Jetson with the general wheel": (
        cpu_build(**JETSON),
        "build",
        "JetPack",
    ),
    "Jetson known by its kernel only": (
        cpu_build(os="Linux 5.15.148-tegra aarch64", devices=None, nvidia_smi_present=False),
        "build",
        "JetPack",
    ),
    "Mac": (
        cpu_build(os="macOS arm64", torch_version="2.8.0", driver_version=None, driver_cuda=None)
        | {"devices": None, "nvidia_smi_present": False, "device_nodes_present": None},
        "build",
        "mps",
    ),
    "64-bit Arm server, plain pip": (cpu_build(os="Linux aarch64"), "build", "Reinstall"),
    "CPU wheel, and an addition on the CPU": (cpu_build(tiny_op="ok"), "build", "Reinstall"),
    "CPU build known by torch's words only": (
        cpu_build(torch_version=None, is_available=None),
        "build",
        "Reinstall PyTorch with CUDA",
    ),
    "Intel build": (cpu_build(torch_version="2.8.0+xpu"), "build", "xpu"),
    "ROCm build, NVIDIA card": (
        rocm(
            driver_version="570.133.20",
            driver_cuda="12.8",
            nvidia_smi_present=True,
            devices=[gpu()],
            is_available=False,
            device_count=0,
            init_error="RuntimeError: No HIP GPUs are available",
            tiny_op="RuntimeError: No HIP GPUs are available",
        ),
        "build",
        "Reinstall PyTorch with CUDA",
    ),
    "CUDA build, AMD card": (
        bare(devices=[gpu("AMD Radeon RX 7900 XTX", None)]),
        "build",
        "ROCm",
    ),
    "torch missing": (
        missing("ModuleNotFoundError: No module named 'torch'"),
        "build",
        "Install it into this Python",
    ),
    "torch missing, Python too new": (
        missing("ModuleNotFoundError: No module named 'torch'", python_version="3.15"),
        "build",
        "Python 3.10",
    ),
    "libcudart missing": (
        missing(
            "OSError: libcudart.so.12: cannot open shared object file: No such file or directory"
        ),
        "build",
        "new environment",
    ),
    "undefined symbol": (
        missing("ImportError: libtorch_cuda.so: undefined symbol: ncclCommRegister"),
        "build",
        "new environment",
    ),
    "DLL load failed": (
        missing(
            'OSError: [WinError 126] The specified module could not be found. Error loading "c10.'
            'dll" or one of its dependencies.',
            **WINDOWS,
        ),
        "build",
        "new environment",
    ),
    "a file named torch.py": (
        missing("AttributeError: module 'torch' has no attribute '__version__'"),
        "build",
        "torch.py",
    ),
    # driver
    "Linux without a driver": (bare(), "driver", "lspci"),
    "Linux without a driver, nothing said": (bare(init_error=None, tiny_op=None), "driver", ""),
    "Linux, driver missing and a variable set": (
        bare(env={"CUDA_VISIBLE_DEVICES": "0"}),
        "driver",
        "install NVIDIA's driver",
    ),
    "Windows without a driver": (
        bare(os="Windows AMD64", device_nodes_present=None),
        "driver",
        "Device Manager",
    ),
    "WSL without a driver in Windows": (bare(wsl=True), "driver", "in Windows, not in WSL"),
    "WSL with a Linux driver in the way": (
        blind(**WSL, init_error=NO_DRIVER, tiny_op=NO_DRIVER),
        "driver",
        "wsl",
    ),
    "nouveau or Secure Boot: module not loaded": (
        bare(nvidia_smi_present=True),
        "driver",
        "kernel module",
    ),
    "driver too old by its major version": (
        blind(driver_version="470.57.02", driver_cuda="11.4", torch_cuda="12.1", arch_list=CU121),
        "driver",
        "525.60.13",
    ),
    "the same, in torch's words only": (
        blind(
            driver_version=None,
            driver_cuda=None,
            devices=None,
            init_error="RuntimeError: The NVIDIA driver on your system is too old (found version "
            "11040). Please update your GPU driver",
        ),
        "driver",
        "Update the NVIDIA driver",
    ),
    "driver too old, known by its number": (
        blind(driver_version="535.104.05", driver_cuda=None, torch_cuda="13.0", tiny_op=None)
        | {"init_error": None},
        "driver",
        "580.65.06|580.65.6",
    ),
    "driver below the first of its major version": (
        blind(
            driver_version="450.51.06",
            driver_cuda="11.0",
            torch_cuda="11.8",
            init_error="CUDA driver version is insufficient for CUDA runtime version",
        ),
        "driver",
        "450.80",
    ),
    "the same, nothing said": (
        blind(driver_version="450.51.06", driver_cuda="11.0", torch_cuda="11.8")
        | {"init_error": None, "tiny_op": None},
        "driver",
        "450.80",
    ),
    "WSL: the driver's number is that of Windows": (
        blind(wsl=True, driver_version="527.41", driver_cuda="12.0", tiny_op=None)
        | {"init_error": None},
        "driver",
        "528.33",
    ),
    "libcuda missing": (
        bare(
            torch_version=None,
            torch_cuda=None,
            arch_list=None,
            init_error="ImportError: libcuda.so.1: cannot open shared object file: No such file",
            tiny_op=None,
        ),
        "driver",
        "install NVIDIA's driver",
    ),
    "a CUDA build known by torch's words only": (
        bare(torch_version="2.8.0", torch_cuda=None, arch_list=None),
        "driver",
        "install NVIDIA's driver",
    ),
    "AMD's driver missing": (
        rocm(
            device_nodes_present=False,
            is_available=False,
            device_count=0,
            tiny_op="RuntimeError: No HIP GPUs are available",
        ),
        "driver",
        "amdgpu",
    ),
    "AMD's variable on an NVIDIA machine hides nothing": (
        blind(env={"HIP_VISIBLE_DEVICES": "-1"}, device_nodes_present=False)
        | {"init_error": None, "tiny_op": None},
        "driver",
        "modprobe",
    ),
    "CUDA 10: each minor version counts": (
        blind(driver_version="418.87", driver_cuda="10.1", torch_cuda="10.2", init_error=None),
        "driver",
        "440.33",
    ),
    "driver too old in a container": (
        blind(container="docker", driver_version="470.57.02", driver_cuda="11.4"),
        "driver",
        "the host",
    ),
    "driver too old in WSL": (
        blind(wsl=True, driver_version="472.12", driver_cuda="11.4"),
        "driver",
        "in Windows, not in WSL",
    ),
    "driver too old on Windows": (
        blind(**WINDOWS | {"driver_version": "472.12", "driver_cuda": "11.4"}),
        "driver",
        "528.33",
    ),
    "driver too old in a Slurm job": (
        blind(driver_version="470.57.02", driver_cuda="11.4")
        | {"env": {"SLURM_JOB_GPUS": "0", "CUDA_VISIBLE_DEVICES": "0"}},
        "driver",
        "older CUDA",
    ),
    "driver too old in Colab": (
        blind(**COLAB, driver_version="550.54.15", driver_cuda="12.4", torch_cuda="13.0"),
        "driver",
        "new session",
    ),
    "error 804": (
        blind(
            init_error=UNEXPECTED + "804: forward compatibility was attempted on non supported HW"
        ),
        "driver",
        "cuda-compat",
    ),
    "error 804 in a container": (
        blind(
            container="docker",
            init_error=UNEXPECTED + "804: forward compatibility was attempted on non supported HW",
        ),
        "driver",
        "the host",
    ),
    "error 803": (
        blind(
            init_error=UNEXPECTED + "803: system has unsupported display driver / cuda driver "
            "combination"
        ),
        "driver",
        "Restart the computer",
    ),
    "updated, not restarted": (
        bare(
            nvidia_smi_present=True,
            device_nodes_present=True,
            init_error="Failed to initialize NVML: Driver/library version mismatch",
        ),
        "driver",
        "Restart the computer",
    ),
    "error 802": (
        blind(init_error=UNEXPECTED + "802: system not yet initialized"),
        "driver",
        "fabric",
    ),
    "error 999 after sleep": (blind(init_error=UNKNOWN, tiny_op=UNKNOWN), "driver", "Restart"),
    "the toolkit's stub": (
        blind(init_error=UNEXPECTED + "34: CUDA driver is a stub library"),
        "driver",
        "LD_LIBRARY_PATH",
    ),
    "device files missing": (
        blind(device_nodes_present=False, init_error=None, tiny_op=None),
        "driver",
        "modprobe",
    ),
    "PTX newer than the driver": (
        failing(
            "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain",
            driver_version="550.54.15",
            driver_cuda="12.4",
        ),
        "driver",
        "Update the NVIDIA driver",
    ),
    # visibility
    "empty variable": (visible(""), "visibility", "CUDA_VISIBLE_DEVICES"),
    "a space": (visible(" "), "visibility", "CUDA_VISIBLE_DEVICES"),
    "-1": (visible("-1"), "visibility", "CUDA_VISIBLE_DEVICES"),
    "-1, nothing said": (
        visible("-1", init_error=None, tiny_op=None),
        "visibility",
        "CUDA_VISIBLE_DEVICES",
    ),
    "7 on one GPU": (visible("7"), "visibility", r"exists \(0\)"),
    "9,0 ends at once": (visible("9,0"), "visibility", "CUDA_VISIBLE_DEVICES"),
    "-1,0": (visible("-1,0"), "visibility", "CUDA_VISIBLE_DEVICES"),
    "a word": (visible("all"), "visibility", "CUDA_VISIBLE_DEVICES"),
    "NoDevFiles": (visible("NoDevFiles"), "visibility", "CUDA_VISIBLE_DEVICES"),
    "the same GPU twice": (visible("0,0", devices=[ADA, ADA]), "visibility", "CUDA_VISIBLE"),
    "an id of no GPU": (visible("GPU-bad"), "visibility", "CUDA_VISIBLE_DEVICES"),
    "an id of no GPU, ids known": (
        visible("GPU-bad", devices=[gpu(uuid="GPU-8932f937")]),
        "visibility",
        "CUDA_VISIBLE_DEVICES",
    ),
    "an id of no slice": (
        visible("MIG-00000000-0000-0000-0000-000000000000"),
        "visibility",
        "CUDA_VISIBLE_DEVICES",
    ),
    "-1, and the driver's list is not known": (
        visible("-1", devices=None, driver_cuda=None),
        "visibility",
        "CUDA_VISIBLE_DEVICES",
    ),
    "7, and the driver's list is hidden too": (
        visible("7", devices=[]),
        "visibility",
        "CUDA_VISIBLE_DEVICES",
    ),
    "Colab's T4 with 1 in the first cell": (
        visible("1", **COLAB),
        "visibility",
        r"exists \(0\)",
    ),
    "Windows with -1": (visible("-1", **WINDOWS), "visibility", "CUDA_VISIBLE_DEVICES"),
    "set too late, and hiding": (
        blind(env={"CUDA_VISIBLE_DEVICES": "0"}, cuda_initialized_before_env=True),
        "visibility",
        "Restart the Python process",
    ),
    "set too late, without effect": (
        shown("1", devices=[ADA, ADA], device_count=2, cuda_initialized_before_env=True),
        "visibility",
        "Restart the Python process",
    ),
    "set too late: error 999": (
        blind(
            env={"CUDA_VISIBLE_DEVICES": "0"},
            cuda_initialized_before_env=True,
            init_error=UNKNOWN,
            tiny_op=UNKNOWN,
        ),
        "visibility",
        "Restart the Python process",
    ),
    "HIP_VISIBLE_DEVICES hides AMD's GPU": (
        rocm(
            env={"HIP_VISIBLE_DEVICES": "-1"},
            is_available=False,
            device_count=0,
            tiny_op="RuntimeError: No HIP GPUs are available",
        ),
        "visibility",
        "HIP_VISIBLE_DEVICES",
    ),
    "AMD: not in the group render": (
        rocm(is_available=False, device_count=0, tiny_op="No HIP GPUs are available"),
        "visibility",
        "render",
    ),
    "AMD container without devices": (
        rocm(
            container="docker",
            device_nodes_present=False,
            is_available=False,
            device_count=0,
            tiny_op="RuntimeError: No HIP GPUs are available",
        ),
        "visibility",
        "/dev/kfd",
    ),
    "Docker without --gpus": (bare(container="docker"), "visibility", "--gpus all"),
    "Docker in WSL without --gpus": (bare(container="docker", wsl=True), "visibility", "--gpus"),
    "Docker, container given as true": (bare(container=True), "visibility", "--gpus all"),
    "Docker without --gpus, nothing said": (
        bare(container="docker", init_error=None, tiny_op=None),
        "visibility",
        "--gpus all",
    ),
    "Docker, driver insufficient as there is none": (
        bare(
            container="docker",
            init_error="CUDA driver version is insufficient for CUDA runtime version",
        ),
        "visibility",
        "--gpus all",
    ),
    "Docker, utility only": (
        blind(container="docker", init_error=NO_DRIVER, tiny_op=NO_DRIVER),
        "visibility",
        "NVIDIA_DRIVER_CAPABILITIES",
    ),
    "Docker lost its GPU": (
        blind(
            container="docker",
            driver_version=None,
            driver_cuda=None,
            devices=None,
            init_error="Failed to initialize NVML: Unknown Error",
        ),
        "visibility",
        "Restart the container",
    ),
    "Docker, programs and no device": (
        blind(container="docker", device_nodes_present=False, init_error=None, tiny_op=None),
        "visibility",
        "--gpus all",
    ),
    "Podman": (bare(container="podman"), "visibility", "nvidia.com/gpu=all"),
    "Kubernetes": (bare(container="kubernetes"), "visibility", "nvidia.com/gpu"),
    "Apptainer": (bare(container="apptainer"), "visibility", "--nv"),
    "Colab, CPU runtime": (bare(**COLAB), "visibility", "Change runtime type"),
    "Colab, CPU runtime with its CPU build": (
        cpu_build(**COLAB, driver_version=None, driver_cuda=None, devices=None)
        | {"nvidia_smi_present": False, "device_nodes_present": False},
        "visibility",
        "Change runtime type",
    ),
    "Kaggle, no accelerator": (bare(**KAGGLE), "visibility", "Accelerator"),
    "Slurm, login node": (
        bare(env={"SLURM_JOB_ID": "1"}),
        "visibility",
        "--gres",
    ),
    "Slurm, a job without a GPU": (
        visible("") | {"env": {"CUDA_VISIBLE_DEVICES": "", "SLURM_JOB_ID": "1"}},
        "visibility",
        "--gres",
    ),
    "cuda:1 with one GPU visible": (
        shown("1", devices=[ADA, ADA])
        | {"tiny_op": "RuntimeError: CUDA error: invalid device ordinal"},
        "visibility",
        "Count from 0",
    ),
    # architecture
    "RTX 5090 with a build for CUDA 12.1": (
        failing(NO_IMAGE, devices=[gpu("NVIDIA GeForce RTX 5090", "12.0")], arch_list=CU121)
        | {"torch_cuda": "12.1"},
        "architecture",
        "CUDA 12.8",
    ),
    "the same, nothing tried": (
        failing("", devices=[gpu("NVIDIA GeForce RTX 5090", "12.0")], arch_list=CU121)
        | {"tiny_op": None, "torch_cuda": "12.1"},
        "architecture",
        "CUDA 12.8",
    ),
    "GTX 1080 with a build for CUDA 12.8": (
        failing(NO_IMAGE, devices=[gpu("NVIDIA GeForce GTX 1080", "6.1")]),
        "architecture",
        "CUDA 12.6",
    ),
    "V100 with a build for CUDA 13": (
        failing(NO_IMAGE, devices=[gpu("Tesla V100-SXM2-16GB", "7.0")], torch_cuda="13.0")
        | {"driver_version": "580.95.05", "driver_cuda": "13.0"},
        "architecture",
        "CUDA 12.6",
    ),
    "GTX 960 (Maxwell)": (
        failing(NO_IMAGE, devices=[gpu("NVIDIA GeForce GTX 960", "5.2")]),
        "architecture",
        "CUDA 12.6",
    ),
    "Tesla K80 (Kepler)": (
        failing(NO_IMAGE, devices=[gpu("Tesla K80", "3.7")], arch_list=CU121),
        "architecture",
        "another GPU",
    ),
    "A100 with sm_86 only": (
        failing("", devices=[AMPERE], arch_list=["sm_75", "sm_86"]) | {"tiny_op": None},
        "architecture",
        "CUDA 11.0",
    ),
    "H200 with sm_90a of another, sm_80": (
        failing("", devices=[gpu("NVIDIA B200", "10.0")], arch_list=["sm_80", "sm_90a"])
        | {"tiny_op": None},
        "architecture",
        "CUDA 12.8",
    ),
    "B300 (10.3) with sm_100a only": (
        failing("", devices=[gpu("NVIDIA B300", "10.3")], arch_list=["sm_90", "sm_100a"])
        | {"tiny_op": None},
        "architecture",
        "CUDA 12.9",
    ),
    "Jetson Orin with the general CUDA build": (
        failing(NO_IMAGE, **JETSON),
        "architecture",
        "JetPack",
    ),
    "Jetson Orin, nothing tried": (
        failing("", **JETSON) | {"tiny_op": None},
        "architecture",
        "JetPack",
    ),
    "no image, capability not known": (
        failing(NO_IMAGE, devices=None, arch_list=None),
        "architecture",
        "capability",
    ),
    "AMD GPU without code": (
        rocm(tiny_op="RuntimeError: HIP error: invalid device function"),
        "architecture",
        "ROCm",
    ),
    # usability
    "busy": (failing(BUSY), "usability", "End what holds it"),
    "busy in exclusive mode": (
        failing(BUSY, devices=[gpu(compute_mode="Exclusive_Process")]),
        "usability",
        "End what holds it",
    ),
    "busy in WSL": (failing(BUSY, **WSL), "usability", "End what holds it"),
    "busy in Colab": (failing(BUSY, **COLAB), "usability", "Restart the session"),
    "prohibited": (
        failing("", devices=[gpu(compute_mode="Prohibited")]) | {"tiny_op": None},
        "usability",
        "DEFAULT",
    ),
    "busy, and prohibited": (
        failing(BUSY, devices=[gpu(compute_mode="Prohibited")]),
        "usability",
        "DEFAULT",
    ),
    "memory full": (
        failing("torch.OutOfMemoryError: CUDA error: out of memory"),
        "usability",
        "Shut down the kernels",
    ),
    "ECC": (
        failing("RuntimeError: CUDA error: uncorrectable ECC error encountered"),
        "usability",
        "defective",
    ),
    "fallen off the bus (Xid 79)": (
        blind(
            driver_cuda=None,
            devices=None,
            init_error="Unable to determine the device handle for GPU0: GPU is lost. Xid 79: GPU "
            "has fallen off the bus",
        ),
        "usability",
        "Restart the computer",
    ),
    "hang": (failing("timeout"), "usability", "Restart"),
    "hang in is_available": (
        failing("timeout", is_available=None, device_count=None),
        "usability",
        "Restart",
    ),
    "hang of everything, the driver's own tools too": (
        failing("timeout", is_available=None, device_count=None, driver_version=None)
        | {"driver_cuda": None, "devices": None},
        "usability",
        "Restart",
    ),
    "hang on a Slurm node": (
        failing("timeout", env={"SLURM_JOB_ID": "1", "CUDA_VISIBLE_DEVICES": "0"}),
        "usability",
        "another node",
    ),
    "MIG without a slice": (blind(devices=[MIG]), "usability", "nvidia-smi -L"),
    "MIG with the id of a slice that is gone": (
        visible("MIG-8932f937-d72c-4106-c12f-20bd9faed9f6", devices=[MIG]),
        "visibility",
        "slice that exists",
    ),
    "vGPU without a licence": (
        failing("RuntimeError: CUDA error: operation not supported", devices=[gpu("GRID T4-16Q")]),
        "usability",
        "licence",
    ),
    "forked after CUDA started": (
        failing("RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with"),
        "usability",
        "spawn",
    ),
    "a kernel failed": (
        failing("RuntimeError: CUDA error: device-side assert triggered"),
        "usability",
        "CUDA_LAUNCH_BLOCKING",
    ),
    "a crash": (failing("the process was ended by SIGSEGV"), "usability", "new environment"),
    "an error nobody knows": (failing("RuntimeError: the moon is full"), "usability", "Xid"),
    "a wrong answer": (failing("wrong answer: 9 instead of 10"), "usability", "Xid"),
    "NVML's yes, and no context": (
        failing(BUSY, env={"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}),
        "usability",
        "End what holds it",
    ),
}


def findings(facts: dict[str, Any]) -> list[Finding]:
    """Diagnose after a way through JSON, as a learner's file goes."""
    return diagnose(Facts.from_json(json.dumps(facts)))


@pytest.mark.parametrize("name", MACHINES)
def test_the_first_finding_is_the_cause(name: str) -> None:
    facts, verdict, advice = MACHINES[name]
    found = findings(facts)
    said = "\n".join(f"{item.confidence} {item.verdict}: {item.summary}" for item in found)
    assert found[0].verdict == verdict, said
    assert re.search(advice, found[0].advice[0], re.S), found[0].advice[0]
    assert found[0].evidence and all(found[0].evidence)
    works = verdict == "fine" or (facts["tiny_op"] == "ok" and verdict != "build")
    assert any(item.verdict == "fine" for item in found) == works, said


def test_there_are_many_machines() -> None:
    assert len(MACHINES) >= 60
    assert {verdict for _, verdict, _ in MACHINES.values()} == {
        "build",
        "driver",
        "visibility",
        "architecture",
        "usability",
        "fine",
    }


def evidence(facts: dict[str, Any]) -> str:
    return " / ".join(text for item in findings(facts) for text in item.evidence)


def summaries(facts: dict[str, Any]) -> str:
    return " / ".join(item.summary for item in findings(facts))


@pytest.mark.parametrize("value", ["", "-1", "7", "GPU-bad"])
def test_every_hidden_gpu_names_the_variable(value: str) -> None:
    assert f"CUDA_VISIBLE_DEVICES={value!r}" in evidence(visible(value))


def test_a_cpu_build_does_not_blame_the_driver() -> None:
    found = findings(cpu_build(**WINDOWS))
    assert [item.verdict for item in found] == ["build"]
    assert "driver" not in found[0].summary


def test_nobody_is_told_to_install_a_cuda_toolkit() -> None:
    """PyTorch's builds bring the CUDA that they call; a container's toolkit is another thing."""
    for name, (facts, _, _) in MACHINES.items():
        advice = " ".join(text for item in findings(facts) for text in item.advice)
        named = advice.replace("NVIDIA Container Toolkit", "").replace("Leave a CUDA toolkit", "")
        assert not re.search(r"[Ii]nstall[^.]*(toolkit|nvcc)", named), name
        assert "nvcc --version" not in named, name


def test_a_truncated_list_is_a_remark() -> None:
    found = findings(shown("0,9,1", devices=[ADA, ADA]))
    assert found[1].verdict == "visibility" and "1 GPU of 2" in found[1].summary
    assert any("ends at 9" in text for text in found[1].evidence)


def test_the_same_major_version_is_a_note_and_a_newer_driver_is_none() -> None:
    assert "same major version" in evidence(healthy(driver_cuda="12.2"))
    assert "major version" not in evidence(healthy(driver_cuda="13.0"))


def test_what_torch_counts_otherwise_than_nvidia_smi_is_a_remark() -> None:
    unlike = [gpu("NVIDIA GeForce GTX 745", "5.0"), ADA]
    assert "fastest" in summaries(healthy(devices=unlike, device_count=2))
    ordered = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert "fastest" not in summaries(healthy(devices=unlike, device_count=2, env=ordered))
    assert "no code" in summaries(healthy(devices=unlike, device_count=2))
    assert "from 0" in summaries(shown("1", devices=[ADA, ADA]))


def test_a_slice_is_one_device() -> None:
    assert "MIG" in summaries(healthy(devices=[MIG]))


def test_an_amd_machine_hears_nothing_of_nvidias_tools() -> None:
    for facts in (rocm(), rocm(is_available=False, device_count=0, tiny_op="No HIP GPUs")):
        said = " ".join(
            [summaries(facts), evidence(facts), *(t for f in findings(facts) for t in f.advice)]
        )
        assert "nvidia-smi" not in said and "sm_" not in said


@pytest.mark.parametrize(
    ("driver", "build", "fits"),
    [
        ("12.2", "11.8", True),
        ("12.0", "12.8", True),
        ("11.4", "12.1", False),
        ("13.0", "12.8", True),
        ("12.9", "13.0", False),
        ("11.2", "11.8", True),
        ("10.1", "10.2", False),
        ("10.2", "10.1", True),
    ],
)
def test_which_driver_runs_which_build(driver: str, build: str, fits: bool) -> None:
    facts = blind(driver_cuda=driver, driver_version=None, torch_cuda=build, init_error=None)
    blamed = findings(facts | {"tiny_op": None})[0].summary
    assert ("too old" not in blamed) == fits
