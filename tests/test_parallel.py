"""Several devices: PyTorch's own DataParallel on them gives one device's numbers, and its price."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.cuda import comm
from torch.nn.parallel import data_parallel, gather, parallel_apply, replicate, scatter
from torch.utils.data import DataLoader, TensorDataset

import gpututor


class Recurrent(nn.Module):
    """An LSTM of two layers in both directions, which flattens its weights at each call."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.lstm = nn.LSTM(8, 16, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(32, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.lstm.flatten_parameters()
        out: torch.Tensor = self.head(self.lstm(self.embedding(x))[0][:, -1])
        return out


def convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8).eval(),  # its statistics are each replica's own
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, stride=2),
        nn.Flatten(),
        nn.Linear(8 * 9, 5),
    )


class Lengths(nn.Module):
    """Says how many samples a device got, and counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return torch.tensor([float(len(x))], device=x.device)


class Fussy(nn.Linear):
    """Fails on the second device."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.get_device() == 1:
            raise KeyError("no such thing")
        return super().forward(x)


def milliseconds(function: Callable[[], Any]) -> float:
    """Return the event time of `function` on the first device, all others' work included."""
    devices = range(torch.cuda.device_count())
    for index in devices:
        torch.cuda.synchronize(index)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    function()
    end.record()
    for index in devices:
        torch.cuda.synchronize(index)
    return begin.elapsed_time(end)


@pytest.mark.parametrize("spec", ["T4x2", "T4x4", "T4x8"])
@pytest.mark.parametrize("kind", [convolutional, Recurrent])
def test_outputs_and_gradients_are_one_devices(
    simulate: Any, spec: str, kind: Callable[[], nn.Module]
) -> None:
    simulate(spec)
    torch.manual_seed(0)
    one = kind().cuda()
    many = nn.DataParallel(copy.deepcopy(one))
    x = torch.randint(20, (9, 6)) if kind is Recurrent else torch.randn(9, 3, 8, 8)
    target = (torch.arange(9) % 5).cuda()
    found = []
    for net in (one, many):
        out = net(x.cuda())
        nn.functional.cross_entropy(out, target).backward()
        found.append([out, *(parameter.grad for parameter in net.parameters())])
    for expected, got in zip(*found, strict=True):
        assert got.device == torch.device("cuda", 0)
        torch.testing.assert_close(got, expected)


def test_nine_samples_on_eight_devices_use_five(simulate: Any) -> None:
    simulate("T4x8")
    net = nn.DataParallel(Lengths())
    assert net(torch.ones(9, 1)).tolist() == [2, 2, 2, 2, 1]
    assert net(torch.ones(1, 1)).tolist() == [1]
    assert net(torch.ones(0, 1)).tolist() == [0] * 8
    assert net.module.calls == 0, "replicas count for themselves"


@pytest.fixture
def two(simulate: Any) -> None:
    simulate("T4x2")


@pytest.mark.usefixtures("two")
class TestTwo:
    def test_scalars_are_gathered_to_a_vector(self) -> None:
        class Sum(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x.sum()

        with pytest.warns(UserWarning, match="all input tensors were scalars"):
            out = nn.DataParallel(Sum())(torch.arange(4.0))
        assert out.tolist() == [1, 5]

    def test_nested_inputs_keywords_and_outputs(self) -> None:
        class Nested(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("bias", torch.ones(1))
                self.weight = nn.Parameter(torch.tensor([2.0]))

            def forward(self, x: Any, *, scale: int, extra: Any) -> Any:
                value = x["a"] * self.weight * scale + self.bias
                return {"y": value, "z": [extra[1][0] * 10], "of": (x["a"],)}

        net = nn.DataParallel(Nested().cuda())
        assert list(net.state_dict()) == ["module.weight", "module.bias"]
        extra = ("text", [torch.arange(3.0, device="cuda")])
        out = net({"a": torch.ones(3), "b": None}, scale=3, extra=extra)
        assert out["y"].tolist() == [7, 7, 7]
        assert out["z"][0].tolist() == [0, 10, 20]
        assert {value.device for value in (out["y"], out["z"][0], out["of"][0])} == {
            torch.device("cuda", 0)
        }

    def test_an_error_in_a_replica_is_torchs_own_and_leaves_all_usable(self) -> None:
        net = nn.DataParallel(Fussy(2, 2).cuda())
        with pytest.raises(KeyError, match=r"Caught KeyError in replica 1 on device 1\.") as caught:
            net(torch.ones(4, 2))
        assert "no such thing" in str(caught.value)
        assert "parallel_apply.py" in str(caught.value)
        assert net(torch.ones(1, 2)).shape == (1, 2)
        assert torch.ones(2, device="cuda:1").sum().item() == 2
        assert torch.cuda.current_device() == 0

    @pytest.mark.parametrize(
        ("build", "message"),
        [
            (lambda: nn.DataParallel(nn.Linear(3, 3)), r"on device cuda:0 .* on device: cpu"),
            (
                lambda: nn.DataParallel(nn.Linear(3, 3).to("cuda:1")),
                r"on device cuda:0 .* on device: cuda:1",
            ),
            (lambda: nn.DataParallel(nn.Linear(3, 3).cuda(), [0, 2]), "Invalid device id"),
        ],
        ids=["on the host", "on the second", "no such device"],
    )
    def test_the_wrong_device_is_torchs_own_error(self, build: Any, message: str) -> None:
        with pytest.raises((RuntimeError, AssertionError), match=message):
            build()(torch.ones(4, 3))

    def test_device_ids_and_output_device(self) -> None:
        x = torch.ones(4, 3)
        ahead = nn.DataParallel(nn.Linear(3, 2).to("cuda:1"), device_ids=[1, 0])
        assert ahead(x).device == torch.device("cuda", 1)
        assert nn.DataParallel(nn.Linear(3, 2).cuda(), output_device=1)(x).get_device() == 1
        only = nn.DataParallel(nn.Linear(3, 2), device_ids=[1])  # one device: moved by itself
        assert only(x.to("cuda:1")).get_device() == 1
        assert data_parallel(nn.Linear(3, 2).cuda(), x, output_device=1).get_device() == 1
        wrapped = nn.DataParallel(nn.Linear(3, 2)).cuda()  # wrap, then move
        assert wrapped(x).shape == (4, 2)

    def test_the_first_replica_shares_its_storage(self) -> None:
        net = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)).cuda()
        first, second = replicate(net, [0, 1])
        assert first[0].weight.data_ptr() == net[0].weight.data_ptr()
        assert first[1].running_mean is net[1].running_mean
        assert second[0].weight.device == torch.device("cuda", 1)
        assert not [*second.parameters()], "they are no leaves, so no parameters"
        with pytest.raises(ValueError, match="more than 1 value per channel"):
            nn.DataParallel(net)(torch.randn(3, 8))  # a chunk of one

    def test_parameters_are_sent_in_one_piece(self) -> None:
        tensors = [torch.randn(100, device="cuda") for _ in range(20)]
        before = torch.cuda.memory_stats(1)["allocation.all.allocated"]
        copies = comm.broadcast_coalesced(tensors, [0, 1])
        assert torch.cuda.memory_stats(1)["allocation.all.allocated"] == before + 1
        for original, same, copied in zip(tensors, *copies, strict=True):
            assert same is original
            assert torch.equal(original.cpu(), copied.cpu())

    def test_comm(self) -> None:
        x = torch.arange(6.0, device="cuda")
        assert comm.broadcast(x, [0, 1])[0] is not None
        outs = [torch.empty(6, device="cuda:0"), torch.empty(6, device="cuda:1")]
        comm.broadcast(x, out=outs)
        assert [value.tolist() for value in outs] == [x.tolist()] * 2
        parts = comm.scatter(x, [0, 1], chunk_sizes=[2, 4])
        assert [(len(p), p.get_device()) for p in parts] == [(2, 0), (4, 1)]
        assert comm.gather(parts, destination=1).device == torch.device("cuda", 1)
        assert comm.gather(parts, destination="cpu").tolist() == x.tolist()
        assert comm.gather([p[None] for p in parts], dim=-1).shape == (1, 6)
        both = comm.broadcast(x, [0, 1])
        assert comm.reduce_add(both, 1).tolist() == (2 * x).tolist()
        pairs = [[value, value[:2] + 1] for value in both]
        assert [len(value) for value in comm.reduce_add_coalesced(pairs, 0)] == [6, 2]

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            (lambda x, y: comm.scatter(x, []), "at least one device to scatter to"),
            (lambda x, y: comm.scatter(x, [0, 1], [3]), "to be of same length"),
            (lambda x, y: comm.gather([]), "at least one tensor to gather from"),
            (lambda x, y: comm.gather([x, y.cpu()]), "to be CUDA tensors, but tensor at index 1"),
            (lambda x, y: comm.gather([x, y[0]]), "same number of dimensions"),
            (
                lambda x, y: comm.gather([x, y[:, :1]]),
                r"index 1 has invalid shape \[3, 1\], but expected \[3, 2\]",
            ),
            (lambda x, y: comm.broadcast_coalesced([y], [0, 1]), r"must be on devices\[0\]: 0"),
            (lambda x, y: comm.broadcast(x, out=[y[0]]), "same shape as the source tensor"),
        ],
    )
    def test_comm_refuses(self, wrong: Any, message: str) -> None:
        x, y = torch.ones(3, 2, device="cuda:0"), torch.ones(3, 2, device="cuda:1")
        with pytest.raises(RuntimeError, match=message):
            wrong(x, y)

    def test_peers(self) -> None:
        assert torch.cuda.can_device_access_peer(0, 1)
        x = torch.arange(5.0, device="cuda:0")
        y = x.to("cuda:1", non_blocking=True)
        assert (y + y).tolist() == [0, 2, 4, 6, 8]
        with pytest.raises(RuntimeError, match="found at least two devices, cuda:0 and cuda:1"):
            x + y

    def test_the_current_device_is_each_threads_own(self) -> None:
        seen: list[int] = []

        def other() -> None:
            seen.append(torch.cuda.current_device())
            torch.cuda.set_device(1)
            seen.append(torch.empty(1, device="cuda").get_device())

        torch.cuda.set_device(1)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(30)
        assert seen == [0, 1]
        assert torch.cuda.current_device() == 1

    def test_a_pinned_loader_feeds_it(self) -> None:
        data = TensorDataset(torch.arange(20.0)[:, None])
        net = nn.DataParallel(nn.Identity())
        rows = []
        for (batch,) in DataLoader(data, batch_size=6, pin_memory=True):
            assert batch.is_pinned()
            rows += net(batch)[:, 0].tolist()
        assert rows == [*range(20)]

    def test_the_pieces_by_hand(self) -> None:
        net = nn.Linear(3, 1).cuda()
        x = torch.randn(5, 3, device="cuda")
        parts = scatter(x, [0, 1])
        out = gather(parallel_apply(replicate(net, [0, 1]), parts), 0)
        torch.testing.assert_close(out, net(x))

    def test_devices_work_at_once_and_times_are_the_same_every_time(self) -> None:
        class Product(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x @ x

        x = torch.randn(2, 1024, 1024, device="cuda")
        net = nn.DataParallel(Product())
        one = milliseconds(lambda: x @ x)
        times = sorted(round(milliseconds(lambda: net(x)), 6) for _ in range(6))
        alone = milliseconds(lambda: x[:1] @ x[:1])
        both = times[0]
        assert times.count(both) > 1, times  # the others, where this machine held the host up
        # Half the work each, at once. The copy to the second device is hidden behind the start of
        # the workers, which share the interpreter; the copy back is not.
        assert alone == pytest.approx(one / 2, rel=0.1)
        workers = 2 * 0.55 * 50
        copy_back = 1024**2 * 4 / 12.4e9 * 50e3
        assert both == pytest.approx(workers + alone + copy_back, rel=0.1)


def _steps(net: nn.Module, x: torch.Tensor) -> Callable[[], None]:
    def step() -> None:
        net.zero_grad(set_to_none=True)
        net(x).sum().backward()

    return step


@pytest.mark.parametrize(("spec", "large"), [("T4x2", 4096), ("H200x2@2GiB", 16384)])
def test_two_devices_lose_at_a_small_batch_and_win_at_a_large_one(
    simulate: Any, spec: str, large: int
) -> None:
    simulate(spec)
    net = nn.Sequential(nn.Linear(64, 2048), nn.Linear(2048, 2048), nn.Linear(2048, 8)).cuda()
    two = nn.DataParallel(net)
    ratio = {}
    for batch in (8, large):
        x = torch.randn(batch, 64, device="cuda")
        ratio[batch] = milliseconds(_steps(two, x)) / milliseconds(_steps(net, x))
    assert ratio[8] > 3
    assert ratio[large] < 0.9


def test_a_convolution_in_a_new_thread_finds_its_plan_anew(two: None) -> None:
    net = nn.Conv2d(3, 8, 3).cuda()
    x = torch.randn(4, 3, 8, 8, device="cuda")
    first, again = (milliseconds(lambda: net(x)) for _ in range(2))
    assert first > 5 * again
    worker = threading.Thread(target=lambda: found.append(milliseconds(lambda: net(x))))
    found: list[float] = []
    worker.start()
    worker.join(30)
    assert found[0] > 5 * again


def test_another_machine_after_a_scatter_from_the_host(simulate: Any) -> None:
    for spec in ("T4x2", "T4x4", "T4x2"):
        simulate(spec)
        count = torch.cuda.device_count()
        parts = scatter(torch.arange(8.0), [*range(count)])
        assert [part.get_device() for part in parts] == [*range(count)]
    gpututor.stop()
    assert torch.nn.parallel._functions._streams is None
