"""Record what the programs hold of a real GPU's memory: run this where there is one.

``python -m tests.memory_programs.record OUT.json`` writes for every program and every line: the
line, the bytes allocated, their peak since the line began, the bytes reserved, or the error. Each
program runs in a process of its own. With ``--events``, also the sizes that each line allocated
and freed, in order.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.pool import ThreadPool
from typing import Any

import torch
from torch import nn
from torch.nn import functional

WORKERS = 10  # programs at a time


def run(text: str, events: bool = False) -> list[list[Any]]:
    """Run a program here; return one entry for each line."""
    warnings.simplefilter("ignore")
    torch.cuda.init()
    scope: dict[str, Any] = {"torch": torch, "nn": nn, "F": functional}
    found: list[list[Any]] = []
    for line in text.split("\n"):
        torch.cuda.reset_peak_memory_stats()
        if events:
            torch.cuda.memory._record_memory_history("all", context=None)
        try:
            exec(line, scope)
        except Exception as error:
            return [*found, [line, "RAISED", type(error).__name__, str(error).split("\n")[0]]]
        entry: list[Any] = [
            line,
            torch.cuda.memory_allocated(),
            torch.cuda.max_memory_allocated(),
            torch.cuda.memory_reserved(),
        ]
        if events:
            entry.append(_events())
            torch.cuda.memory._record_memory_history(None)
        found.append(entry)
    return found


def _events() -> list[int]:
    """Return the sizes allocated, and freed with a minus, in order."""
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    sign = {"alloc": 1, "free_requested": -1}
    return [sign[part["action"]] * part["size"] for part in trace if part["action"] in sign]


def in_child(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function in a fork of this process, which has not used CUDA."""
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sender.send(function(*args)))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(60) else "timed out"
    except EOFError:
        return "died"
    finally:
        process.join(5)
        process.kill()


def main() -> None:
    from .programs import PROGRAMS

    events = "--events" in sys.argv
    with ThreadPool(WORKERS) as pool:
        answers = pool.map(lambda text: in_child(run, text, events), PROGRAMS.values())
    found = dict(zip(PROGRAMS, answers, strict=True))
    result = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "programs": found,
    }
    with open(sys.argv[1], "w") as file:
        json.dump(result, file, indent=0)


if __name__ == "__main__":
    main()
