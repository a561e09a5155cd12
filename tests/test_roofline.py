"""The published limits: those of the profile, and those that a real GPU's properties give."""

from __future__ import annotations

import types
from collections.abc import Callable

import pytest
import torch

from gpututor import Machine, machine, roofline, timing


def test_a_simulated_gpu_has_its_profiles_limits(simulate: Callable[[str], Machine]) -> None:
    simulate("T4")
    roof = roofline.roof()
    assert (roof.flops, roof.bandwidth) == (8.1e12 / 50, 320e9 / 50)
    assert roof.source == "published for the Tesla T4, divided by 50"
    assert roofline.roof(torch.float16).flops == 65e12 / 50


def test_a_roof_shows_itself_with_its_units() -> None:
    roof = roofline.Roof(162e9, 6.4e9, "data sheet")
    assert repr(roof) == "Roof: 0.162 TFLOP/s, 6.4 GB/s, data sheet"


def test_no_large_product_passes_the_roof(gpu: str) -> None:
    n = roofline.sizes()[-1]
    x = torch.rand(n, n, device="cuda")
    try:
        least = 2 * n**3 / roofline.roof().flops
    except ValueError:
        pytest.skip("no limit is known of this GPU")
    share = least / timing.device_time(lambda: x @ x, samples=3).median
    assert 0.3 < share < 1.15  # some boost above the published clock


def reported(monkeypatch: pytest.MonkeyPatch, name: str, **properties: object) -> None:
    seen = types.SimpleNamespace(**properties)
    monkeypatch.setattr(machine, "profile", lambda device=None: (name, None))
    monkeypatch.setattr(machine, "simulated", lambda: False)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device=None: seen)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)


def test_an_unknown_gpu_is_computed_from_what_it_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    # What an H200 reports (torch 2.11); 67 TFLOP/s and 4800 GB/s are in its data sheet.
    reported(
        monkeypatch, "some GPU", major=9, minor=0, multi_processor_count=132, clock_rate=1980000,
        memory_clock_rate=3201000, memory_bus_width=6016,
    )  # fmt: skip
    roof = roofline.roof()
    assert roof.flops == pytest.approx(67e12, rel=0.01)
    assert roof.bandwidth == pytest.approx(4800e9, rel=0.01)
    assert "some GPU reports" in roof.source
    with pytest.raises(ValueError, match=r"no published peak of some GPU for torch\.float16"):
        roofline.roof(torch.float16)


def test_a_gpu_that_reports_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    reported(monkeypatch, "some GPU", major=9, minor=0, multi_processor_count=1)
    with pytest.raises(ValueError, match=r"as roofline\.Roof\("):
        roofline.roof()
