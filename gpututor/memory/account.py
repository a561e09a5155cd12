"""A training step's memory, line by line, and what each byte is for."""

from __future__ import annotations

import html
import linecache
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

from .. import arguments, figures, machine
from ..figures import Picture
from ..scale import amount, number
from . import tensors

MOST_LINES = 60
MIB = 2**20
#: What a byte is for, from what stays longest to what goes first.
KINDS = ("weights", "optimizer state", "gradients", "activations", "workspace", "other")
_FILLS = (
    (figures.SKY, ""),
    (figures.PURPLE, "xx"),
    (figures.GREEN, ".."),
    (figures.ORANGE, "//"),
    (figures.YELLOW, "\\\\"),
    (figures.FAINT, "--"),
)


#: Where a heading may be broken on a narrow page, so that all columns are seen.
_SYLLABLES = {
    "optimizer state": "opti&shy;mizer state",
    "gradients": "gradi&shy;ents",
    "activations": "activa&shy;tions",
    "workspace": "work&shy;space",
    "allocated": "allo&shy;cated",
}


@dataclass(frozen=True)
class Row:
    """What one line left in memory.

    Attributes
    ----------
    line : int
        The line's number in its file or cell.
    text : str
        The line.
    kinds : dict of str to int
        Bytes after the line, by what they are for; see `KINDS`.
    peak : int
        Most bytes allocated at any time while the line ran.
    """

    line: int
    text: str
    kinds: dict[str, int]
    peak: int

    @property
    def allocated(self) -> int:
        """Bytes allocated after the line."""
        return sum(self.kinds.values())


class Account:
    """The memory of a function's lines. Made by `account`.

    Attributes
    ----------
    rows : list of Row
        The lines in the order they ran. The first is the state before them.
    result : object
        What the function returned.
    """

    def __init__(self, rows: list[Row], result: Any, source: str) -> None:
        self.rows = rows
        self.result = result
        self._source = source

    @property
    def peak(self) -> int:
        """Most bytes allocated at any time."""
        return max(row.peak for row in self.rows)

    def picture(self) -> Picture:
        """Return the account as a figure: a bar for each line, split by what the bytes are for."""
        title = "What each byte is for, after each line"
        height = 1.75 + 0.36 * len(self.rows)
        figure, axes = figures.figure_of(title, height=height, left=0.36)
        words = []
        for place, row in enumerate(self.rows):
            start = 0.0
            for (fill, hatch), kind in zip(_FILLS, KINDS, strict=True):
                size = row.kinds[kind] / MIB
                axes.barh(
                    place, size, 0.62, left=start, color=fill, hatch=hatch,
                    edgecolor=figures.INK, lw=0.8, label=kind if place == 0 else None,
                )  # fmt: skip
                start += size
            axes.plot(
                [row.peak / MIB] * 2, [place - 0.4, place + 0.4], color=figures.INK, lw=2.2,
                label="peak while the line ran" if place == 0 else None,
            )  # fmt: skip
            parts = ", ".join(f"{kind} {amount(size)}" for kind, size in row.kinds.items() if size)
            words.append(f"{row.text}: {parts or 'nothing'}; peak {amount(row.peak)}.")
        names = [_shortened(row.text) for row in self.rows]
        axes.set_yticks(range(len(names)), names, size=8, family="monospace")
        axes.set_ylim(len(self.rows) - 0.4, -0.6)
        axes.set_xlim(0, max(self.peak / MIB * 1.04, 1e-3))
        axes.set_xlabel("allocated (MiB)", color=figures.INK)
        axes.set_position((0.36, 1.25 / height, 0.61, 1 - 1.6 / height))
        axes.xaxis.set_label_coords(0.5, -0.27 / (height - 1.6))
        figure.legend(
            loc="lower left", bbox_to_anchor=(0.005, 0.22 / height), ncols=4, fontsize=8,
            frameon=False, columnspacing=1.0, handlelength=1.6,
        )  # fmt: skip
        return figures.finish(figure, title, words, self._source)

    def _table(self) -> tuple[list[str], list[list[str]]]:
        kinds = [kind for kind in KINDS if any(row.kinds[kind] for row in self.rows)]
        head = ["line", *kinds, "allocated", "peak"]
        body = [
            [
                row.text,
                *(
                    number(size / MIB)
                    for size in (*map(row.kinds.__getitem__, kinds), row.allocated, row.peak)
                ),
            ]
            for row in self.rows
        ]
        return head, body

    def _end(self) -> str:
        return f"In MiB. Source: {self._source}."

    def __repr__(self) -> str:
        head, body = self._table()
        body = [[_shortened(line[0], 44), *line[1:]] for line in body]
        widths = [max(len(line[place]) for line in (head, *body)) for place in range(len(head))]
        lines = [
            "  ".join(
                cell.ljust(width) if place == 0 else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            for line in (head, *body)
        ]
        return "\n".join([*lines, self._end()])

    def _repr_html_(self) -> str:
        head, body = self._table()
        code = 'style="padding:0;font-size:0.9em"'
        left, right = (f'style="text-align:{side};padding:2px 4px"' for side in ("left", "right"))
        head = [_SYLLABLES.get(word, word) for word in head]
        top = "".join(f"<th {left if n == 0 else right}>{c}</th>" for n, c in enumerate(head))
        rows = "".join(
            f"<tr><td {left}><code {code}>{html.escape(line[0])}</code></td>"
            + "".join(f"<td {right}>{cell}</td>" for cell in line[1:])
            + "</tr>"
            for line in body
        )
        return (  # many columns: where they do not fit, they can be scrolled to
            f'<div style="overflow-x:auto"><table><tr>{top}</tr>{rows}</table></div>'
            f"<p>{html.escape(self._end())}</p>"
        )


def account(
    step: Callable[..., Any],
    *args: Any,
    model: torch.nn.Module | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    device: int | None = None,
) -> Account:
    """Run a function once, and say after each of its lines what every allocated byte is for.

    Parameters
    ----------
    step : callable
        A function of Python with lines of its own, such as one training step.
    *args
        What it is called with.
    model : torch.nn.Module, optional
        Whose parameters and buffers are *weights*, and whose gradients are *gradients*.
    optimizer : torch.optim.Optimizer, optional
        Whose tensors are *optimizer state*.
    device : int, optional
        The index of a CUDA device; by default the current one.

    Returns
    -------
    Account
        *Activations* are tensors that autograd saved for backward, and others that the step made.
        *Workspace* are blocks that belong to no tensor of Python's, such as cuBLAS's, or what an
        older graph still holds. *Other* are tensors that were there before the step. The peaks in
        ``torch.cuda.memory_stats`` are reset at each line.

    Raises
    ------
    TypeError
        When `step` is no function with lines of Python, or `model` or `optimizer` is none.
    """
    code = getattr(step, "__code__", None)
    if code is None:
        raise TypeError(f"account needs a function written in Python, not {arguments.shown(step)}")
    if model is not None and not isinstance(model, torch.nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, not {arguments.shown(model)}")
    if optimizer is not None and not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(
            f"optimizer must be a torch.optim.Optimizer, not {arguments.shown(optimizer)}"
        )
    number = arguments.device_index(device)
    recorder = _Recorder(code, model, optimizer, number)
    result = recorder.run(step, args)
    return Account(recorder.rows, result, machine.source(number))


class _Recorder:
    def __init__(
        self, code: Any, model: Any, optimizer: torch.optim.Optimizer | None, device: int
    ) -> None:
        self._code = code
        self._model = model
        self._optimizer = optimizer
        self._device = device
        self._saved: set[int] = set()  # addresses that autograd saved
        self._before = {
            tensors.address(tensor) for tensor in tensors.on(torch.device("cuda", device))
        }
        self._line: int | None = None
        self.rows: list[Row] = []

    def run(self, step: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        outer = sys.gettrace()
        self._note("before the step", 0)
        hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, _unpack)
        with hooks:
            sys.settrace(self._trace)
            try:
                return step(*args)
            finally:
                sys.settrace(outer)

    def _pack(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_cuda and tensor.get_device() == self._device:
            self._saved.add(tensors.address(tensor))
        return tensor.detach()  # the tensor itself could hold the graph that holds it

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code is not self._code:
            return None
        if event in ("line", "return"):
            self._end_line(frame)
            self._line = frame.f_lineno if event == "line" else None
        return self._trace

    def _end_line(self, frame: FrameType) -> None:
        if self._line is not None and len(self.rows) < MOST_LINES:
            text = linecache.getline(frame.f_code.co_filename, self._line).strip()
            self._note(text or f"line {self._line}", self._line)

    def _note(self, text: str, line: int) -> None:
        outer = sys.gettrace()
        sys.settrace(None)
        peak = torch.cuda.max_memory_allocated(self._device)
        kinds = self._kinds()
        if line == 0:
            peak = sum(kinds.values())
        self.rows.append(Row(line, text, kinds, peak))
        torch.cuda.reset_peak_memory_stats(self._device)
        sys.settrace(outer)

    def _kinds(self) -> dict[str, int]:
        """Return the live bytes by what they are for, block by block."""
        weights, gradients = set(), set()
        if self._model is not None:
            parameters = list(self._model.parameters())
            weights = {tensors.address(part) for part in (*parameters, *self._model.buffers())}
            gradients = {tensors.address(part.grad) for part in parameters if part.grad is not None}
        state = set(_states(self._optimizer))
        held = {
            tensors.address(tensor) for tensor in tensors.on(torch.device("cuda", self._device))
        }
        kinds = dict.fromkeys(KINDS, 0)
        live = _live(self._device)
        self._saved &= live.keys()  # an address may be used again for something else
        self._before &= live.keys()
        for place, size in live.items():
            kinds[self._kind(place, weights, gradients, state, held)] += size
        return kinds

    def _kind(
        self, place: int, weights: set[int], gradients: set[int], state: set[int], held: set[int]
    ) -> str:
        if place in weights:
            return "weights"
        if place in gradients:
            return "gradients"
        if place in state:
            return "optimizer state"
        if place in self._before:
            return "other"
        if place in self._saved or place in held:
            return "activations"
        return "workspace"


def _live(device: int) -> dict[int, int]:
    """Return the size of every block in use, by its address."""
    found = {}
    for segment in torch.cuda.memory_snapshot():
        if segment["device"] == device:
            place = segment["address"]
            for block in segment["blocks"]:
                if block["state"] == "active_allocated":
                    found[place] = block["size"]
                place += block["size"]
    return found


def _unpack(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _states(optimizer: torch.optim.Optimizer | None) -> Iterable[int]:
    for state in () if optimizer is None else list(optimizer.state.values()):
        for value in state.values():
            if isinstance(value, torch.Tensor) and value.is_cuda:
                yield tensors.address(value)


def _shortened(text: str, most: int = 38) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
