"""Random operators that take no generator of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import factories, inside
from .errors import NotSimulatedError
from .operators import aten, computes, handles, run
from .tensor import is_simulated


def _like(name: str) -> Callable[..., Any]:
    def handler(operator: Any, args: Any, kwargs: Any) -> Any:
        kept = {key: kwargs[key] for key in ("dtype", "memory_format") if key in kwargs}
        new = factories.empty_like(args[0], **kept)
        return _fill(name, new, args[1:], kwargs.get("generator"))

    return handler


def _fill(name: str, new: Any, bounds: Any, generator: Any) -> Any:
    given = {"generator": generator}
    if name == "rand":
        return run(aten.uniform_.default, (new,), given)
    if name == "randn":
        return run(aten.normal_.default, (new,), given)
    low, high = bounds if len(bounds) > 1 else (0, *bounds)
    return run(getattr(aten.random_, "from"), (new, low, high), given)


for _name in ("rand", "randn", "randint"):
    handles(getattr(aten, f"{_name}_like"))(_like(_name))


@computes(aten.native_dropout.default)
def _native_dropout(
    value: torch.Tensor, p: float, train: bool | None, generator: Any = None
) -> tuple[torch.Tensor, torch.Tensor]:
    if train is False or p == 0:
        return value.clone(), torch.ones_like(value, dtype=torch.bool)
    if p == 1:
        return torch.zeros_like(value), torch.zeros_like(value, dtype=torch.bool)
    mask = torch.empty_like(value, dtype=torch.bool).bernoulli_(1 - p, generator=generator)
    return value * mask / (1 - p), mask


@computes(aten._scaled_dot_product_flash_attention_for_cpu.default)
def _attention(*args: Any, generator: Any = None, **kwargs: Any) -> Any:
    if (args[3] if len(args) > 3 else kwargs.get("dropout_p", 0.0)) > 0:
        raise NotSimulatedError("dropout inside fused attention")
    return aten._scaled_dot_product_flash_attention_for_cpu.default(*args, **kwargs)


@handles(aten._fused_sdp_choice.default)
def _choice(operator: Any, args: Any, kwargs: Any) -> Any:
    def plain(value: Any) -> Any:
        return value._raw if is_simulated(value) else value

    # It looks at geometry only.
    return operator.func(
        *(plain(value) for value in args), **{key: plain(v) for key, v in kwargs.items()}
    )


def dropout(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``torch.dropout``: on CUDA it keeps a mask of one byte an element."""
    transformed = inside.composite(original)  # inside torch.func.vmap it makes its own mask

    def dropout(input: torch.Tensor, p: float, train: bool) -> torch.Tensor:
        if is_simulated(input) and train and 0 < p < 1 and input.numel():
            result: torch.Tensor = torch.native_dropout(input, p, train)[0]
            return result
        return transformed(input, p, train)  # type: ignore[no-any-return]

    return dropout
