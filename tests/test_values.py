"""The simulated GPU computes what the CPU computes."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

pytestmark = pytest.mark.usefixtures("simulated")


class Recurrent(nn.Module):
    """A recurrent layer and a linear one on its last step."""

    def __init__(self, kind: type[nn.RNNBase], layers: int = 2) -> None:
        super().__init__()
        self.layer = kind(6, 10, layers, batch_first=True, bidirectional=True)
        self.out = nn.Linear(20, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.layer(x)[0][:, -1])


class Attention(nn.Module):
    """A transformer layer and a linear one on its mean."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.out = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.layer(x).mean(1))


def perceptron() -> nn.Module:
    return nn.Sequential(
        nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 3)
    )


def convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),  # a bias before batch norm has no gradient
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, bias=False),
        nn.BatchNorm2d(16),
        nn.GELU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 3),
    )


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "perceptron": (perceptron, (16, 6)),
    "convolutional": (convolutional, (8, 3, 16, 16)),
    "lstm": (lambda: Recurrent(nn.LSTM), (8, 5, 6)),
    "gru": (lambda: Recurrent(nn.GRU), (8, 5, 6)),
    "rnn": (lambda: Recurrent(nn.RNN, 1), (8, 5, 6)),
    "transformer": (Attention, (8, 5, 8)),
}

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("network", NETWORKS)
def test_training_follows_the_cpu(network: str, optimizer: str) -> None:
    make, shape = NETWORKS[network]
    torch.manual_seed(1)
    on_cpu = make()
    on_gpu = copy.deepcopy(on_cpu).to("cuda")
    x, y = torch.randn(shape), torch.randint(0, 3, shape[:1])
    losses = {}
    for device, net in (("cpu", on_cpu), ("cuda", on_gpu)):
        optim = OPTIMIZERS[optimizer](net.parameters())
        found = []
        for _ in range(8):
            optim.zero_grad()
            loss = F.cross_entropy(net(x.to(device)), y.to(device))
            loss.backward()
            optim.step()
            found.append(loss.detach())
        losses[device] = torch.stack(found).cpu()
    torch.testing.assert_close(losses["cuda"], losses["cpu"])
    assert losses["cuda"][-1] < losses["cuda"][0]
    on_cpu.eval(), on_gpu.eval()
    torch.testing.assert_close(on_gpu(x.cuda()).cpu(), on_cpu(x))


def test_the_same_seed_gives_the_same_dropout() -> None:
    def run() -> torch.Tensor:
        torch.manual_seed(3)
        net = nn.Sequential(nn.Linear(8, 64), nn.Dropout(0.5), nn.Linear(64, 2)).cuda()
        return net(torch.ones(4, 8, device="cuda")).detach().cpu()

    assert torch.equal(run(), run())


def _step(rng: random.Random, values: list[torch.Tensor], device: str) -> None:
    """Do one random thing to `values`, each of 24 elements."""
    a, b = (values[rng.randrange(len(values))] for _ in range(2))
    place = rng.randrange(len(values))
    number = rng.uniform(-1, 1)
    host = torch.tensor([rng.uniform(-1, 1) for _ in range(24)]).view(4, 6)
    k = rng.randrange(4)

    def keep(value: torch.Tensor) -> None:
        values[place] = value

    steps: list[Callable[[], object]] = [
        lambda: keep(a + b),
        lambda: keep(a * b - number),
        lambda: keep((a @ b.t() @ a).tanh()),
        lambda: keep(torch.where(a > b, a, -b)),
        lambda: keep(a.softmax(-1)),
        lambda: keep(a.cumsum(1).sin()),
        lambda: keep(a.sort(dim=1).values.contiguous()),
        lambda: keep(torch.cat([a[:2], b[2:]])),
        lambda: keep(a.flip(0).roll(k, 1)),
        lambda: keep(a.view(6, 4).t().contiguous()),
        lambda: keep(F.layer_norm(a, (6,))),
        lambda: keep(a.clamp(-1, 1).exp()),
        lambda: keep(a - a.mean(0, keepdim=True)),
        lambda: keep(torch.addcmul(a, b, b, value=number)),
        lambda: keep(a[[k, 0, 1, 2]]),
        lambda: keep(a.gather(1, torch.argsort(b, 1))),
        lambda: a.add_(b, alpha=number).clamp_(-3, 3),
        lambda: a.mul_(number),
        lambda: a[k].add_(number),
        lambda: a[:, 1:3].copy_(b[:, 2:4].clone()),
        lambda: a.t()[k].fill_(number),
        lambda: a.view(-1)[::5].neg_(),
        lambda: a.masked_fill_(b > 0.5, number),
        lambda: a.index_add_(0, torch.tensor([k], device=device), b[:1].clone()),
        lambda: a.zero_() if rng.random() < 0.2 else a.tanh_(),
        lambda: keep(host.to(device)),
        lambda: a.copy_(host),
        lambda: host.mul_(2).copy_(a.cpu()),
        lambda: a.sigmoid_().sub_(float(a.sum().item()) / 24),
    ]
    steps[rng.randrange(len(steps))]()


@pytest.mark.parametrize("seed", range(50))
def test_500_random_operators_on_two_streams(seed: int) -> None:
    rng = random.Random(seed)
    start = [torch.randn(4, 6, generator=torch.Generator().manual_seed(seed)) for _ in range(4)]
    expected = [value.clone() for value in start]
    for _ in range(500):
        _step(rng, expected, "cpu")

    rng = random.Random(seed)
    turns = random.Random(seed + 1000)
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    before = torch.cuda.current_stream()
    values = [value.cuda() for value in start]
    for _ in range(500):
        stream = streams[turns.randrange(2)]
        stream.wait_stream(before)
        with torch.cuda.stream(stream):
            _step(rng, values, "cuda")
        for value in values:
            value.record_stream(stream)
        before = stream
    torch.cuda.current_stream().wait_stream(before)
    for value, right in zip(values, expected, strict=True):
        torch.testing.assert_close(value.cpu(), right, rtol=1e-4, atol=1e-4)


def test_a_tensor_made_in_inference_mode() -> None:
    with torch.inference_mode():  # the first tensor of its type here, and so of its segment
        x = torch.full((5,), 2.0, dtype=torch.float64, device="cuda")
        y = torch.nn.functional.linear(x, torch.ones(3, 5, dtype=torch.float64, device="cuda"))
    torch.cuda.synchronize()
    assert y.is_inference()
    assert y.tolist() == [10.0, 10.0, 10.0]


@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_of_a_conjugate_or_a_negative_has_its_values(
    again: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    host = torch.tensor([1 + 2j, 3 - 4j])
    for view in (torch.conj, lambda x: x.conj().imag, lambda x: x[1:].conj(), torch.real):
        assert again(view(host.cuda())).tolist() == view(host).tolist()
