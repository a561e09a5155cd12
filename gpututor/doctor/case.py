"""Facts, cleaned for a diagnosis: whatever they hold, every value here has its right type."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from . import errors, versions
from .facts import Facts, plain
from .versions import Version
from .visible import Choice, choose

CUDA_VARIABLES = ("CUDA_VISIBLE_DEVICES",)
ROCM_VARIABLES = (
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "CUDA_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
)
_AMD = re.compile(r"\bAMD\b|radeon|instinct|\bgfx\d", re.I)
_JETSON = re.compile(r"\borin\b|xavier|\bjetson|\btegra|\bthor\b|\bTX[12]\b", re.I)


@dataclass(frozen=True)
class Gpu:
    """One device of the driver's list."""

    name: str
    capability: Version
    mig: bool
    mode: str
    uuid: str
    memory: float | None
    used: float | None
    processes: int | None


@dataclass(frozen=True)
class Case:
    """One machine. Empty and None mean unknown.

    Attributes
    ----------
    system : str
        ``"linux"``, ``"windows"``, ``"mac"`` or ``""``.
    place : str
        What decides how to mend it: ``"colab"``, ``"kaggle"``, ``"slurm"``, ``"kubernetes"``,
        ``"docker"``, ``"podman"``, ``"apptainer"``, ``"container"``, ``"wsl"``, ``"jetson"``,
        ``"windows"``, ``"mac"`` or ``"linux"``.
    kind : str
        What PyTorch was built for: ``"cuda"``, ``"rocm"``, ``"cpu"``, ``"mac"``, ``"xpu"``, or
        ``""``.
    text : str
        All that torch and the driver said.
    error : tuple of str
        What that text means: a verdict and a cause of `errors`; empty strings if nothing.
    operation : str
        How the tiny operation went: ``"ok"``, ``"timeout"``, ``"error"`` or ``""``.
    """

    system: str
    place: str
    wsl: bool
    container: str
    jetson: bool
    arm: bool
    conda: bool | None
    kind: str
    torch: str
    build: Version
    hip: str
    arch_list: tuple[str, ...]
    driver: Version
    driver_cuda: Version
    smi: bool | None
    nodes: bool | None
    gpus: tuple[Gpu, ...]
    env: dict[str, str]
    late: bool
    available: bool | None
    count: int | None
    operation: str
    text: str
    error: tuple[str, str]
    python: Version
    pci: tuple[str, ...]
    stopped_in: str

    @property
    def driver_system(self) -> str:
        """Whose driver it is: inside WSL it is the one of Windows."""
        return "windows" if self.wsl or self.system == "windows" else "linux"

    @property
    def driver_seen(self) -> bool:
        """Whether anything speaks of an NVIDIA driver that answers."""
        return bool(self.driver or self.driver_cuda or self.gpus)

    @property
    def variables(self) -> list[tuple[str, str]]:
        """The variables that this build obeys, and their values."""
        names = ROCM_VARIABLES if self.kind == "rocm" else CUDA_VARIABLES
        return [(name, self.env[name]) for name in names if name in self.env]

    def choice(self, value: str) -> Choice:
        """Return what a variable's value chooses on this machine."""
        ids = [gpu.uuid for gpu in self.gpus]
        total = len(self.gpus) or None
        return choose(value, total, ids if ids and all(ids) else ())


def read(facts: Facts) -> Case:
    """Return the facts with every value in its right type, whatever they hold."""
    said = [_text(facts.tiny_op), _text(facts.init_error), _text(facts.nvml_error)]
    operation = _operation(said[0])
    said = [part for part in said[0 if operation == "error" else 1 :] if part]
    text = " | ".join(part for part in dict.fromkeys(said))
    error = errors.meaning(text)
    version, arch_list = _text(facts.torch_version), tuple(map(_text, _list(facts.arch_list)))
    hip = _text(facts.torch_hip)
    system = _system(_text(facts.os))
    gpus = tuple(_gpu(item) for item in _list(facts.devices) if isinstance(item, dict))
    machine = _text(facts.machine) + " " + _text(facts.os)
    jetson = (
        facts.jetson is True
        or "jetson" in _word(facts.platform)
        or bool(
            any(_JETSON.search(gpu.name) for gpu in gpus)
            or re.search(r"tegra|jetson|l4t", machine, re.I)
        )
    )
    env = _env(facts.env)
    container = _word(facts.container)
    wsl = bool(_word(facts.wsl))
    build = versions.number(_text(facts.torch_cuda))
    if not build and (tag := re.search(r"\+cu(\d+)(\d)\b", version)):
        build = int(tag[1]), int(tag[2])
    driver_cuda = versions.number(_text(facts.driver_cuda))
    if not driver_cuda and (found := re.search(r"found version (\d{4,6})", text)):
        driver_cuda = versions.number(found[1])
    count = facts.device_count
    case = Case(
        system=system,
        place="",
        wsl=wsl,
        container=container,
        jetson=jetson,
        arm=bool(re.search(r"aarch64|arm64", machine, re.I)),
        conda=facts.conda if isinstance(facts.conda, bool) else None,
        kind="",
        torch=version,
        build=build,
        hip=hip,
        arch_list=arch_list,
        driver=versions.number(_text(facts.driver_version)),
        driver_cuda=driver_cuda,
        smi=_flag(facts.nvidia_smi_present),
        nodes=_flag(facts.device_nodes_present),
        gpus=gpus,
        env=env,
        late=facts.cuda_initialized_before_env is True,
        available=_flag(facts.is_available),
        count=count if isinstance(count, int) and not isinstance(count, bool) else None,
        operation=operation,
        text=text,
        error=error,
        python=versions.number(_text(facts.python_version)),
        pci=tuple(map(_text, _list(facts.pci_gpus))),
        stopped_in=_text(facts.stopped_in),
    )
    values = dict(vars(case), kind=_kind(case), place=_place(case, facts))
    return Case(**values)


def amd(case: Case) -> bool:
    """Return whether the machine's GPUs are AMD's, as far as anything says."""
    if case.pci:
        return "amd" in case.pci and "nvidia" not in case.pci
    return bool(case.gpus) and all(_AMD.search(gpu.name) for gpu in case.gpus)


def _kind(case: Case) -> str:
    if case.hip or re.search(r"\+rocm", case.torch):
        return "rocm"
    if case.build or any(code.startswith(("sm_", "compute_")) for code in case.arch_list):
        return "cuda"
    if "xpu" in case.torch:
        return "xpu"
    if case.error[1] == "no cuda":
        return "mac" if case.system == "mac" else "cpu"
    if not case.torch or case.available or (case.operation == "ok" and case.count):
        return ""
    if case.error[1] in ("no driver", "old driver", "no device"):  # only a CUDA build says so
        return "cuda"
    return "mac" if case.system == "mac" else "cpu"


def _place(case: Case, facts: Facts) -> str:
    platform = _word(facts.platform)
    for name in ("colab", "kaggle"):
        if name in platform:
            return name
    slurm = _word(facts.scheduler) == "slurm" or "slurm" in platform
    if slurm or any(name.startswith("SLURM_") for name in case.env):
        return "slurm"
    for name, words in {
        "kubernetes": ("kube", "k8s"),
        "podman": ("podman",),
        "apptainer": ("apptainer", "singularity"),
        "docker": ("docker",),
    }.items():
        if any(word in case.container + " " + platform for word in words):
            return name
    if case.container:
        return "container"
    if case.jetson:
        return "jetson"
    return "wsl" if case.wsl else case.system or "linux"


def _system(text: str) -> str:
    text = text.lower()
    if "darwin" in text or "mac" in text:
        return "mac"
    if re.match(r"(microsoft )?win|nt\b|cygwin", text):
        return "windows"
    return "linux" if text else ""


def _operation(text: str) -> str:
    word = text.lower().rstrip(".!")
    if word in ("ok", "timeout", ""):
        return word
    return "timeout" if re.match(r"timed? ?out\b", word) else "error"


def _gpu(item: dict[str, Any]) -> Gpu:
    capability = item.get("capability")
    if isinstance(capability, (list, tuple)):
        capability = ".".join(_text(part) for part in capability)
    found = re.fullmatch(r"(\d{1,2})\.(\d{1,2})", _text(capability))
    mode = _word(item.get("compute_mode")).replace(" ", "_")
    mode = {"2": "prohibited", "1": "exclusive_thread", "3": "exclusive_process"}.get(mode, mode)
    processes = item.get("processes")
    return Gpu(
        name=_text(item.get("name")) or "a GPU without a name",
        capability=(int(found[1]), int(found[2])) if found else (),
        mig=_word(item.get("mig")) in ("true", "enabled", "on", "1", "yes"),
        mode=mode,
        uuid=_text(item.get("uuid")),
        memory=_amount(item.get("memory_gib")),
        used=_amount(item.get("memory_used_gib")),
        processes=processes if type(processes) is int and processes >= 0 else None,
    )


def _env(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {
        _text(key): "".join(c if c.isprintable() else " " for c in item)
        if isinstance(item, str)
        else _text(item)
        for key, item in value.items()
        if item is not None
    }


def _text(value: object) -> str:
    return "" if value is None else plain(value)


def _word(value: object) -> str:
    """Return a name in small letters; empty for none, null, false."""
    word = _text(value).lower()
    return "" if word in ("none", "no", "false", "0", "unknown", "n/a", "bare metal") else word


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _amount(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        amount = float(value)
    except OverflowError:
        return None
    return amount if math.isfinite(amount) and amount >= 0 else None
