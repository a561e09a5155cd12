"""Who holds a tensor: the Python object that keeps its memory from being freed."""

from __future__ import annotations

import gc
import html
import sys
from dataclasses import dataclass

import torch

from .. import arguments, machine
from ..scale import amount
from . import graphs, referrers, tensors
from .numbers import numbers

MOST = 10  # tensors that `leaks` looks at


@dataclass(frozen=True)
class Held:
    """A stretch of a GPU's memory and who holds it.

    Attributes
    ----------
    nbytes : int
        Its size in bytes.
    what : str
        What lies there.
    holders : tuple of str
        Who holds it, in words; empty where Python's own objects do not say.
    """

    nbytes: int
    what: str
    holders: tuple[str, ...]


class Leaks:
    """The live tensors of a device, the largest first. Made by `leaks`.

    Attributes
    ----------
    rows : list of Held
        The largest of them.
    allocated, found : int
        Bytes that all live tensors hold, and those that could be traced to Python's objects.
    """

    def __init__(self, rows: list[Held], allocated: int, found: int, source: str) -> None:
        self.rows = rows
        self.allocated = allocated
        self.found = found
        self._source = source

    def _end(self) -> str:
        rest = max(0, self.allocated - self.found)
        text = f"{amount(self.allocated)} allocated"
        if rest:
            text += f", {amount(rest)} of it workspace, rounding, or held by C++ alone"
        return f"{text}. Source: {self._source}."

    def __repr__(self) -> str:
        lines = [
            f"{amount(row.nbytes):>10}  {row.what}\n"
            + "\n".join(f"{'':>12}held by {holder}" for holder in row.holders or ("nobody found",))
            for row in self.rows
        ]
        return "\n".join([*lines, self._end()])

    def _repr_html_(self) -> str:
        left, right = 'style="text-align:left"', 'style="text-align:right;white-space:nowrap"'
        rows = "".join(
            f"<tr><td {right}>{amount(row.nbytes)}</td><td {left}>{html.escape(row.what)}</td>"
            f"<td {left}>{'<br>'.join(map(html.escape, row.holders)) or 'nobody found'}</td></tr>"
            for row in self.rows
        )
        head = f"<tr><th {right}>size</th><th {left}>what</th><th {left}>held by</th></tr>"
        return f"<table>{head}{rows}</table><p>{html.escape(self._end())}</p>"


def holders(tensor: torch.Tensor) -> list[str]:
    """Say which Python objects hold a tensor or another that shares its memory.

    Parameters
    ----------
    tensor : torch.Tensor
        A tensor. The variable that you name it by is a holder too.

    Returns
    -------
    list of str
        Such as ``"the variable x"``, ``"the list losses, at [3]"``, ``"Out[5], the notebook's
        memory of a cell's result"``, ``"the last traceback: x in step()"``, ``"the closure of
        hook(): x"``, ``"the graph behind the variable total"``.

    Raises
    ------
    TypeError
        When it is no tensor.
    """
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"holders needs a tensor, not {arguments.shown(tensor)}")
    place, beside = tensors.address(tensor), tensors.on(tensor.device)
    names = referrers.names([[other for other in beside if tensors.address(other) == place]])[0]
    names += graphs.holders({place}, beside).get(place, [])
    return list(dict.fromkeys(names))


def leaks(device: int | None = None, most: int = MOST) -> Leaks:
    """List what lies in a device's memory, the largest first, and who holds each.

    Parameters
    ----------
    device : int, optional
        The index of a CUDA device; by default the current one.
    most : int
        How many to list.

    Raises
    ------
    TypeError, ValueError
        When `most` is no whole number from 1 on.
    """
    arguments.whole(most, "most")
    index = arguments.device_index(device)
    present = tensors.on(torch.device("cuda", index))
    groups: dict[int, list[torch.Tensor]] = {}
    for tensor in present:
        groups.setdefault(tensors.address(tensor), []).append(tensor)
    groups.pop(0, None)
    sizes = {place: group[0].untyped_storage().nbytes() for place, group in groups.items()}
    saved = graphs.saved(present)
    for place, item in saved.items():
        sizes.setdefault(place, item.untyped_storage().nbytes())
    largest = sorted(sizes, key=lambda place: -sizes[place])[:most]
    found = referrers.names([groups.get(place, []) for place in largest])
    behind = graphs.holders(set(largest), present)
    rows = []
    for place, names in zip(largest, found, strict=True):
        group = groups.get(place, [])
        words = list(dict.fromkeys([*names, *behind.get(place, [])]))
        example = min(group, key=_telling) if group else saved[place]
        # PyTorch keeps the Python object of a tensor that only a graph holds.
        only_saved = place in behind and not names
        what = f"{_describe(example)}{', saved for backward' if only_saved else ''}"
        rows.append(Held(sizes[place], what, tuple(words)))
    allocated = numbers(index).allocated
    return Leaks(rows, allocated, sum(sizes.values()), machine.source(index))


def free_notebook() -> str:
    """Let go of what the notebook remembers: results, the last traceback; say what it freed.

    IPython keeps the result of every cell in ``Out``, ``_``, ``__``, ``___`` and ``_5``; Python
    keeps the last error with all variables of the functions it went through.
    """
    before = torch.cuda.memory_allocated()
    for name in ("last_traceback", "last_value", "last_type", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)
    shell = referrers.shell()
    if shell is not None:
        hook = shell.displayhook
        hook.flush()  # Out, _, __, ___
        hook._ = hook.__ = hook.___ = ""
        for space in (shell.user_ns, shell.user_ns_hidden):
            for name in [name for name in space if name[:1] == "_" and name[1:].isdigit()]:
                del space[name]  # _5
            space.update(dict.fromkeys(("_", "__", "___"), ""))
        shell.user_ns.get("Out", {}).clear()
        for attribute in ("InteractiveTB", "SyntaxTB"):
            handler = getattr(shell, attribute, None)
            for name in ("tb", "etype", "evalue"):
                if hasattr(handler, name):
                    setattr(handler, name, None)
        shell.last_execution_result = None
        shell.last_execution_succeeded = True
    gc.collect()
    return f"freed {amount(before - torch.cuda.memory_allocated())}. Source: {machine.source()}."


def _telling(tensor: torch.Tensor) -> tuple[bool, bool]:
    """Sort a parameter before what else shows its memory, and a plain tensor before a view."""
    return (not isinstance(tensor, torch.nn.Parameter), not tensor.is_contiguous())


def _describe(tensor: torch.Tensor) -> str:
    kind = "parameter" if isinstance(tensor, torch.nn.Parameter) else "tensor"
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"{kind} of shape {tuple(tensor.shape)}, {dtype}"
