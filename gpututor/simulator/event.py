"""``torch.cuda.Event`` of the simulator: a moment of a stream.

When the host records an event its simulated time is known at once; only whether that time has
come is a question to the clock.
"""

from __future__ import annotations

from typing import Any

import torch

from . import runtime
from .device import StreamState
from .errors import NotSimulatedError, cuda_error

_TorchEvent = torch.Event
_TorchStream = torch.Stream


class Event(_TorchEvent):
    """A marker in a stream's queue: to wait for, to ask about, to measure time with."""

    _timing: bool
    _state: StreamState | None
    _when: float

    def __new__(  # noqa: D102
        cls,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> Event:
        if interprocess:
            raise NotSimulatedError("an Event shared between processes")
        self: Event = super().__new__(cls)
        self._timing = bool(enable_timing)
        self._state, self._when = None, 0.0
        return self

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def record(self, stream: Any = None) -> None:
        """Mark the end of what `stream` (the current one by default) has queued so far."""
        simulation = runtime.current()
        if stream is None:
            torch.cuda._lazy_init()
            state = simulation.launch_stream(simulation.device())
        else:
            if not isinstance(stream, _TorchStream):
                raise RuntimeError(
                    "expected stream to be a torch.Stream or torch.cuda.Stream object"
                )
            state = simulation.state_of(stream)
        device = state.device
        if self._state is not None and self._state.device is not device:
            raise RuntimeError(
                f"Event device {self._state.device.index} does not match recording stream's "
                f"device {device.index}."
            )
        if device.failure is not None:
            raise device.error()
        arrives = device.engine.ready(max(state.end, device.engine.spend(device.launch_cost)))
        state.end = max(state.end, arrives)
        self._state, self._when = state, state.end

    def wait(self, stream: Any = None) -> None:
        """Make all later work of `stream` (the current one by default) wait for this event."""
        simulation = runtime.current()
        if self._state is None:
            return
        if stream is None:
            state = simulation.launch_stream(simulation.device())
        else:
            state = simulation.state_of(stream)
        state.end = max(state.end, self._when)

    def query(self) -> bool:
        """Tell whether everything before the event is done; True if it was never recorded."""
        return self._state is None or self._state.device.reached(self._when)

    def synchronize(self) -> None:
        """Block the host until everything before the event is done."""
        if self._state is not None:
            self._state.device.wait(self._when)

    def elapsed_time(self, end_event: Any) -> float:
        """Return the milliseconds of simulated time from this event to `end_event`."""
        if not isinstance(end_event, _TorchEvent):
            raise RuntimeError("expected other to be a torch.cuda.Event object")
        if not (self._timing and isinstance(end_event, Event) and end_event._timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._state is None or end_event._state is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        if self._state.device is not end_event._state.device:
            raise cuda_error("invalid resource handle")
        return float((end_event._when - self._when) * 1e3)

    @property
    def device(self) -> Any:  # type: ignore[override]
        """The device it was recorded on, or None."""
        return None if self._state is None else self._state.device.torch_device

    @property
    def cuda_event(self) -> int:
        """A number that stands for it; 0 before it is recorded."""
        return 0 if self._state is None else id(self)

    @property
    def event_id(self) -> int:  # type: ignore[override]
        """A number that stands for it; 0 before it is recorded."""
        return self.cuda_event

    def ipc_handle(self) -> Any:
        """Refuse: the simulator shares nothing between processes."""
        raise NotSimulatedError("Event.ipc_handle")

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: Any) -> Any:
        """Refuse: the simulator shares nothing between processes."""
        raise NotSimulatedError("Event.from_ipc_handle")

    def __repr__(self) -> str:
        if self._state is None:
            return "<torch.cuda.Event uninitialized>"
        return f"<torch.cuda.Event {self.cuda_event:#x}>"


class _StandIn(type):
    """Lets the name ``torch.Event`` make simulated events and still know all events."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _TorchEvent)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, _TorchEvent)


class GenericEvent(metaclass=_StandIn):
    """What ``torch.Event`` is while the simulator runs."""

    def __new__(cls, device: Any = None, *, enable_timing: bool = False, **kwargs: Any) -> Any:  # noqa: D102
        if device is not None and torch.device(device).type != "cuda":
            return _TorchEvent(device, enable_timing=enable_timing, **kwargs)
        return Event(enable_timing=enable_timing, **kwargs)


Event.__module__ = "torch.cuda.streams"
GenericEvent.__name__ = GenericEvent.__qualname__ = "Event"
GenericEvent.__module__ = "torch"
