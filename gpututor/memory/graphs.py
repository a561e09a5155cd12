"""What autograd's graphs hold: tensors saved for a backward pass that has not come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from . import referrers
from .tensors import address

MOST_NODES = 100_000


def saved(tensors: Iterable[torch.Tensor]) -> dict[int, torch.Tensor]:
    """Return the tensors that the graphs behind `tensors` have saved, by their address."""
    found: dict[int, torch.Tensor] = {}
    seen: set[Any] = set()
    for tensor in tensors:
        for item in _saved_behind(tensor, seen):
            found.setdefault(address(item), item)
    found.pop(0, None)
    return found


def holders(addresses: set[int], tensors: Iterable[torch.Tensor]) -> dict[int, list[str]]:
    """Say which tensors' graphs hold what lies at these addresses.

    Returns
    -------
    dict of int to list of str
        For each address such as ``["the graph behind the variable total"]``.
    """
    behind: list[tuple[int, torch.Tensor]] = []
    heads: dict[int, torch.Tensor] = {}
    for tensor in sorted(tensors, key=lambda tensor: tensor.numel()):  # losses come first
        if tensor.grad_fn is None:
            continue
        places = {address(item) for item in _saved_behind(tensor, set())}
        for place in places & addresses:
            if len([1 for known, _ in behind if known == place]) < 3:
                behind.append((place, tensor))
                heads[id(tensor)] = tensor
    names = dict(zip(heads, referrers.names([[head] for head in heads.values()]), strict=True))
    found: dict[int, list[str]] = {}
    for place, head in behind:
        for name in names[id(head)][:2]:
            found.setdefault(place, []).append(f"the graph behind {name}")
    return found


def _saved_behind(tensor: torch.Tensor, seen: set[Any]) -> Iterator[torch.Tensor]:
    """Walk the graph of a tensor; nodes in `seen` were walked before."""
    nodes = [tensor.grad_fn]
    while nodes and len(seen) < MOST_NODES:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        nodes.extend(following for following, _ in node.next_functions)
        yield from _saved_by(node)


def _saved_by(node: Any) -> Iterator[torch.Tensor]:
    names = [name for name in dir(node) if name.startswith("_saved_")]
    if hasattr(node, "saved_tensors"):
        names.append("saved_tensors")
    for name in names:
        try:
            value = getattr(node, name)
        except (RuntimeError, AttributeError):
            continue  # backward has let go of it
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, torch.Tensor) and item.is_cuda:
                yield item
