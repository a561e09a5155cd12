"""Random numbers of a simulated device: each launch takes its own part of the sequence.

A CUDA generator is a seed and an offset; a launch reserves its offset when the host launches it.
Here the two together seed a fresh CPU generator for the kernel that runs later: host draws are
never disturbed, and the numbers do not depend on when the kernel runs.
"""

from __future__ import annotations

import hashlib
import secrets
import struct
import weakref
from typing import Any

import torch

DEFAULT_SEED = 67280421310721  # c10::detail's default_rng_seed_val
_STEP = 4  # Philox counts in fours
_U64 = (1 << 64) - 1


class GeneratorType(type(torch._C.Generator)):  # type: ignore[misc]
    """Makes every generator an instance of the class that stands in for torch.Generator."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch._C.Generator)


class Generator(torch._C.Generator):
    """The generator of a simulated device, with the methods of ``torch.Generator``."""

    _seed: int
    _offset: int
    _device: torch.device

    def __new__(cls, device: torch.device) -> Generator:  # noqa: D102
        self: Generator = super().__new__(cls, device="cpu")  # type: ignore[call-arg]
        self._seed, self._offset, self._device = DEFAULT_SEED, 0, device
        _known[self._cdata] = self  # type: ignore[attr-defined]
        return self

    def __init__(self, device: torch.device) -> None:
        pass

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """The simulated device it draws for."""
        return self._device

    def manual_seed(self, seed: int) -> Generator:
        """Start the sequence of `seed`."""
        self._seed, self._offset = int(seed) & _U64, 0
        return self

    def seed(self) -> int:
        """Start an unpredictable sequence and return its seed."""
        self.manual_seed(secrets.randbits(53))
        return self._seed

    def initial_seed(self) -> int:
        """Return the seed of the current sequence."""
        return self._seed

    def get_offset(self) -> int:
        """Return how far the sequence has been used."""
        return self._offset

    def set_offset(self, offset: int) -> None:  # type: ignore[override]
        """Go to `offset` in the sequence; it must be a multiple of 4."""
        if offset % _STEP:
            raise RuntimeError("offset must be a multiple of 4")
        self._offset = int(offset)

    def get_state(self) -> torch.Tensor:
        """Return seed and offset as 16 bytes."""
        data = struct.pack("<QQ", self._seed, self._offset)
        with torch._C.DisableTorchFunction():
            return torch.tensor(list(data), dtype=torch.uint8, device="cpu")

    def set_state(self, state: torch.Tensor) -> Generator:
        """Go back to a state that `get_state` returned."""
        if state.dtype != torch.uint8 or state.device.type != "cpu":
            raise TypeError("RNG state must be a torch.ByteTensor")
        if state.numel() != 16:
            raise RuntimeError("RNG state is wrong size")
        self._seed, self._offset = struct.unpack("<QQ", bytes(state.tolist()))
        return self

    graphsafe_get_state = get_state  # type: ignore[assignment]
    graphsafe_set_state = set_state  # type: ignore[assignment]

    def clone_state(self) -> Generator:
        """Return another generator in the same state."""
        other = Generator(self._device)
        other._seed, other._offset = self._seed, self._offset
        return other

    def reserve(self) -> torch._C.Generator:
        """Return a CPU generator for one launch, and go on behind it."""
        data = struct.pack("<QQ", self._seed, self._offset)
        self._offset += _STEP
        seed = int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
        host: torch._C.Generator = torch._C.Generator(device="cpu")
        return host.manual_seed(seed)

    def __reduce__(self) -> Any:
        return (_rebuild, (self._device, self._seed, self._offset))


#: Every generator, by the address of what it is to C++.
_known: weakref.WeakValueDictionary[int, Generator] = weakref.WeakValueDictionary()


def learners(generator: Any) -> Any:
    """Return the generator that the learner made: C++ hands on another object for it."""
    return _known.get(generator._cdata, generator)


def _rebuild(device: torch.device, seed: int, offset: int) -> Generator:
    generator = Generator(device)
    generator._seed, generator._offset = seed, offset
    return generator
