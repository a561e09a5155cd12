"""What goes wrong around a learner: no memory, no disk, a lost GPU, a small machine."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
import torch
from nbclient import NotebookClient

import gpututor
from gpututor import Machine, doctor, exercises, machine, memory
from gpututor.simulator.errors import AcceleratorError, StoppedError

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
POSIX = pytest.mark.skipif(os.name != "posix", reason="limits of a process are POSIX's")
FULL = Path("/dev/full")  # Linux's disk without room


def hold(part: float) -> torch.Tensor:
    """Take so much of the free memory of the device."""
    free = torch.cuda.mem_get_info()[0]
    return torch.empty(int(part * free) >> 20, 1 << 20, dtype=torch.uint8, device="cuda")


# -- no memory -------------------------------------------------------------------------------


def test_an_exercise_on_a_full_gpu_says_what_to_do(simulated: Machine) -> None:
    solution = exercises.find("00-stopwatch").solution
    held = hold(0.99)
    verdict = gpututor.check("00-stopwatch", solution)
    assert not verdict and "OutOfMemoryError" in verdict.seen
    assert "delete tensors" in verdict.expected and "restart the kernel" in verdict.expected
    del held
    assert gpututor.check("00-stopwatch", solution)


def test_a_limit_on_a_full_gpu_says_what_to_do(simulated: Machine) -> None:
    held = hold(0.99)
    with pytest.raises(ValueError, match="delete tensors that earlier cells hold"):
        memory.limit(100 << 20).__enter__()
    del held
    with memory.limit(100 << 20):
        pass


def test_a_panel_goes_on_at_a_smaller_size(simulated: Machine) -> None:
    def product(size: int = 64) -> str:
        x = torch.ones(size, size, device="cuda")
        return f"{(x @ x)[0, 0].item():g}"

    panel = gpututor.explore(product, size=[64, 128, 4096])
    held = hold(0.9)
    with pytest.raises(torch.OutOfMemoryError):
        panel.set(size=4096)
    assert panel.error is not None and "CUDA out of memory" in panel.error
    assert panel.set(size=128) == "128" and panel.error is None
    del held


GIB = 1 << 30


@pytest.mark.parametrize(
    ("gpus", "free", "note"),
    [
        (2, (8 * GIB, GIB // 4), "cuda:1 has 256 MiB free"),
        (2, (8 * GIB, GIB), ""),
        (1, (8 * GIB,), ""),  # of the other nothing is asked
    ],
)
def test_a_real_gpu_that_others_have_filled_is_noted(
    monkeypatch: pytest.MonkeyPatch, gpus: int, free: tuple[int, ...], note: str
) -> None:
    gpu = SimpleNamespace(name="NVIDIA T4", total_memory=16 * GIB)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: gpu)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index: (free[index], 16 * GIB))
    found = machine._real(gpus)
    assert found.note.startswith(note) and bool(found.note) == bool(note)
    assert ("Note" in dict(found.rows())) == bool(note)
    if note:
        assert "cuda:0" not in found.note
        assert "nvidia-smi" in found.note and 'start(simulate="T4")' in found.note


#: What a lesson may say where there is no room: PyTorch's own error, the package's with what to
#: do, a fraction above 1, and that the cell before came to no result.
ROOMLESS = (
    "CUDA out of memory",
    "OutOfMemoryError",
    "delete tensors that earlier cells hold",
    "Invalid fraction value",
    "is not defined",
)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_lesson_on_a_full_gpu_goes_on_when_there_is_room(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nine tenths are held while it runs; what failed runs again when they are given back."""
    monkeypatch.setenv(machine.VARIABLE, "T4")
    cells = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    client = NotebookClient(
        nbformat.v4.new_notebook(cells=cells),
        timeout=120,
        allow_errors=True,
        resources={"metadata": {"path": str(path.parent)}},
    )

    def run(cell: Any) -> list[str]:
        client.nb.cells = [cell]
        client.execute_cell(cell, 0)
        return [o.ename + ": " + o.evalue for o in cell.outputs if o.output_type == "error"]

    def helper(source: str) -> None:
        assert not run(nbformat.v4.new_code_cell(source))

    expected = [cell.id for cell in cells if "raises-exception" in cell.metadata.get("tags", [])]
    failed = []
    with client.setup_kernel():
        for cell in cells:
            said = [] if cell.id == "install" else run(cell)
            if cell.id == "setup":
                helper(
                    "import torch as _torch\n_free = _torch.cuda.mem_get_info()[0]\n"
                    "_held = _torch.empty(_free * 9 // 10, dtype=_torch.uint8, device='cuda')"
                )
            if said and cell.id not in expected:
                failed.append(cell)
                assert any(text in said[0] for text in ROOMLESS), (cell.id, said)
        helper("del _held; _torch.cuda.empty_cache()")
        for cell in failed:
            assert not run(cell), (cell.id, cell.outputs[-1])


# -- no disk ---------------------------------------------------------------------------------

#: No file of this process can grow: what a full disk is to it.
NO_DISK = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
"""
ATTEMPTS = """
import tempfile, torch, gpututor
from gpututor import child, doctor, figures, parallel
folder = tempfile.mkdtemp()
script = folder + "/script.py"
with open(script, "w") as file:
    file.write("print('hello')")
gpututor.start(simulate="T4")
x = torch.ones(3, device="cuda")
{no_disk}
for attempt in (
    lambda: child.run("y = 1"),
    lambda: parallel.torchrun(script, processes=1),
    lambda: doctor.Facts().save(folder + "/facts.json"),
    lambda: torch.cuda.memory._dump_snapshot(folder + "/snapshot.pickle"),
    lambda: torch.save(x, folder + "/x.pt"),
    lambda: (x + 1).tolist(),
    lambda: type(figures.bars({{"a": 1}}, title="t", x=("a", "b"))).__name__,
):
    try:
        print(attempt())
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0], "...", str(error).splitlines()[-1])
"""


@POSIX
def test_a_full_disk_is_said_and_spoils_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ATTEMPTS.format(no_disk=NO_DISK)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    child, torchrun, facts, snapshot, saved, values, figure = done.stdout.splitlines()
    assert child.startswith("RuntimeError the process ended with status 1 before it could report")
    assert "File too large" in child
    assert torchrun.startswith("RuntimeError script.py failed")
    assert torchrun.partition(" ... ")[2].startswith("FileNotFoundError")
    assert "OSError [Errno 27] File too large" in facts and "OSError [Errno 27]" in snapshot
    assert saved.startswith("RuntimeError")  # PyTorch's own words
    assert (values, figure) == ("[2.0, 2.0, 2.0]", "Picture")


@POSIX
def test_no_folder_for_temporary_files_is_one_line() -> None:
    code = f"{NO_DISK}\nimport gpututor\ngpututor.start(simulate='T4')"
    clean = {k: v for k, v in os.environ.items() if k != "TORCHINDUCTOR_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={**clean, "TMPDIR": "/none/of/these"},
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith("OSError: PyTorch needs a folder for temporary files: No usable")
    assert "set the variable TMPDIR" in last


@pytest.mark.skipif(not FULL.exists(), reason="Linux has this full disk")
def test_the_doctor_does_not_take_a_full_disk_for_a_broken_torch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: FULL.open("r+b", buffering=0))
    said = doctor.collect(seconds=5).tiny_op or ""
    assert "did not start" in said and "No space left" in said


def test_pages_and_bundles_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import bundle

    below_a_file = tmp_path / "file" / "course.zip"
    below_a_file.parent.write_text("not a folder", encoding="utf-8")
    monkeypatch.setattr(bundle, "_pip", lambda *_: None)
    monkeypatch.setattr(bundle, "wheel", lambda folder: folder.mkdir())
    assert bundle.main([str(below_a_file)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("no archive was made: ") and said.count("\n") == 1
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "pages.py"), str(below_a_file)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert "the pages could not be written" in done.stderr and "Free some space" in done.stderr


def test_half_an_archive_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import bundle

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bundle, "_pip", lambda *_: None)
    monkeypatch.setattr(bundle, "wheel", lambda folder: folder.mkdir())
    assert bundle.main([str(tmp_path / "course.zip")]) == 0
    (tmp_path / "course.zip").write_text("the one before", encoding="utf-8")
    monkeypatch.setattr(bundle.zipfile.ZipFile, "write", full)
    assert bundle.main([str(tmp_path / "course.zip")]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["course.zip"]
    assert (tmp_path / "course.zip").read_text(encoding="utf-8") == "the one before"


# -- no tools --------------------------------------------------------------------------------


@pytest.mark.skipif(
    sys.platform == "win32" or Path("/usr/lib/wsl").exists(), reason="it lies outside the PATH"
)
def test_without_nvidia_smi_all_but_one_fact_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, simulate: Callable[[str], Machine]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    facts = doctor.collect()
    assert facts.nvidia_smi_present is False
    assert facts.torch_version == torch.__version__ and facts.tiny_op
    simulate("T4")
    assert torch.ones(2, device="cuda").sum().item() == 2


def test_no_browser_is_opened() -> None:
    for path in (ROOT / "gpututor").rglob("*.py"):
        assert "webbrowser" not in path.read_text(encoding="utf-8"), path


# -- a lost GPU ------------------------------------------------------------------------------


def lose() -> None:
    """Let a kernel's assertion fail: no device of the process works after it."""
    torch.arange(4, device="cuda")[torch.tensor([9], device="cuda")]
    with pytest.raises(AcceleratorError, match="CUDA error: device-side assert triggered"):
        torch.cuda.synchronize()


#: What a lesson does next, on this device or on another.
NEXT: dict[str, Callable[[torch.Tensor], Any]] = {
    "compute": lambda x: x + 1,
    "make": lambda x: torch.zeros(3, device="cuda:0"),
    "make on the other": lambda x: torch.zeros(3, device="cuda:1"),
    "read": lambda x: x.tolist(),
    "show": repr,
    "move": lambda x: x.cpu(),
    "wait": lambda x: torch.cuda.synchronize(),
    "wait for a stream": lambda x: torch.cuda.current_stream().synchronize(),
    "mark": lambda x: torch.cuda.Event().record(),
    "draw": lambda x: torch.rand(3, device="cuda"),
    "train": lambda x: x.requires_grad_().sum().backward(),
}


def test_a_lost_gpu_answers_everything_with_its_error(two_devices: Machine) -> None:
    tensors = [torch.ones(3, device=device) for device in ("cuda:0", "cuda:1")]
    lose()
    for name, act in NEXT.items():
        for x in tensors:
            with pytest.raises(AcceleratorError, match="device-side assert"):
                act(x)
                pytest.fail(name)


@pytest.mark.parametrize("stop", [True, False])
def test_starting_again_gives_a_gpu_that_works(
    two_devices: Machine, stop: bool, caplog: pytest.LogCaptureFixture
) -> None:
    x = torch.ones(3, device="cuda")
    lose()
    if stop:
        gpututor.stop()
    with caplog.at_level(logging.WARNING):
        found = gpututor.start(simulate="T4x2")
    assert torch.ones(3, device="cuda:1").sum().item() == 3
    assert ("failed: device-side assert triggered" in found.reason) == (not stop)
    with pytest.raises(StoppedError, match="make it again"):
        x.sum()
    assert gpututor.start(simulate="T4x2") is found  # it has not failed: nothing changes


# -- a small machine -------------------------------------------------------------------------

MEMORY = 2 << 30  # bytes that the machine has

LAST = """
import os
# Not ru_maxrss, which begins with what the process held that started this one.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
int(peak.split()[1]), os.sched_getaffinity(0)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Linux can keep a process on one core")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_lesson_on_one_core_and_in_little_memory(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(machine.VARIABLE, "T4")
    notebook = nbformat.read(path, 4)
    notebook.cells.append(nbformat.v4.new_code_cell(LAST))
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        NotebookClient(
            notebook, timeout=120, resources={"metadata": {"path": str(path.parent)}}
        ).execute()
    finally:
        os.sched_setaffinity(0, cores)
    kib, used = eval(notebook.cells[-1].outputs[0].data["text/plain"])
    assert len(used) == 1
    print(f"{path.stem}: {kib / 1024:.0f} MiB at the peak")
    # A quarter is for the system and JupyterLab.
    assert kib * 1024 < 0.75 * MEMORY
