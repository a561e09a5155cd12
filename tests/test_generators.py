"""A learner's own generator steers every kind of draw on the simulated GPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

pytestmark = pytest.mark.usefixtures("simulated")

DRAWS: dict[str, Callable[[torch.Tensor, torch.Generator], torch.Tensor]] = {
    "uniform_": lambda x, g: x.uniform_(generator=g),
    "normal_": lambda x, g: x.normal_(2, 3, generator=g),
    "random_": lambda x, g: x.random_(generator=g),
    "random_ in a range": lambda x, g: x.random_(5, 50, generator=g),
    "exponential_": lambda x, g: x.exponential_(generator=g),
    "bernoulli_": lambda x, g: x.bernoulli_(0.5, generator=g),
    "bernoulli": lambda x, g: torch.bernoulli(x.fill_(0.5), generator=g),
    "multinomial": lambda x, g: torch.multinomial(x.fill_(1), 20, generator=g),
    "rand_like": lambda x, g: torch.rand_like(x, generator=g),
    "randperm": lambda x, g: torch.randperm(40, generator=g, device=x.device),
    "normal of tensors": lambda x, g: torch.normal(x.fill_(0), x + 1, generator=g),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_generator_repeats_a_draw_and_leaves_the_default_one_alone(name: str) -> None:
    draw = DRAWS[name]
    before = torch.cuda.get_rng_state()
    generator = torch.Generator(device="cuda").manual_seed(3)
    first = draw(torch.empty(40, device="cuda"), generator).cpu()
    second = draw(torch.empty(40, device="cuda"), generator).cpu()
    again = draw(torch.empty(40, device="cuda"), generator.manual_seed(3)).cpu()
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert torch.equal(torch.cuda.get_rng_state(), before)


def test_a_generator_of_the_host_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator"):
        torch.empty(3, device="cuda").uniform_(generator=torch.Generator())


def test_a_shuffled_loader_of_the_device() -> None:
    torch.set_default_device("cuda")
    try:
        data = torch.utils.data.TensorDataset(torch.arange(10))
        loader = torch.utils.data.DataLoader(
            data, batch_size=5, shuffle=True, generator=torch.Generator(device="cuda")
        )
        found = torch.cat([batch for (batch,) in loader])
        assert found.is_cuda
        assert sorted(found.tolist()) == list(range(10))
    finally:
        torch.set_default_device(None)
