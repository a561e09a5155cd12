"""One launch of a kernel: what the device does when its time begins and ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .device import Device

#: Operators that save something for backward, of another size on the CPU.
_SAVES_OTHERWISE = ("native_batch_norm", "_native_batch_norm", "_batch_norm")
#: Computed in float32 and rounded once where an argument is of half precision: the CPU's own
#: half-precision kernels are missing or far slower, and round more often than CUDA's.
HALF = (torch.float16, torch.bfloat16)


class Kernel:
    """One launch: reads its arguments when it starts, shows its results when it ends."""

    __slots__ = (
        "_args",
        "_device",
        "_func",
        "_kwargs",
        "_mutated",
        "_name",
        "_news",
        "_results",
        "_upcast",
    )

    def __init__(
        self,
        device: Device,
        name: str,
        func: Any,
        args: list[Any],
        kwargs: dict[str, Any],
        mutated: list[torch.Tensor],
        news: list[torch.Tensor],
        upcast: bool = False,
    ) -> None:
        self._device = device
        self._name = name
        self._func = func
        self._args = args
        self._kwargs = kwargs
        self._mutated = mutated
        self._news = news
        self._upcast = upcast
        self._results: list[tuple[torch.Tensor, torch.Tensor]] = []

    def start(self) -> None:
        """Compute, from what the arguments hold now, into buffers of its own."""
        args, kwargs = self._args, self._kwargs
        self._args, self._kwargs = [], {}
        if self._device.failure is not None:
            return
        if self._mutated:
            copies = {id(raw): _copy_of(raw) for raw in self._mutated}
            args = _exchange(args, copies)
            kwargs = _exchange(kwargs, copies) if kwargs else kwargs
            self._results = [(raw, copies[id(raw)]) for raw in self._mutated]
        try:
            if self._upcast:
                result = _in_float32(self._func, args, kwargs, self._results)
            else:
                result = self._func(*args, **kwargs)
        except RuntimeError as error:
            if "ZeroDivisionError" not in str(error):
                raise
            result = _divide_by_zero(self._func, args, kwargs)
        if self._news:
            found = [value for value in flat(result) if isinstance(value, torch.Tensor)]
            if self._mutated:
                ours = {id(copy) for _, copy in self._results}
                found = [value for value in found if id(value) not in ours]
            if len(found) != len(self._news):
                raise RuntimeError(f"{len(self._news)} results were expected and {len(found)} came")
            for new, value in zip(self._news, found, strict=True):
                if self._name.startswith(_SAVES_OTHERWISE) and value.shape != new.shape:
                    continue  # something saved for backward, of another size on the CPU
                if new.shape != value.shape:
                    raise RuntimeError(
                        f"a result of shape {tuple(new.shape)} was expected and one of "
                        f"{tuple(value.shape)} came"
                    )
                self._results.append((new, value))

    def finish(self) -> None:
        """Write the results where the learner's tensors are."""
        for target, value in self._results:
            target.copy_(value)
        self._results = []

    def failed(self, error: BaseException) -> None:
        """Let the device fail."""
        self._results = []
        self._device.poison(self._name, error)


def _divide_by_zero(func: Any, args: Any, kwargs: Any) -> Any:
    """Divide integers, by zero too: a CUDA kernel does not complain and gives some number."""
    divisor = args[1]
    if not isinstance(divisor, torch.Tensor):
        return torch.full_like(args[0], -1)
    return func(args[0], torch.where(divisor == 0, -1, divisor), *args[2:], **kwargs)


def flat(value: Any) -> Sequence[Any]:
    """Return the tensors in `value`, a tensor or lists of tensors, in order."""
    if isinstance(value, torch.Tensor):
        return (value,)
    if isinstance(value, (tuple, list)):
        return [item for part in value for item in flat(part)]
    return ()


def _copy_of(raw: torch.Tensor) -> torch.Tensor:
    copy = torch.empty_strided(raw.shape, raw.stride(), dtype=raw.dtype, device="cpu")
    if raw.is_conj():
        copy = copy.conj()
    return copy.copy_(raw)


def _exchange(value: Any, copies: dict[int, torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return copies.get(id(value), value)
    if isinstance(value, (list, tuple)):
        return type(value)(_exchange(item, copies) for item in value)
    if isinstance(value, dict):
        return {key: _exchange(item, copies) for key, item in value.items()}
    return value


def _in_float32(
    func: Any, args: Any, kwargs: Any, mutated: list[tuple[torch.Tensor, torch.Tensor]]
) -> Any:
    wide: dict[int, torch.Tensor] = {}

    def widen(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dtype in HALF:
            if id(value) not in wide:
                wide[id(value)] = value.float()
            return wide[id(value)]
        return value

    args = pytree.tree_map(widen, args)
    kwargs = pytree.tree_map(widen, kwargs)
    result = func(*args, **kwargs)
    for _, copy in mutated:
        if id(copy) in wide:
            copy.copy_(wide[id(copy)])
            if result is wide[id(copy)]:
                result = copy
    return result
