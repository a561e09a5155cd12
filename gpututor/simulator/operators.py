"""One operator: what its result looks like, how long it takes, and what the device does for it.

The first call of an operator with arguments of a given geometry runs it on ``meta`` tensors and
keeps what that says in a `Plan`; later calls allocate, queue and return.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch
from torch._prims_common import suggest_memory_format
from torch.utils import _pytree as pytree

from . import checks, footprint, random, runtime, tensor
from .cost import kernel_time
from .device import Device, StreamState, Task
from .errors import NotSimulatedError, StoppedError, is_assertion
from .kernel import HALF, Kernel, flat
from .memory import Block
from .tensor import Geometry, Parameter, Tensor, geometry, wrap, wrap_view

aten = torch.ops.aten
_SMALL = 1 << 16  # elements of a call that is tried on the host first
_REFUSED = re.compile(r"not implemented for|not support|xpected|should|must|specified|negative int")
_backward_node = torch._C._current_autograd_node

_has_kernel: Callable[..., bool] = torch._C._dispatch_has_kernel_for_dispatch_key
_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
_CPU = torch._C.DispatchKey.CPU

#: Operators whose result, or its shape, depends on values: the host has to wait for them.
_WAITING_TAGS = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)
_WAITING = {aten.equal.default, aten._linalg_check_errors.default, aten.bincount.default}
_WAITING.add(aten._embedding_bag.default)  # what it saves for backward has other sizes on the CPU

Handler = Callable[["Operator", Any, Any], Any]
special: dict[Any, Handler] = {}


def handles(*funcs: Any) -> Callable[[Handler], Handler]:
    """Register a handler for operators that need more than a kernel."""

    def register(handler: Handler) -> Handler:
        for func in funcs:
            special[func] = handler
        return handler

    return register


def computes(func: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register what a kernel computes in place of the CPU's own operator.

    It takes the arguments of the operator, and ``generator`` where the operator is random.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        computed[func] = function
        return function

    return register


computed: dict[Any, Callable[..., Any]] = {}


class Plan:
    """What is known of a call before it runs.

    Attributes
    ----------
    device : Device
        Where it runs.
    waits : bool
        The host waits for the result, as it does on CUDA.
    returns : list
        For each result: a `Geometry` (new), a list of them, an `_Argument` (one of the arguments,
        changed in place), or a plain value.
    seconds, share : float
        Its time, and how often it fills the multiprocessors.
    upcast : bool
        Compute in float32 and round.
    sizes : list of int
        Bytes of the storage of each new result.
    footprint : Footprint or None
        The memory it takes beyond its results, if any.
    """

    __slots__ = (
        "device",
        "footprint",
        "news",
        "resized",
        "returns",
        "seconds",
        "share",
        "single",
        "sizes",
        "upcast",
        "waits",
    )

    def __init__(self, device: Device) -> None:
        self.device = device
        self.waits = False
        self.upcast = False
        self.resized = False
        self.returns: list[Any] = []
        self.news: list[Geometry] = []
        self.single = True
        self.seconds = 0.0
        self.share = 1.0
        self.sizes: list[int] = []
        self.footprint: footprint.Footprint | None = None


class _Argument:
    """Says that a result is an argument of the call."""

    __slots__ = ("name", "position")

    def __init__(self, position: int, name: str) -> None:
        self.position = position
        self.name = name


def _channels_last(result: torch.Tensor, args: Any) -> torch.Tensor:
    """Give a convolution's result the layout that cuDNN gives it: channels last if asked for."""
    for value in args[:2]:
        if suggest_memory_format(value) in (torch.channels_last, torch.channels_last_3d):
            return result.contiguous(memory_format=suggest_memory_format(value))
    return result


class Operator:
    """An overload of an operator, such as ``aten.add.Tensor``."""

    def __init__(self, func: Any) -> None:
        self.func = func
        schema = func._schema
        self.name = schema.name.removeprefix("aten::")
        self.base = func.overloadpacket.__name__.rstrip("_") or self.name
        self.schema = schema
        self.writes = [
            (position, argument.name)
            for position, argument in enumerate(schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        self.is_view = not self.writes and any(
            value.alias_info is not None for value in schema.returns
        )
        self.may_overlap = self.writes[:1] == [(0, "self")] and (
            torch.Tag.pointwise in func.tags or self.base == "copy"
        )
        self.names = [argument.name for argument in schema.arguments]
        self.random = torch.Tag.nondeterministic_seeded in func.tags
        self.compute = computed.get(func, func)
        self.takes_generator = "generator" in self.names or func in computed
        self.waits = func in _WAITING or any(tag in func.tags for tag in _WAITING_TAGS)
        if func.overloadpacket in (aten.index, aten.index_put, aten.index_put_):
            self.waits = False  # it depends on whether the indices are masks: see _plan
        self.plans: dict[tuple[Any, ...], Plan] = {}
        handler = special.get(func) or special.get(func.overloadpacket)
        if handler is None and self.name.startswith("_foreach"):
            handler = _foreach
        if torch.Tag.inplace_view in func.tags:
            self.plain_run: Callable[[Any, Any], Any] = self.change_geometry
        elif _has_kernel(func.name(), _COMPOSITE) and not _has_kernel(func.name(), _CPU):
            # Below autograd, as in inference mode, PyTorch hands these on whole. What the CPU has a
            # kernel for besides, such as silu_backward, is one kernel on a GPU too.
            self.plain_run = lambda args, kwargs: func.decompose(*args, **kwargs)
        else:
            self.plain_run = self.view if self.is_view else self.kernel
        self.run = self.plain_run
        if handler is not None:
            self.run = lambda args, kwargs: handler(self, args, kwargs)

    # -- the ways to run ---------------------------------------------------------------------

    def view(self, args: Any, kwargs: Any) -> Any:
        """Run an operator that only looks at its first argument in another way."""
        base = args[0]
        if type(base) is not Tensor and type(base) is not Parameter:
            raise NotSimulatedError(f"{self.func} of these arguments")
        if not base._geometry.device.alive:
            raise StoppedError
        result = self.func(base._raw, *args[1:], **kwargs)
        if isinstance(result, torch.Tensor):
            return wrap_view(result, base)
        return type(result)(wrap_view(value, base) for value in result)

    def change_geometry(self, args: Any, kwargs: Any) -> Any:
        """Run an operator that changes how its first argument is seen, in place."""
        base = args[0]
        tensor.check_alive(base)
        raw = base._raw.detach()
        self.func(raw, *args[1:], **kwargs)
        set_geometry(base, raw)
        return base

    def kernel(self, args: Any, kwargs: Any) -> Any:
        """Run an operator as a kernel on its device."""
        key: list[Any] = []
        raw: list[Any] = []
        blocks: list[Block] = []
        _describe(args, key, raw, blocks)
        raw_kwargs: dict[str, Any] = {}
        if kwargs:
            key.append(_END)
            values: list[Any] = []
            _describe(kwargs.values(), key, values, blocks)
            raw_kwargs = dict(zip(kwargs, values, strict=True))
            key.extend(kwargs)
        if self.may_overlap and len(blocks) > 1 and blocks[0] in blocks[1:]:
            checks.overlap(raw)
        signature = tuple(key)
        plan = self.plans.get(signature)
        if plan is None or not plan.device.alive:
            plan = self._plan(args, kwargs)
            if plan.resized:  # an out= of another size: it has the right one now
                return self.kernel(args, kwargs)
            if len(self.plans) > 10_000:
                self.plans.clear()
            self.plans[signature] = plan
        device = plan.device
        if not device.alive:
            raise StoppedError
        if device.failure is not None:
            raise device.error()
        simulation = runtime.current()
        if simulation.forked:
            runtime.refuse_fork()
        stream = simulation.launch_stream(device)
        if self.name not in device.loaded:
            device.load(self.name)
        if self.random:
            self._reserve(raw, raw_kwargs, device)
        if plan.waits:
            return self._wait_for(args, kwargs, raw, raw_kwargs, device, stream)

        news: list[torch.Tensor] = []
        wrappers: list[Tensor] = []
        new_blocks: list[Block] = []
        allocate, number = device.memory.allocate, stream.stream_id
        for spec, nbytes in zip(plan.news, plan.sizes, strict=True):
            block = allocate(nbytes, number)
            view = block.view(spec.size, spec.stride, spec.dtype)
            new_blocks.append(block)
            news.append(view)
            wrappers.append(wrap(spec, view, block))
        if plan.footprint is not None:
            take(plan.footprint, device, stream)
        mutated = self._mutated(raw, raw_kwargs) if self.writes else []
        after = 0.0
        if simulation.side_streams and _backward_node() is not None:
            after = max((block.written for block in blocks), default=0.0)
            simulation.join_after_backward(stream)
        kernel = Kernel(
            device, self.name, self.compute, raw, raw_kwargs, mutated, news, plan.upcast
        )
        end = device.launch(stream, plan.seconds, kernel, share=plan.share, after=after)
        for block in new_blocks:
            block.written = end
        if self.writes:
            for position, name in self.writes:
                _note_written(args, kwargs, position, name, end)
        return self._results(plan, wrappers, args, kwargs)

    # -- the parts of a kernel call ----------------------------------------------------------

    def _plan(self, args: Any, kwargs: Any) -> Plan:
        device = checks.common_device(self, args, kwargs)
        checks.supported(self, args, kwargs)
        plan = Plan(device)
        given = [value for value in pytree.tree_leaves((args, kwargs)) if _is_tensor(value)]
        plan.waits = self.waits or any(
            value.dtype in (torch.bool, torch.uint8) and self.name in ("index", "index_put_")
            for group in args[1:2]
            if isinstance(group, (list, tuple))
            for value in group
            if _is_tensor(value)
        )
        if plan.waits:
            return plan
        metas: dict[int, torch.Tensor] = {}

        def to_meta(value: Any) -> Any:
            if not _is_tensor(value):
                return value if not isinstance(value, torch.device) else torch.device("meta")
            if id(value) not in metas:
                metas[id(value)] = torch.empty_strided(
                    value.shape, value.stride(), dtype=value.dtype, device="meta"
                )
            return metas[id(value)]

        meta_args, meta_kwargs = pytree.tree_map(to_meta, (args, kwargs))
        meta_kwargs = {name: v for name, v in meta_kwargs.items() if name != "generator"}
        try:
            with torch._C.DisableTorchFunction():
                result = self.func(*meta_args, **meta_kwargs)
        except NotImplementedError:
            plan.waits = True  # no meta kernel: the host runs it and waits
            return plan
        except Exception as error:
            raise self._host_error(args, kwargs) or error from None
        if self.base == "convolution":
            result = _channels_last(result, meta_args)
        if any(value.layout != torch.strided for value in flat(result)):
            raise NotSimulatedError(f"{self.func}: a sparse result")
        self._read_returns(plan, args, kwargs, result, metas)
        inputs = [metas[id(value)] for value in given]
        outputs = [value for value in flat(result) if isinstance(value, torch.Tensor)]
        self._try_on_host(args, kwargs, given)
        plan.seconds, plan.share = kernel_time(
            self.func, meta_args, meta_kwargs, result, inputs, outputs, device.profile
        )
        call = footprint.Call(self.func, meta_args, meta_kwargs, outputs, device)
        plan.footprint = footprint.of(self.func, call) or None
        plan.sizes = [spec.nbytes for spec in plan.news]
        if plan.footprint is not None:
            for place, nbytes in plan.footprint.storages.items():
                plan.sizes[place] = nbytes
        plan.upcast = any(value.dtype in HALF for value in inputs) and not self.name.startswith(
            ("_foreach", "_to_copy", "copy", "clone", "fill", "zero", "cat")
        )
        return plan

    def _host_error(self, args: Any, kwargs: Any) -> BaseException | None:
        """Return what the CPU's kernel says of arguments that the meta kernel refuses.

        Its words are CUDA's more often than those of the meta kernel.
        """
        stand_ins: dict[int, torch.Tensor] = {}

        def stand_in(value: Any) -> Any:
            if not _is_tensor(value):
                return value
            if id(value) not in stand_ins:
                new = torch.empty_strided(
                    value.shape, value.stride(), dtype=value.dtype, device="cpu"
                )
                stand_ins[id(value)] = new.zero_()
            return stand_ins[id(value)]

        try:
            with torch._C.DisableTorchFunction():
                like_args, like_kwargs = pytree.tree_map(stand_in, (args, kwargs))
                like_kwargs.pop("generator", None)
                self.func(*like_args, **like_kwargs)
        except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
            return None  # it is about the values
        except Exception as error:
            text = re.sub(r"\btorch\.(\w+Tensor)\b", r"torch.cuda.\1", str(error))
            try:
                return type(error)(text)
            except TypeError:
                return error
        return None

    def _try_on_host(self, args: Any, kwargs: Any, given: list[torch.Tensor]) -> None:
        """Raise now what the host's kernel refuses, as CUDA's launch would; small sizes only.

        Only refusals of arguments count, not of values: the values are stand-ins.
        """
        if self.random or sum(value.numel() for value in given) > _SMALL:
            return
        error = self._host_error(args, kwargs)
        if error is None or is_assertion(error):
            return
        refused = isinstance(error, (IndexError, NotImplementedError, TypeError))
        if refused or _REFUSED.search(str(error)):
            try:
                raise error
            finally:
                del error  # or this frame holds the error, which holds the frames of all callers

    def _read_returns(
        self,
        plan: Plan,
        args: Any,
        kwargs: Any,
        result: Any,
        metas: dict[int, torch.Tensor],
    ) -> None:
        device = plan.device
        written = dict(enumerate(self.writes))
        names = [name for _, name in self.writes]
        schema_returns = self.schema.returns
        plan.single = len(schema_returns) == 1
        results = [result] if plan.single else list(result) if schema_returns else []
        count = 0
        for value, description in zip(results, schema_returns, strict=True):
            if description.alias_info is not None:
                place = count if len(written) > 1 else 0
                position, name = self.writes[min(place, len(names) - 1)]
                plan.returns.append(_Argument(position, name))
                count += 1
            elif isinstance(value, torch.Tensor):
                plan.returns.append(_geometry_of(value, device))
            elif isinstance(value, (list, tuple)):
                plan.returns.append([_geometry_of(item, device) for item in value])
            else:
                plan.returns.append(value)
        for entry in plan.returns:
            if isinstance(entry, Geometry):
                plan.news.append(entry)
            elif isinstance(entry, list):
                plan.news.extend(entry)
        for position, name in self.writes:  # out= of another size: it takes the result's
            value = _argument(args, kwargs, position, name)
            if isinstance(value, torch.Tensor) and id(value) in metas:
                meta = metas[id(value)]
                if meta.shape != value.shape:
                    resize(value, tuple(meta.shape))  # type: ignore[arg-type]
                    plan.resized = True
        return

    def _results(self, plan: Plan, wrappers: list[Tensor], args: Any, kwargs: Any) -> Any:
        if plan.single:
            entry = plan.returns[0]
            if type(entry) is Geometry:
                return wrappers[0]
            return wrappers if isinstance(entry, list) else self._entry(entry, args, kwargs)
        supply = iter(wrappers)
        found: list[Any] = []
        for entry in plan.returns:
            if type(entry) is Geometry:
                found.append(next(supply))
            elif isinstance(entry, list):
                found.append([next(supply) for _ in entry])
            else:
                found.append(self._entry(entry, args, kwargs))
        return tuple(found) if found else None

    def _entry(self, entry: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(entry, _Argument):
            return _argument(args, kwargs, entry.position, entry.name)
        return entry

    def _mutated(self, raw: list[Any], raw_kwargs: dict[str, Any]) -> list[torch.Tensor]:
        found: list[torch.Tensor] = []
        for position, name in self.writes:
            value = _argument(raw, raw_kwargs, position, name)
            found.extend(value for value in flat(value))
        return found

    def _reserve(self, raw: list[Any], raw_kwargs: dict[str, Any], device: Device) -> None:
        """Take this launch's part of the random numbers."""
        generator = raw_kwargs.get("generator")
        generator = device.generator if generator is None else random.learners(generator)
        checks.generator(generator, device)
        raw_kwargs["generator"] = generator.reserve()
        if not self.takes_generator:
            raise NotSimulatedError(f"{self.func}: its random numbers")

    def _wait_for(
        self,
        args: Any,
        kwargs: Any,
        raw: list[Any],
        raw_kwargs: dict[str, Any],
        device: Device,
        stream: StreamState,
    ) -> Any:
        """Run an operator whose result the host needs: wait, compute, and wait for its time."""
        device.launch(stream, device.shortest, None)
        runtime.current().warn_of_wait()
        device.wait(stream.end)
        try:
            result = self.compute(*raw, **raw_kwargs)
        except Exception as error:
            raise device.fail(self.name, error) from None
        if not self.schema.returns:
            return None
        if self.writes:
            return self._entry(_Argument(*self.writes[0]), args, kwargs)

        def take(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            if value.layout != torch.strided:
                raise NotSimulatedError(f"{self.func}: a sparse result")
            spec = _geometry_of(value, device)
            nbytes = spec.nbytes
            if self.base.startswith("_unique") or self.base.startswith("unique_"):
                # CUDA keeps room for as many as there could have been.
                nbytes = max(nbytes, args[0].numel() * value.element_size() * bool(value.numel()))
            block = device.memory.allocate(nbytes, stream.stream_id)
            view = block.view(spec.size, spec.stride, spec.dtype)
            view.copy_(value)
            return wrap(spec, view, block)

        return pytree.tree_map(take, result)


def take(footprint: footprint.Footprint, device: Device, stream: StreamState) -> None:
    """Take the memory that a call takes beyond its results, and give back what does not stay."""
    allocate, number = device.memory.allocate, stream.stream_id
    held = [allocate(nbytes, number) for nbytes in footprint.held]
    if footprint.blas:
        device.workspaces.take(stream, footprint.blas == "lt")
    for group in footprint.groups:
        together = [allocate(nbytes, number) for nbytes in group]
        del together
    del held


_END = object()
_TRUE, _FALSE = object(), object()
_PLAIN = (int, type(None), str, torch.dtype, torch.layout, torch.memory_format, torch.device)


def _describe(values: Any, key: list[Any], raw: list[Any], blocks: list[Block]) -> None:
    """Describe arguments for the plan's key, and collect what the kernel will read."""
    for value in values:
        kind = type(value)
        if kind is Tensor or kind is Parameter:
            key.append(value._geometry)
            raw.append(value._raw)
            blocks.append(value._block)
        elif kind is float:
            key.append(float)
            raw.append(value)
        elif kind is bool:
            key.append(_TRUE if value else _FALSE)
            raw.append(value)
        elif kind is list or kind is tuple:
            inner: list[Any] = []
            start = len(key)
            _describe(value, key, inner, blocks)
            key.append(len(key) - start)
            raw.append(inner if kind is list else tuple(inner))
        elif isinstance(value, torch.Tensor):
            if (
                kind not in _HOST_TYPES
                and torch.utils._python_dispatch.is_traceable_wrapper_subclass(value)
            ):
                raise NotSimulatedError(f"a tensor of type {kind.__name__} on a simulated device")
            # A tensor of the host: its values are taken when the kernel is launched.
            key.append((tuple(value.shape), value.stride(), value.dtype))
            raw.append(value.detach().clone())
        else:
            key.append(value if kind in _PLAIN else kind)
            raw.append(value)


_HOST_TYPES = (torch.Tensor, torch.nn.Parameter)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _argument(args: Any, kwargs: Any, position: int, name: str) -> Any:
    if position < len(args):
        return args[position]
    return kwargs.get(name)


def _note_written(args: Any, kwargs: Any, position: int, name: str, end: float) -> None:
    for value in flat(_argument(args, kwargs, position, name)):
        if tensor.is_simulated(value):
            value._block.written = end


def _geometry_of(value: torch.Tensor, device: Device) -> Geometry:
    return geometry(tuple(value.shape), value.stride(), value.dtype, device)


def set_geometry(base: Tensor, raw: torch.Tensor) -> None:
    """Make `base` show `raw` from now on, a view of the same block or of another."""
    spec = _geometry_of(raw, base._geometry.device)
    offset = raw.storage_offset() - base._block.first(raw.dtype)
    with (
        torch._C._DisableTorchDispatch(),
        torch._C.DisableTorchFunction(),
        torch._C._AutoDispatchBelowAutograd(),
    ):
        # C++ keeps the geometry of the wrapper, over a storage that nobody reads.
        room = offset * spec.dtype.itemsize + spec.nbytes
        aten.set_.source_Storage_storage_offset(
            base, torch.UntypedStorage(room), offset, spec.size, spec.stride
        )
    base._raw = raw
    base._geometry = spec


def resize(base: Tensor, size: tuple[int, ...]) -> None:
    """Give `base` another size, and more memory where it needs it; values stay in order."""
    tensor.check_alive(base)
    device = base._geometry.device
    stride = torch.empty(size, device="meta").stride()
    spec = geometry(size, stride, base._geometry.dtype, device)
    block = base._block
    offset = int(base._raw.storage_offset()) - block.first(spec.dtype)
    if offset * spec.dtype.itemsize + spec.nbytes > block.nbytes:
        stream = runtime.current().launch_stream(device)
        block = device.memory.allocate(spec.nbytes, stream.stream_id)
        before, after = base._raw, block.view(spec.size, spec.stride, spec.dtype)
        kept = min(before.numel(), after.numel())
        if kept:
            target = block.view((kept,), (1,), spec.dtype)
            source = base._block.view((kept,), (1,), spec.dtype, offset)
            task = Task(device, "resize_", lambda: target.copy_(source))
            device.launch(stream, device.shortest, task, copies=True)
        offset = 0
        base._block = block
    set_geometry(base, block.view(spec.size, spec.stride, spec.dtype, offset))


@handles(aten.index_put_.default, aten._index_put_impl_.default)
def _index_put(operator: Operator, args: Any, kwargs: Any) -> Any:
    target = args[0]
    if tensor.is_simulated(target):
        return operator.kernel(args, kwargs)
    checks.common_device(operator, args, kwargs)
    host = pytree.tree_map(lambda v: v.cpu() if tensor.is_simulated(v) else v, list(args[1:]))
    return operator.func(target, *host, **kwargs)


def _foreach(operator: Operator, args: Any, kwargs: Any) -> Any:
    """Run on lists; where their tensors are on several devices, one by one, as PyTorch does."""
    leaves = [value for value in pytree.tree_leaves((args, kwargs)) if _is_tensor(value)]
    if all(value.device == leaves[0].device for value in leaves):
        return operator.kernel(args, kwargs)
    count = len(args[0])

    def part(value: Any, place: int) -> Any:
        is_list = isinstance(value, (list, tuple)) and len(value) == count
        return [value[place]] if is_list else value

    found: list[Any] = []
    for place in range(count):
        one = [part(value, place) for value in args]
        named = {name: part(value, place) for name, value in kwargs.items()}
        if any(tensor.is_simulated(value) for value in pytree.tree_leaves((one, named))):
            result = operator.kernel(one, named)
        else:
            result = operator.func(*one, **named)
        found.extend(result or [])
    return found if operator.schema.returns else None


_IN_PLACE = {
    aten.scatter.src: aten.scatter_.src,
    aten.scatter_add.default: aten.scatter_add_.default,
    aten.index_add.default: aten.index_add_.default,
    aten.index_put.default: aten.index_put_.default,
}


@handles(*_IN_PLACE)
def _into_zeros(operator: Operator, args: Any, kwargs: Any) -> Any:
    """Write into the zeros that a backward formula made, as CUDA's does.

    For tensors of a subclass, which simulated ones are to C++, PyTorch's formulas make a copy.
    """
    node = _backward_node()
    in_formula = (
        node is not None
        and not torch.is_grad_enabled()
        and not isinstance(node, torch.autograd.function.BackwardCFunction)
        and tensor.is_simulated(args[0])
    )
    accumulates = operator.base != "index_put" or (len(args) > 3 and args[3])
    if in_formula and accumulates:
        return run(_IN_PLACE[operator.func], args, kwargs)
    return operator.plain_run(args, kwargs)


@handles(aten._unsafe_view.default)
def _unsafe_view(operator: Operator, args: Any, kwargs: Any) -> Any:
    return operator.view(args, kwargs)  # its schema does not say so, but it copies nothing


@handles(aten.quantize_per_tensor, aten.quantize_per_tensor_dynamic, aten.quantize_per_channel)
def _quantize(operator: Operator, args: Any, kwargs: Any) -> Any:
    raise NotSimulatedError(f"{operator.func}: a quantized result")


@handles(aten._has_compatible_shallow_copy_type.default)
def _compatible(operator: Operator, args: Any, kwargs: Any) -> bool:
    return True  # the setter of `data` can make either kind of the other


@handles(aten.resize_.default)
def _resize(operator: Operator, args: Any, kwargs: Any) -> Any:
    resize(args[0], tuple(args[1]))
    return args[0]


@handles(aten.resize_as_.default)
def _resize_as(operator: Operator, args: Any, kwargs: Any) -> Any:
    resize(args[0], tuple(args[1].shape))
    return args[0]


@handles(aten.as_strided, aten.as_strided_, aten.as_strided_copy, aten.as_strided_scatter)
def _as_strided(operator: Operator, args: Any, kwargs: Any) -> Any:
    # The offset counts from the start of the storage, which for C++ is the whole segment.
    place = operator.names.index("storage_offset")
    values = [*args, *(kwargs.get(name) for name in operator.names[len(args) :])]
    base = values[0]
    size, stride = values[operator.names.index("size")], values[operator.names.index("stride")]
    first = base.storage_offset() if values[place] is None else values[place]
    if all(size):
        extent = 1 + first + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        needed = extent * base.element_size()
        if needed > base._block.nbytes:
            raise RuntimeError(
                f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {first}, "
                f"and itemsize {base.element_size()} requiring a storage size of {needed} are out "
                f"of bounds for storage of size {base._block.nbytes}"
            )
    if values[place] is not None:
        values[place] += base._block.first(base.dtype)
    return operator.plain_run(values, {})


_operators: dict[Any, Operator] = {}


def forget() -> None:
    """Forget every plan, and with it the devices that the plans are for."""
    for operator in _operators.values():
        operator.plans.clear()


def run(func: Any, args: Any, kwargs: Any) -> Any:
    """Run an operator that has a simulated tensor among its arguments."""
    operator = _operators.get(func)
    if operator is None:
        operator = _operators[func] = Operator(func)
    return operator.run(args, kwargs)


tensor.dispatch = run
