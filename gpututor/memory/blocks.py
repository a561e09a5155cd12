"""A map of a device's memory: every segment a row, every block a stretch of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path

from .. import arguments, figures, machine
from ..figures import Picture
from ..scale import amount

MOST_ROWS = 24
MOST_EDGES = 400  # blocks up to which each gets a line around it
TITLE = "The allocator's segments and blocks"

#: kind of stretch -> fill, hatch, what the legend calls it
_KINDS = {
    "live": (figures.SKY, "", "held by tensors"),
    "waiting": (figures.YELLOW, "...", "freed, waits for another stream"),
    "cached": (figures.PAPER, "///", "cached: free for the next tensor"),
    "rounding": (figures.VERMILLION, "xxx", "lost to rounding"),
}
_STATES = {"active_allocated": "live", "inactive": "cached"}  # all others wait


def map(device: int | None = None) -> Picture:
    """Draw what is where in the memory that PyTorch has taken from a device.

    Parameters
    ----------
    device : int, optional
        The index of a CUDA device; by default the current one.

    Returns
    -------
    Picture
        A row for each segment, the largest 24 of them, by address. Each row is as wide as the
        others, whatever its size, which stands beside it.
    """
    number = arguments.device_index(device)
    segments = [part for part in torch.cuda.memory_snapshot() if part["device"] == number]
    segments.sort(key=lambda part: int(part["total_size"]), reverse=True)
    shown = sorted(segments[:MOST_ROWS], key=lambda part: int(part["address"]))
    height = 1.75 + 0.3 * max(1, len(shown))
    figure, axes = figures.figure_of(TITLE, height=height, left=0.17)
    stretches = _stretches(shown)
    for kind, places in stretches.items():
        fill, hatch, _ = _KINDS[kind]
        if not places:
            continue
        edges = figures.INK if len(places) <= MOST_EDGES or hatch else "none"
        width = 0.5 if len(places) <= MOST_EDGES else 0.0
        # One path for all of them: a hatch on each of many would take seconds.
        path = Path.make_compound_path_from_polys(_corners(places))
        axes.add_artist(PathPatch(path, facecolor=fill, hatch=hatch, edgecolor=edges, lw=width))
    axes.set_xlim(0, 100)
    axes.set_ylim(max(1, len(shown)) - 0.4, -0.6)
    names = [f"{part['segment_type']}, {amount(part['total_size'])}" for part in shown]
    axes.set_yticks(range(len(shown)), names, size=8.5)
    axes.set_xlabel("position in the segment (% of its size)", color=figures.INK)
    totals = _totals(segments)
    handles = [
        Patch(
            facecolor=_KINDS[kind][0],
            hatch=_KINDS[kind][1],
            edgecolor=figures.INK,
            label=f"{_KINDS[kind][2]}: {amount(size)}",
        )
        for kind, size in totals.items()
        if size or kind in ("live", "cached")
    ]
    figure.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0.005, 0.24 / height), ncols=2,
        fontsize=8, frameon=False, columnspacing=1.2, handlelength=1.6,
    )  # fmt: skip
    axes.set_position((0.17, 1.25 / height, 0.8, 1 - 1.6 / height))
    axes.xaxis.set_label_coords(0.5, -0.27 / (height - 1.6))
    words = _words(segments, shown, totals)
    return figures.finish(figure, TITLE, words, machine.source(number))


def _stretches(segments: list[Any]) -> dict[str, list[tuple[int, float, float]]]:
    """Return for each kind: row, start and end in percent of the segment."""
    found: dict[str, list[tuple[int, float, float]]] = {kind: [] for kind in _KINDS}
    for row, segment in enumerate(segments):
        scale, place = 100 / segment["total_size"], 0.0
        for block in segment["blocks"]:
            size = block["size"] * scale
            kind = _STATES.get(block["state"], "waiting")
            found[kind].append((row, place, place + size))
            if kind == "live":
                lost = (block["size"] - block["requested_size"]) * scale
                if lost:
                    found["rounding"].append((row, place + size - lost, place + size))
            place += size
    return found


def _corners(places: list[tuple[int, float, float]]) -> Any:
    rows, starts, ends = np.array(places, dtype=float).T
    low, high = rows - 0.38, rows + 0.38
    across = np.stack([starts, ends, ends, starts], axis=1)
    return np.stack([across, np.stack([low, low, high, high], axis=1)], axis=2)  # (N, 4, 2)


def _totals(segments: list[Any]) -> dict[str, int]:
    totals = dict.fromkeys(_KINDS, 0)
    for segment in segments:
        for block in segment["blocks"]:
            kind = _STATES.get(block["state"], "waiting")
            totals[kind] += block["size"]
            if kind == "live":
                totals["rounding"] += block["size"] - block["requested_size"]
    totals["live"] -= totals["rounding"]
    return totals


def _words(segments: list[Any], shown: list[Any], totals: dict[str, int]) -> list[str]:
    if not segments:
        return ["PyTorch has taken no memory from this device."]
    reserved = sum(part["total_size"] for part in segments)
    blocks = [block for part in segments for block in part["blocks"]]
    live = sum(block["state"] == "active_allocated" for block in blocks)
    free = [block["size"] for block in blocks if block["state"] == "inactive"]
    words = [
        f"{_count(len(segments), 'segment')} of {amount(reserved)} in all.",
        f"Held by tensors: {amount(totals['live'])} in {_count(live, 'block')}.",
        f"Lost to rounding: {amount(totals['rounding'])}.",
        f"Cached: {amount(totals['cached'])} in {_count(len(free), 'free piece')}"
        + (f", the largest {amount(max(free))}." if free else "."),
    ]
    if totals["waiting"]:
        words.append(f"Freed but waiting for another stream: {amount(totals['waiting'])}.")
    if len(shown) < len(segments):
        words.append(f"The largest {len(shown)} segments are drawn.")
    for number, part in enumerate(shown[:6], 1):
        used = part["total_size"] - sum(
            block["size"] for block in part["blocks"] if block["state"] == "inactive"
        )
        words.append(
            f"Row {number}, {part['segment_type']}: {amount(used)} of "
            f"{amount(part['total_size'])} in use, {_count(len(part['blocks']), 'block')}."
        )
    return words


def _count(count: int, thing: str) -> str:
    return f"{count} {thing}" + ("" if count == 1 else "s")
