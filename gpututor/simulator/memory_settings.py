"""``PYTORCH_ALLOC_CONF``: the settings of the caching allocator, parsed as PyTorch parses them.

The grammar and the errors are those of ``c10/core/AllocatorConfig.cpp`` and
``c10/cuda/CUDAAllocatorConfig.cpp`` (torch 2.11 to 2.14).
"""

from __future__ import annotations

import os
import re
from typing import Any

from .errors import NotSimulatedError

MIB = 1 << 20
LARGE = 20  # MiB: the least that max_split_size_mb may be
INTERVALS = 16  # of roundup_power2_divisions: 1 MiB to 64 GiB, in powers of 2
VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")

#: Settings that change the simulated allocator in a way that is not modelled, with the value that
#: means "as without it".
_NOT_MODELLED = {
    "expandable_segments": False,
    "large_segment_size_mb": LARGE,
    "per_process_memory_fraction": 1.0,
}
#: Settings of pinned memory, CUDA graphs and locks, which change nothing that is simulated.
_WITHOUT_EFFECT = {
    "pinned_use_background_threads": "bool",
    "pinned_use_cuda_host_register": "bool",
    "pinned_use_hip_host_register": "bool",
    "pinned_num_register_threads": "int",
    "pinned_reserve_segment_size_mb": "int",
    "pinned_max_round_threshold_mb": "int",
    "pinned_max_cached_size_mb": "int",
    "release_lock_on_cudamalloc": "bool",
    "release_lock_on_hipmalloc": "bool",
    "graph_capture_record_stream_reuse": "bool",
    "throw_on_cudamalloc_oom": "bool",
}


class Settings:
    """What the allocators of a process are told; one object for all devices.

    Attributes
    ----------
    max_split_size : int or None
        Bytes from which on a block is never split; None for no limit.
    max_non_split_rounding : int
        Bytes by which a block of at least `max_split_size` may be too large for a request.
    garbage_collection_threshold : float
        Share of the allowed memory above which old free segments are given back; 0 for never.
    roundup_power2_divisions : list of int
        Into how many steps the way from one power of 2 to the next is divided, for sizes up to
        1 MiB, 2 MiB, … 32 GiB and above; 0 for none.
    text : str
        What was parsed last.
    """

    def __init__(self) -> None:
        self.text = ""
        self.max_non_split_rounding = LARGE * MIB
        self._reset()

    def _reset(self) -> None:
        self.max_split_size: int | None = None
        self.garbage_collection_threshold = 0.0
        self.roundup_power2_divisions = [0] * INTERVALS

    def read_environment(self) -> None:
        """Parse the environment's settings, if there are any."""
        for name in VARIABLES:
            text = os.environ.get(name)
            if text is not None:
                self.parse(text)
                return

    def parse(self, text: str) -> None:
        """Take over the settings in `text`; those not named go back to their defaults.

        Raises
        ------
        ValueError
            Where PyTorch refuses a key or a value.
        RuntimeError
            Where `text` ends too early.
        NotSimulatedError
            For a setting that is not modelled. Nothing is changed then.
        """
        parsed = Settings()
        parsed.max_non_split_rounding = self.max_non_split_rounding
        parsed._parse(_Tokens(text))
        self.__dict__.update(parsed.__dict__)
        self.text = text

    def _parse(self, tokens: _Tokens) -> None:
        while not tokens.at_end():
            key = tokens.take()
            read = getattr(self, f"_read_{key}", None)
            if read is not None:
                tokens.skip_sign()
                read(tokens)
            elif key in _NOT_MODELLED:
                tokens.skip_sign()
                _read_not_modelled(key, tokens)
            elif key in _WITHOUT_EFFECT:
                tokens.skip_sign()
                tokens.boolean() if _WITHOUT_EFFECT[key] == "bool" else tokens.integer()
            else:
                raise ValueError(f"Unrecognized key '{key}' in Accelerator allocator config.")
            if not tokens.at_end():
                tokens.skip_sign()

    def _read_max_split_size_mb(self, tokens: _Tokens) -> None:
        self.max_split_size = _at_least_large("max_split_size_mb", tokens.integer())

    def _read_max_non_split_rounding_mb(self, tokens: _Tokens) -> None:
        self.max_non_split_rounding = _at_least_large("max_non_split_rounding_mb", tokens.integer())

    def _read_garbage_collection_threshold(self, tokens: _Tokens) -> None:
        value = tokens.number()
        if not 0 < value < 1:
            raise ValueError("garbage_collect_threshold is invalid, set it in (0.0, 1.0)")
        self.garbage_collection_threshold = value

    def _read_backend(self, tokens: _Tokens) -> None:
        name = tokens.take()
        if name == "cudaMallocAsync":
            raise NotSimulatedError("the allocator backend cudaMallocAsync")
        if name != "native":
            raise ValueError("Unknown allocator backend, options are native and cudaMallocAsync")

    def _read_roundup_power2_divisions(self, tokens: _Tokens) -> None:
        divisions = self.roundup_power2_divisions
        if tokens.peek() != "[":
            value = tokens.integer()
            if not _is_power_of_2(value):
                raise ValueError("For roundups, the divisions has to be power of 2 ")
            divisions[:] = [value] * INTERVALS
            return
        tokens.take()
        first, last = True, 0
        while tokens.peek() != "]":
            boundary = tokens.take()
            tokens.skip_sign()
            value = tokens.integer()
            if value and not _is_power_of_2(value):
                raise ValueError(
                    "For roundups, the divisions has to be power of 2 or 0 to disable roundup "
                )
            if boundary == ">":
                divisions[last + 1 :] = [value] * (INTERVALS - last - 1)
            else:
                size = _integer(boundary)
                if not _is_power_of_2(size):
                    raise ValueError("For roundups, the intervals have to be power of 2 ")
                last = min(size.bit_length() - 1, INTERVALS - 1)
                if first:
                    divisions[:last] = [value] * last
                    first = False
                divisions[last] = value
            if tokens.peek() != "]":
                tokens.skip_sign()
        tokens.take()

    def divisions(self, size: int) -> int:
        """Return the divisions that hold for a request of `size` bytes."""
        place = size.bit_length() - 1 - 20
        return self.roundup_power2_divisions[min(max(place, 0), INTERVALS - 1)]

    def as_dict(self) -> dict[str, Any]:
        """Return what a snapshot says of the settings."""
        return {
            "PYTORCH_CUDA_ALLOC_CONF": self.text,
            "max_split_size": -1 if self.max_split_size is None else self.max_split_size,
            "garbage_collection_threshold": self.garbage_collection_threshold,
            "expandable_segments": False,
            "pinned_num_register_threads": 1,
            "release_lock_on_cudamalloc": False,
            "pinned_use_cuda_host_register": False,
            "roundup_power2_divisions": {
                str(1 << place): value for place, value in enumerate(self.roundup_power2_divisions)
            },
            "graph_capture_record_stream_reuse": False,
        }


class _Tokens:
    """The words and signs of a setting; PyTorch's own messages where one is missing."""

    def __init__(self, text: str) -> None:
        self._tokens = re.findall(r"[,:\[\]]|[^,:\[\]]+", re.sub(r"\s", "", text))
        self._place = 0

    def at_end(self) -> bool:
        return self._place >= len(self._tokens)

    def peek(self) -> str:
        if self.at_end():
            raise RuntimeError(
                "i < config_.size() INTERNAL ASSERT FAILED: Index out of bounds in "
                f"ConfigTokenizer. The settings end too early: {''.join(self._tokens)!r}"
            )
        return str(self._tokens[self._place])

    def take(self) -> str:
        token = self.peek()
        self._place += 1
        return token

    def skip_sign(self) -> None:
        """Take a ``:`` or a ``,``; as in PyTorch, any other word passes for one."""
        self.take()

    def integer(self) -> int:
        return _integer(self.take())

    def number(self) -> float:
        match = re.match(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", self.take())
        if match is None:
            raise ValueError("stod")
        return float(match[0])

    def boolean(self) -> bool:
        token = self.take()
        if token not in ("True", "False"):
            raise ValueError(
                f"Expected 'True' or 'False' at index {self._place - 1} in ConfigTokenizer but got "
                f"'{token}'"
            )
        return token == "True"


def _integer(token: str) -> int:
    match = re.match(r"\d+", token)
    if match is None:
        raise ValueError("stoull")  # the whole of PyTorch's message
    return int(match[0])


def _at_least_large(key: str, value: int) -> int:
    if value < LARGE:
        raise ValueError(f"CachingAllocator option {key} too small, must be >= {LARGE}")
    return value * MIB


def _is_power_of_2(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def _read_not_modelled(key: str, tokens: _Tokens) -> None:
    plain = _NOT_MODELLED[key]
    value: Any
    if isinstance(plain, bool):
        value = tokens.boolean()
    else:
        value = tokens.integer() if isinstance(plain, int) else tokens.number()
    if value != plain:
        raise NotSimulatedError(f"the allocator setting {key}:{value}")
