"""One simulated GPU: its streams, its multiprocessors and copy engines, and how it fails."""

from __future__ import annotations

import bisect
import math
import os
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from .engine import Engine, Work
from .errors import StoppedError, cuda_error, kernel_failure
from .memory import Allocator
from .memory_settings import Settings
from .profiles import Profile
from .random import Generator
from .workspace import Workspaces

#: Seconds of a sleeping kernel that are waited out; a longer one sets the clock forward.
LONGEST_SLEEP = 2.0
#: Seconds the host is held at the first launch of each kernel on a device, while the driver loads
#: it. Chosen: a real one takes longer (measured on an NVIDIA H200, torch 2.11, 30 November 2026:
#: 3 ms for `cos`, 28 for the first kernel of all, 180 for the first matmul), a lesson should not.
LOADING = 2e-3
MOST_URGENT = -3  # PyTorch keeps four pools of streams, from 0 down
POOL = 32  # streams of one device and priority; the 33rd is the first again


class Resource:
    """Something that kernels share, such as the multiprocessors: at most 1.0 of it at a time."""

    def __init__(self) -> None:
        self._taken: list[_Slot] = []  # by end

    def reserve(
        self, ready: float, duration: float, fills: float, now: float
    ) -> tuple[float, float]:
        """Take a share for `duration` from the first moment at or after `ready`.

        Parameters
        ----------
        ready, duration : float
            Simulated seconds.
        fills : float
            How much is asked for: from 1 on all of it, in that many waves one after the other.
        now : float
            Simulated time: what was taken until then is forgotten.

        Returns
        -------
        tuple of float
            When the share is free, and when the first block gets in. That is earlier where others
            leave some room, or drain: in its last wave a kernel gives up one multiprocessor after
            the other, and the hardware hands them to whatever waits.
        """
        taken = self._taken
        if taken and taken[0].end < now:
            del taken[: bisect.bisect_left(taken, now, key=_end)]
        share = min(1.0, fills)
        start = enters = ready
        while taken and taken[-1].end > ready:  # else nothing is in its way: one stream, mostly
            first = bisect.bisect_right(taken, start, key=_end)
            rivals = [slot for slot in taken[first:] if slot.start < start + duration]
            if not rivals or share + _busiest(rivals, start, start + duration) <= 1.0:
                break
            if start == ready:
                running = [slot for slot in rivals if slot.start <= ready]
                if sum(slot.share for slot in running) >= 1.0:
                    enters = max(ready, min(slot.drains for slot in running))
            start = rivals[0].end
        end = start + duration
        drains = end - duration / math.ceil(fills) if fills > 1.0 else end
        slot = _Slot(end, start, share, drains)
        if not taken or taken[-1].end <= end:
            taken.append(slot)
        else:
            bisect.insort(taken, slot, key=_end)
        return start, enters


class _Slot(NamedTuple):
    """A share of a resource, from `start` to `end`; in its last wave from `drains` on."""

    end: float
    start: float
    share: float
    drains: float


def _end(slot: _Slot) -> float:
    return slot.end


def _busiest(slots: list[_Slot], start: float, end: float) -> float:
    """Return the largest sum of shares taken at once between `start` and `end`."""
    moments = [start, *(slot.start for slot in slots if start < slot.start < end)]
    return max(
        sum(slot.share for slot in slots if slot.start <= moment < slot.end) for moment in moments
    )


class StreamState:
    """What a device knows of one of its streams.

    Attributes
    ----------
    end : float
        Simulated time at which everything queued so far is done.
    """

    __slots__ = ("device", "end", "handle", "priority", "stream_id")

    def __init__(self, device: Device, stream_id: int, handle: int, priority: int) -> None:
        self.device = device
        self.stream_id = stream_id
        self.handle = handle
        self.priority = priority
        self.end = 0.0


class Device:
    """One simulated GPU.

    Parameters
    ----------
    index : int
        Its number, as in ``cuda:0``.
    profile : Profile
        The GPU it stands for.
    memory : int
        Its memory in bytes.
    engine : Engine
        The clock and worker it shares with the other devices.
    settings : Settings, optional
        What the allocators of all devices are told.
    """

    def __init__(
        self,
        index: int,
        profile: Profile,
        memory: int,
        engine: Engine,
        settings: Settings | None = None,
    ) -> None:
        self.index = index
        self.profile = profile
        self.engine = engine
        self.torch_device = torch.device("cuda", index)
        self.memory = Allocator(self, memory, settings)
        self.workspaces = Workspaces(self)
        self.generator = Generator(self.torch_device)
        self.alive = True
        self.blocking = os.environ.get("CUDA_LAUNCH_BLOCKING") == "1"
        self.lock = threading.Lock()
        self.launch_cost = profile.launch_seconds * profile.slowdown
        self.shortest = profile.kernel_seconds * profile.slowdown
        self.multiprocessors = Resource()
        self.copies_in = Resource()
        self.copies_out = Resource()
        self.default = StreamState(self, 0, 0, 0)
        self.loaded: set[str] = set()  # kernels launched before
        self.geometries: dict[Any, Any] = {}  # see tensor.geometry
        self._pools: dict[int, list[StreamState]] = {}
        self._next: dict[int, int] = {}

    @property
    def failure(self) -> str | None:
        """Why the devices of this process have failed; None while they work."""
        return self.engine.failure

    @failure.setter
    def failure(self, value: str | None) -> None:
        self.engine.failure = value

    # -- streams -----------------------------------------------------------------------------

    def new_stream(self, priority: int) -> StreamState:
        """Return the next stream of the pool of this priority, from 0 down to -3."""
        priority = min(0, max(priority, MOST_URGENT))
        pool = self._pools.setdefault(priority, [])
        turn = self._next.get(priority, 0)
        self._next[priority] = turn + 1
        if len(pool) < POOL:
            number = turn + 1
            # The layout of c10's stream ids: low bits say which pool, then the index in it.
            stream_id = (number << 5) | (3 - 2 * priority)
            handle = 0x5500_0000_0000 + (self.index << 20) + stream_id * 16
            pool.append(StreamState(self, stream_id, handle, priority))
        return pool[turn % POOL]

    def stream(self, stream_id: int) -> StreamState:
        """Return the stream of that id."""
        for pool in self._pools.values():
            for state in pool:
                if state.stream_id == stream_id:
                    return state
        if stream_id == 0:
            return self.default
        raise RuntimeError(f"cuda:{self.index} has no stream with id {stream_id}")

    def streams(self) -> list[StreamState]:
        """Return every stream that exists."""
        return [self.default, *(state for pool in self._pools.values() for state in pool)]

    # -- work --------------------------------------------------------------------------------

    def launch(
        self,
        stream: StreamState,
        seconds: float,
        work: Work | None,
        *,
        resource: Resource | None = None,
        share: float = 1.0,
        after: float = 0.0,
        copies: bool = False,
    ) -> float:
        """Queue work on `stream` and return at once.

        Parameters
        ----------
        stream : StreamState
            Where.
        seconds : float
            Simulated seconds it takes.
        work : Work or None
            What happens when it begins and when it ends; None for nothing but time.
        resource : Resource, optional
            What it shares with work on other streams; the multiprocessors by default.
        share : float
            How much of that; above 1, a kernel takes all of it in so many waves.
        after : float
            Simulated time before which it cannot start.
        copies : bool
            It only does something at its end.

        Returns
        -------
        float
            The simulated time at which it ends.
        """
        engine = self.engine
        if self.failure is not None:
            raise self.error()
        with self.lock:
            arrives = engine.spend(self.launch_cost)
            begin = engine.ready(max(stream.end, arrives, after))
            resource = resource or self.multiprocessors
            begin, enters = resource.reserve(begin, seconds, share, engine.now())
            stream.end = end = begin + seconds
        if work is not None:
            engine.submit(enters, end, work, copies=copies)
        if self.blocking:
            self.wait(end)
        return end

    def load(self, name: str) -> None:
        """Hold the host while the kernel `name` is loaded, at its first launch."""
        self.loaded.add(name)
        self.engine.hold(LOADING)

    def sleep(self, stream: StreamState, cycles: int) -> None:
        """Keep `stream` busy for `cycles` of the clock: ``torch.cuda._sleep``.

        It is one thread, which leaves room for any other kernel.
        """
        seconds = max(cycles, 0) / self.profile.clock_hz * self.profile.slowdown
        end = self.launch(stream, seconds, None, share=0.0)
        if seconds > LONGEST_SLEEP:
            clock = Task(self, "_sleep", lambda: self.engine.jump(end))
            moment = end - seconds + LONGEST_SLEEP
            self.engine.submit(moment, moment, clock, copies=True)

    # -- waiting -----------------------------------------------------------------------------

    def wait(self, when: float) -> None:
        """Block the host until `when`; raise what has failed by then."""
        self.check_alive()
        self.engine.wait(when)
        if self.failure is not None:
            raise self.error()

    def reached(self, when: float) -> bool:
        """Tell whether `when` has come; raise what has failed by then."""
        self.check_alive()
        done = self.engine.reached(when)
        if self.failure is not None:
            raise self.error()
        return done

    def synchronize(self) -> None:
        """Block the host until every stream is done; raise what has failed."""
        self.wait(max(state.end for state in self.streams()))

    def finish(self) -> None:
        """Block the host until every stream is done, whatever has failed."""
        self.check_alive()
        self.engine.wait(max(state.end for state in self.streams()))

    def error(self) -> RuntimeError:
        """Return the error that this device now answers everything with."""
        self.engine.told = True
        return cuda_error(self.failure or "unknown error")

    def fail(self, name: str, error: BaseException) -> BaseException:
        """Return what the host gets for an operator that failed while it waited.

        A failed assertion of a kernel poisons the device; anything else is the operator's own.
        """
        message = kernel_failure(name, error)
        if not message.startswith("device-side"):
            return error
        self.failure = message
        return self.error()

    def poison(self, name: str, error: BaseException) -> None:
        """Fail because of what the kernel `name` raised; the first failure stays."""
        if self.failure is None:
            self.failure = kernel_failure(name, error)

    def check_alive(self) -> None:
        """Raise if the simulator has been stopped."""
        if not self.alive:
            raise StoppedError("this device")

    def reset(self) -> None:
        """Forget a failure, so that the device works again. A real one needs a new process."""
        self.finish()
        self.failure = None


class Task:
    """Work of one function, done when its time ends: a copy, say.

    Parameters
    ----------
    device : Device
        The device that fails if it fails.
    name : str
        What it is called when it fails.
    do : callable
        What is done.
    """

    __slots__ = ("_device", "_do", "_name")

    def __init__(self, device: Device, name: str, do: Callable[[], Any]) -> None:
        self._device = device
        self._name = name
        self._do = do

    def start(self) -> None:
        """Do nothing: a copy reads its source when its time ends."""

    def finish(self) -> None:
        """Do it, unless the device has failed."""
        if self._device.failure is None:
            self._do()

    def failed(self, error: BaseException) -> None:
        """Let the device fail."""
        self._device.poison(self._name, error)
