"""Small programs hold and need as much memory as on a real GPU, line by line."""

from __future__ import annotations

import gc
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from gpututor import Machine

from .differences import AS_RECORDED, CURRENT, PEAKS
from .record import run

PATH = Path(__file__).parents[1] / "data" / "memory_programs_h200.json.gz"
VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
RECORDED: dict[str, list[list[Any]]] = json.loads(gzip.decompress(PATH.read_bytes()))["programs"]


@pytest.mark.parametrize("name", RECORDED)
def test_program(name: str, simulate: Callable[[str], Machine]) -> None:
    first, end = AS_RECORDED.get(name, ((2, 0), (3, 0)))
    if not first <= VERSION < end:
        pytest.skip("this PyTorch computes it another way than the recorded one")
    simulate("H200x1@140GiB")
    recorded = RECORDED[name]
    found = run("\n".join(line[0] for line in recorded))
    gc.collect()
    assert [line[0] for line in found] == [line[0] for line in recorded], found[-1]
    current = [(text, allocated) for text, allocated, _, _ in recorded]
    peaks = [(text, peak, reserved) for text, _, peak, reserved in recorded]
    same_current = [(text, allocated) for text, allocated, _, _ in found] == current
    same_peaks = [(text, peak, reserved) for text, _, peak, reserved in found] == peaks
    if name not in CURRENT:
        assert [(text, allocated) for text, allocated, _, _ in found] == current
    if name not in PEAKS:
        assert [(text, peak, reserved) for text, _, peak, reserved in found] == peaks
    assert same_current is (name not in CURRENT), "it agrees now: take it off the list"
    assert same_peaks is (name not in PEAKS), "it agrees now: take it off the list"
