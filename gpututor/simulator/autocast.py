"""``torch.autocast("cuda")`` on simulated tensors.

PyTorch's own autocast works in C++ by device; C++ sees simulated tensors on the CPU. So the
operator lists of ``ATen/autocast_mode.h`` are applied here, where Python calls the functions.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from .plain import inner
from .tensor import is_simulated

# fmt: off
#: Functions that run in the lower precision.
LOWER = frozenset({
    "_convolution", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "convolution", "prelu", "addmm", "addmv", "addr",
    "matmul", "einsum", "mm", "mv", "linalg_vecdot", "vecdot", "linear", "addbmm", "baddbmm", "bmm",
    "chain_matmul", "multi_dot", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell",
    "scaled_dot_product_attention", "multi_head_attention_forward", "lstm", "gru",
    "rnn_tanh", "rnn_relu", "__matmul__",
    "__rmatmul__",
})
#: Functions that run in float32.
WIDE = frozenset({
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal",
    "rsqrt", "sinh", "tan", "pow", "__pow__", "__rpow__", "softplus", "layer_norm",
    "native_layer_norm", "rms_norm", "group_norm", "frobenius_norm", "nuclear_norm",
    "cosine_similarity", "poisson_nll_loss", "cosine_embedding_loss", "nll_loss", "nll_loss_nd",
    "hinge_embedding_loss", "kl_div", "l1_loss", "smooth_l1_loss", "huber_loss", "mse_loss",
    "margin_ranking_loss", "multilabel_margin_loss", "soft_margin_loss", "triplet_margin_loss",
    "multi_margin_loss", "binary_cross_entropy_with_logits", "dist", "pdist", "cdist", "renorm",
    "logsumexp", "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d",
    "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
    "cross_entropy_loss", "cross_entropy", "normalize", "gumbel_softmax", "interpolate",
})
#: Functions that run in float32 unless told a dtype.
WIDE_UNLESS_TOLD = frozenset({
    "prod", "softmax", "log_softmax", "cumprod", "cumsum", "vector_norm", "matrix_norm", "norm",
    "sum",
})
#: Functions whose arguments are brought to the widest type among them.
PROMOTE = frozenset({
    "addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sampler", "index_put",
    "tensordot", "scatter_add",
})
# fmt: on
BANNED = "binary_cross_entropy"
BANNED_TEXT = (
    "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
    "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
    "In this case, combine the two layers using "
    "torch.nn.functional.binary_cross_entropy_with_logits\n"
    "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
    "safe to autocast."
)


def _eligible(value: Any) -> bool:
    return is_simulated(inner(value)) and value.is_floating_point() and value.dtype != torch.float64


class Autocast(TorchFunctionMode):
    """Casts the arguments of functions as CUDA's autocast does, while it is on.

    Parameters
    ----------
    dtype : torch.dtype
        The lower precision.
    cache : bool
        Keep the casts of parameters until autocast ends.
    """

    def __init__(self, dtype: torch.dtype, cache: bool) -> None:
        super().__init__()
        self._dtype = dtype
        self._cache: dict[int, tuple[torch.Tensor, torch.Tensor]] | None = {} if cache else None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Cast and call."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in LOWER:
            args, kwargs = self._cast((args, kwargs), self._dtype)
        elif name in WIDE:
            args, kwargs = self._cast((args, kwargs), torch.float32)
        elif name in WIDE_UNLESS_TOLD:
            if kwargs.get("dtype") is None and args and _eligible(args[0]):
                args = (self._cast(args[0], torch.float32), *args[1:])
        elif name in PROMOTE:
            leaves = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if _eligible(leaf)]
            if any(leaf.dtype == torch.float32 for leaf in leaves):
                args, kwargs = self._cast((args, kwargs), torch.float32)
        elif name == BANNED and any(_eligible(leaf) for leaf in pytree.tree_leaves((args, kwargs))):
            raise RuntimeError(BANNED_TEXT)
        return func(*args, **kwargs)

    def _cast(self, values: Any, dtype: torch.dtype) -> Any:
        return pytree.tree_map(lambda value: self._one(value, dtype), values)

    def _one(self, value: Any, dtype: torch.dtype) -> Any:
        if not _eligible(value) or value.dtype == dtype:
            return value
        keep = (
            self._cache is not None
            and dtype != torch.float32
            and value.requires_grad
            and value.is_leaf
            and torch.is_grad_enabled()
        )
        if keep and self._cache is not None:
            known = self._cache.get(id(value))
            if known is None:
                known = self._cache[id(value)] = (value, value.to(dtype))
            return known[1]
        return value.to(dtype)


def lower_precision() -> torch.dtype | None:
    """Return the dtype of the autocast that is on in this thread, or None."""
    for mode in reversed(torch.overrides._get_current_function_mode_stack()):
        if type(mode) is Autocast:
            return mode._dtype
    return None


class _Thread(threading.local):
    """The autocast that ``torch.set_autocast_enabled`` turned on in this thread."""

    inside = False  # the call comes from torch.autocast, which has a mode of its own
    mode: Autocast | None = None


_thread = _Thread()


@contextlib.contextmanager
def _inside_autocast() -> Iterator[None]:
    before, _thread.inside = _thread.inside, True
    try:
        yield
    finally:
        _thread.inside = before


def flag(original: Any) -> Any:
    """Return ``torch.set_autocast_enabled``."""

    @functools.wraps(original)
    def set_autocast_enabled(*args: Any) -> None:
        original(*args)
        device, enabled = args if len(args) == 2 else ("cuda", *args)
        if device != "cuda" or _thread.inside:
            return
        forget()
        if enabled:
            dtype, cache = torch.get_autocast_dtype("cuda"), torch.is_autocast_cache_enabled()
            _thread.mode = Autocast(dtype, cache)
            _thread.mode.__enter__()  # type: ignore[no-untyped-call]

    return set_autocast_enabled


def forget() -> None:
    """Take off what ``torch.set_autocast_enabled`` turned on in this thread."""
    mode, _thread.mode = _thread.mode, None
    if mode not in torch.overrides._get_current_function_mode_stack():
        return
    above = []
    while (top := torch.overrides._pop_mode()) is not mode:
        above.append(top)
    for other in reversed(above):
        torch.overrides._push_mode(other)


def enter(original: Any) -> Any:
    """Return ``torch.autocast.__enter__``."""

    def __enter__(self: Any) -> Any:
        with _inside_autocast():
            result = original(self)
        modes = self.__dict__.setdefault("_simulated", [])
        if self.device == "cuda" and self._enabled:
            modes.append(_On(self.fast_dtype, self._cache_enabled).__enter__())
        elif self.device == "cuda":
            modes.append(_Off().__enter__())
        return result

    return __enter__


def leave(original: Any) -> Any:
    """Return ``torch.autocast.__exit__``."""

    def __exit__(self: Any, *error: Any) -> Any:
        modes = self.__dict__.get("_simulated")
        if modes:
            modes.pop().__exit__(*error)
        with _inside_autocast():
            return original(self, *error)

    return __exit__


class _Off:
    """Takes autocast off for a while: ``torch.autocast("cuda", enabled=False)``."""

    def __enter__(self) -> _Off:
        stack = torch.overrides._get_current_function_mode_stack()
        self._taken = [mode for mode in stack if type(mode) is Autocast]
        for mode in self._taken:
            mode.__class__ = _Asleep
        return self

    def __exit__(self, *error: Any) -> None:
        for mode in self._taken:
            mode.__class__ = Autocast


class _On:
    """Puts autocast on, in the place of those that are on already."""

    def __init__(self, dtype: torch.dtype, cache: bool) -> None:
        self._outer = _Off()
        self._mode = Autocast(dtype, cache)

    def __enter__(self) -> _On:
        self._outer.__enter__()
        self._mode.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        self._mode.__exit__(*error)  # type: ignore[no-untyped-call]
        self._outer.__exit__(*error)


class _Asleep(Autocast):
    """An autocast that is off for a while."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call."""
        return func(*args, **(kwargs or {}))
