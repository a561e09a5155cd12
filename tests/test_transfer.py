"""What copies cost, and how many there are: the profile's ratios, on the simulator's own clock."""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
import torch

import gpututor
from gpututor import machine, recorded, transfer
from gpututor.simulator import profiles

ROOT = Path(__file__).parents[1]
MIB = 2**20


@pytest.fixture(params=["T4", "H200"])
def profile(request: pytest.FixtureRequest) -> Iterator[profiles.Profile]:
    gpututor.stop()
    gpututor.start(simulate=request.param)
    yield profiles.PROFILES[request.param]
    gpututor.stop()


def copy_seconds(nbytes: int, pinned: bool, pieces: int = 1) -> float:
    host = torch.empty(nbytes, dtype=torch.uint8, pin_memory=pinned)
    device = torch.empty(nbytes, dtype=torch.uint8, device="cuda")
    pairs = list(zip(device.chunk(pieces), host.chunk(pieces), strict=True))

    def work() -> None:
        for target, source in pairs:
            target.copy_(source, non_blocking=True)

    return transfer.seconds(work, repeats=3)


def test_pinned_against_pageable_is_the_profiles_ratio(profile: profiles.Profile) -> None:
    # Large enough that latency and launch are below a hundredth.
    ratio = copy_seconds(8 * MIB, False) / copy_seconds(8 * MIB, True)
    assert ratio == pytest.approx(profile.pinned_bandwidth / profile.pageable_bandwidth, rel=0.1)


def test_one_copy_against_many_is_the_profiles_ratio(profile: profiles.Profile) -> None:
    nbytes, pieces = 2 * MIB, 256
    link = nbytes / profile.pinned_bandwidth
    one = profile.copy_latency + link
    # Pieces this small are bound by the launches, which the host makes one after another.
    each = max(profile.launch_seconds, profile.copy_latency + link / pieces)
    expected = (pieces * each) / (profile.launch_seconds + one)
    ratio = copy_seconds(nbytes, True, pieces) / copy_seconds(nbytes, True)
    assert ratio == pytest.approx(expected, rel=0.1)


def test_page_locking_costs_the_host_time_once(profile: profiles.Profile) -> None:
    x = torch.ones(MIB, dtype=torch.uint8)
    cost = MIB / profile.pin_bandwidth * profile.slowdown
    kept: list[torch.Tensor] = []

    def shortest(work: Callable[[], object]) -> float:
        # A busy machine can hold the host up for longer than the simulated clock waits for it:
        # then another try tells.
        best = transfer.seconds(work, repeats=1)
        for _ in range(30):
            if best < 1.5 * cost:
                break
            best = min(best, transfer.seconds(work, repeats=1))
        return best

    assert cost <= shortest(lambda: kept.append(x.pin_memory())) < 1.5 * cost
    kept.clear()
    again = min(transfer.seconds(x.pin_memory, repeats=1) for _ in range(5))
    assert again < cost / 2  # a block is used again
    transfer.empty_pinned_cache()
    assert cost <= shortest(lambda: kept.append(x.pin_memory())) < 1.5 * cost


def test_sizes_fit_the_device(simulated: None) -> None:
    row = transfer.sizes()
    assert row[0] == 4096
    assert all(b == 4 * a for a, b in itertools.pairwise(row))
    assert 6 <= len(row) <= 9
    with pytest.raises(ValueError, match="factor must be 2 or more"):
        transfer.sizes(factor=1)
    with pytest.raises(ValueError, match="1 or more, not 0"):
        transfer.seconds(lambda: None, repeats=0)


def test_copies_are_counted(simulated: None) -> None:
    a, b = torch.ones(3), torch.ones(3, device="cuda")
    with transfer.count_copies() as counted:
        c = a.cuda()
        c.to("cuda")  # nothing to do
        c + b
        a.to(torch.float64)
        a.sum().item()
    assert (counted.to_device, counted.to_host) == (1, 0)
    with transfer.count_copies() as counted:
        c.cpu()
        c.to("cpu")
        a.copy_(c)
        c.sum().item()
        c.tolist()
        float(c[0])
        repr(c)
        f"{c[0]:.1f}"
        if c.sum() > 2:
            c.copy_(a)
        torch.zeros(3).to(c)
    assert (counted.to_device, counted.to_host) == (2, 9)
    assert counted.total == 11


class Names(torch.overrides.TorchFunctionMode):
    """Note the name of each function that is called."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.heard.append(function.__name__)
        return function(*args, **(kwargs or {}))


def test_a_function_mode_hears_what_moves(simulated: None) -> None:
    with Names() as names:
        x = torch.zeros(3, device="cuda")
        x.cpu()
        torch.ones(2).cuda()
        torch.ones(2).to("cuda")
        x.tolist()
    moves = [name for name in names.heard if name in {"zeros", "cpu", "cuda", "to", "tolist"}]
    assert moves[:2] == ["zeros", "cpu"]
    assert {"cuda", "to", "tolist"} <= set(moves)


def test_recorded_curves() -> None:
    curves = recorded.load("transfer_h200")
    assert curves.source == "recorded on NVIDIA H200, torch 2.11.0, 30 November 2026"
    pinned = dict(curves.series["to the GPU, pinned"])
    assert pinned[2**28] == pytest.approx(55.0, rel=0.01)
    assert [*curves.only("GPU to GPU").series] == ["GPU to GPU"]
    with pytest.raises(ValueError, match="nothing recorded for 'GPU'"):
        curves.only("GPU")
    with pytest.raises(ValueError, match="; there is"):
        recorded.load("../x")


def test_the_link_has_its_published_limit(profile: profiles.Profile) -> None:
    name, limit = machine.link()
    published = {"T4": ("PCIe 3.0 x16", 15.75), "H200": ("PCIe 5.0 x16", 63.0)}[profile.name]
    assert (name, limit * profile.slowdown) == (published[0], pytest.approx(published[1], rel=0.01))
    assert 0.5 < profile.pinned_bandwidth / 1e9 / (limit * profile.slowdown) < 1


def _without_docstring(function: ast.FunctionDef) -> str:
    if isinstance(function.body[0], ast.Expr):
        function.body = function.body[1:]
    function.returns = None
    for argument in function.args.args:
        argument.annotation = None
    return ast.dump(function).replace("'transfer'", "")


def test_the_lesson_shows_the_helper_in_full() -> None:
    notebook = nbformat.read(ROOT / "notebooks/02_move_tensors.ipynb", as_version=4)
    (cell,) = [c for c in notebook.cells if "def seconds(" in c.source]
    shown = ast.parse(cell.source).body[-1]
    stored = ast.parse(inspect.getsource(transfer.seconds)).body[0]
    assert isinstance(shown, ast.FunctionDef)
    assert isinstance(stored, ast.FunctionDef)
    checks = ("if ", "arguments.")  # of the input
    stored.body = [s for s in stored.body if not ast.unparse(s).startswith(checks)]
    assert _without_docstring(shown) == _without_docstring(stored)
