"""``torch.cuda.Stream`` of the simulator: a handle to what its device keeps of a stream."""

from __future__ import annotations

from typing import Any

import torch

from . import runtime
from .device import MOST_URGENT, StreamState
from .event import Event

_TorchStream = torch.Stream
_CUDA = 1  # c10::DeviceType::CUDA


class Stream(_TorchStream):
    """A queue of work on one device, in order in itself and in none with other streams."""

    _state: StreamState

    def __new__(cls, device: Any = None, priority: int = 0, **kwargs: Any) -> Stream:  # noqa: D102
        torch.cuda._lazy_init()
        simulation = runtime.current()
        if "stream_id" in kwargs and "device_index" in kwargs:
            state = simulation.device(kwargs["device_index"]).stream(kwargs["stream_id"])
        else:
            index = torch.cuda._utils._get_device_index(device, optional=True)
            state = simulation.device(index).new_stream(int(priority))
        self: Stream = super().__new__(
            cls,
            stream_id=state.stream_id,
            device_index=state.device.index,
            device_type=_CUDA,
        )
        self._state = state
        return self

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    @property
    def cuda_stream(self) -> int:
        """The handle, as an integer; 0 is the default stream."""
        return self._state.handle

    @property
    def native_handle(self) -> int:
        """The handle, as an integer; 0 is the default stream."""
        return self._state.handle

    @property
    def _as_parameter_(self) -> Any:
        import ctypes

        return ctypes.c_void_p(self.cuda_stream)

    @property
    def priority(self) -> int:
        """Its priority: lower goes first. The simulator accepts it and treats all alike."""
        return self._state.priority

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Return the lowest and the highest priority."""
        return (0, MOST_URGENT)

    def wait_event(self, event: Any) -> None:
        """Make all later work of this stream wait for `event`."""
        event.wait(self)

    def wait_stream(self, stream: Any) -> None:
        """Make all later work of this stream wait for what `stream` has queued so far."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Any = None) -> Any:
        """Record an event, a new one unless given, and return it."""
        if event is None:
            event = Event()
        event.record(self)
        return event

    def is_capturing(self) -> bool:
        """Return False: CUDA graphs are not simulated."""
        return False

    def query(self) -> bool:
        """Tell whether all its work is done."""
        return self._state.device.reached(self._state.end)

    def synchronize(self) -> None:
        """Block the host until all its work is done."""
        self._state.device.wait(self._state.end)

    def __enter__(self) -> Stream:
        stack = self.__dict__.setdefault("_entered", [])
        context = torch.cuda.stream(self)  # type: ignore[arg-type]
        context.__enter__()
        stack.append(context)
        return self

    def __exit__(self, *error: Any) -> None:
        self.__dict__["_entered"].pop().__exit__(*error)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other._state is self._state

    def __hash__(self) -> int:
        return hash((self.cuda_stream, self.device))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream of another library, by its handle: the simulator has none."""

    def __new__(cls, stream_ptr: int, device: Any = None, **kwargs: Any) -> ExternalStream:  # noqa: D102
        from .errors import NotSimulatedError

        raise NotSimulatedError("torch.cuda.ExternalStream")


class _StandIn(type):
    """Lets the name ``torch.Stream`` make simulated streams and still know all streams."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _TorchStream)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, _TorchStream)


class GenericStream(metaclass=_StandIn):
    """What ``torch.Stream`` is while the simulator runs."""

    def __new__(cls, device: Any = None, *, priority: int = 0, **kwargs: Any) -> Any:  # noqa: D102
        if device is not None and torch.device(device).type != "cuda":
            return _TorchStream(device, priority=priority, **kwargs)
        return Stream(device, priority, **kwargs)


for _class in (Stream, ExternalStream):
    _class.__module__ = "torch.cuda.streams"
GenericStream.__name__ = GenericStream.__qualname__ = "Stream"
GenericStream.__module__ = "torch"
