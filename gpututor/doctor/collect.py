"""Look at the machine. Nothing here initialises CUDA, and nothing raises or hangs."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from .facts import Facts, anonymous, scrub

SECONDS = 15.0  # for all probes together; a first start of many GPUs takes about 10
ROOM = 1 << 16  # bytes on disk: more than a probe writes
VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "PYTORCH_NVML_BASED_CUDA_CHECK",
    "SLURM_JOB_GPUS",
    "SLURM_STEP_GPUS",
)
NODES = ("nvidia[0-9]*", "nvidiactl", "dxg", "kfd", "nvhost-gpu", "nvmap")
_MAKERS = {"0x10de": "nvidia", "0x1002": "amd", "0x8086": "intel"}


def collect(seconds: float = SECONDS) -> Facts:
    """Return what can be learnt about this machine.

    PyTorch and the driver are asked in processes of their own, with a time limit: a hang, a crash
    or a failed context stays there, and CUDA is not initialised here. What a simulated GPU shows
    does not count.

    Parameters
    ----------
    seconds : float
        How long the probes may take together.

    Returns
    -------
    Facts
        With None for what could not be learnt. Paths, names of users and of hosts are left out.
    """
    known: dict[str, Any] = {}
    for look in (_system, _place, _installed_torch, _bus, _environment):
        with contextlib.suppress(Exception):
            known.update(look())
    end = time.monotonic() + seconds
    probes = {name: _Probe(name) for name in ("nvml", "torch")}
    try:
        answers = {name: probe.answers(end) for name, probe in probes.items()}
    finally:  # also when the learner interrupts
        for probe in probes.values():
            probe.end()
    with contextlib.suppress(Exception):
        known.update(_merged(answers["nvml"], answers["torch"]))
    with contextlib.suppress(Exception):
        here = _devices_here()
        known["cuda_initialized_before_env"] = late = _late(here, answers["torch"])
        if late and here is not None:  # say what this process sees, not what a fresh one would
            known.update(device_count=len(here), is_available=bool(here))
    names = {item.name for item in fields(Facts)}
    return Facts(**{key: value for key, value in known.items() if key in names})


class _Probe:
    """A process that looks at one thing, with all that it wrote."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.process: subprocess.Popen[bytes] | None = None
        self.output: IO[bytes] | None = None
        self.trouble = ""
        try:
            if not sys.executable:
                raise OSError("this Python does not know its own program")
            self.output = tempfile.TemporaryFile()  # noqa: SIM115 (closed when it is read)
            self.output.write(bytes(ROOM))  # a full disk shows here, not as a silent torch
            self.output.seek(0)
            self.output.truncate()
            # The probe must find the torch that the caller finds.
            path = os.pathsep.join(item or os.getcwd() for item in sys.path)
            self.process = subprocess.Popen(
                _command(name),
                stdin=subprocess.DEVNULL,
                stdout=self.output,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
                start_new_session=os.name == "posix",
            )
        except Exception as error:
            self.trouble = f"the probe did not start: {scrub(str(error))}"

    def answers(self, end: float) -> dict[str, Any]:
        """Return what the process learnt until it ended, or until the time `end`."""
        known: dict[str, Any] = {}
        with contextlib.suppress(Exception):
            status = self._wait(end)
            for line in self._lines():
                with contextlib.suppress(ValueError):
                    learnt = json.loads(line)
                    known.update(learnt if isinstance(learnt, dict) else {})
            if self.process is None or "tiny_op" in known or self.name != "torch":
                pass
            elif status is None:
                known["tiny_op"] = "timeout"
            else:
                known["tiny_op"] = _ending(status)
        if self.trouble and self.name == "torch":
            known["tiny_op"] = self.trouble
        return known

    def end(self) -> None:
        """End the process, and all that it started."""
        if self.process is None or self.process.poll() is not None:
            return
        if os.name == "posix":
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        # A process inside a driver that hangs cannot be killed: it is left behind.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1)

    def _wait(self, end: float) -> int | None:
        if self.process is None:
            return None
        try:
            return self.process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.end()
            return None

    def _lines(self) -> list[bytes]:
        if self.output is None:
            return []
        with self.output as output:
            output.seek(0)
            return output.read(1 << 20).splitlines()


def _scrub(text: str) -> str:
    """Scrub a text, the folder of this user first: its name may hold spaces."""
    with contextlib.suppress(RuntimeError):
        text = text.replace(str(Path.home()), "~") if len(str(Path.home())) > 1 else text
    return scrub(text)


def _command(name: str) -> list[str]:
    return [sys.executable, "-m", "gpututor.doctor.probe", name]


def _ending(status: int) -> str:
    if status < 0:
        with contextlib.suppress(ValueError):
            return f"the process was ended by {signal.Signals(-status).name}"
    return f"the process ended with exit status {status}"


def _merged(nvml: Mapping[str, Any], torch: Mapping[str, Any]) -> dict[str, Any]:
    known = {**nvml, **{key: value for key, value in torch.items() if value is not None}}
    said = [known.get("init_error"), *known.pop("warnings", ())]
    known["init_error"] = " | ".join(dict.fromkeys(_scrub(text) for text in said if text)) or None
    for key in ("tiny_op", "nvml_error"):
        if known.get(key):
            known[key] = _scrub(known[key])
    seen = known.pop("torch_devices", None) or []
    devices = known.get("devices") or seen  # ROCm, Jetson and others have no NVML
    known["devices"] = [{**item, "uuid": scrub(item.get("uuid") or "") or None} for item in devices]
    if not devices and not nvml.get("driver_version"):
        known["devices"] = None
    if known.get("driver_version") is None:
        with contextlib.suppress(OSError):
            text = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8")
            found = re.search(r"\b\d{3}\.\d+(?:\.\d+)?\b", text)
            known["driver_version"] = found[0] if found else None
    return known


def _system() -> dict[str, Any]:
    machine = platform.machine()
    release = platform.release().lower()
    system = {"Darwin": "macOS"}.get(platform.system(), platform.system())
    return {
        "os": f"{system} {machine}",
        "machine": machine,
        "wsl": "microsoft" in release or bool(os.environ.get("WSL_DISTRO_NAME")),
        "jetson": Path("/etc/nv_tegra_release").exists() or "tegra" in release,
        "python_version": f"{sys.version_info.major}.{sys.version_info.minor}",
        "conda": (Path(sys.prefix) / "conda-meta").is_dir(),
        "nvidia_smi_present": _smi(),
        "device_nodes_present": _nodes(),
    }


def _smi() -> bool:
    places = [Path(os.environ.get("SYSTEMROOT", "C:\\Windows"), "System32", "nvidia-smi.exe")]
    places.append(Path("/usr/lib/wsl/lib/nvidia-smi"))
    return shutil.which("nvidia-smi") is not None or any(place.exists() for place in places)


def _nodes() -> bool | None:
    if platform.system() != "Linux":
        return None
    return any(next(Path("/dev").glob(pattern), None) is not None for pattern in NODES)


def _place() -> dict[str, Any]:
    env = os.environ
    place = "none"
    if "COLAB_RELEASE_TAG" in env or "COLAB_GPU" in env:
        place = "colab"
    elif "KAGGLE_KERNEL_RUN_TYPE" in env or "KAGGLE_URL_BASE" in env:
        place = "kaggle"
    return {
        "platform": place,
        "scheduler": "slurm" if "SLURM_JOB_ID" in env else "none",
        "container": _container(),
    }


def _container() -> str:
    env = os.environ
    if "KUBERNETES_SERVICE_HOST" in env:
        return "kubernetes"
    if "APPTAINER_CONTAINER" in env or "SINGULARITY_CONTAINER" in env:
        return "apptainer"
    if Path("/.dockerenv").exists():
        return "docker"
    if Path("/run/.containerenv").exists():
        return "podman"
    with contextlib.suppress(OSError):
        groups = Path("/proc/1/cgroup").read_text(encoding="utf-8")
        for word, name in (("kubepods", "kubernetes"), ("docker", "docker"), ("lxc", "lxc")):
            if word in groups:
                return name
    return "none"


def _installed_torch() -> dict[str, Any]:
    """Read the installed torch's version file, which says most without an import."""
    spec = find_spec("torch") if "torch" not in sys.modules else sys.modules["torch"].__spec__
    if spec is None or not spec.origin:
        return {}
    text = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
    found = dict(re.findall(r"(?m)^(__version__|cuda|hip)\b[^=]*= *'([^']*)'", text))
    names = {"__version__": "torch_version", "cuda": "torch_cuda", "hip": "torch_hip"}
    return {names[key]: value for key, value in found.items()}


def _bus() -> dict[str, Any]:
    """Return the makers of the graphics processors on the bus (Linux)."""
    found = set()
    for device in Path("/sys/bus/pci/devices").glob("*"):
        with contextlib.suppress(OSError):
            if (device / "class").read_text(encoding="ascii").startswith("0x03"):
                found.add(_MAKERS.get((device / "vendor").read_text(encoding="ascii").strip()))
    return {"pci_gpus": sorted(maker for maker in found if maker) or None}


def _environment() -> dict[str, Any]:
    return {"env": {name: anonymous(os.environ[name]) for name in VARIABLES if name in os.environ}}


def _late(here: list[str] | None, torch: Mapping[str, Any]) -> bool:
    """Return whether CUDA started here before the variables had the value they have now.

    A fresh process sees what the variables say now. If this one started CUDA and sees
    other devices, they were changed later.
    """
    if here is None or torch.get("device_count") is None:
        return False
    fresh = [str(item.get("uuid") or "")[-36:] for item in torch.get("torch_devices") or ()]
    if fresh and all(fresh):
        return here != fresh
    return len(here) != int(torch["device_count"])


def _devices_here() -> list[str] | None:
    """Return the ids of the devices that this process sees; None if CUDA has not started in it.

    Only a library that is loaded already is asked, and asking does not start it.
    """
    loaded: Callable[..., ctypes.CDLL] = ctypes.CDLL
    if not hasattr(os, "RTLD_NOLOAD"):
        return None
    try:
        driver = loaded("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return None
    number = ctypes.c_int(0)
    if driver.cuDeviceGetCount(ctypes.byref(number)):
        return None
    ids = []
    for index in range(number.value):
        device, digits = ctypes.c_int(), (ctypes.c_ubyte * 16)()
        driver.cuDeviceGet(ctypes.byref(device), index)
        driver.cuDeviceGetUuid_v2(digits, device)
        ids.append(str(UUID(bytes=bytes(digits))))
    return ids
