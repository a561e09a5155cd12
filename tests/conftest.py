"""Fixtures shared by the tests."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import nbformat
import pytest
import torch

import gpututor
from gpututor import Machine

REAL = torch.cuda.is_available()  # asked before any test simulates


def pytest_collection_finish() -> None:
    """Let garbage collections pass over PyTorch and the tests, which none of them can free.

    Measured on two cores, torch 2.13, 30 November 2026: tests/memory_programs with
    tests/test_memory.py took 96 s without this and 30 s with it.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def nothing_left_on() -> Iterator[None]:
    """Fail a test that leaves a default device or a mode on for those after it."""
    yield
    modes = torch.overrides._get_current_function_mode_stack()
    assert not modes, f"left on: {modes}"
    assert torch.get_default_dtype() is torch.float32


@pytest.fixture
def simulate() -> Iterator[Callable[[str], Machine]]:
    """Return a function that starts a simulated machine; it is stopped after the test."""

    def start(spec: str = "T4") -> Machine:
        gpututor.stop()
        return gpututor.start(simulate=spec)

    yield start
    gpututor.stop()


@pytest.fixture
def simulated(simulate: Callable[[str], Machine]) -> Machine:
    """Run the test on one simulated T4."""
    return simulate("T4")


@pytest.fixture(params=["simulated", "real"])
def gpu(request: pytest.FixtureRequest, simulate: Callable[[str], Machine]) -> str:
    """Run the test on one simulated T4, and on this machine's own GPU where there is one."""
    if request.param == "simulated":
        simulate("T4")
    elif REAL:
        gpututor.stop()
    else:
        pytest.skip("needs an NVIDIA GPU")
    return str(request.param)


@pytest.fixture
def two_devices(simulate: Callable[[str], Machine]) -> Machine:
    """Run the test on two simulated T4s."""
    return simulate("T4x2")


@pytest.fixture
def lesson(gpu: str, request: pytest.FixtureRequest) -> Callable[..., dict[str, Any]]:
    """Return a function that runs cells of the module's NOTEBOOK, by id, and returns their names.

    The cell of the set-up comes first, without its ``gpututor.start()``.
    """
    notebook = nbformat.read(request.module.NOTEBOOK, as_version=4)
    source = {cell.id: cell.source for cell in notebook.cells}

    def run(*ids: str) -> dict[str, Any]:
        names: dict[str, Any] = {}
        exec(source["setup"].replace("gpututor.start()", ""), names)
        for name in ids:
            exec(source[name], names)
        return names

    return run
