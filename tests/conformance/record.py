"""Record what this machine's CUDA answers to every program.

``python tests/conformance/record.py recording.json`` runs each program in a process of its own,
since some of them ruin their process's context. PyTorch is imported once, in a parent that never
initialises CUDA; each program runs in a fork of it. Linux only.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import gc
import importlib
import json
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

if __package__:
    from .programs import PROGRAMS, Program
    from .runner import run
else:  # run as a script, this folder is the first on sys.path
    from programs import PROGRAMS, Program
    from runner import run

WORKERS = 12
LIMIT = 30.0  # seconds for one program, CUDA's start included


@dataclass
class _Child:
    """A process that runs one task, with where it writes and when it has to be done."""

    name: str
    pid: int
    result: Path
    log: Path
    deadline: float

    def failure(self, status: int) -> str | None:
        """Return why there is no result, or None where there is one."""
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0 and self.result.exists():
            return None
        last = self.log.read_text(errors="replace").strip().splitlines()[-1:]
        return f"exit status {os.waitstatus_to_exitcode(status)}: {' '.join(last)}"


def _fork(name: str, task: Callable[[], Any], folder: Path, limit: float) -> _Child:
    """Start `task` in a fork, in a process group of its own; its answer goes to a JSON file."""
    result, log = folder / f"{name}.json", folder / f"{name}.log"
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setpgid(0, 0)
            output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            answer = json.dumps(task())
            part = result.with_suffix(".part")
            part.write_text(answer)
            part.rename(result)
            status = 0
        except BaseException as error:
            os.write(2, f"\n{type(error).__name__}: {error}\n".encode())
        finally:
            # A ruined CUDA context can hang or crash the interpreter's own way out.
            os._exit(status)
    with contextlib.suppress(OSError):  # whichever of the two comes first
        os.setpgid(pid, pid)
    return _Child(name, pid, result, log, time.monotonic() + limit)


def run_apart(
    tasks: Iterable[tuple[str, Callable[[], Any]]], workers: int = WORKERS, limit: float = LIMIT
) -> tuple[dict[str, Any], dict[str, str]]:
    """Run each named task in a fork of its own, `workers` at a time.

    Returns
    -------
    results, failures : dict
        By name: what each task returned, and why the others returned nothing.
    """
    waiting = list(tasks)[::-1]
    running: list[_Child] = []
    results: dict[str, Any] = {}
    failures: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < workers:
                name, task = waiting.pop()
                running.append(_fork(name, task, Path(folder), limit))
            for child in list(running):
                late = time.monotonic() > child.deadline
                if late:
                    _kill(child)
                pid, status = os.waitpid(child.pid, 0 if late else os.WNOHANG)
                if pid == 0:
                    continue
                _kill(child)  # what it may have left behind: workers of a loader, say
                running.remove(child)
                failure = f"took over {limit:g} s" if late else child.failure(status)
                if failure is None:
                    results[child.name] = json.loads(child.result.read_text())
                else:
                    failures[child.name] = failure
            time.sleep(0.01)
    return results, failures


def _kill(child: _Child) -> None:
    """End every process of the child's group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


def _facts() -> dict[str, Any]:
    """Return what the recording was made on. To be called in a fork: it initialises CUDA."""
    count = torch.cuda.device_count()
    return {
        "device": torch.cuda.get_device_name(0) if count else None,
        "devices": count,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
    }


def _task(program: Program, simulate: str | None) -> Callable[[], Any]:
    def task() -> Any:
        torch.set_num_threads(2)  # beside WORKERS - 1 others
        if simulate:
            import gpututor

            gpututor.start(simulate=simulate)
        start = time.perf_counter()
        return {**run(program.code), "seconds": round(time.perf_counter() - start, 2)}

    return task


def record(
    programs: Iterable[Program],
    workers: int = WORKERS,
    limit: float = LIMIT,
    simulate: str | None = None,
) -> dict[str, Any]:
    """Run the programs that there are devices for, and return the recording.

    Parameters
    ----------
    programs : iterable of Program
        What to run.
    workers : int
        How many at a time.
    limit : float
        Seconds for each.
    simulate : str, optional
        Run them on a simulated machine such as ``"T4x2"`` instead of on CUDA.

    Returns
    -------
    dict
        ``header`` (device, versions, date, and what failed), and ``programs``: by name,
        ``{code, gpus, out, warnings}``.
    """
    if simulate:
        importlib.import_module("gpututor.machine")  # once, here; it is started in each fork
        # What is here already is no fork's garbage to look through, page by copied page.
        gc.collect()
        gc.freeze()
        header = {"device": simulate, "devices": 2, "torch": torch.__version__}
    else:
        found, failed = run_apart([("facts", _facts)], 1, 120.0)
        if failed:
            raise RuntimeError(f"cannot ask torch.cuda: {failed['facts']}")
        header = found["facts"]
    chosen = [p for p in programs if p.gpus <= header["devices"]]
    results, failures = run_apart([(p.name, _task(p, simulate)) for p in chosen], workers, limit)
    header["failed"] = failures
    recorded = {
        p.name: {"code": p.code, "gpus": p.gpus, **results[p.name]}
        for p in chosen
        if p.name in results
    }
    return {"header": header, "programs": recorded}


def _more(path: Path | None) -> list[Program]:
    """Return the programs of a JSON file in the form of a recording."""
    if path is None:
        return []
    return [
        Program(f"behaviour_{name}", "behaviours", entry["code"], entry["gpus"])
        for name, entry in json.loads(path.read_text()).items()
    ]


def main() -> int:
    """Write a recording; return 1 where a program crashed or took too long."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("path", type=Path, help="the JSON file to write")
    parser.add_argument("--group", action="append", help="only this group; may be repeated")
    parser.add_argument("--name", action="append", help="only this program; may be repeated")
    parser.add_argument("--simulate", help="run on a simulated machine, such as T4x2@4GiB")
    parser.add_argument("--also", type=Path, help="JSON file of more programs: name, code, gpus")
    parser.add_argument("--workers", type=int, default=WORKERS, help="how many at a time")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for each program")
    options = parser.parse_args()
    chosen = [
        p
        for p in [*PROGRAMS, *_more(options.also)]
        if (not options.group or p.group in options.group)
        and (not options.name or p.name in options.name)
    ]
    start = time.monotonic()
    recording = record(chosen, options.workers, options.limit, options.simulate)
    options.path.write_text(json.dumps(recording, indent=1, ensure_ascii=False) + "\n")
    failed = recording["header"]["failed"]
    done, seconds = len(recording["programs"]), time.monotonic() - start
    print(f"{done} recorded, {len(failed)} failed, of {len(chosen)}, in {seconds:.0f} s")
    for name, why in failed.items():
        print(f"  {name}: {why}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
