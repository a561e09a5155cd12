"""`start` says which machine a lesson runs on, and refuses wrong wishes in one line."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest
import torch

import gpututor
from gpututor import machine


@pytest.fixture(autouse=True)
def _stopped(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.delenv(machine.VARIABLE, raising=False)
    gpututor.stop()
    yield
    gpututor.stop()


def test_without_a_gpu_it_simulates_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with caplog.at_level(logging.WARNING):
        found = gpututor.start()
    assert found.simulated and found.devices == ("Simulated T4 (1/50 speed)",)
    assert "simulated" in caplog.text
    assert "Simulated T4 (1/50 speed)" in repr(found)
    assert "divided by 50" in found._repr_html_()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a real GPU")
def test_a_real_gpu_is_used_as_it_is() -> None:
    before = {name: id(value) for name, value in vars(torch.cuda).items()}
    zeros = torch.zeros
    found = gpututor.start()
    assert not found.simulated and torch.cuda.get_device_name(0) == found.devices[0]
    assert torch.zeros is zeros and before.keys() <= vars(torch.cuda).keys()
    assert torch.ones(2, device="cuda").sum().item() == 2
    both = gpututor.start(gpus=torch.cuda.device_count() + 1)
    assert both.simulated and "needs" in both.reason


@pytest.mark.parametrize(
    ("wish", "count", "memory"),
    [("T4x2", 2, 1 << 30), ("t4x2@4GiB", 2, 4 << 30), ("H200x1@140GiB", 1, 140 << 30)],
)
def test_the_variable_chooses(
    monkeypatch: pytest.MonkeyPatch, wish: str, count: int, memory: int
) -> None:
    monkeypatch.setenv(machine.VARIABLE, wish)
    found = gpututor.start()
    assert torch.cuda.device_count() == count == len(found.devices)
    assert torch.cuda.get_device_properties(count - 1).total_memory == memory
    assert machine.VARIABLE in found.reason


def test_a_lesson_gets_the_devices_it_needs() -> None:
    assert len(gpututor.start(gpus=2, simulate="T4").devices) == 2
    assert len(gpututor.start(gpus=1, simulate="L4x3").devices) == 3


@pytest.mark.parametrize("wish", ["T5", "T4x0", "T4x", "x2", "T4@", "T4@0GiB", "", "T4x2x2", "  "])
def test_a_wrong_wish_names_the_profiles(wish: str) -> None:
    with pytest.raises(ValueError, match="T4, L4, A100, H100, H200") as caught:
        gpututor.start(simulate=wish)
    assert "\n" not in str(caught.value)


def test_a_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(machine.VARIABLE, "GTX970")
    with pytest.raises(ValueError, match=machine.VARIABLE):
        gpututor.start()


@pytest.mark.parametrize("gpus", [0, -1, 65, 1.0, "2", True, None, float("nan")])
def test_a_wrong_count_is_refused(gpus: object) -> None:
    with pytest.raises((TypeError, ValueError), match="gpus must be"):
        gpututor.start(gpus=gpus)  # type: ignore[arg-type]


ones = torch.ones  # as `from torch import ones` in a notebook's first cell


def test_names_imported_before_start_work() -> None:
    gpututor.start(simulate="T4")
    assert ones(2, device="cuda").device.type == "cuda"
    gpututor.stop()
    assert ones is torch.ones


def test_the_management_library_may_be_missing() -> None:
    """Colab has it only where there is a GPU, and the package is installed there without more."""
    code = (
        "import sys; sys.modules['pynvml'] = None\n"
        "import gpututor; gpututor.start(simulate='T4')\n"
        "from gpututor import nvml, transfer\n"
        "assert nvml.pcie_link('0') is None and transfer.limits()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
