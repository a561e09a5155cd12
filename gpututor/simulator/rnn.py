"""Recurrent layers: one kernel a layer stack, as cuDNN's are on CUDA.

PyTorch's CPU code for these would reach past the operators that the simulator sees. Here the
forward pass is one launch that runs the CPU layer on the values, and the backward pass another
that computes the layer again and takes its gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import autocast, checks, runtime
from .cost import peak
from .footprint import Footprint
from .fused import Output, launch, new
from .operators import set_geometry
from .tensor import is_simulated

Layer = Callable[..., tuple[torch.Tensor, ...]]


class _Call:
    """One call of a recurrent layer: all that is not a tensor of the simulated device."""

    def __init__(
        self,
        name: str,
        layer: Layer,
        states: int,
        batch_sizes: torch.Tensor | None,
        has_biases: bool,
        layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> None:
        self.name = name
        self.layer = layer
        self.states = states
        self.batch_sizes = batch_sizes
        self.has_biases = has_biases
        self.layers = layers
        self.dropout = dropout if train else 0.0
        self.train = train
        self.directions = 2 if bidirectional else 1
        self.batch_first = batch_first
        self.seed: int | None = None
        self.gates = {"lstm": 4, "gru": 3}.get(name, 1)

    def run(self, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Run the layer on CPU tensors: input, initial states, weights."""
        value, states = tensors[0], tensors[1 : 1 + self.states]
        weights = tensors[1 + self.states :]
        if not (self.dropout and self.layers > 1):
            return self._stack(value, states, weights, self.layers)
        # Dropout between layers needs this launch's own random numbers: one layer at a time.
        generator = torch._C.Generator(device="cpu")
        generator.manual_seed(self.seed or 0)
        per_layer = len(weights) // self.layers
        finals: list[list[torch.Tensor]] = [[] for _ in states]
        for number in range(self.layers):
            if number:
                keep = torch.empty_like(value).bernoulli_(1 - self.dropout, generator=generator)
                value = value * keep / (1 - self.dropout)
            rows = slice(number * self.directions, (number + 1) * self.directions)
            found = self._stack(
                value,
                [state[rows] for state in states],
                weights[number * per_layer : (number + 1) * per_layer],
                1,
            )
            value = found[0]
            for final, state in zip(finals, found[1:], strict=True):
                final.append(state)
        return (value, *(torch.cat(final) for final in finals))

    def _stack(
        self,
        value: torch.Tensor,
        states: Sequence[torch.Tensor],
        weights: Sequence[torch.Tensor],
        layers: int,
    ) -> tuple[torch.Tensor, ...]:
        hidden: Any = states[0] if self.states == 1 else list(states)
        rest = (self.has_biases, layers, 0.0, self.train, self.directions == 2)
        if self.batch_sizes is not None:
            return self.layer(value, self.batch_sizes, hidden, list(weights), *rest)
        return self.layer(value, hidden, list(weights), *rest, self.batch_first)

    def shapes(self, tensors: Sequence[torch.Tensor]) -> list[tuple[int, ...]]:
        """Return the shapes of the output and of the final states."""
        value, states = tensors[0], tensors[1 : 1 + self.states]
        features = states[0].shape[-1] * self.directions
        return [(*value.shape[:-1], features), *(tuple(state.shape) for state in states)]

    def steps_first(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the strides of a result that cuDNN made with the steps first."""
        if not self.batch_first or self.batch_sizes is not None or len(shape) != 3:
            return None
        return (shape[2], shape[0] * shape[2], 1)

    def seconds(self, tensors: Sequence[torch.Tensor]) -> float:
        """Return the time of the forward pass, in slow motion."""
        profile = tensors[0]._geometry.device.profile  # type: ignore[attr-defined]
        value = tensors[0]
        rows = value.numel() // max(value.shape[-1], 1)
        weights = sum(weight.numel() for weight in tensors[1 + self.states :])
        steps = value.shape[1 if self.batch_first else 0] if value.dim() == 3 else value.shape[0]
        if self.batch_sizes is not None:
            steps = len(self.batch_sizes)
        arithmetic = 2.0 * rows * weights / peak(profile, value.dtype)
        floor = profile.kernel_seconds * max(1, steps) * self.layers
        return float(max(arithmetic, floor) * profile.slowdown)


#: How many values cuDNN keeps of each unit and step: the gates and what they were made of.
_KEPT = {"lstm": 5, "gru": 6, "rnn_tanh": 1, "rnn_relu": 1}
_ROUND = 128


def reserve_bytes(call: _Call, tensors: Sequence[torch.Tensor]) -> int:
    """Return the bytes that cuDNN keeps for backward, in training.

    Fitted to 16 layers on an H200 (torch 2.11, cuDNN of its wheel), all of them exactly: what each
    unit keeps, the outputs between layers, one bit an element of dropout, and 256 bytes.
    """
    value, states = tensors[0], tensors[1 : 1 + call.states]
    width = value.element_size()
    rows = value.numel() // max(value.shape[-1], 1)
    hidden = states[-1].shape[-1]  # of the cell, where an LSTM projects its output
    output = states[0].shape[-1]
    unit = rows * hidden * width
    kept = _KEPT[call.name] * unit
    if output != hidden:
        kept += unit + rows * output * width
    between = (call.layers - 1) * call.directions * rows * output * width
    total = kept * call.layers * call.directions + between
    if call.dropout:
        total += (call.layers - 1) * call.directions * -(-rows * output // 8)
    return -(-total // _ROUND) * _ROUND + 256


class _Recurrent(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, call: _Call, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.set_materialize_grads(False)
        values = [value.detach() for value in tensors]
        first: Any = values[0]
        device = first._geometry.device
        outputs, takes = [], Footprint()
        if call.batch_first and call.batch_sizes is None:
            takes.held.append(first.numel() * first.element_size())  # steps go first in cuDNN
        for place, shape in enumerate(call.shapes(values)):
            stride = None if place else call.steps_first(shape)
            outputs.append(new(device, Output(shape, first.dtype, stride)))
        saved = list(tensors)
        if call.train:
            size = (reserve_bytes(call, values),)
            saved.append(new(device, Output(size, torch.uint8)))
        ctx.call, ctx.count = call, len(tensors)
        ctx.save_for_backward(*saved)
        launch(call.name, lambda *raw: call.run(raw), values, outputs, call.seconds(values), takes)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> Any:
        call: _Call = ctx.call
        count: int = ctx.count
        tensors = [value.detach() for value in ctx.saved_tensors[:count]]
        given = [gradient is not None for gradient in gradients]
        incoming = [gradient.detach() for gradient in gradients if gradient is not None]
        wanted = list(ctx.needs_input_grad[1:])
        needed = [place for place, needs in enumerate(wanted) if needs]
        first: Any = tensors[0]
        device = first._geometry.device

        def gradient_of(*raw: torch.Tensor) -> list[torch.Tensor]:
            with torch.enable_grad():
                leaves = [value.detach().clone() for value in raw[:count]]
                for place in needed:
                    leaves[place].requires_grad_()
                found = call.run(leaves)
                used = [value for value, has in zip(found, given, strict=True) if has]
                inputs = [leaves[place] for place in needed]
                grads = torch.autograd.grad(used, inputs, list(raw[count:]), allow_unused=True)
            return [
                torch.zeros_like(leaf) if grad is None else grad
                for leaf, grad in zip(inputs, grads, strict=True)
            ]

        takes = Footprint()
        # cuDNN writes out what came in, and computes all gradients of inputs and states.
        for gradient, output in zip(gradients, call.shapes(tensors), strict=True):
            if gradient is None or 0 in gradient.stride():
                takes.held.append(torch.Size(output).numel() * first.element_size())
        results: list[Any] = [None] * count
        for place in range(1 + call.states):
            value = tensors[place]
            if wanted[place]:
                shape = tuple(value.shape)
                stride = None if place else call.steps_first(shape)
                results[place] = new(device, Output(shape, value.dtype, stride))
            else:
                takes.held.append(value.numel() * value.element_size())
        if any(wanted[1 + call.states :]):
            weights = tensors[1 + call.states :]
            places = [place for place in needed if place > call.states]
            parts = _in_one(device, weights, call.has_biases, call.gates)
            for place in places:
                weight, part = tensors[place], parts[place - 1 - call.states]
                results[place] = part
                if not call.has_biases:  # PyTorch copies them out of the buffer
                    results[place] = new(device, Output(tuple(weight.shape), weight.dtype))
            del parts
        launch(
            f"{call.name}_backward",
            gradient_of,
            [*tensors, *incoming],
            [results[place] for place in needed],
            2 * call.seconds(tensors),
            takes,
        )
        return (None, *results)


def _in_one(
    device: Any, weights: Sequence[torch.Tensor], has_biases: bool, gates: int
) -> list[Any]:
    count = sum(weight.numel() for weight in weights)
    if not has_biases:  # there is room for them all the same
        count += sum(weight.shape[0] for weight in weights if weight.shape[0] % gates == 0)
    buffer = new(device, Output((count,), weights[0].dtype))
    found, start = [], 0
    with torch.no_grad():
        for weight in weights:
            found.append(buffer[start : start + weight.numel()].view(weight.shape))
            start += weight.numel()
    return found


#: cuDNN's numbers of the kinds of layer.
MODES = {"RNN_RELU": 0, "RNN_TANH": 1, "LSTM": 2, "GRU": 3}


def is_acceptable(value: torch.Tensor) -> bool:
    """Tell whether cuDNN takes a tensor: ``torch.backends.cudnn.is_acceptable``."""
    kinds = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    return is_simulated(value) and value.dtype in kinds and torch.backends.cudnn.enabled


def flatten_weight(
    weights: Sequence[torch.Tensor],
    stride: int,
    input_size: int,
    mode: int,
    hidden_size: int,
    proj_size: int,
    num_layers: int,
    batch_first: bool,
    bidirectional: bool,
) -> torch.Tensor:
    """Put the weights of a recurrent layer into one buffer: ``torch._cudnn_rnn_flatten_weight``."""
    first: Any = weights[0]
    gates = {MODES["LSTM"]: 4, MODES["GRU"]: 3}.get(int(mode), 1)
    parts = _in_one(first._geometry.device, weights, stride > 2, gates)
    for weight, part in zip(weights, parts, strict=True):
        if weight.grad_fn is not None:
            continue  # a replica's weight: what autograd made stays where it is
        part.copy_(weight.detach())
        shown: Any = weight
        shown._block = part._block
        set_geometry(shown, part._raw)
    return parts[0]  # type: ignore[no-any-return]


def make(name: str, original: Layer) -> Callable[..., Any]:
    """Return what stands in for ``torch.lstm``, ``torch.gru`` and the simple layers."""

    def layer(*args: Any) -> Any:
        packed = (
            isinstance(args[3], bool) is False
            and not isinstance(args[2], bool)
            and (isinstance(args[1], torch.Tensor) and isinstance(args[3], (list, tuple)))
        )
        value = args[0]
        hidden, weights = (args[2], args[3]) if packed else (args[1], args[2])
        states = list(hidden) if isinstance(hidden, (list, tuple)) else [hidden]
        tensors = [value, *states, *weights]
        if not any(is_simulated(part) for part in tensors):
            return original(*args)
        lower = autocast.lower_precision()
        if lower is not None:
            value = value.to(lower)
            states = [part.to(lower) for part in states]
            tensors = [value, *states, *(part.to(lower) for part in weights)]
            weights = tensors[1 + len(states) :]
        _check(value, states, weights)
        has_biases, layers, dropout, train, bidirectional = args[4:9] if packed else args[3:8]
        call = _Call(
            name,
            original,
            len(states),
            args[1] if packed else None,
            has_biases,
            layers,
            dropout,
            train,
            bidirectional,
            False if packed else args[8],
        )
        if call.dropout and layers > 1:
            device = value._geometry.device
            call.seed = device.generator.reserve().initial_seed()
            device.workspaces.take_dropout(runtime.current().launch_stream(device))
        outputs: Any = _Recurrent.apply(call, *tensors)  # type: ignore[no-untyped-call]
        return outputs

    layer.__name__ = layer.__qualname__ = name
    return layer


def _check(
    value: torch.Tensor, states: Sequence[torch.Tensor], weights: Sequence[torch.Tensor]
) -> None:
    checks.usable()
    for kind, group in (("hidden", states), ("parameter", weights)):
        for part in group:
            if part.device != value.device:
                raise RuntimeError(
                    f"Input and {kind} tensors are not at the same device, found input tensor at "
                    f"{value.device} and {kind} tensor at {part.device}"
                )
            if part.dtype != value.dtype:
                raise ValueError(
                    f"RNN input dtype ({value.dtype}) does not match weight dtype ({part.dtype}). "
                    f"Convert input: input.to({part.dtype}), or convert model: "
                    f"model.to({value.dtype})"
                )


NAMES = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def pack(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``torch._pack_padded_sequence``: lengths and batch sizes are the host's."""

    def pack(value: torch.Tensor, lengths: torch.Tensor, batch_first: bool) -> Any:
        if not is_simulated(value):
            return original(value, lengths, batch_first)
        if is_simulated(lengths):
            raise RuntimeError(
                "'lengths' argument should be a 1D CPU int64 tensor, but got 1D "
                f"{lengths.device} Long tensor"
            )
        padded = value.transpose(0, 1) if batch_first else value
        with torch._C.DisableTorchFunction():
            like = torch.empty(padded.shape[:2], dtype=torch.uint8, device="cpu")
            batch_sizes = original(like, lengths, False)[1]
        parts = [
            padded[start:end, :size].contiguous().flatten(0, 1)
            for start, end, size in _runs(batch_sizes.tolist())
        ]
        return torch.cat(parts), batch_sizes

    return pack


def _runs(sizes: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return where steps with equally many rows begin and end, and how many rows they have."""
    found: list[tuple[int, int, int]] = []
    for step, size in enumerate(sizes):
        if found and found[-1][2] == size:
            found[-1] = (found[-1][0], step + 1, size)
        else:
            found.append((step, step + 1, size))
    return found


def pad(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``torch._pad_packed_sequence``: lengths and batch sizes are the host's."""

    def pad(
        value: torch.Tensor,
        batch_sizes: torch.Tensor,
        batch_first: bool,
        padding_value: float,
        total_length: int,
    ) -> Any:
        if not is_simulated(value):
            return original(value, batch_sizes, batch_first, padding_value, total_length)
        sizes = batch_sizes.tolist()
        steps, batch = len(sizes), sizes[0]
        if total_length > 0:
            if total_length < steps:
                raise RuntimeError(
                    "Expected total_length to be at least the length of the longest sequence in "
                    f"input, but got total_length={total_length} and max sequence length being "
                    f"{steps}"
                )
            sizes += [0] * (total_length - steps)
        features = tuple(value.shape[1:])
        padded = value.new_full((len(sizes), batch, *features), padding_value)
        first = 0
        for start, end, size in _runs(sizes):
            count = (end - start) * size
            if count:
                part = value[first : first + count].view(end - start, size, *features)
                padded[start:end, :size] = part
            first += count
        lengths = torch.tensor(
            [sum(size > place for size in sizes) for place in range(batch)], device="cpu"
        )
        return (padded.transpose(0, 1) if batch_first else padded), lengths

    return pad
