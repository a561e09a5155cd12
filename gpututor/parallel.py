"""What each device got, held and did while work was split over several.

Everything is seen through hooks, CUDA events and the allocator's public statistics, so that real
and simulated devices are watched in the same way.
"""

from __future__ import annotations

import contextlib
import html
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from . import arguments, figures, machine
from .arguments import shown
from .figures import Picture
from .scale import amount, number

Shape = tuple[int, ...]

#: Two processes can write theirs into one line.
_CONNECTED = re.compile(r"^(?:\[Gloo\] Rank \d+ is connected to .*? is : \d+)+\n+", re.M)


@dataclass
class Row:
    """One device.

    Attributes
    ----------
    device : str
        ``"cuda:0"`` and so on.
    got : list of tuple of int
        The shape of each tensor that the module was called with on this device.
    forward : float
        Milliseconds from the first to the last kernel of its forward passes, by CUDA events.
    held : int
        Bytes of tensors on it at the end.
    peak : int
        The most bytes of tensors on it at once.
    """

    device: str
    got: list[Shape] = field(default_factory=list)
    forward: float = 0.0
    held: int = 0
    peak: int = 0


class Seen:
    """What `watch` saw, one row for each device. It shows itself as a table.

    Attributes
    ----------
    rows : list of Row
        Filled when the ``with`` block ends.
    """

    def __init__(self) -> None:
        self.rows = [Row(f"cuda:{index}") for index in range(torch.cuda.device_count())]
        self._source = f"Source: {machine.source()}."

    def _table(self) -> list[tuple[str, ...]]:
        table: list[tuple[str, ...]] = [
            ("device", "got", "forward", "held at the end", "held at most")
        ]
        for row in self.rows:
            got = ", ".join("×".join(map(str, shape)) or "a number" for shape in row.got)
            table.append(
                (
                    row.device,
                    got or "nothing",
                    f"{number(row.forward)} ms",
                    amount(row.held),
                    amount(row.peak),
                )
            )
        return table

    def __repr__(self) -> str:
        table = self._table()
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
            for line in table
        ]
        return "\n".join([*lines, self._source])

    def _repr_html_(self) -> str:
        head, *body = self._table()
        style = 'style="text-align:left;padding:2px 14px 2px 0"'

        def line(cells: tuple[str, ...], tag: str) -> str:
            return f"<tr>{''.join(f'<{tag} {style}>{html.escape(c)}</{tag}>' for c in cells)}</tr>"

        return (
            f"<table><thead>{line(head, 'th')}</thead>"
            f"<tbody>{''.join(line(cells, 'td') for cells in body)}</tbody></table>"
            f"<p>{html.escape(self._source)}</p>"
        )

    def picture(self) -> Picture:
        """Draw the most that each device held, in MiB."""
        return figures.bars(
            {row.device: row.peak / 2**20 for row in self.rows},
            title="Memory of each device at its peak",
            x=("tensors", "MiB"),
        )


@contextlib.contextmanager
def watch(module: nn.Module) -> Iterator[Seen]:
    """Watch what each device does for `module` inside a ``with`` block.

    Parameters
    ----------
    module : nn.Module
        The module that is called in the block, ``nn.DataParallel`` or any other.

    Yields
    ------
    Seen
        Its rows are filled when the block ends, also when it ends with an error.

    Raises
    ------
    TypeError
        When `module` is no module.

    Notes
    -----
    The peaks of ``torch.cuda.max_memory_allocated`` are reset at the beginning, and the host
    waits for every device at the beginning and at the end.
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"watch needs the module that is called in the block, not {shown(module)}")
    inner = module.module if isinstance(module, nn.DataParallel) else module
    seen = Seen()
    begun: dict[int, list[tuple[int, torch.cuda.Event]]] = {}  # by thread: replicas have their own
    spans: list[tuple[int, torch.cuda.Event, torch.cuda.Event]] = []

    def before(_: nn.Module, args: Any, kwargs: Any) -> None:
        tensors = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        index = next((t.get_device() for t in tensors if t.is_cuda), torch.cuda.current_device())
        seen.rows[index].got += [tuple(t.shape) for t in tensors]
        begun.setdefault(threading.get_ident(), []).append((index, _mark(index)))

    def after(*_: Any) -> None:
        index, start = begun[threading.get_ident()].pop()
        spans.append((index, start, _mark(index)))

    _wait()
    for row in seen.rows:
        torch.cuda.reset_peak_memory_stats(row.device)
    hooks = [
        inner.register_forward_pre_hook(before, with_kwargs=True),
        inner.register_forward_hook(after),
    ]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()
        _wait()
        for index, start, end in spans:
            seen.rows[index].forward += start.elapsed_time(end)
        for row in seen.rows:
            row.held = torch.cuda.memory_allocated(row.device)
            row.peak = torch.cuda.max_memory_allocated(row.device)


def _mark(index: int) -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)
    with torch.cuda.device(index):
        event.record()
    return event


def _wait() -> None:
    for index in range(torch.cuda.device_count()):
        torch.cuda.synchronize(index)


def torchrun(script: str | Path, processes: int = 2, limit: float = 120.0) -> str:
    """Run ``torchrun --standalone --nproc-per-node=<processes> <script>`` and return its output.

    What a shell does with that line, with a time limit: when it is over, or when you interrupt,
    every process that was started is ended.

    Parameters
    ----------
    script : str or Path
        The file that each process runs.
    processes : int
        How many.
    limit : float
        Seconds after which all of them are ended.

    Returns
    -------
    str
        What they printed. A line of the library gloo itself, in which PyTorch 2.10 says how many
        processes are connected, is left out.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    RuntimeError
        When a process failed; the message has the traceback of the first that did.
    TimeoutError
        When the limit was over.
    """
    if not isinstance(script, (str, Path)):
        raise TypeError(f"give the path of a file, not {shown(script)}")
    arguments.whole(processes, "processes")
    arguments.positive(limit, "limit")
    if not os.path.isfile(script):  # which is False, too, for what can be no path
        raise FileNotFoundError(f"there is no file {script!s:.60}: write it first")
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        *(f"--nproc-per-node={processes}", str(script)),
    ]
    with tempfile.TemporaryDirectory() as folder:
        # One thread each, as torchrun would set it with a remark; none of NVLink's multicast,
        # which machines that are shared may refuse; and a folder for what it leaves behind.
        environment = {"OMP_NUM_THREADS": "1", "NCCL_NVLS_ENABLE": "0", **os.environ}
        child = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**environment, "TMPDIR": folder},
            start_new_session=True,
        )
        try:
            output, errors = child.communicate(timeout=limit)
        except BaseException as error:
            _end(child)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise TimeoutError(
                f"{Path(script).name} was not done after {limit:g} s, so it was ended: one "
                "process may wait for another, as when not all of them call a collective"
            ) from None
    if child.returncode:
        lines = errors.splitlines()
        ranks = [line for line in lines if line.startswith("[rank")]
        first = [line for line in ranks if line.split(":")[0] == ranks[0].split(":")[0]]
        # Without a rank it is the launcher's own trouble, or a process that was killed: where it
        # began, and how it ended.
        ends = lines if len(lines) <= 20 else [*lines[:10], "...", *lines[-10:]]
        said = "\n".join(first[-20:] or ends)
        raise RuntimeError(f"{Path(script).name} failed in a process of its own:\n{said}")
    return _CONNECTED.sub("", output)


def _end(child: subprocess.Popen[str]) -> None:
    """End a process and all it started."""
    if sys.platform == "win32":
        kill = ["taskkill", "/F", "/T", "/PID", str(child.pid)]
        subprocess.run(kill, capture_output=True, check=False)
    else:
        # torchrun starts its workers in sessions of their own and ends them when it is told to.
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=40)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    child.communicate()
