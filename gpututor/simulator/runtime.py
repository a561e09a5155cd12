"""The simulation that is running: its devices, and what is current in each thread."""

from __future__ import annotations

import bisect
import sys
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .device import Device, StreamState
from .engine import Engine
from .errors import StoppedError, cuda_error
from .memory_settings import Settings

if TYPE_CHECKING:
    from .profiles import Spec

_sequence_number = torch._C._autograd._get_sequence_nr
_backward_node = torch._C._current_autograd_node
#: Seconds on the host that starting, feeding and joining a worker thread takes, at real speed.
#: Measured on the host of an NVIDIA H200, torch 2.11, 30 November 2026: 0.5 to 0.6 ms for each
#: worker of ``nn.DataParallel``.
WORKER = 0.55e-3
_HERE = str(Path(__file__).parent)
_KEPT = 100_000  # changes of stream remembered for each thread


class _ThreadState(threading.local):
    """What is current in one thread.

    Attributes
    ----------
    begun : bool
        Whether it has launched anything; the main thread counts as begun.
    plans : set
        Convolutions that it has found cuDNN's plan for; see `collectives`.
    """

    def __init__(self) -> None:
        self.begun = threading.current_thread() is threading.main_thread()
        self.plans: set[Any] = set()
        self.device = 0
        self.streams: dict[int, StreamState] = {}
        self.changes: list[tuple[int, dict[int, StreamState]]] = []
        self.joined: set[StreamState] = set()


class Simulation:
    """Simulated devices and the state of ``torch.cuda`` that goes with them.

    Parameters
    ----------
    spec : Spec
        Which GPU, how many, how much memory.
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.engine = Engine()
        self.settings = Settings()  # of the allocators
        self.devices = [
            Device(index, spec.profile, spec.memory, self.engine, self.settings)
            for index in range(spec.count)
        ]
        self.initialized = False
        self.asked = False  # for the number of devices
        self.forked = False
        self.sync_debug = 0  # 0: say nothing when the host waits, 1: warn, 2: raise
        self.side_streams = False  # has any stream but the default one ever been current?
        self.thread = _ThreadState()
        self._histories: list[list[tuple[int, dict[int, StreamState]]]] = []

    # -- devices -----------------------------------------------------------------------------

    def device(self, index: int | None = None) -> Device:
        """Return a device by number, or the current one.

        Raises
        ------
        torch.AcceleratorError
            "invalid device ordinal", as CUDA says.
        """
        if index is None or index < 0:
            index = self.thread.device
        if not 0 <= index < len(self.devices):
            raise cuda_error("invalid device ordinal")
        return self.devices[index]

    def set_device(self, index: int) -> int:
        """Make a device current in this thread; return the one before."""
        before = self.thread.device
        if not 0 <= index < len(self.devices):
            raise cuda_error("invalid device ordinal")
        self.thread.device = index
        return before

    def spend(self, seconds: float) -> None:
        """Count `seconds`, at real speed, of the calling thread's work on the host."""
        self.engine.spend(seconds * self.spec.profile.slowdown)

    # -- streams -----------------------------------------------------------------------------

    def stream(self, device: Device) -> StreamState:
        """Return the current stream of `device` in this thread."""
        return self.thread.streams.get(device.index, device.default)

    def set_stream(self, state: StreamState) -> None:
        """Make `state` the current stream of its device in this thread."""
        thread = self.thread
        if thread.streams.get(state.device.index, state.device.default) is state:
            return
        thread.streams = {**thread.streams, state.device.index: state}
        self.side_streams = True
        # Autograd numbers the nodes it makes: remember from which number on this stream was
        # current, so that a backward operator can run on the stream of its forward operator.
        changes, number = thread.changes, _sequence_number()
        if not changes:
            changes.append((-1, {}))
            self._histories.append(changes)
        if changes[-1][0] == number:
            changes.pop()
        changes.append((number, thread.streams))
        del changes[:-_KEPT]

    def launch_stream(self, device: Device) -> StreamState:
        """Return the stream that an operator launched now runs on.

        In backward that is the stream its forward operator ran on.
        """
        if not self.thread.begun:
            self.thread.begun = True
            self.spend(WORKER)
        if self.side_streams:
            node = _backward_node()
            if node is not None:
                return self._stream_of(node, device)
        return self.thread.streams.get(device.index, device.default)

    def _stream_of(self, node: Any, device: Device) -> StreamState:
        number = node._sequence_nr()
        if number >= 1 << 63:  # AccumulateGrad has no number of its own
            return self.stream(device)
        for changes in (self.thread.changes, *self._histories):
            place = bisect.bisect_right(changes, number, key=_first) - 1
            if place >= 0 and device.index in changes[place][1]:
                return changes[place][1][device.index]
        return device.default

    def begin_backward(self) -> None:
        """Forget what a pass left that failed or was stopped: autograd did not come to `_join`."""
        if _backward_node() is None:
            self.thread.joined.clear()

    def join_after_backward(self, state: StreamState) -> None:
        """Make the stream that called backward wait for `state` once backward is over.

        PyTorch does so for every stream that backward used.
        """
        joined = self.thread.joined
        if state in joined or state is self.stream(state.device):
            return
        joined.add(state)
        torch.autograd.Variable._execution_engine.queue_callback(self._join)

    def _join(self) -> None:
        joined = self.thread.joined
        while joined:
            state = joined.pop()
            here = self.stream(state.device)
            here.end = max(here.end, state.end)

    def warn_of_wait(self) -> None:
        """Say that the host waits, if ``torch.cuda.set_sync_debug_mode`` asked for it."""
        if self.sync_debug == 1:
            # CUDA's names the line that called into PyTorch; ours must not name the simulator's.
            frame, level = sys._getframe(1), 2
            while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
                frame, level = frame.f_back, level + 1
            warnings.warn("called a synchronizing CUDA operation", UserWarning, stacklevel=level)
        elif self.sync_debug == 2:
            raise RuntimeError("called a synchronizing CUDA operation")

    def state_of(self, stream: Any) -> StreamState:
        """Return what the device knows of a public stream object."""
        return self.device(stream.device_index).stream(stream.stream_id)

    # -- the end -----------------------------------------------------------------------------

    def stop(self) -> None:
        """End it: pending work is dropped, and its tensors raise from now on."""
        for device in self.devices:
            device.alive = False
        self.engine.stop()
        for device in self.devices:
            device.memory.close()


def _first(change: tuple[int, dict[int, StreamState]]) -> int:
    return change[0]


def refuse_fork() -> None:
    """Raise what CUDA raises in a forked child."""
    raise RuntimeError(
        "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you "
        "must use the 'spawn' start method"
    )


_current: Simulation | None = None


def current() -> Simulation:
    """Return the simulation that is running.

    Raises
    ------
    StoppedError
        When none is.
    """
    if _current is None:
        raise StoppedError("this")
    return _current


def running() -> Simulation | None:
    """Return the simulation that is running, or None."""
    return _current


def set_current(simulation: Simulation | None) -> None:
    """Make `simulation` the one that runs."""
    global _current
    _current = simulation
