"""Host time per operator: the simulated GPU against PyTorch's own FakeTensorMode.

``python benchmarks/host_time.py`` prints microseconds per operator, the median of several runs
taken in turn in one process, for shapes seen before. The queue is drained between runs.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

import gpututor

LAUNCHES = 300
#: Operators that each case dispatches: a linear layer is a transpose and a product, and its
#: backward pass eight more.
OPERATORS = {"add": 1, "mm": 1, "linear": 2, "linear forward and backward": 10}


def cases(make: Callable[[torch.Tensor], torch.Tensor]) -> dict[str, Callable[[], object]]:
    """Return the calls to time, on tensors that `make` makes of the host's."""
    a, b, gradient = (make(torch.randn(8, 8)) for _ in range(3))
    weight = make(torch.randn(8, 8)).requires_grad_()
    bias = make(torch.randn(8)).requires_grad_()

    def training() -> None:
        F.linear(a, weight, bias).backward(gradient)
        weight.grad = bias.grad = None

    return {
        "add": lambda: a + b,
        "mm": lambda: torch.mm(a, b),
        "linear": lambda: F.linear(a, weight, bias),
        "linear forward and backward": training,
    }


def seconds(call: Callable[[], object], launches: int = LAUNCHES) -> float:
    """Return the host's seconds for one call."""
    start = time.perf_counter()
    for _ in range(launches):
        call()
    return (time.perf_counter() - start) / launches


def measure(rounds: int = 9) -> dict[str, dict[str, float]]:
    """Return the median microseconds per operator: case -> simulated, fake.

    Returns
    -------
    dict
        Also ``live tensors``: ``add`` with 10 and with 10,000 live tensors.
    """
    gpututor.start(simulate="T4")
    fake_mode = FakeTensorMode()
    with fake_mode:
        fake = cases(fake_mode.from_tensor)
    simulated = cases(lambda value: value.cuda())
    found: dict[str, dict[str, list[float]]] = {
        name: {"simulated": [], "fake": []} for name in OPERATORS
    }
    for turn in range(rounds + 1):
        for name, count in OPERATORS.items():
            for kind, calls in (("simulated", simulated), ("fake", fake)):
                with fake_mode if kind == "fake" else nullcontext():
                    taken = seconds(calls[name]) / count * 1e6
                torch.cuda.synchronize()
                if turn:  # the first turn warms up
                    found[name][kind].append(taken)
    result = {
        name: {kind: statistics.median(values) for kind, values in kinds.items()}
        for name, kinds in found.items()
    }
    result["live tensors"] = _live_tensors(rounds)
    gpututor.stop()
    return result


def _live_tensors(rounds: int) -> dict[str, float]:
    """Return the median microseconds of ``add`` with 10 and with 10,000 live tensors.

    In turn, so that a machine that is busy for a while is so for both. Python's garbage collector
    passes over the new tensors first, once, and not in the time.
    """
    a = torch.randn(8, 8, device="cuda")
    taken: dict[str, list[float]] = {"10": [], "10000": []}
    for _ in range(rounds):
        for number, times in taken.items():
            live = [torch.empty(4, device="cuda") for _ in range(int(number))]
            gc.collect()
            for _ in range(2):
                times.append(seconds(lambda: a + a) * 1e6)
                torch.cuda.synchronize()
            del live
    return {number: statistics.median(times) for number, times in taken.items()}


def main() -> None:
    """Print the table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    result = measure()
    if options.json:
        print(json.dumps(result, indent=1))
        return
    print(f"host time per operator, µs (torch {torch.__version__})")
    for name, kinds in result.items():
        print(f"{name:32}" + "  ".join(f"{kind} {value:7.1f}" for kind, value in kinds.items()))


if __name__ == "__main__":
    main()
