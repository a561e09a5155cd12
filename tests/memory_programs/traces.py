"""Record how a real GPU's caching allocator answers to random requests, where there is one.

``python -m tests.memory_programs.traces OUT.json``. Each trace is made in a process of its own. A
step is what was asked, with the statistics that it changed, by their place in the list of names;
`final_segments` is the snapshot's structure at the end.
"""

from __future__ import annotations

import json
import os
import random
import sys
from multiprocessing.pool import ThreadPool
from typing import Any

import torch

from .record import WORKERS, in_child

MIB = 1 << 20

#: kind -> (settings, largest request in bytes, side streams, limit in bytes)
KINDS: dict[str, tuple[str, int, int, int | None]] = {
    "mixed": ("", 100 * MIB, 0, None),
    "streams": ("", 60 * MIB, 3, None),
    "record_stream": ("", 60 * MIB, 2, None),
    "limit": ("", 60 * MIB, 0, 300 * MIB),
    "limit_streams": ("", 60 * MIB, 2, 300 * MIB),
    "huge": ("", 3000 * MIB, 0, None),
    "split": ("max_split_size_mb:40", 200 * MIB, 0, 700 * MIB),
    "split_rounding": ("max_split_size_mb:40,max_non_split_rounding_mb:80", 200 * MIB, 1, None),
    "roundup_list": ("roundup_power2_divisions:[1:8,4:4,16:2,64:1,>:0]", 200 * MIB, 0, None),
    "roundup_8": ("roundup_power2_divisions:8", 20 * MIB, 1, None),
    "garbage": ("garbage_collection_threshold:0.6", 60 * MIB, 0, 400 * MIB),
    "garbage_split": (
        "garbage_collection_threshold:0.5,max_split_size_mb:30",
        100 * MIB,
        1,
        500 * MIB,
    ),
}
SEEDS = 3


def steps_of(kind: str, seed: int) -> list[dict[str, Any]]:
    """Return the requests of one trace."""
    _, largest, streams, limit = KINDS[kind]
    chance = random.Random(f"{kind} {seed}")
    steps: list[dict[str, Any]] = [] if limit is None else [{"op": "limit", "bytes": limit}]
    live: dict[int, int] = {}
    for number in range(170):
        draw = chance.random()
        if live and draw < 0.42:
            name = chance.choice(list(live))
            if kind == "record_stream" and chance.random() < 0.6:
                other = chance.randint(0, streams)
                steps.append({"op": "busy", "stream": other})
                steps.append({"op": "record_stream", "id": name, "stream": other})
            del live[name]
            steps.append({"op": "free", "id": name})
        elif draw < 0.47:
            steps.append({"op": "empty_cache"})
        elif draw < 0.49:
            steps.append({"op": "reset_peak"})
        elif draw < 0.53 and kind == "record_stream":
            steps.append({"op": "sync"})
        else:
            top = largest if chance.random() < 0.6 else MIB
            size = max(1, int(top ** chance.random())) if chance.random() < 0.5 else 0
            size = size or chance.randint(1, top)
            stream = chance.randint(0, streams) if chance.random() < 0.7 else 0
            steps.append({"op": "alloc", "id": number, "bytes": size, "stream": stream})
            live[number] = size
    return steps


def record(kind: str, seed: int) -> dict[str, Any]:
    """Make one trace here."""
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = KINDS[kind][0]
    total = torch.cuda.get_device_properties(0).total_memory
    streams = [torch.cuda.default_stream(), *(torch.cuda.Stream() for _ in range(4))]
    tensors: dict[int, torch.Tensor] = {}
    steps = steps_of(kind, seed)
    before: list[int] = []
    for step in steps:
        op = step["op"]
        if op == "limit":
            torch.cuda.set_per_process_memory_fraction(step["bytes"] / total)
        elif op == "alloc":
            with torch.cuda.stream(streams[step["stream"]]):
                try:
                    tensors[step["id"]] = torch.empty(
                        step["bytes"], dtype=torch.uint8, device="cuda"
                    )
                except torch.OutOfMemoryError as error:
                    step["oom"], step["message"] = True, str(error)
        elif op == "free":
            tensors.pop(step["id"], None)
        elif op == "empty_cache":
            torch.cuda.empty_cache()
        elif op == "reset_peak":
            torch.cuda.reset_peak_memory_stats()
        elif op == "busy":
            with torch.cuda.stream(streams[step["stream"]]):
                torch.cuda._sleep(400_000_000)
        elif op == "record_stream":
            if step["id"] in tensors:
                tensors[step["id"]].record_stream(streams[step["stream"]])
        else:
            torch.cuda.synchronize()
        after = list(torch.cuda.memory_stats().values())
        step["changed"] = {
            place: value
            for place, value in enumerate(after)
            if value != (before[place] if before else 0)
        }
        before = after
    return {
        "kind": kind,
        "seed": seed,
        "conf": KINDS[kind][0],
        "total_memory": total,
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(),
        "steps": steps,
        "final_segments": [
            {
                "total_size": part["total_size"],
                "segment_type": part["segment_type"],
                "blocks": [[block["size"], block["state"]] for block in part["blocks"]],
            }
            for part in torch.cuda.memory_snapshot()
        ],
    }


def main() -> None:
    jobs = [(kind, seed) for kind in KINDS for seed in range(SEEDS)]
    with ThreadPool(WORKERS) as pool:
        traces = pool.starmap(lambda kind, seed: in_child(record, kind, seed), jobs)
    names = in_child(lambda: (torch.zeros(1, device="cuda"), list(torch.cuda.memory_stats()))[1])
    with open(sys.argv[1], "w") as file:
        json.dump({"statistics": names, "traces": traces}, file, separators=(",", ":"))


if __name__ == "__main__":
    main()
