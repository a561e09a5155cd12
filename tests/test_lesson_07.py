"""What lesson 07 says was recorded is what the recording holds."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from gpututor import recorded

NOTEBOOK = Path(__file__).parents[1] / "notebooks/07_train_on_the_gpu.ipynb"
PROSE = "\n".join(
    cell.source
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells
    if cell.cell_type == "markdown"
)


def test_the_prose_quotes_what_each_change_gave() -> None:
    speed = {name: p[0][1] for name, p in recorded.load("h200", "training").series.items()}
    gain = {name[8:]: speed["all"] / speed[name] for name in speed if name.startswith("all but ")}
    everything = speed["all"] / speed["plain"]
    assert f"all changes together made the loop {everything:.1f} times as fast" in PROSE
    assert f"All changes together: {everything:.1f} times" in PROSE
    half, pinned = gain["half precision"], gain["pinned memory"]
    assert f"Half precision gave most, {half:.1f} times, and pinned memory {pinned:.1f}" in PROSE
    ahead, waits, steps = (
        f"{gain[name]:.1f}" for name in ("copies ahead", "fewer waits", "accumulation")
    )
    assert f"copy ahead gave {ahead} times, to wait less {waits} and to step" in PROSE
    assert f"step less often {steps}." in PROSE
    assert f"{waits} times in the fastest one" in PROSE
    assert speed["wait once"] == pytest.approx(speed["plain"], rel=0.05)  # "no difference"
    assert min(gain.values()) >= 1  # with all changes no slower than without any one of them
    assert f"{pinned:.1f} and {gain['copies ahead']:.1f} times on the recorded H200" in PROSE


def test_a_gpu_is_not_always_faster_and_the_prose_says_from_where_on() -> None:
    host, gpu = (dict(points) for points in recorded.load("h200", "steps").series.values())
    wins = [width for width in gpu if gpu[width] < host[width]]
    assert 0 < len(wins) < len(gpu)
    assert f"at {min(wins):.0f}, the next width measured, the GPU clearly wins" in PROSE
    widest, narrowest = max(gpu), min(gpu)
    assert f"at {widest:.0f} it is {host[widest] / gpu[widest]:.0f} times as fast" in PROSE
    quoted = f"{host[narrowest]:.2f} ms there and {gpu[narrowest]:.2f} ms on the GPU"
    assert f"at a width of {narrowest:.0f} a step takes {quoted}" in PROSE
