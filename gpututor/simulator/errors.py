"""The errors of the simulated GPU: CUDA's own classes and first lines, and its own few."""

from __future__ import annotations

import re

import torch

AcceleratorError: type[RuntimeError] = getattr(torch, "AcceleratorError", RuntimeError)


class NotSimulatedError(RuntimeError):
    """Something that the simulated GPU does not do. It never makes up a value instead."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} is not simulated: run it on a real GPU, or see docs/simulator.md for what is."
        )


class StoppedError(RuntimeError):
    """A tensor, stream or event of a simulated GPU that has been stopped."""

    def __init__(self, what: str = "this tensor") -> None:
        super().__init__(
            f"{what} belongs to a simulated GPU that was stopped by gpututor.stop(): "
            "make it again after gpututor.start()."
        )


_ADVICE = (
    "\nCUDA kernel errors might be asynchronously reported at some other API call, so the "
    "stacktrace below might be incorrect."
    "\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1"
)

#: What a CPU kernel says where a CUDA kernel's assertion would fail on the device.
_ASSERTIONS = re.compile(
    r"out of bounds|out of range|should be between 0 and 1|probability tensor contains"
    r"|in range|takes value|Expected Tensor with single nonzero value|p_in >= 0|invalid multinomial"
    r"|expects all elements",
)


def cuda_error(what: str) -> RuntimeError:
    """Return the error CUDA would raise: ``CUDA error: <what>`` and its advice."""
    return AcceleratorError(f"CUDA error: {what}{_ADVICE}")


def is_assertion(error: BaseException) -> bool:
    """Tell whether the CPU raised `error` where a CUDA kernel would fail on the device."""
    return isinstance(error, (IndexError, RuntimeError)) and bool(_ASSERTIONS.search(str(error)))


def kernel_failure(name: str, error: BaseException) -> str:
    """Say in one line why a kernel failed: a device-side assert, or the simulator's own words."""
    if is_assertion(error):
        return "device-side assert triggered"
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return f"the simulated kernel {name} failed: {type(error).__name__}: {first}"


def different_devices(one: object, other: object) -> RuntimeError:
    """Return TensorIterator's error: operands of one operator on two devices."""
    return RuntimeError(
        "Expected all tensors to be on the same device, but found at least two devices, "
        f"{one} and {other}!"
    )


def argument_on_other_device(
    name: str, device: object, common: object, method: str
) -> RuntimeError:
    """Return the error of the check that PyTorch generates for most CUDA operators."""
    return RuntimeError(
        f"Expected all tensors to be on the same device, but got {name} is on {device}, "
        f"different from other tensors on {common} "
        f"(when checking argument in method wrapper_CUDA_{method})"
    )
