"""The simulated allocator's speed: a million steps with a thousand blocks alive.

``python benchmarks/allocator.py`` prints seconds.
"""

from __future__ import annotations

import random
import time

from gpututor.simulator.device import Device
from gpututor.simulator.engine import Engine
from gpututor.simulator.profiles import PROFILES

GIB = 1 << 30


def seconds(steps: int = 1_000_000, live: int = 1000) -> float:
    """Return the processor's seconds for `steps` allocations and frees with `live` blocks."""
    device = Device(0, PROFILES["H200"], 140 * GIB, Engine())
    allocate = device.memory.allocate
    chance = random.Random(0)
    sizes = [chance.randint(1, 1 << chance.randint(9, 24)) for _ in range(4096)]
    places = [chance.randrange(live) for _ in range(4096)]
    blocks = [allocate(sizes[place % 4096], 0) for place in range(live)]
    start = time.thread_time()
    for number in range(steps // 2):  # each one frees a block and allocates one
        turn = number & 4095
        blocks[places[turn]] = allocate(sizes[turn], 0)
    return time.thread_time() - start


if __name__ == "__main__":
    print(f"{seconds():.2f} s")
