"""The board that a loop fills."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from matplotlib.figure import Figure

from gpututor import figures, live

pytestmark = pytest.mark.usefixtures("simulated")


def test_a_board_shows_its_numbers() -> None:
    with live.board(5, loss="nats", memory="MiB") as board:
        for step in range(5):
            board.update(loss=2.0 / (step + 1), memory=3)
    assert board.values["loss"] == [(step + 1.0, 2.0 / (step + 1)) for step in range(5)]
    assert "loss: 2 nats at first, 0.4 nats at step 5." in repr(board)
    assert "memory: 3 MiB at first, 3 MiB at step 5." in repr(board)
    assert "simulated T4" in repr(board)
    assert "step 5 of 5" in board._status.value
    assert board._bar.value == board._bar.max == 5
    assert board.picture().alt in board._view.value


def test_the_last_point_is_seen_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, finish = [], figures.finish

    def note(figure: Figure, *rest: Any) -> figures.Picture:
        drawn.append(figure)
        return finish(figure, *rest)

    monkeypatch.setattr(figures, "finish", note)
    with live.board(3, loss="nats") as board:
        for _ in range(3):
            board.update(loss=0.0)
    (line,) = drawn[-1].axes[0].lines
    assert list(line.get_xdata())[-1] == 3 and not line.get_clip_on()  # it lies on the edge


def test_it_says_what_ended_the_loop() -> None:
    with pytest.raises(KeyboardInterrupt), live.board(5, loss="nats") as board:
        board.update(loss=1.0)
        raise KeyboardInterrupt
    assert "ended by KeyboardInterrupt at step 1 of 5" in board._status.value


def test_long_curves_stay_small() -> None:
    board = live.board(100_000, loss="nats")
    board.values["loss"] = [(float(step), 1.0 / (step + 1)) for step in range(100_000)]
    assert len(board.picture().png) < 60_000


@pytest.mark.parametrize(
    ("total", "units", "message"),
    [
        (0, {"loss": "nats"}, "1 or more"),
        (2.5, {"loss": "nats"}, "whole number"),
        (True, {"loss": "nats"}, "whole number"),
        (5, {}, "from 1 to 4"),
        (5, dict.fromkeys("abcde", "s"), "from 1 to 4"),
    ],
)
def test_a_wrong_board(total: int, units: dict[str, str], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        live.board(total, **units)


def test_a_wrong_number() -> None:
    board = live.board(5, loss="nats")
    with pytest.raises(ValueError, match="no curve 'lose'; there is loss"):
        board.update(lose=1.0)
    with pytest.raises(TypeError, match=r"read a tensor with \.item"):
        board.update(loss=torch.ones((), device="cuda"))
    with pytest.raises(TypeError, match="must be a number"):
        board.update(loss="1")
    assert board.values == {"loss": []}
