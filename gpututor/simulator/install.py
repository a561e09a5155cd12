"""Putting the simulated GPU under ``torch.cuda``, and taking it away again."""

from __future__ import annotations

import atexit
import copy
import functools
import importlib
import os
import sys
import threading
import types
import warnings
from typing import Any

import torch
import torch.backends.cudnn
import torch.backends.cudnn.rnn
import torch.nn.modules.rnn
from torch.amp import autocast_mode
from torch.autograd import graph
from torch.jit import _builtins
from torch.utils._device import DeviceContext

from . import (
    attention,
    autocast,
    bindings,
    cells,
    collectives,
    factories,
    inside,
    lazy,
    methods,
    operators,
    pinned,
    profiler,
    random,
    randomness,
    refusals,
    rnn,
    runtime,
    storage,
    tensor,
    transforms,
)
from .event import Event, GenericEvent
from .profiles import Profile, Spec
from .runtime import Simulation
from .stream import ExternalStream, GenericStream, Stream

# PyTorch imports these at its first meta kernel and its first wrapper tensor. Imported here, they
# neither delay a learner's first operator nor leave marks in torch that `uninstall` would miss.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyTorch's, about its own use of torch.jit
    try:
        importlib.import_module("torch._dynamo")
    except FileNotFoundError as error:
        raise OSError(
            f"PyTorch needs a folder for temporary files: {error.strerror}. Free some space, or "
            "set the variable TMPDIR to a folder that can be written, before Python starts."
        ) from None
    importlib.import_module("torch._decomp.decompositions_for_jvp")
    if torch.distributed.is_available():
        importlib.import_module("torch.distributed.tensor")

_ABSENT = object()


class _Changes:
    """Remembers each attribute it sets, to put everything back."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Set ``owner.name``."""
        self._undo.append((owner, name, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, value)

    def replaced(self) -> list[tuple[Any, str, Any]]:
        """Return what has been set: owner, name and the value before."""
        return list(self._undo)

    def keep(self, owner: Any, name: str) -> None:
        """Remember ``owner.name``, which somebody else will set."""
        self._undo.append((owner, name, vars(owner).get(name, _ABSENT)))

    def undo(self) -> None:
        """Put everything back."""
        while self._undo:
            owner, name, before = self._undo.pop()
            if before is _ABSENT:
                if name in vars(owner):
                    delattr(owner, name)
            else:
                setattr(owner, name, before)


_changes = _Changes()


def install(spec: Spec) -> Simulation:
    """Start simulating `spec` under ``torch.cuda``.

    Parameters
    ----------
    spec : Spec
        Which GPU, how many, how much memory.

    Returns
    -------
    Simulation
        What now runs. `uninstall` ends it.
    """
    simulation = Simulation(spec)
    runtime.set_current(simulation)
    try:
        _install(simulation)
    except BaseException:
        uninstall()
        raise
    _watch_forks()
    return simulation


def failure() -> str | None:
    """Return why the simulated devices work no more; None while they do."""
    simulation = runtime.running()
    return None if simulation is None else simulation.engine.failure


def profile() -> Profile:
    """Return the profile of the devices that are simulated now."""
    return runtime.current().devices[0].profile


def uninstall() -> None:
    """Leave torch attribute for attribute as it was, and end the simulation."""
    simulation = runtime.running()
    if simulation is None:
        return
    _changes.undo()
    autocast.forget()
    torch.cuda._check_bf16_tensor_supported.cache_clear()
    runtime.set_current(None)
    pinned.forget()
    simulation.stop()
    operators.forget()


def _install(simulation: Simulation) -> None:
    change = _changes.set
    table = bindings.functions(simulation)
    cudart = table.pop("_cudart")
    for name, function in table.items():
        change(torch._C, name, function)
    cuda: Any = torch.cuda
    for name in ("_exchange_device", "_maybe_exchange_device"):
        change(cuda, name, table["_cuda_exchangeDevice"])
    change(cuda, "_cudart", cudart)
    change(cuda, "_is_in_bad_fork", table["_cuda_isInBadFork"])
    change(cuda, "_device_count_nvml", lambda: -1)
    change(cuda, "_cached_device_count", None)
    change(cuda, "_initialized", False)
    change(cuda, "_queued_calls", [])
    change(cuda, "_lazy_seed_tracker", copy.copy(cuda._lazy_seed_tracker))
    _changes.keep(cuda, "default_generators")
    _changes.keep(cuda, "_get_device_properties")
    change(cuda, "_CudaDeviceProperties", bindings.DeviceProperties)
    change(torch._C, "_has_cuda", True)

    for module in (cuda, cuda.streams):
        change(module, "Stream", Stream)
        change(module, "Event", Event)
        change(module, "ExternalStream", ExternalStream)
    change(torch, "Stream", GenericStream)
    change(torch, "Event", GenericEvent)
    change(torch, "Generator", _generator_class())
    for name, legacy in methods.legacy_types().items():
        change(cuda, name, legacy)

    _install_factories()
    for name, build in methods.METHODS.items():
        original = getattr(torch.Tensor, name)
        change(torch.Tensor, name, methods.heard(name, build(original)))
    for name in (
        "new_empty",
        "new_zeros",
        "new_ones",
        "new_full",
        "new_tensor",
        "new_empty_strided",
    ):
        change(torch.Tensor, name, factories.make_new(name, getattr(torch.Tensor, name)))

    change(
        torch,
        "set_default_tensor_type",
        methods.set_default_tensor_type(torch.set_default_tensor_type),
    )
    change(torch.nn.functional, "one_hot", methods.one_hot(torch.nn.functional.one_hot))
    for name in methods.DRAWING:
        change(torch.Tensor, name, methods.drawing(getattr(torch.Tensor, name)))
    for name in ("bernoulli", "multinomial", "poisson"):
        change(torch, name, methods.drawing(getattr(torch, name)))
    for name, build in (("to", storage.to), ("cuda", storage.cuda)):
        change(torch.UntypedStorage, name, build(getattr(torch.UntypedStorage, name)))
    for name in rnn.NAMES:
        layer = rnn.make(name, getattr(torch._C._VariableFunctions, name))
        change(torch, name, layer)
        change(torch._VF, name, layer)
    originals = torch._C._VariableFunctions
    for name, build in (("_pack_padded_sequence", rnn.pack), ("_pad_packed_sequence", rnn.pad)):
        change(torch._VF, name, build(getattr(originals, name)))
        change(torch, name, build(getattr(originals, name)))
    dropout = randomness.dropout(originals.dropout)
    for module in (torch, torch._VF):
        change(module, "dropout", dropout)
    for owner, names in inside.COMPOSITES:
        for name in names:
            if hasattr(owner, name):
                change(owner, name, inside.composite(getattr(owner, name)))
    for module in (torch, torch._VF):
        change(module, "lstm_cell", cells.lstm_cell(originals.lstm_cell))
        change(module, "gru_cell", cells.gru_cell(originals.gru_cell))
    change(torch, "rms_norm", cells.rms_norm(originals.rms_norm))
    change(torch.nn.Parameter, "__new__", staticmethod(_parameter(torch.nn.Parameter.__new__)))
    plain = torch.nn.functional.scaled_dot_product_attention
    change(
        torch.nn.functional,
        "scaled_dot_product_attention",
        attention.make(inside.composite(plain)),
    )
    for module in (torch.autograd, torch.autograd.graph):
        change(module, "_engine_run_backward", inside.backward(graph._engine_run_backward))
    for name in ("device", "is_cuda", "is_cpu"):
        change(torch.Tensor, name, transforms.answering(name, getattr(torch.Tensor, name)))
    change(torch.Tensor, "get_device", transforms.get_device(torch.Tensor.get_device))
    mixin = lazy.Mixin
    moves = [getattr(torch.Tensor, name) for name in ("to", "cuda", "cpu", "get_device")]
    change(mixin, "_allowed_methods", [*mixin._allowed_methods, *moves])
    change(mixin, "materialize", lazy.materialize(mixin.materialize))
    change(mixin, "data", lazy.data(torch.Tensor.data))
    change(mixin, "device", property(lazy.device))
    change(mixin, "is_cuda", property(lambda value: value.device.type == "cuda"))
    for kind in lazy.KINDS:
        change(kind, "__new__", lazy.new(kind.__new__))
    for name in ("enter_dual_level", "exit_dual_level"):
        original = getattr(torch.autograd.forward_ad, name)
        change(torch.autograd.forward_ad, name, getattr(transforms, name)(original))
    for owner in (torch, torch.Tensor):
        change(owner, "tensor_split", methods.tensor_split(owner.tensor_split))
    # The fast path of attention layers makes nested tensors, which are not simulated.
    change(torch.backends.mha, "get_fastpath_enabled", lambda: False)
    for owner, name, refusal in refusals.functions():
        change(owner, name, refusal)
    copying = "_replicate_for_data_parallel"
    change(torch.nn.Module, copying, collectives.replicate(getattr(torch.nn.Module, copying)))
    change(torch.nn.parallel._functions, "_streams", None)  # side streams of the devices before
    change(cuda.nccl, "is_available", lambda tensors: False)
    change(cuda.nvtx, "_nvtx", _Nvtx())
    change(torch.autograd.profiler.emit_nvtx, "__enter__", lambda self: self)
    change(torch.autograd.profiler.emit_nvtx, "__exit__", lambda self, *error: None)
    change(cuda.graphs, "_cuda_isCurrentStreamCapturing", lambda: False)
    change(cuda.tunable, "is_enabled", lambda: False)
    _install_device()
    change(torch.backends.cudnn, "is_acceptable", rnn.is_acceptable)
    change(torch.backends.cudnn.rnn, "get_cudnn_mode", rnn.MODES.__getitem__)
    change(torch, "_use_cudnn_rnn_flatten_weight", lambda: True)
    change(torch, "_cudnn_rnn_flatten_weight", rnn.flatten_weight)
    change(autocast_mode.autocast, "__enter__", autocast.enter(autocast_mode.autocast.__enter__))
    change(torch, "set_autocast_enabled", autocast.flag(torch.set_autocast_enabled))
    change(autocast_mode.autocast, "__exit__", autocast.leave(autocast_mode.autocast.__exit__))
    change(torch, "get_device", lambda value: value.get_device())
    for profile in (
        torch.profiler.profile,
        torch.profiler.profiler._KinetoProfile,
        torch.autograd.profiler.profile,
    ):
        change(profile, "__init__", profiler.initialiser(profile.__init__))
    for module in (torch.profiler, torch.profiler.profiler):
        activities = profiler.supported(module.supported_activities)
        change(module, "supported_activities", activities)
    _add_types(_changes)
    _teach_script()


def _install_factories() -> None:
    change = _changes.set
    replacements: dict[Any, Any] = {}
    found = factories.originals()
    for module, name, original in found["make"]:
        replacement = replacements.setdefault(original, factories.make(name, original))
        change(module, name, replacement)
    for module, name, original in found["like"]:
        replacement = replacements[original] = factories.make_like(name, original)
        change(module, name, replacement)
    _replace_imported({id(original): new for original, new in replacements.items()})
    default = factories.DefaultDevice(
        {original: replacements[original] for _, _, original in found["make"]}
    )
    change(DeviceContext, "__torch_function__", default.method())


class _Nvtx:
    """Ranges for a profiler that is not there: they only annotate, so they do nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args: -2  # what the library answers where no profiler listens


class _DeviceType(type):
    """Lets ``torch.device(0)`` mean ``cuda:0`` where PyTorch was built without CUDA."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], int) and not isinstance(args[0], bool):
            return _Device("cuda", *args, **kwargs)
        return _Device(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Device)


_Device = torch.device


def _install_device() -> None:
    try:
        torch.device(0)
    except RuntimeError:
        body = {"__module__": "torch", "__qualname__": "device"}
        _changes.set(torch, "device", _DeviceType("device", (), body))


def _replace_imported(replacements: dict[int, Any]) -> None:
    """Replace functions that other modules have imported by name: ``from torch import zeros``."""
    own = __name__.rpartition(".")[0]
    for name, module in list(sys.modules.items()):
        if not isinstance(module, types.ModuleType) or name.startswith(own):
            continue
        attributes = vars(module)
        if replacements.keys().isdisjoint(map(id, list(attributes.values()))):
            continue
        for attribute, value in list(attributes.items()):
            replacement = replacements.get(id(value))
            if replacement is not None and name != "torch._C._VariableFunctions":
                _changes.set(module, attribute, replacement)


def _parameter(original: Any) -> Any:
    """Return ``nn.Parameter.__new__``, which takes a parameter of a simulated device too."""

    @functools.wraps(original)
    def new(cls: Any, data: Any = None, *args: Any, **kwargs: Any) -> Any:
        if type(data) is tensor.Parameter:
            data = data.detach()
        return original(cls, data, *args, **kwargs)

    return new


def _generator_class() -> Any:
    class Generator(metaclass=random.GeneratorType):
        """What ``torch.Generator`` is while the simulator runs."""

        def __new__(cls, device: Any = "cpu") -> Any:
            wanted = factories.wanted_device(device)
            if wanted is None or wanted.type != "cuda":
                return torch._C.Generator(device=device)
            torch.cuda._lazy_init()
            return random.Generator(wanted)

    Generator.__qualname__ = "Generator"
    Generator.__module__ = "torch._C"
    return Generator


def _add_types(changes: _Changes) -> None:
    """Let optimizers take the foreach path, as they do for CUDA tensors."""
    optimizer = sys.modules["torch.optim.optimizer"]  # `torch.optim` hides the module

    kinds = [*optimizer._foreach_supported_types, tensor.Tensor, tensor.Parameter]
    changes.set(optimizer, "_foreach_supported_types", kinds)


def _teach_script() -> None:
    """Let TorchScript know the functions that stand in for its builtins as what they replace."""
    table = _builtins._get_builtin_table()
    known = {
        id(vars(owner)[name]): table[id(before)]
        for owner, name, before in _changes.replaced()
        if id(before) in table
    }
    _changes.set(_builtins, "_builtin_table", {**table, **known})


_watching = threading.Event()
atexit.register(uninstall)  # the interpreter must not end under a thread that is computing


def _watch_forks() -> None:
    if _watching.is_set() or not hasattr(os, "register_at_fork"):
        return
    _watching.set()
    os.register_at_fork(after_in_child=_in_child)


def _in_child() -> None:
    simulation = runtime.running()
    if simulation is not None and (simulation.initialized or simulation.asked):
        simulation.forked = True
        simulation.engine.lose_thread()
