"""Storages of simulated tensors: saving, loading, pickling and deep copies.

A checkpoint holds ordinary tensors tagged ``cuda:0``. It loads anywhere with
``map_location="cpu"``, and without that where there is a GPU, real or simulated.
"""

from __future__ import annotations

import copy as python_copy
import io
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, cast

import torch

from .copy import copy_between, empty
from .errors import NotSimulatedError, StoppedError
from .memory import Block
from .tensor import Tensor, check_alive, geometry, is_simulated, wrap

if TYPE_CHECKING:
    from .device import Device


class Storage(torch.UntypedStorage):
    """The bytes that a simulated tensor and its views share."""

    _block: Block
    _on: Device

    @staticmethod
    def of(tensor: Tensor) -> Storage:
        """Return the storage of `tensor`."""
        return Storage.over(tensor._block, tensor._geometry.device)

    @staticmethod
    def over(block: Block, device: Device) -> Storage:
        """Return the storage that is `block` on `device`."""
        self: Storage = torch.UntypedStorage.__new__(Storage, 0)  # type: ignore[call-arg]
        self._block, self._on = block, device
        return self

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """The simulated device it is on."""
        return self._on.torch_device

    @property
    def is_cuda(self) -> bool:
        """True: to Python it is in a GPU's memory."""
        return True

    @property
    def _cdata(self) -> int:
        return id(self._block)

    def data_ptr(self) -> int:
        """Return its address. A stopped GPU's memory has none: another's may lie there by now."""
        if not self._on.alive:
            raise StoppedError
        return self._block.address

    def nbytes(self) -> int:
        """Return its size in bytes."""
        return self._block.nbytes

    def size(self) -> int:
        """Return its size in bytes."""
        return self._block.nbytes

    def __len__(self) -> int:
        return self._block.nbytes

    def cpu(self) -> torch.UntypedStorage:
        """Return a copy in the host's memory, once its values are there."""
        return self._bytes().cpu().untyped_storage()

    def to(self, *, device: Any, non_blocking: bool = False) -> Any:
        """Return it on another device, or itself."""
        target = torch.device(device)
        return self.cpu() if target.type == "cpu" else storage_to_device(self.cpu(), target)

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Any:
        """Return itself, or a copy on another simulated device."""
        return self if device in (None, self.device) else self.to(device=device)

    def clone(self) -> Storage:
        """Return a copy on the same device."""
        return Storage.of(self._bytes().clone())  # type: ignore[arg-type]

    def resize_(self, size: int) -> NoReturn:
        """Refuse: the block that it is has one size."""
        raise NotSimulatedError("UntypedStorage.resize_")

    def _bytes(self) -> Tensor:
        block, count = self._block, self._block.nbytes
        spec = geometry((count,), (1,), torch.uint8, self._on)
        return wrap(spec, block.view((count,), (1,), torch.uint8), block)

    def _write_file(self, *args: Any) -> Any:
        return self.cpu()._write_file(*args)

    def _set_from_file(self, *args: Any) -> Any:
        host = torch.UntypedStorage(self.nbytes())
        host._set_from_file(*args)
        with torch._C.DisableTorchFunction():
            values = torch.empty(0, dtype=torch.uint8, device="cpu").set_(host)
        copy_between(self._bytes(), values, False)
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and other._block is self._block

    def __hash__(self) -> int:
        return id(self._block)

    def __repr__(self) -> str:
        return f"[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"

    def __reduce__(self) -> Any:
        buffer = io.BytesIO()
        torch.save(self, buffer, _use_new_zipfile_serialization=False)
        return (torch.storage._load_from_bytes, (buffer.getvalue(),))


def storage_to_device(source: torch.UntypedStorage, device: torch.device) -> Storage:
    """Return a copy of a host's storage on a simulated device."""
    from .factories import simulated_device

    count = source.nbytes()
    target = empty(simulated_device(device), (count,), (1,), torch.uint8)
    if count:
        with torch._C.DisableTorchFunction():
            host = torch.empty(0, dtype=torch.uint8, device="cpu").set_(source)
        copy_between(target, host, False)
    return Storage.of(target)


def to(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``UntypedStorage.to``, which can move a host's storage to a simulated device."""

    def to(self: torch.UntypedStorage, *, device: Any, non_blocking: bool = False) -> Any:
        target = torch.device(device)
        if target.type == "cuda":
            return storage_to_device(self, target)
        return original(self, device=device, non_blocking=non_blocking)

    return to


def cuda(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``UntypedStorage.cuda``."""

    def cuda(self: torch.UntypedStorage, device: Any = None, non_blocking: bool = False) -> Any:
        index = torch.cuda._utils._get_device_index(device, optional=True)
        return storage_to_device(self, torch.device("cuda", index))

    return cuda


def set_storage(
    tensor: Tensor,
    source: Any = None,
    offset: int = 0,
    size: Any = None,
    stride: Any = None,
) -> Tensor:
    """Make `tensor` show `source`, a storage or another tensor: ``Tensor.set_``."""
    from .operators import set_geometry

    check_alive(tensor)
    if is_simulated(source):
        tensor._block = source._block
        set_geometry(tensor, source._raw)
        return tensor
    if isinstance(source, torch.TypedStorage):
        source = source._untyped_storage
    device = tensor._geometry.device
    if source is None:
        source = Storage.over(Block(None, 0), device)
        size = (0,)
    if not isinstance(source, Storage) or source._on is not device:
        raise RuntimeError(
            f'Attempted to set the storage of a tensor on device "{tensor.device}" to a storage '
            f'on different device "{getattr(source, "device", "cpu")}".  This is no longer '
            "allowed; the devices must match."
        )
    dtype = tensor.dtype
    if size is None:
        size = (source.nbytes() // dtype.itemsize,)
    if stride is None:
        stride = torch.empty(tuple(size), device="meta").stride()
    tensor._block = source._block
    set_geometry(tensor, source._block.view(tuple(size), tuple(stride), dtype, int(offset)))
    return tensor


def _state(tensor: Tensor) -> dict[str, Any]:
    hidden = ("_raw", "_block", "_geometry")
    return {name: value for name, value in tensor.__dict__.items() if name not in hidden}


def reduce(tensor: Tensor) -> Any:
    """Return what pickle needs to make `tensor` again: what a CUDA tensor gives it."""
    if isinstance(tensor, torch.nn.Parameter):
        args: tuple[Any, ...] = (tensor.data, tensor.requires_grad, OrderedDict())
        state = _state(tensor)
        if state:
            return (torch._utils._rebuild_parameter_with_state, (*args, state))
        return (torch._utils._rebuild_parameter, args)
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError("cannot pickle a tensor that is not a leaf: use .detach() first")
    # A conjugate or negative is a remark on its tensor, not in the storage: write the numbers.
    tensor = cast("Tensor", tensor.resolve_conj().resolve_neg())
    return (
        torch._utils._rebuild_tensor_v2,
        (
            tensor._typed_storage(),
            tensor.storage_offset(),
            tuple(tensor.size()),
            tensor.stride(),
            tensor.requires_grad,
            OrderedDict(),
        ),
    )


def deepcopy(tensor: Tensor, memo: dict[int, Any]) -> Any:
    """Return a copy with its own storage; tensors that shared one share one again."""
    if id(tensor) in memo:
        return memo[id(tensor)]
    if not tensor.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
            "because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    with torch.no_grad():
        storage = memo.get(id(tensor._block))
        if storage is None:
            storage = memo[id(tensor._block)] = Storage.of(tensor).clone()
        spec = tensor._geometry
        offset = int(tensor.storage_offset())
        raw = storage._block.view(spec.size, spec.stride, spec.dtype, offset)
        new: Any = wrap(spec, raw, storage._block)
        if raw.storage_offset() != storage._block.first(spec.dtype):
            from .tensor import wrap_view

            new = wrap_view(raw, new)
        if tensor.is_conj():  # remarks on the tensor: as torch does it
            new = new.conj_physical()
        if tensor.is_neg():
            new = new.neg()
        if isinstance(tensor, torch.nn.Parameter):
            new._is_param = True
        new.requires_grad_(tensor.requires_grad)
        if tensor.grad is not None:
            new.grad = deepcopy(tensor.grad, memo) if is_simulated(tensor.grad) else None
        new.__dict__.update(python_copy.deepcopy(_state(tensor), memo))
    memo[id(tensor)] = new
    return new
