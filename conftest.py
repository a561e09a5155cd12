"""How many processes run the tests and the notebooks at once."""

from __future__ import annotations

import os

import torch


def pytest_xdist_auto_num_workers() -> int:
    """Return what ``-n auto`` means: one and a half per core, since much of a test is waiting.

    On a machine with a GPU none beside this one: the tests that time the GPU would disturb each
    other.
    """
    if torch.cuda.is_available():
        return 0
    return min(6, 3 * (os.cpu_count() or 1) // 2)
