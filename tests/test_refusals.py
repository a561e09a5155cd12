"""What the simulated GPU does not do is refused by name, and what it only half sees is right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import gpututor
from gpututor.simulator.errors import NotSimulatedError

pytestmark = pytest.mark.usefixtures("simulated")

REFUSED: dict[str, Callable[[], Any]] = {
    "torch.compile": lambda: torch.compile(nn.Linear(2, 2)),
    "torch.cuda.CUDAGraph": lambda: torch.cuda.CUDAGraph(),
    "torch.cuda.MemPool": lambda: torch.cuda.MemPool(),
    "torch.cuda.graph_pool_handle": lambda: torch.cuda.graph_pool_handle(),
    "torch.cuda.utilization": lambda: torch.cuda.utilization(),
    "torch.cuda.temperature": lambda: torch.cuda.temperature(),
    "torch.cuda.power_draw": lambda: torch.cuda.power_draw(),
    "torch.cuda.list_gpu_processes": lambda: torch.cuda.list_gpu_processes(),
    "torch.cuda.tunable.enable": lambda: torch.cuda.tunable.enable(),
    "torch.nested.nested_tensor": lambda: torch.nested.nested_tensor(
        [torch.ones(2, device="cuda"), torch.ones(3, device="cuda")]
    ),
    "torch.nested.nested_tensor ": lambda: torch.nested.nested_tensor([[1.0], []], device="cuda"),
    "torch.export.export": lambda: torch.export.export(
        nn.Linear(2, 2).cuda(), (torch.ones(1, 2, device="cuda"),)
    ),
    "aten.quantize_per_tensor.default": lambda: torch.quantize_per_tensor(
        torch.ones(3, device="cuda"), 0.1, 0, torch.qint8
    ),
    "aten._to_sparse.default": lambda: torch.eye(3, device="cuda").to_sparse(),
    "torch.Tensor.as_subclass": lambda: torch.ones(3, device="cuda").as_subclass(nn.Parameter),
    "UntypedStorage.resize_": lambda: torch.ones(3, device="cuda").untyped_storage().resize_(0),
}


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_by_name_and_the_device_goes_on(name: str) -> None:
    with pytest.raises(NotSimulatedError, match=rf"^{name.strip()}\b.* is not simulated: "):
        REFUSED[name]()
    torch.cuda.synchronize()
    assert torch.ones(2, device="cuda").sum().item() == 2


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning")  # from PyTorch 2.14 on
def test_script_neither_saves_nor_loads_what_it_cannot_see(tmp_path: Path) -> None:
    path = str(tmp_path / "model.pt")
    script = torch.jit.script(nn.Linear(2, 2).cuda())
    for save in (lambda: script.save(path), lambda: torch.jit.save(script, path)):
        with pytest.raises(NotSimulatedError, match="save is not simulated"):
            save()
    torch.jit.script(nn.Linear(2, 2)).save(path)
    with pytest.raises(NotSimulatedError, match=r"torch\.jit\.load is not simulated"):
        torch.jit.load(path, map_location="cuda")
    assert torch.jit.load(path, map_location="cpu")(torch.ones(1, 2)).shape == (1, 2)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning")  # from PyTorch 2.14 on
def test_script_knows_the_functions_that_stand_in_for_its_own() -> None:
    network = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.LayerNorm(4))
    for device in ("cpu", "cuda"):
        script = torch.jit.script(network.to(device))
        assert script(torch.ones(2, 4, device=device)).device.type == device


def test_what_asks_and_only_annotates_answers() -> None:
    assert not torch.cuda.is_current_stream_capturing()
    assert not torch.cuda.tunable.is_enabled()
    with torch.autograd.profiler.emit_nvtx():
        assert torch.ones(2, device="cuda").sum().item() == 2
    properties = torch.cuda.get_device_properties(0)
    assert properties.shared_memory_per_multiprocessor == 64 * 1024
    assert properties.shared_memory_per_block_optin == 64 * 1024


def test_autocast_as_a_flag() -> None:
    x = torch.ones(2, 2, device="cuda")
    for _ in range(2):
        torch.set_autocast_enabled("cuda", True)
        assert (x @ x).dtype == torch.float16
        with torch.autocast("cuda", dtype=torch.bfloat16):
            assert (x @ x).dtype == torch.bfloat16
        with torch.autocast("cuda", enabled=False):
            assert (x @ x).dtype == torch.float32
        assert (x @ x).dtype == torch.float16
        torch.set_autocast_enabled("cuda", False)
        assert (x @ x).dtype == torch.float32
        with torch.autocast("cuda"):
            assert (x @ x).dtype == torch.float16
        assert (x @ x).dtype == torch.float32
    with torch.device("cpu"):
        torch.set_autocast_enabled("cuda", True)
        with torch.device("cuda"):
            torch.set_autocast_enabled("cuda", False)
            assert len(torch.overrides._get_current_function_mode_stack()) == 2
            assert torch.ones(2).is_cuda


def test_autocast_left_on_ends_with_the_machine() -> None:
    torch.set_autocast_enabled("cuda", True)
    gpututor.stop()
    assert not torch.overrides._get_current_function_mode_stack()
    torch.set_autocast_enabled("cuda", False)


IN_PLACE: dict[str, Callable[[torch.Tensor], Any]] = {
    "shifted": lambda x: x[1:].add_(x[:-1]),
    "copied": lambda x: x[1:].copy_(x[:-1]),
    "transposed": lambda x: x.view(4, 3).add_(x.t()),
    "a row of it": lambda x: x.add_(x[0]),
    "itself": lambda x: x.add_(x),
    "a view of itself": lambda x: x.view(-1).view(3, 4).mul_(x),
    "another row": lambda x: x[0].add_(x[2]),
    "a clone": lambda x: x[1:].add_(x[:-1].clone()),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_reading_in_another_place_what_is_written_is_refused(name: str) -> None:
    def answer(device: str) -> Any:
        x = torch.arange(12.0, device=device).view(3, 4)
        try:
            return IN_PLACE[name](x).tolist()
        except RuntimeError as error:
            return str(error)

    assert answer("cuda") == answer("cpu")


def test_data_leaves_the_version_alone() -> None:
    for device in ("cpu", "cuda"):
        x = torch.zeros(2, device=device)
        x.data = torch.ones(2, device=device)
        assert x._version == 0
        x.data.add_(1)
        x.detach().add_(1)
        assert x._version == 1
