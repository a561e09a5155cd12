"""Fixtures shared by the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

import gpututor
from gpututor import Machine

REAL = torch.cuda.is_available()  # asked before any test simulates


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
