"""Every program answers as a real GPU did: on the simulator, and on CUDA where there is one.

The recordings in ``tests/data`` say on what they were made, and when.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch

from .differences import BY_NATURE, BY_VERSION, NOT_YET, UNRECORDED
from .programs import PROGRAMS

DATA = Path(__file__).parents[1] / "data"
LIMIT = 15.0  # seconds for one program
RECORD = Path(__file__).with_name("record.py")
BEHAVIOURS_FILE = DATA / "behaviours_h200.json"
LONGEST = 5.0  # seconds in which a program has to be done once it runs

BEHAVIOURS: dict[str, Any] = json.loads(BEHAVIOURS_FILE.read_text())
RECORDED: dict[str, Any] = json.loads(
    gzip.decompress((DATA / "conformance_h200.json.gz").read_bytes())
)["programs"]

#: name -> (code, devices it needs, what a real GPU printed)
ALL: dict[str, tuple[str, int, str]] = {
    p.name: (p.code, p.gpus, RECORDED[p.name]["out"]) for p in PROGRAMS if p.name in RECORDED
}
ALL |= {f"behaviour_{k}": (v["code"], v["gpus"], v["out"]) for k, v in BEHAVIOURS.items()}

#: Where the simulated GPU needs more memory than it has by default, or two devices.
_SPEC = "T4x2@4GiB"
_REAL = torch.cuda.is_available() and not os.environ.get("GPUTUTOR_SIMULATE")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs run in forks")


@functools.cache
def _results(device: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Run all programs on `device`, in forks of a process that has not used torch yet."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording.json"
        command = [sys.executable, str(RECORD), str(path), "--also", str(BEHAVIOURS_FILE)]
        if device == "cuda":
            command += ["--limit", "90"]
        else:
            command += ["--simulate", _SPEC, "--workers", "3", "--limit", str(LIMIT)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
        assert path.exists(), done.stdout + done.stderr
        recording = json.loads(path.read_text())
    return recording["programs"], recording["header"]["failed"]


def _plain(text: str) -> str:
    """Leave out what differs by nature: the names of kernels, handles, amounts of memory."""
    text = re.sub(r" ?\(when checking argument.*", "", text)
    text = re.sub(r"cuda_stream=0x[1-9a-f][0-9a-f]*", "cuda_stream=HANDLE", text)
    if "CUDA out of memory" in text:
        text = re.sub(r" of which .* this process has", " ... this process has", text)
        text = re.sub(r"[\d.]+ (bytes|KiB|MiB|GiB)", "SIZE", text)
        text = re.sub(r"Process \d+ has SIZE memory in use. ", "", text)  # a shared GPU
    return text.strip()


@pytest.mark.parametrize("device", ["simulated", *(["cuda"] if _REAL else [])])
@pytest.mark.parametrize("name", ALL)
def test_program(name: str, device: str) -> None:
    code, gpus, expected = ALL[name]
    if name in BY_NATURE and device == "simulated":
        pytest.skip(BY_NATURE[name])
    if name in BY_VERSION and not torch.__version__.startswith("2.11"):
        pytest.skip(BY_VERSION[name])
    if name in NOT_YET and device == "simulated":
        pytest.xfail(NOT_YET[name])
    if device == "cuda" and gpus > torch.cuda.device_count():
        pytest.skip(f"needs {gpus} devices")
    results, failures = _results(device)
    assert name not in failures, failures.get(name)
    assert _plain(results[name]["out"]) == _plain(expected), code
    if device == "simulated":  # a real device's first use takes seconds of its own
        assert results[name]["seconds"] < LONGEST


def test_every_difference_is_of_a_program() -> None:
    assert not (BY_NATURE.keys() | BY_VERSION.keys() | NOT_YET.keys()) - ALL.keys()


def test_every_program_is_recorded_or_named() -> None:
    assert {p.name for p in PROGRAMS} - RECORDED.keys() == UNRECORDED


def test_every_group_has_programs() -> None:
    groups = {p.group for p in PROGRAMS}
    assert groups >= {
        "errors_mixed", "errors_api", "movement", "values", "random", "streams",
        "asynchrony", "memory_simple", "system",
    }  # fmt: skip
