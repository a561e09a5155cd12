"""Programs in a process of their own: what they tell, how they end, and that they do end."""

from __future__ import annotations

import time

import pytest

from gpututor import child, machine

LATE = """
import torch, gpututor
gpututor.start()
table = torch.rand(10, 4, device="cuda")
good, wrong = torch.tensor([[3, 7], [3, 12]], device="cuda")
(table[good] * 2).sum().item()
torch.cuda._sleep(30_000_000)
rows = table[wrong]  # there is no row 12
number = rows.sum().item()
""".strip()


def test_a_late_error_names_an_innocent_line_and_blocking_the_guilty_one(gpu: str) -> None:
    usual = child.run(LATE)
    blocking = child.run(LATE, {"CUDA_LAUNCH_BLOCKING": "1"})
    assert (usual.line, blocking.line) == (8, 7)
    for outcome in (usual, blocking):
        assert "device-side assert triggered" in outcome.error
    assert repr(blocking).startswith("line 7: rows = table[wrong]\n")
    line = child.tracks({"usual": usual, "blocking": blocking}, first=6)
    assert [mark.name for mark in line.marks] == ["usual: line 8 fails", "blocking: line 7 fails"]
    spans = {(span.track, span.name): span.duration for span in line.spans}
    sleep = "torch.cuda._sleep(30_000_000)"
    assert spans["blocking", sleep] > 10 * spans["usual", sleep]


@pytest.mark.usefixtures("simulated")
def test_a_program_that_ends_well_tells_what_it_printed() -> None:
    outcome = child.run("x = 1\nfor i in range(2):\n    print(x + i)", {"A": "b"})
    assert (outcome.line, outcome.error, outcome.output) == (None, "", "1\n2\n")
    assert [(step.line, step.text) for step in outcome.steps] == [
        (1, "x = 1"), (2, "for i in range(2):"),
    ]  # fmt: skip
    assert "came to its end" in repr(outcome)


@pytest.mark.usefixtures("simulated")
def test_the_child_has_the_devices_of_its_parent_and_its_variables() -> None:
    assert machine.environment() == {"GPUTUTOR_SIMULATE": "T4"}
    program = "import os\nprint(os.environ['GPUTUTOR_SIMULATE'], os.environ['A'])"
    assert child.run(program, {"A": "b"}).output == "T4 b\n"


@pytest.mark.usefixtures("simulated")
def test_an_error_inside_a_function_or_a_block_is_named_by_its_own_line() -> None:
    outcome = child.run("def f():\n    return 1 / 0\n\nx = 1\nf()")
    assert (outcome.line, outcome.error) == (2, "ZeroDivisionError: division by zero")
    assert repr(outcome).startswith("line 2: return 1 / 0\n")


@pytest.mark.usefixtures("simulated")
def test_a_program_that_hangs_is_ended() -> None:
    start = time.monotonic()
    with pytest.raises(TimeoutError, match="took over 2 s and was ended"):
        child.run("import time\ntime.sleep(1000)", seconds=2)
    assert time.monotonic() - start < 60


@pytest.mark.usefixtures("simulated")
def test_a_process_that_dies_is_reported() -> None:
    with pytest.raises(RuntimeError, match="ended with status 3 before it could report"):
        child.run("import os\nos._exit(3)")


def test_what_is_no_python_is_refused_here() -> None:
    with pytest.raises(SyntaxError):
        child.run("x = (")
