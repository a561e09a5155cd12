"""The C layer under ``torch.cuda``: what ``torch._C._cuda_…`` answers while the simulator runs.

PyTorch's own Python code in ``torch.cuda`` and ``torch.accelerator`` runs unchanged on top, so
that its checks, its messages and its habits (lazy initialisation, for one) are its own.
"""

from __future__ import annotations

import numbers
import sys
import types
from collections.abc import Callable
from typing import Any

import torch

from . import collectives, memory_history, pinned
from .device import StreamState
from .errors import NotSimulatedError
from .runtime import Simulation

_CUDA = 1  # c10::DeviceType::CUDA


class DeviceProperties:
    """What ``torch.cuda.get_device_properties`` returns: the profile's published figures."""

    def __init__(self, simulation: Simulation, index: int) -> None:
        device = simulation.devices[index]
        profile = device.profile
        self.name = profile.device_name
        self.major, self.minor = profile.capability
        self.total_memory = device.memory.capacity
        self.multi_processor_count = profile.multiprocessors
        self.L2_cache_size = profile.l2_bytes
        self.clock_rate = int(profile.clock_hz / 1e3)
        self.warp_size = 32
        self.max_threads_per_multi_processor = profile.threads_per_multiprocessor
        self.regs_per_multiprocessor = 65536
        self.shared_memory_per_block = 49152
        self.max_threads_per_block = 1024
        # CUDA C++ Programming Guide, technical specifications per compute capability; a block
        # can ask for all but what the system keeps: 1 KiB from capability 8 on.
        self.shared_memory_per_multiprocessor = {(7, 5): 65536, (8, 0): 167936, (8, 9): 102400}.get(
            profile.capability, 233472
        )
        kept = 1024 if profile.capability >= (8, 0) else 0
        self.shared_memory_per_block_optin = self.shared_memory_per_multiprocessor - kept
        self.is_integrated = 0
        self.is_multi_gpu_board = 0
        self.gcnArchName = self.name
        self.uuid = f"00000000-0000-0000-0000-{index:012d}"
        self.pci_bus_id, self.pci_device_id, self.pci_domain_id = index, 0, 0

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // 2**20}MB, "
            f"multi_processor_count={self.multi_processor_count}, uuid={self.uuid}, "
            f"pci_bus_id={self.pci_bus_id}, pci_device_id={self.pci_device_id}, "
            f"pci_domain_id={self.pci_domain_id}, L2_cache_size={self.L2_cache_size // 2**20}MB)"
        )


DeviceProperties.__name__ = DeviceProperties.__qualname__ = "_CudaDeviceProperties"
DeviceProperties.__module__ = "torch.cuda"


class _Cudart(types.SimpleNamespace):
    """The few functions of the CUDA runtime that Python code calls."""

    class cudaError(int):
        """An error code."""

        success = 0


def functions(simulation: Simulation) -> dict[str, Any]:
    """Return the functions to put into ``torch._C``, by name."""
    table: dict[str, Any] = {}

    def bind(*names: str) -> Callable[[Any], Any]:
        def register(value: Any) -> Any:
            for name in names:
                table[name] = value
            return value

        return register

    _bind_devices(simulation, bind)
    _bind_streams(simulation, bind)
    _bind_memory(simulation, bind)
    table.update(collectives.FUNCTIONS)
    return table


Bind = Callable[..., Callable[[Any], Any]]


def _bind_devices(simulation: Simulation, bind: Bind) -> None:
    devices = simulation.devices

    @bind("_cuda_init")
    def init() -> None:
        simulation.settings.read_environment()
        simulation.initialized = True
        torch.cuda.default_generators = tuple(device.generator for device in devices)  # type: ignore[assignment]

        def properties(index: int) -> DeviceProperties:
            return DeviceProperties(simulation, index)

        torch.cuda._get_device_properties = properties  # type: ignore[attr-defined]

    bind("_cuda_isInBadFork")(lambda: simulation.forked)

    @bind("_cuda_getDeviceCount", "_accelerator_hooks_device_count")
    def device_count() -> int:
        simulation.asked = True  # asking is enough to spoil a fork, as with the CUDA runtime
        return len(devices)

    major, minor = simulation.spec.profile.capability
    bind("_cuda_getArchFlags")(lambda: f"sm_{major}{minor}")
    bind("_cuda_getCompiledVersion")(lambda: 0)
    bind("_cuda_hasPrimaryContext")(lambda index: simulation.initialized)
    bind("_cuda_getDevice", "_accelerator_getDeviceIndex", "_accelerator_hooks_get_current_device")(
        lambda: simulation.thread.device
    )
    bind("_cuda_setDevice", "_accelerator_setDeviceIndex", "_accelerator_hooks_set_current_device")(
        lambda index: None if index < 0 else _nothing(simulation.set_device(index))
    )

    @bind(
        "_cuda_exchangeDevice",
        "_cuda_maybeExchangeDevice",
        "_accelerator_exchangeDevice",
        "_accelerator_maybeExchangeDevice",
        "_accelerator_hooks_exchange_device",
        "_accelerator_hooks_maybe_exchange_device",
    )
    def exchange(index: int) -> int:
        return -1 if index < 0 else simulation.set_device(index)

    @bind("_cuda_canDeviceAccessPeer")
    def can_access_peer(index: int, peer: int) -> bool:
        return simulation.device(index) is not simulation.device(peer)

    @bind("_cuda_synchronize")
    def synchronize() -> None:
        simulation.device().synchronize()

    bind("_accelerator_synchronizeDevice")(lambda index: simulation.device(index).synchronize())
    bind("_cuda_hostMemoryStats")(pinned.stats)
    bind("_cuda_resetPeakHostMemoryStats")(pinned.reset_peak)
    bind("_cuda_resetAccumulatedHostMemoryStats")(pinned.reset_accumulated)
    bind("_host_emptyCache", "_accelerator_emptyHostCache")(pinned.forget)
    bind("_accelerator_getAccelerator")(lambda: torch.device("cuda"))

    @bind("_cuda_sleep")
    def sleep(cycles: Any) -> None:
        if isinstance(cycles, bool) or not isinstance(cycles, numbers.Integral):
            raise RuntimeError("torch.cuda._sleep(): expected 'int'")
        if not -(2**63) <= cycles < 2**63:  # type: ignore[operator]
            raise ValueError("Overflow when unpacking long long")
        device = simulation.device()
        device.sleep(simulation.launch_stream(device), int(cycles))

    bind("_cuda_ipc_collect")(lambda *args: None)

    @bind("_cuda_clearCublasWorkspaces")
    def clear_workspaces() -> None:
        for device in devices:
            device.workspaces.clear()

    @bind("_cuda_set_sync_debug_mode")
    def set_sync_debug_mode(mode: int) -> None:
        simulation.sync_debug = mode

    bind("_cuda_get_sync_debug_mode")(lambda: simulation.sync_debug)
    bind("_cuda_isCurrentStreamCapturing")(lambda: False)
    bind("_cuda_getAllocatorBackend")(lambda: "native")

    for name in (
        "_cuda_getCurrentBlasHandle",
        "_cuda_getCurrentSolverHandle",
        "_cuda_getStreamFromExternal",
        "_cuda_changeCurrentAllocator",
        "_cuda_customAllocator",
        "_cuda_cudaCachingAllocator_raw_alloc",
        "_cuda_cudaCachingAllocator_raw_delete",
        "_cuda_cudaCachingAllocator_enable",
        "_cuda_jiterator_compile_and_launch_kernel",
    ):
        bind(name)(_refusal(f"torch._C.{name}"))


def _bind_streams(simulation: Simulation, bind: Bind) -> None:
    def described(state: StreamState) -> tuple[int, int, int]:
        return (state.stream_id, state.device.index, _CUDA)

    bind("_cuda_getCurrentStream")(
        lambda index: described(simulation.launch_stream(simulation.device(index)))
    )
    bind("_cuda_getCurrentRawStream")(
        lambda index: simulation.stream(simulation.device(index)).handle
    )
    bind("_cuda_getDefaultStream")(lambda index: described(simulation.device(index).default))

    @bind("_cuda_setStream")
    def set_stream(stream_id: int, device_index: int, device_type: int = _CUDA) -> None:
        simulation.set_device(device_index)
        simulation.set_stream(simulation.device(device_index).stream(stream_id))

    @bind("_accelerator_getStream")
    def get_stream(index: int) -> Any:
        return torch.cuda.current_stream(index)

    bind("_accelerator_setStream")(lambda stream: set_stream(stream.stream_id, stream.device_index))


def _bind_memory(simulation: Simulation, bind: Bind) -> None:
    def memory(index: int | None) -> Any:
        if index is not None and index >= len(simulation.devices):
            # PyTorch prints the number as a character; so does this.
            raise RuntimeError(f"Invalid device argument {chr(index)}: did you call init?")
        return simulation.device(index).memory

    @bind("_cuda_emptyCache", "_accelerator_emptyCache")
    def empty_cache() -> None:
        for device in simulation.devices:
            device.memory.empty_cache()

    bind("_cuda_memoryStats", "_accelerator_getDeviceStats")(lambda index: memory(index).stats())
    bind("_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats")(
        lambda index: memory(index).reset_peak()
    )
    bind("_cuda_resetAccumulatedMemoryStats", "_accelerator_resetAccumulatedStats")(
        lambda index: memory(index).reset_accumulated()
    )
    bind("_accelerator_isAllocatorInitialized")(lambda: simulation.initialized)

    @bind("_cuda_setMemoryFraction")
    def set_fraction(fraction: float, index: int) -> None:
        if index >= len(simulation.devices):
            raise RuntimeError(
                f"Allocator not initialized for device {chr(index)}: did you call init?"
            )
        memory(index).fraction = float(fraction)

    bind("_cuda_getMemoryFraction")(lambda index: memory(index).limit / memory(index).capacity)

    allocators = [device.memory for device in simulation.devices]

    @bind("_cuda_memorySnapshot")
    def snapshot(which: Any = None, include_traces: bool = True) -> dict[str, Any]:
        # None, the id of a pool, or (from torch 2.13 on) the id and whether to include traces
        if isinstance(which, tuple) and len(which) == 3:
            *which, include_traces = which
        if which is not None and tuple(which) != (0, 0):
            raise NotSimulatedError("a snapshot of a torch.cuda.MemPool")
        found = memory_history.snapshot(allocators)
        if not include_traces:
            found["device_traces"] = [[] for _ in allocators]
        return found

    @bind("_cuda_record_memory_history")
    def record_history(
        enabled: str | None = "all",
        context: str | None = "all",
        stacks: str = "all",
        max_entries: int = sys.maxsize,
        clear_history: bool = False,
        compile_context: bool = False,
        global_record_annotations: bool = False,
        skip_actions: Any = (),
        *more: Any,
    ) -> None:
        memory_history.check_options(enabled, context, stacks)
        keep = max_entries if enabled == "all" else 1
        for allocator in allocators:
            before = allocator.history
            allocator.history = None
            if enabled is not None:
                history = memory_history.History(context, keep, frozenset(skip_actions or ()))
                if before is not None and not clear_history:
                    history.entries.extend(before.entries)
                allocator.history = history

    @bind("_cuda_record_memory_history_legacy")
    def record_history_legacy(
        enabled: bool,
        record_context: bool = True,
        trace_alloc_max_entries: int = 1,
        trace_alloc_record_context: bool = False,
        record_context_cpp: bool = False,
        clear_history: bool = False,
        *more: Any,
    ) -> None:
        context = None
        if enabled and record_context:
            context = "alloc" if trace_alloc_record_context else "state"
        entries = trace_alloc_max_entries
        record_history("all" if enabled else None, context, "all", entries, clear_history)

    bind("_cuda_isHistoryEnabled")(lambda: allocators[0].history is not None)
    bind("_cuda_setMemoryMetadata")(memory_history.set_metadata)
    bind("_cuda_getMemoryMetadata")(memory_history.metadata)
    bind("_cuda_memoryMetadataSupported")(lambda: True)
    bind("_cuda_allocationTraceback")(
        lambda address: memory_history.traceback_of(allocators, address)
    )
    bind("_accelerator_setAllocatorSettings", "_cuda_cudaCachingAllocator_set_allocator_settings")(
        simulation.settings.parse
    )
    bind("_accelerator_getAllocatorSettings")(lambda: simulation.settings.text)

    def mem_get_info(index: int) -> tuple[int, int]:
        allocator = simulation.device(index).memory
        allocator.collect()
        return (allocator.capacity - allocator.reserved(), allocator.capacity)

    bind("_accelerator_getMemoryInfo")(mem_get_info)

    class Cudart(_Cudart):
        @staticmethod
        def cudaMemGetInfo(index: int) -> tuple[int, int]:
            return mem_get_info(index)

        @staticmethod
        def cudaDeviceSynchronize() -> int:
            simulation.device().synchronize()
            return 0

        @staticmethod
        def cudaGetErrorString(code: int) -> str:
            return "no error" if not code else "unknown error"

        def __getattr__(self, name: str) -> Any:
            raise NotSimulatedError(f"torch.cuda.cudart().{name}")

    bind("_cudart")(Cudart())


def _nothing(_: Any) -> None:
    return None


def _refusal(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotSimulatedError(name)

    return refuse
