"""What lesson 01 says is so: on recorded machines, and on a real GPU where there is one."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import torch

from gpututor import diagrams, doctor
from gpututor.doctor import versions
from gpututor.doctor.finding import VERDICTS
from gpututor.exercises import lesson_01
from gpututor.exercises.solutions import lesson_01 as solutions

NOTEBOOK = Path(__file__).parents[1] / "notebooks/01_is_there_a_gpu.ipynb"
CELLS = {cell.id: cell.source for cell in nbformat.read(NOTEBOOK, as_version=4).cells}
_REAL = torch.cuda.is_available() and not os.environ.get("GPUTUTOR_SIMULATE")
real = pytest.mark.skipif(not (_REAL and torch.version.cuda), reason="there is no NVIDIA GPU")


def fresh(code: str, **variables: str) -> str:
    """Return what code prints in a new Python process."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_core_machines_have_every_verdict() -> None:
    machines = doctor.machines()
    names = re.findall(r'"(.+?)"', CELLS["six"])
    verdicts = {doctor.diagnose(machines[name].facts)[0].verdict for name in names}
    assert len(names) == 6 and verdicts == set(VERDICTS)
    assert f"There are {len(machines)} machines" in CELLS["toolkit-means"]
    checked = len(machines) - len(lesson_01.LEFT_OUT)
    assert f"{checked} machines of the clinic" in CELLS["exercise-order-task"]
    assert f"{len(lesson_01.described())} machines, 3 of" in CELLS["takeaways"]


def test_machines_that_the_prose_names_exist() -> None:
    prose = "\n".join(text for name, text in CELLS.items() if name.endswith(("-means", "-text")))
    named = set(re.findall(r"\(\*(.+?)\*(?:, \*(.+?)\*)?\)", prose))
    assert len(named) >= 5
    assert {name for pair in named for name in pair if name} <= set(doctor.machines())


def test_the_picture_has_the_doctors_verdicts_in_their_order() -> None:
    assert (*(verdict for verdict, _ in diagrams.FIVE_CHECKS), "fine") == VERDICTS


def test_the_lessons_checks_are_those_of_the_solution() -> None:
    assert CELLS["checks"] in inspect.getsource(solutions)


def test_the_lessons_rules_are_the_doctors() -> None:
    names: dict[str, object] = {}
    exec(CELLS["fits"].rpartition("\n\n")[0], names)
    exec(CELLS["runs"].rpartition("\n\n")[0], names)
    fits, runs = names["fits"], names["runs"]
    assert callable(fits) and callable(runs)
    numbers = [(major, minor) for major in (10, 11, 12, 13) for minor in (0, 2, 8)]
    for driver in numbers:
        for build in numbers:
            assert fits(driver, build) == versions.driver_fits(build, driver, (), "linux")
    boards = {(8, 7), (7, 2), (11, 0), (10, 1)}  # the exceptions that the lesson names
    capabilities = [(7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0), (12, 1)]
    for code in ("sm_50", "sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"):
        for capability in capabilities:
            assert capability not in boards
            assert runs(code, capability) == versions.runs_on(code, capability)


def test_the_doctor_says_that_a_missing_number_is_no_fault() -> None:
    machines = doctor.machines()
    said = {name: doctor.diagnose(machines[name].facts)[0].evidence for name in machines}
    assert "the build has no sm_89, and needs none" in " ".join(said["the missing number"])
    assert "needs none" not in " ".join(said["a rented H200"])
    assert "compute mode exclusive_process" in repr(doctor.Report(machines["the shared GPU"].facts))


@real
def test_empty_hides_every_gpu() -> None:
    ask = "import torch; print(torch.cuda.is_available(), torch.cuda.device_count())"
    assert fresh(ask, CUDA_VISIBLE_DEVICES="") == "False 0"
    assert fresh(ask, CUDA_VISIBLE_DEVICES="-1") == "False 0"


@real
def test_the_variable_is_read_once() -> None:
    code = """
import os, torch
torch.ones(1, device="cuda")
before = torch.cuda.device_count()
os.environ["CUDA_VISIBLE_DEVICES"] = ""
print(torch.cuda.device_count() == before > 0, torch.ones(1, device="cuda").item())
"""
    assert fresh(code) == "True 1.0"


@real
@pytest.mark.parametrize(("variable", "status"), [("", 1), ("1", 0)])
def test_asking_is_available_spoils_a_fork(variable: str, status: int) -> None:
    code = """
import multiprocessing, torch
assert torch.cuda.is_available() and not torch.cuda.is_initialized()
child = multiprocessing.get_context("fork").Process(target=torch.cuda.init)
child.start()
child.join()
print(child.exitcode)
"""
    environment = {"PYTORCH_NVML_BASED_CUDA_CHECK": variable} if variable else {}
    assert fresh(code, **environment) == str(status)
