"""What is known about a machine: plain data that goes to JSON and comes back."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

MOST_BYTES = 1 << 20  # a file of facts has a few thousand

_TEXT = (str, int, float)  # a version may come as a number
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "os": ((str,), "text"),
    "wsl": ((bool, str, int), "true or false"),
    "container": ((str, bool), "text, or false"),
    "platform": ((str,), "text"),
    "torch_version": (_TEXT, "text"),
    "torch_cuda": (_TEXT, "text"),
    "torch_hip": (_TEXT, "text"),
    "arch_list": ((list,), "a list"),
    "driver_version": (_TEXT, "text"),
    "driver_cuda": (_TEXT, "text"),
    "nvidia_smi_present": ((bool,), "true or false"),
    "devices": ((list,), "a list"),
    "device_nodes_present": ((bool,), "true or false"),
    "env": ((dict,), "an object"),
    "cuda_initialized_before_env": ((bool,), "true or false"),
    "is_available": ((bool,), "true or false"),
    "device_count": ((int,), "a whole number"),
    "init_error": ((str,), "text"),
    "tiny_op": ((str,), "text"),
}


class FactsError(ValueError):
    """A text or a file that holds no facts; the message is one line."""


@dataclass
class Facts:
    """What is known about one machine. None means unknown.

    The first group of fields is all that a diagnosis needs. The second only betters its advice.

    Attributes
    ----------
    os : str
        Operating system and processor, such as ``"Linux x86_64"``.
    wsl : bool
        Whether this is Linux inside Windows.
    container : str
        ``"docker"``, ``"podman"``, ``"kubernetes"``, ``"apptainer"``, ``"lxc"`` or ``"none"``.
    platform : str
        ``"colab"``, ``"kaggle"`` or ``"none"``.
    torch_version, torch_cuda, torch_hip : str
        PyTorch's version, and the CUDA or ROCm (HIP) version that it was built with.
    arch_list : list of str
        ``torch.cuda.get_arch_list()``.
    driver_version, driver_cuda : str
        NVIDIA's driver, and the highest CUDA version that it runs.
    nvidia_smi_present : bool
        Whether the program is there.
    devices : list of dict
        What the driver lists, whatever the variables hide: ``name``, ``capability`` (``"8.9"``),
        ``memory_gib``, ``mig``, ``compute_mode``; also ``uuid`` (its first eight digits),
        ``memory_used_gib`` and ``processes`` (how many use it).
    device_nodes_present : bool
        Whether the driver's device files are there. Unknown where a system has none.
    env : dict
        The variables that choose devices.
    cuda_initialized_before_env : bool
        Whether the asking process had initialised CUDA before these variables got their value.
    is_available : bool
        ``torch.cuda.is_available()``.
    device_count : int
        ``torch.cuda.device_count()``.
    init_error : str
        What importing PyTorch or initialising CUDA said.
    tiny_op : str
        ``"ok"``, ``"timeout"``, or the error of a small addition on the device.
    machine : str
        The processor, such as ``"aarch64"``.
    python_version : str
        Such as ``"3.13"``.
    jetson, conda : bool
        Whether this is an NVIDIA Jetson; whether Python is conda's.
    scheduler : str
        ``"slurm"`` or ``"none"``.
    pci_gpus : list of str
        The makers of the graphics processors on the bus: ``"nvidia"``, ``"amd"``, ``"intel"``.
    mps, xpu : bool
        Whether PyTorch can use an Apple or an Intel GPU.
    nvml_error : str
        What NVIDIA's management library said.
    stopped_in : str
        The step during which a probe ran out of time.
    source : str
        Where these facts come from, for a recorded machine.
    """

    os: str | None = None
    wsl: bool | None = None
    container: str | None = None
    platform: str | None = None
    torch_version: str | None = None
    torch_cuda: str | None = None
    torch_hip: str | None = None
    arch_list: list[str] | None = None
    driver_version: str | None = None
    driver_cuda: str | None = None
    nvidia_smi_present: bool | None = None
    devices: list[dict[str, Any]] | None = None
    device_nodes_present: bool | None = None
    env: dict[str, str] | None = None
    cuda_initialized_before_env: bool | None = None
    is_available: bool | None = None
    device_count: int | None = None
    init_error: str | None = None
    tiny_op: str | None = None

    machine: str | None = None
    python_version: str | None = None
    jetson: bool | None = None
    conda: bool | None = None
    scheduler: str | None = None
    pci_gpus: list[str] | None = None
    mps: bool | None = None
    xpu: bool | None = None
    nvml_error: str | None = None
    stopped_in: str | None = None
    source: str | None = None

    def to_json(self) -> str:
        """Return the facts as JSON, readable by `from_json`."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=True, default=plain) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the facts to a file.

        Raises
        ------
        OSError
            When the file cannot be written.
        """
        Path(path).write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def from_json(cls, text: str) -> Facts:
        """Read facts from JSON.

        Parameters
        ----------
        text : str
            An object with some of the keys above, or one that holds such an object under
            ``"facts"``, as ``python -m gpututor doctor --json`` writes it. Other keys are ignored.

        Raises
        ------
        FactsError
            When it is no such object; one line says what is wrong.
        """
        if not isinstance(text, str):
            raise TypeError(f"facts: give JSON as text, not {text!r:.60}")
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise FactsError(f"not JSON: {error.msg} in line {error.lineno}") from None
        except (RecursionError, ValueError) as error:
            raise FactsError(f"not JSON that can be read: {type(error).__name__}") from None
        if isinstance(data, dict) and isinstance(data.get("facts"), dict):
            data = data["facts"]
        if not isinstance(data, dict):
            raise FactsError(f"facts are a JSON object, not {_called(data)}")
        return cls.from_dict(data)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Facts:
        """Read facts from a mapping with some of the keys above.

        Raises
        ------
        FactsError
            When none of them is there, or one has the wrong type.
        """
        if not isinstance(data, Mapping):
            raise TypeError(f"facts: give a mapping of keys to values, not {data!r:.60}")
        known = {item.name for item in fields(cls)}
        given = {key: value for key, value in data.items() if key in known and value is not None}
        if not any(key in _KINDS for key in data):
            raise FactsError("no facts: none of the keys is one, such as torch_version or devices")
        for key, value in given.items():
            if key not in _KINDS:
                continue
            types, wanted = _KINDS[key]
            wrong = not isinstance(value, types) or (isinstance(value, bool) and bool not in types)
            if wrong:
                raise FactsError(f"{key} must be {wanted} or null, not {_called(value)}")
        for item in given.get("devices", ()):
            if not isinstance(item, dict):
                raise FactsError(f"each of devices must be an object, not {_called(item)}")
        return cls(**given)

    @classmethod
    def load(cls, path: str | Path) -> Facts:
        """Read facts from a file.

        Raises
        ------
        FactsError
            When it cannot be read or holds no facts; one line says which file and why.
        """
        if not isinstance(path, (str, Path)):
            raise TypeError(f"facts: give the path of a file, not {path!r:.60}")
        name = Path(path).name or str(path)
        try:
            if not Path(path).is_file():
                why = "is no file" if Path(path).exists() else "is not there"
                raise FactsError(why)
            if Path(path).stat().st_size > MOST_BYTES:
                raise FactsError("is too large for a file of facts")
            return cls.from_json(Path(path).read_text(encoding="utf-8-sig"))
        except UnicodeDecodeError:
            raise FactsError(f"{plain(name):.60}: not text in UTF-8") from None
        except OSError as error:
            raise FactsError(f"{plain(name):.60}: {error.strerror or 'cannot be read'}") from None
        except (FactsError, ValueError) as error:
            raise FactsError(f"{plain(name):.60}: {plain(str(error))}") from None


def scrub(text: str) -> str:
    """Return an error's text without what is personal: paths become names of files.

    Only the lines that say something are kept, and no more than 600 characters.
    """
    text = re.sub(r"(?m)^\s*File \".*$|^Traceback .*$", "", text)
    text = anonymous(text)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return " ".join(line for line in lines if line)[:600]


def anonymous(text: str) -> str:
    """Return a text with file names for paths, and a GPU's id cut to its first digits."""
    text = re.sub(r"(?i)/(?:home|users)/[^/\s:'\"]+", "", text)
    text = re.sub(r"(?i)\\users\\[^\\/:*?\"<>|\r\n]+(?=\\)|\\users\\[^\\/\s\"]+", "", text)
    text = re.sub(r"[A-Za-z]:\\(?:[^\\/:*?\"<>|\r\n]+\\)*", "", text)
    text = re.sub(r"(?<![\w.:/])~?/(?:[^/\s:'\"]+/)+", "", text)
    return re.sub(r"\b((?:GPU|MIG)-[0-9a-fA-F]{8})-[0-9a-fA-F-]+", r"\1", text)


def plain(value: object) -> str:
    """Return text that is safe on a terminal: one line, no control characters."""
    try:
        text = str(value)
    except Exception:  # absurd facts may hold anything
        text = f"<{type(value).__name__}>"
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _called(value: object) -> str:
    names = {bool: "true or false", str: "text", list: "a list", dict: "an object"}
    if isinstance(value, float) and not math.isfinite(value):
        return "a number without end"
    return names.get(type(value), "a number" if isinstance(value, (int, float)) else "null")
