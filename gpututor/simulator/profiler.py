"""``torch.profiler`` while the simulator runs: it profiles the host, and no simulated device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch.profiler import ProfilerActivity

from .errors import NotSimulatedError


def initialiser(original: Callable[..., None]) -> Callable[..., None]:
    """Return what stands in for the ``__init__`` of a profiler: it refuses to trace a GPU."""

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        asked: list[Any] = []
        for activity in kwargs.get("activities") or ():
            asked.extend(activity if isinstance(activity, dict) else [activity])
        cuda = kwargs.get("use_cuda") or kwargs.get("use_device") == "cuda"
        if cuda or ProfilerActivity.CUDA in asked:
            raise NotSimulatedError("the CUDA activity of torch.profiler")
        original(self, *args, **kwargs)

    return init


def supported(original: Callable[[], set[Any]]) -> Callable[[], set[Any]]:
    """Return what stands in for ``torch.profiler.supported_activities``."""

    @functools.wraps(original)
    def supported_activities() -> set[Any]:
        return set(original()) - {ProfilerActivity.CUDA}

    return supported_activities
