"""What runs in a process of its own: it may hang or crash, and its caller does not.

``python -m gpututor.doctor.probe torch`` or ``... nvml``. Each step writes one line of JSON when
it is done, so that what was learnt before a hang is kept.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from typing import Any

# What a driver without a device, or no driver, makes NVML answer: absence, and no fault.
_ABSENT = ("NVMLError_LibraryNotFound", "NVMLError_DriverNotLoaded")


def tell(**facts: Any) -> None:
    """Write facts to the caller."""
    sys.stdout.write(json.dumps(facts, default=str) + "\n")
    sys.stdout.flush()


def told(error: BaseException) -> str:
    """Return an exception's class and text."""
    return f"{type(error).__name__}: {error}"


def torch_facts() -> None:
    """Import torch, ask it for devices, and add two numbers on the first."""
    tell(stopped_in="import")
    try:
        import torch

        tell(torch_version=torch.__version__, torch_cuda=torch.version.cuda)
        tell(torch_hip=torch.version.hip, arch_list=list(torch.cuda.get_arch_list()))
        tell(mps=torch.backends.mps.is_available())
        xpu = getattr(torch, "xpu", None)
        tell(xpu=bool(xpu is not None and xpu.is_available()))
    except BaseException as error:
        tell(init_error=told(error), tiny_op=told(error), is_available=False, stopped_in=None)
        return
    tell(stopped_in="is_available")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            tell(is_available=bool(torch.cuda.is_available()))
            tell(device_count=int(torch.cuda.device_count()))
            tell(stopped_in="init")
            torch.cuda.init()
        except BaseException as error:
            tell(init_error=told(error))
    said = [str(item.message) for item in caught]
    try:
        tell(stopped_in="tiny_op")
        # The arithmetic is done by a kernel of torch's own: copying alone needs none.
        answer = (torch.arange(4, device="cuda") + 1).sum().item()
        tell(tiny_op="ok" if answer == 10 else f"wrong answer: {answer} instead of 10")
        tell(
            torch_devices=[_properties(torch, index) for index in range(torch.cuda.device_count())]
        )
    except BaseException as error:
        tell(tiny_op=told(error))
    tell(warnings=said, stopped_in=None)


def _properties(torch: Any, index: int) -> dict[str, Any]:
    item = torch.cuda.get_device_properties(index)
    return {
        "name": item.name,
        "capability": f"{item.major}.{item.minor}",
        "memory_gib": round(item.total_memory / 2**30, 1),
        "uuid": f"GPU-{item.uuid}" if hasattr(item, "uuid") else None,
    }


def nvml_facts() -> None:
    """Ask NVIDIA's management library for the driver and its devices, hidden ones too."""
    try:
        import pynvml as nvml
    except ImportError:
        smi_facts()
        return
    try:
        nvml.nvmlInit()
        tell(driver_version=_text(nvml.nvmlSystemGetDriverVersion()))
        cuda = nvml.nvmlSystemGetCudaDriverVersion_v2()
        tell(driver_cuda=f"{cuda // 1000}.{cuda % 1000 // 10}")
        tell(devices=[_device(nvml, index) for index in range(nvml.nvmlDeviceGetCount())])
    except Exception as error:
        if type(error).__name__ not in _ABSENT:
            tell(nvml_error=told(error))


def _device(nvml: Any, index: int) -> dict[str, Any]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)

    def ask(function: str) -> Any:
        try:
            return getattr(nvml, function)(handle)
        except Exception:  # not every GPU answers everything
            return None

    capability, memory = ask("nvmlDeviceGetCudaComputeCapability"), ask("nvmlDeviceGetMemoryInfo")
    mig, running = ask("nvmlDeviceGetMigMode"), ask("nvmlDeviceGetComputeRunningProcesses")
    modes = ("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process")
    mode = ask("nvmlDeviceGetComputeMode")
    return {
        "name": _text(ask("nvmlDeviceGetName")),
        "capability": ".".join(map(str, capability)) if capability else None,
        "memory_gib": round(memory.total / 2**30, 1) if memory else None,
        "mig": None if mig is None else bool(mig[0]),
        "compute_mode": modes[mode] if mode in range(len(modes)) else None,
        "uuid": _text(ask("nvmlDeviceGetUUID")),
        "memory_used_gib": round(memory.used / 2**30, 1) if memory else None,
        "processes": None if running is None else len(running),
    }


def smi_facts() -> None:
    """Ask the program nvidia-smi, where Python's binding of that library is not installed."""
    names = "name,compute_cap,memory.total,memory.used,mig.mode.current,compute_mode,uuid"
    query = [f"--query-gpu=driver_version,{names}", "--format=csv,noheader,nounits"]
    try:
        table = subprocess.run(["nvidia-smi", *query], capture_output=True, text=True)
        if table.returncode:
            tell(nvml_error=(table.stdout + table.stderr).strip())
            return
        devices = []
        for line in table.stdout.splitlines():
            driver, name, capability, total, used, mig, mode, uuid = line.split(", ")
            tell(driver_version=driver)
            devices.append(
                {
                    "name": name,
                    "capability": capability,
                    "memory_gib": round(float(total) / 1024, 1),
                    "mig": mig == "Enabled",
                    "compute_mode": mode,
                    "uuid": uuid,
                    "memory_used_gib": round(float(used) / 1024, 1),
                }
            )
        tell(devices=devices)
        panel = subprocess.run(["nvidia-smi"], capture_output=True, text=True).stdout
        if found := re.search(r"CUDA[^:|]* Version: *(\d+\.\d+)", panel):
            tell(driver_cuda=found[1])
    except (OSError, ValueError):  # not there, or of a form that is not known
        return


def _text(value: Any) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


if __name__ == "__main__":
    {"torch": torch_facts, "nvml": nvml_facts}[sys.argv[1]]()
