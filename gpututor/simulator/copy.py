"""Copies between the host and simulated devices, and between devices.

A pageable copy blocks the host. A pinned one with ``non_blocking=True`` does not: it reads its
source and writes its target when its modelled time ends, so that a program which reads or
changes them too early gets wrong numbers, as on a real device.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import grad_mode

from . import checks, pinned, runtime
from .device import Device, Task
from .operators import aten, handles
from .tensor import Tensor, geometry, is_simulated, unheard, wrap


class _ToCopy(torch.autograd.Function):
    """A copy to another device whose gradient goes back to the first."""

    @staticmethod
    def forward(ctx: Any, source: torch.Tensor, plan: dict[str, Any]) -> torch.Tensor:
        ctx.device, ctx.dtype = source.device, source.dtype
        return transfer(source.detach(), **plan)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient.to(ctx.device, ctx.dtype), None


_ToCopy._backward_cls.__name__ = "ToCopyBackward0"


def to(
    source: torch.Tensor,
    device: torch.device,
    dtype: torch.dtype | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: torch.memory_format = torch.preserve_format,
) -> torch.Tensor:
    """Return `source` on `device`, where one of the two is simulated: ``Tensor.to``."""
    target = _with_index(device)
    dtype = dtype or source.dtype
    if target == source.device:
        if dtype == source.dtype and not copy and _has_format(source, memory_format):
            return source
        with torch._C.DisableTorchFunction():
            kept: torch.Tensor = torch.ops.aten._to_copy(
                source, dtype=dtype, memory_format=memory_format
            )
            return kept
    plan: dict[str, Any] = {
        "device": target,
        "dtype": dtype,
        "non_blocking": non_blocking,
        "memory_format": memory_format,
    }
    if source.requires_grad and torch.is_grad_enabled():
        result: torch.Tensor = _ToCopy.apply(source, plan)  # type: ignore[no-untyped-call]
        return result
    return transfer(source.detach(), **plan)


def _has_format(source: torch.Tensor, memory_format: torch.memory_format) -> bool:
    if memory_format is torch.preserve_format:
        return True
    return source.is_contiguous(memory_format=memory_format)


def _with_index(device: torch.device) -> torch.device:
    if device.type == "cuda":
        return runtime.current().device(device.index).torch_device
    return device


@unheard
def transfer(
    source: torch.Tensor,
    device: torch.device,
    dtype: torch.dtype,
    non_blocking: bool,
    memory_format: torch.memory_format,
) -> torch.Tensor:
    """Return a copy of `source` on another device; one of the two is simulated."""
    checks.usable()
    if source.device.type == "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    if device.type not in ("cpu", "cuda"):
        if device.type == "meta":
            return torch.empty_like(plain(source), dtype=dtype, device="meta")
        raise RuntimeError(f"a simulated GPU has no copies to a device of type {device.type!r}")
    with torch._C.DisableTorchFunction():
        if source.is_sparse or source.layout != torch.strided:
            from .errors import NotSimulatedError

            raise NotSimulatedError(f"a tensor of layout {source.layout} on a simulated GPU")
        like = torch.empty_like(
            plain(source), dtype=dtype, device="meta", memory_format=memory_format
        )
        if device.type == "cuda":
            simulated = runtime.current().device(device.index)
            target: torch.Tensor = empty(simulated, tuple(like.shape), like.stride(), dtype)
        elif non_blocking:
            target = pinned.empty_strided(like.shape, like.stride(), dtype)
        else:
            target = torch.empty_strided(like.shape, like.stride(), dtype=dtype, device="cpu")
    copy_between(target, source, non_blocking)
    return target


def empty(
    device: Device, size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype
) -> Tensor:
    """Return an uninitialised tensor on a simulated device."""
    spec = geometry(size, stride, dtype, device)
    stream = runtime.current().launch_stream(device)
    block = device.memory.allocate(spec.nbytes, stream.stream_id)
    return wrap(spec, block.view(size, stride, dtype), block)


def plain(value: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the host with the geometry of `value`; its values are not to be read."""
    return value._raw if is_simulated(value) else value  # type: ignore[attr-defined]


def copy_between(target: torch.Tensor, source: torch.Tensor, non_blocking: bool) -> None:
    """Copy `source` into `target` on another device, and wait where CUDA would."""
    simulation = runtime.current()
    to_raw, from_raw = plain(target), plain(source)
    if is_simulated(target) and is_simulated(source):
        _peer(target, source)  # type: ignore[arg-type]
        return
    inward = is_simulated(target)
    device: Device = (target if inward else source)._geometry.device  # type: ignore[attr-defined]
    if not device.alive:
        device.check_alive()
    host = source if inward else target
    profile = device.profile
    is_pinned = pinned.is_pinned(host)
    rate = profile.pinned_bandwidth if is_pinned else profile.pageable_bandwidth
    nbytes = from_raw.numel() * from_raw.element_size()
    seconds = (profile.copy_latency + nbytes / rate) * profile.slowdown
    stream = simulation.launch_stream(device)
    there = to_raw if inward else from_raw
    if nbytes and not _is_dense(there):
        device.memory.allocate(nbytes, stream.stream_id)  # copied by way of a dense buffer

    end = device.launch(
        stream,
        seconds,
        Task(device, "copy_", lambda: _write(to_raw, from_raw)),
        resource=device.copies_in if inward else device.copies_out,
        copies=True,
    )
    if inward:
        target._block.written = end  # type: ignore[attr-defined]
    if not (non_blocking and is_pinned):
        if not non_blocking:
            simulation.warn_of_wait()
        device.wait(end)


def _write(target: torch.Tensor, source: torch.Tensor) -> None:
    """Copy as the device does, which asks nothing about inference mode."""
    if target.is_inference():
        with torch.inference_mode():
            target.copy_(source)
    else:
        target.copy_(source)


def _is_dense(raw: torch.Tensor) -> bool:
    """Tell whether the elements lie side by side, in any order."""
    expected = 1
    for step, length in sorted(zip(raw.stride(), raw.shape, strict=True)):
        if length != 1:
            if step != expected:
                return False
            expected *= length
    return True


def _peer(target: Tensor, source: Tensor) -> None:
    """Copy between two devices: both streams wait for each other, the host for neither."""
    simulation = runtime.current()
    here, there = source._geometry.device, target._geometry.device
    here.check_alive()
    there.check_alive()
    profile = here.profile
    out, into = simulation.launch_stream(here), simulation.launch_stream(there)
    to_raw, from_raw = target._raw, source._raw
    nbytes = from_raw.numel() * from_raw.element_size()
    seconds = (profile.copy_latency + nbytes / profile.peer_bandwidth) * profile.slowdown

    end = here.launch(
        out,
        seconds,
        Task(here, "copy_", lambda: _write(to_raw, from_raw)),
        resource=here.copies_out,
        after=into.end,
        copies=True,
    )
    into.end = max(into.end, end)
    target._block.written = end


def _copy_(operator: Any, args: Any, kwargs: Any) -> Any:
    target, source = args[0], args[1]
    non_blocking = bool(args[2] if len(args) > 2 else kwargs.get("non_blocking", False))
    if target.device == source.device:
        return operator.kernel((target, source), {})
    if target.shape != source.shape:
        checks.broadcast_error(tuple(target.shape), tuple(source.shape))
        source = source.expand(target.shape)
    checks.usable()
    copy_between(target, source, non_blocking)
    return target


handles(aten.copy_.default)(_copy_)


@handles(aten._to_copy.default)
def _to_copy(operator: Any, args: Any, kwargs: Any) -> Any:
    # C++ asks for the device it believes in; a move to another device does not come here.
    kept = {
        name: value
        for name, value in kwargs.items()
        if name in ("dtype", "memory_format") and value is not None
    }
    return operator.kernel(args, kept)


@handles(aten._local_scalar_dense.default)
def _item(operator: Any, args: Any, kwargs: Any) -> Any:
    source = args[0]
    device = source._geometry.device
    device.check_alive()
    checks.usable()
    stream = runtime.current().launch_stream(device)
    profile = device.profile
    seconds = profile.copy_latency * profile.slowdown
    runtime.current().warn_of_wait()
    end = device.launch(stream, seconds, None, resource=device.copies_out)
    device.wait(end)
    return operator.func(source._raw)


@handles(aten.record_stream.default)
def _record_stream(operator: Any, args: Any, kwargs: Any) -> Any:
    args[0].record_stream(args[1])


def replace(target: torch.Tensor, value: torch.Tensor) -> None:
    """Make `target` be what `value` is, on its device, as ``target.data = value`` does."""
    if is_simulated(target) and is_simulated(value):
        from .operators import set_geometry

        if target.dtype == value.dtype:
            target._block = value._block  # type: ignore[attr-defined]
            target._geometry = value._geometry  # type: ignore[attr-defined]
            with grad_mode._unsafe_preserve_version_counter(target):
                set_geometry(target, value._raw)  # type: ignore[arg-type, attr-defined]
            return
    _become(target, value)


def _become(target: torch.Tensor, value: torch.Tensor) -> None:
    """Exchange what is behind the two Python objects, so that references to `target` stay."""
    shadow = value.detach()
    parameter = isinstance(target, torch.nn.Parameter)
    gradient = target.grad if target.is_leaf else None
    shadow.requires_grad_(target.requires_grad and target.is_leaf)
    hooks = target._backward_hooks
    torch._C._swap_tensor_impl(target, shadow)
    if is_simulated(shadow):  # the plain class of the one goes to the other
        target.__class__, shadow.__class__ = type(shadow), type(target)
        if parameter:
            target._is_param = True
    elif is_simulated(target):
        target.__class__ = torch.nn.Parameter if parameter else torch.Tensor
    for name in ("_raw", "_block", "_geometry"):
        target.__dict__.pop(name, None)
        if name in shadow.__dict__:
            target.__dict__[name] = shadow.__dict__.pop(name)
    if hooks:
        target._backward_hooks = hooks
    if gradient is not None:
        target.grad = gradient.detach().to(target.device)


def _write(target: torch.Tensor, source: torch.Tensor) -> None:
    """Copy, also into a host's tensor that was made in inference mode."""
    with torch.inference_mode(target.is_inference()):
        target.copy_(source)
