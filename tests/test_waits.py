"""The lines that wait for the GPU are found, and no others."""

from __future__ import annotations

import warnings

import pytest
import torch

from gpututor import waits


def summarise(x: torch.Tensor) -> None:
    y = x * 2
    x[x > 0]  # mask
    for _ in range(3):
        y.sum().item()  # item
    str(y)  # print
    if y.max() > 0:  # if
        y.cpu()  # copy
    y.nonzero()  # nonzero
    y += 1


def test_each_line_that_waits_is_found_once(gpu: str) -> None:
    found = waits.find(lambda: summarise(torch.ones(8, device="cuda")))
    marks = ["mask", "item", "print", "if", "copy", "nonzero"]
    assert [wait.text.partition("  # ")[2] for wait in found] == marks
    assert found[1].times == 3
    assert repr(found).startswith("1 × line")  # not pushed in
    assert "3 × line" in repr(found) and "<pre>" in found._repr_html_()
    assert torch.cuda.get_sync_debug_mode() == 0


def test_what_does_not_wait_has_no_line(gpu: str) -> None:
    x = torch.ones(8, device="cuda")
    found = waits.find(lambda: x.add_(1).sum())
    assert found == () and repr(found) == "no line waited"


@pytest.mark.usefixtures("simulated")
def test_the_mode_is_put_back_after_an_error_and_other_warnings_pass() -> None:
    torch.cuda.set_sync_debug_mode("error")
    with pytest.raises(ZeroDivisionError):
        waits.find(lambda: 1 / 0)
    assert torch.cuda.get_sync_debug_mode() == 2
    torch.cuda.set_sync_debug_mode("default")
    with pytest.warns(UserWarning, match="another"):
        waits.find(lambda: warnings.warn("another", UserWarning, stacklevel=1))


@pytest.mark.usefixtures("simulated")
def test_a_simulated_wait_warns_at_the_line_that_called() -> None:
    x = torch.ones(8, device="cuda")
    torch.cuda.set_sync_debug_mode("warn")
    with pytest.warns(UserWarning, match="synchronizing") as found:
        x.sum().item()
    torch.cuda.set_sync_debug_mode("default")
    assert found[0].filename == __file__
