"""Collecting touches nothing in the caller, ends in time, and turns every failure into a fact."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gpututor import Machine, doctor
from gpututor.doctor import Facts, diagnose

collecting = importlib.import_module("gpututor.doctor.collect")
ROOT = Path(__file__).parents[1]
GPU = next(Path("/dev").glob("nvidia[0-9]*"), None) is not None
HANG = "import time; time.sleep(600)"


def probing(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(collecting, "_command", lambda name: [sys.executable, "-c", code])


def run(
    code: str, tmp_path: Path, modules: dict[str, str] | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run Python where some modules are replaced by the given text."""
    for name, text in (modules or {}).items():
        (tmp_path / f"{name}.py").write_text(text)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, **env},
    )


COMMAND = "import sys; from gpututor.__main__ import main; sys.exit(main(['doctor', '--json']))"


def test_this_machine() -> None:
    facts = doctor.collect()
    assert facts.torch_version == torch.__version__
    assert facts.torch_cuda == torch.version.cuda and facts.torch_hip == torch.version.hip
    assert facts.tiny_op and facts.tiny_op != "timeout"
    assert isinstance(facts.is_available, bool) and isinstance(facts.device_count, int)
    assert facts.cuda_initialized_before_env is False
    assert facts.stopped_in is None
    assert Facts.from_json(facts.to_json()) == facts


def test_torch_is_not_initialised_and_not_imported(tmp_path: Path) -> None:
    code = (
        "import sys, gpututor, gpututor.doctor; gpututor.doctor.collect(); "
        "assert 'torch' not in sys.modules; import torch; gpututor.doctor.collect(); "
        "assert not torch.cuda.is_initialized()"
    )
    done = run(code, tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_simulated_gpu_does_not_count(simulate: Callable[[str], Machine]) -> None:
    simulate("T4x2")
    assert torch.cuda.device_count() == 2
    facts = doctor.collect()
    assert "Simulated" not in facts.to_json()
    assert GPU or facts.device_count == 0


def test_probes_that_hang_end_in_time_with_all_they_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    child = f"import os; print(os.getpid(), flush=True); {HANG}"
    code = (
        "import signal, subprocess, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        f"log = open({str(tmp_path / 'pids')!r}, 'a'); "
        f"subprocess.run([sys.executable, '-c', {child!r}], stdout=log)"
    )
    probing(monkeypatch, code)
    began = time.monotonic()
    facts = doctor.collect(seconds=3)
    assert time.monotonic() - began < 8
    assert facts.tiny_op == "timeout"
    assert collecting.SECONDS + 2 < 20
    if os.name == "posix":
        for pid in (tmp_path / "pids").read_text().split():
            end = time.monotonic() + 10
            while alive(int(pid)):
                assert time.monotonic() < end, "a process that the probe started still runs"


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with contextlib.suppress(OSError):  # killed, and nobody has asked for its status yet
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


def test_a_driver_that_hangs_keeps_what_was_learnt_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = [
        {"torch_version": "2.8.0+cu128", "torch_cuda": "12.8", "stopped_in": "import"},
        {"stopped_in": "is_available"},
    ]
    tell = "\n".join(f"print({json.dumps(line)!r}, flush=True)" for line in lines)
    probing(monkeypatch, f"{tell}\n{HANG}")
    facts = doctor.collect(seconds=3)
    assert (facts.torch_version, facts.tiny_op) == ("2.8.0+cu128", "timeout")
    assert facts.stopped_in == "is_available"
    facts.container, facts.platform, facts.scheduler, facts.pci_gpus = "none", "none", "none", None
    facts.nvidia_smi_present = facts.device_nodes_present = True
    facts.driver_cuda, facts.devices, facts.arch_list = "12.8", [{"name": "Tesla T4"}], ["sm_75"]
    facts.env = {}  # a test may run with some of its machine's GPUs hidden
    assert diagnose(facts)[0].verdict == "usability"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise SystemExit(3)", "exit status 3"),
        ("import os; os.abort()", "SIGABRT" if os.name == "posix" else "exit status"),
        ("print('no JSON'); print('[1, 2]'); print('5')", "exit status 0"),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\xfe\\x00{')", "exit status 0"),
        ("print('x' * 5_000_000)", "exit status 0"),
    ],
)
def test_probes_that_fail_are_facts(monkeypatch: pytest.MonkeyPatch, code: str, said: str) -> None:
    probing(monkeypatch, code)
    assert said in (doctor.collect().tiny_op or "")


def test_no_probe_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "_command", lambda name: ["/none/of/these"])
    assert "did not start" in (doctor.collect().tiny_op or "")


def test_every_look_at_the_system_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no")

    for name in ("_system", "_place", "_installed_torch", "_bus", "_environment", "_late"):
        monkeypatch.setattr(collecting, name, fail)
    probing(monkeypatch, "raise SystemExit(1)")
    assert diagnose(doctor.collect())


@pytest.mark.parametrize(
    ("torch_file", "verdict", "said"),
    [
        ("raise ModuleNotFoundError(\"No module named 'torch'\")", "build", "not installed"),
        (
            "raise OSError('/home/ada/torch/lib/libcudart.so.12: cannot open shared object file')",
            "build",
            "cannot be loaded",
        ),
        ("import os; os.abort()", "build", "cannot be loaded"),
        ("x = 1", "build", "Something else"),
        ("raise KeyboardInterrupt", None, ""),
    ],
)
def test_a_torch_that_cannot_be_imported_is_a_finding(
    tmp_path: Path, torch_file: str, verdict: str | None, said: str
) -> None:
    done = run(COMMAND, tmp_path, {"torch": torch_file})
    assert done.returncode == 1 and not done.stderr, done.stderr
    answer = json.loads(done.stdout)
    assert "ada" not in done.stdout
    if verdict is not None and os.name == "posix":
        assert answer["verdict"] == verdict
        assert said in answer["findings"][0]["summary"]


def test_a_torch_and_a_driver_that_hang(tmp_path: Path) -> None:
    began = time.monotonic()
    code = COMMAND.replace("import sys;", "import sys, gpututor.doctor;")
    done = run(code, tmp_path, {"torch": HANG, "pynvml": HANG})
    assert time.monotonic() - began < 20
    assert done.returncode == 1 and not done.stderr, done.stderr
    answer = json.loads(done.stdout)
    assert answer["facts"]["tiny_op"] == "timeout" and answer["facts"]["stopped_in"] == "import"
    assert "Importing PyTorch" in " ".join(item["summary"] for item in answer["findings"])


NVIDIA = """
NVMLError_LibraryNotFound = type("NVMLError_LibraryNotFound", (Exception,), {})
def nvmlInit(): pass
def nvmlSystemGetDriverVersion(): return b"570.133.20"
def nvmlSystemGetCudaDriverVersion_v2(): return 12080
def nvmlDeviceGetCount(): return 1
def nvmlDeviceGetHandleByIndex(index): return index
def nvmlDeviceGetName(handle): return "Tesla T4"
def nvmlDeviceGetUUID(handle): return "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
def nvmlDeviceGetCudaComputeCapability(handle): return (7, 5)
def nvmlDeviceGetComputeMode(handle): return 3
def nvmlDeviceGetMigMode(handle): raise RuntimeError("not supported")
"""


def test_the_drivers_list_is_read(tmp_path: Path) -> None:
    answer = json.loads(run(COMMAND, tmp_path, {"pynvml": NVIDIA}).stdout)
    facts = answer["facts"]
    assert (facts["driver_version"], facts["driver_cuda"]) == ("570.133.20", "12.8")
    assert facts["devices"] == [
        {
            "name": "Tesla T4",
            "capability": "7.5",
            "memory_gib": None,
            "mig": None,
            "compute_mode": "Exclusive_Process",
            "uuid": "GPU-8932f937",
            "memory_used_gib": None,
            "processes": None,
        }
    ]


@pytest.mark.skipif(os.name != "posix", reason="a program is made of a script")
def test_nvidia_smi_answers_where_its_library_has_no_binding(tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    row = "570.133.20, Tesla T4, 7.5, 15360, 512, [N/A], Default, GPU-8932f937-d72c-4106-c12f"
    program.write_text(
        f"#!/bin/sh\nif [ $# = 0 ]; then echo '| CUDA Version: 12.8 |'; else echo '{row}'; fi\n"
    )
    program.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    done = run(COMMAND, tmp_path, {"pynvml": "raise ImportError"}, PATH=path)
    facts = json.loads(done.stdout)["facts"]
    assert (facts["driver_version"], facts["driver_cuda"]) == ("570.133.20", "12.8")
    assert facts["devices"][0]["memory_gib"] == 15.0 and facts["nvidia_smi_present"] is True


def test_nothing_personal_is_kept(tmp_path: Path) -> None:
    import getpass
    import platform

    text = run(COMMAND, tmp_path, CUDA_VISIBLE_DEVICES="GPU-8932f937-d72c-4106-c12f-20bd9f").stdout
    facts = json.loads(text)["facts"]
    assert facts["env"]["CUDA_VISIBLE_DEVICES"] == "GPU-8932f937"
    values = json.dumps(facts)
    words = set(re.split(r"[^\w.-]+", values))
    assert platform.node() not in words and str(Path.home()) + "/" not in values
    assert str(tmp_path) not in values
    if getpass.getuser() not in ("root", "docker"):
        assert getpass.getuser() not in words


@pytest.mark.skipif(not GPU, reason="needs a real GPU")
def test_cuda_stays_untouched_and_fork_usable(tmp_path: Path) -> None:
    code = """
import multiprocessing, sys, torch
from gpututor import doctor
assert doctor.report().usable
assert not torch.cuda.is_initialized()
process = multiprocessing.get_context("fork").Process(target=torch.cuda.init)
process.start()
process.join(60)
sys.exit(process.exitcode)
"""
    done = run(code, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not GPU, reason="needs a real GPU")
@pytest.mark.parametrize("value", [None, "", "-1", "7", "0,9", "GPU-bad"])
def test_the_variable_is_named_where_it_hides_a_real_gpu(tmp_path: Path, value: str | None) -> None:
    env = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    done = run(COMMAND, tmp_path, **env)
    answer = json.loads(done.stdout)
    works = value in (None, "0,9")
    assert done.returncode == (0 if works else 1)
    assert answer["verdict"] == ("fine" if works else "visibility")
    assert works or f"CUDA_VISIBLE_DEVICES={value!r}" in answer["findings"][0]["evidence"]


@pytest.mark.skipif(not GPU, reason="needs a real GPU")
def test_a_variable_set_too_late_is_noticed(tmp_path: Path) -> None:
    code = """
import os, torch
torch.cuda.is_available()
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
from gpututor import doctor
print(doctor.report().to_json())
"""
    answer = json.loads(run(code, tmp_path).stdout)
    assert answer["facts"]["cuda_initialized_before_env"] is True
    assert answer["verdict"] == "visibility" and "too late" in answer["findings"][0]["summary"]
