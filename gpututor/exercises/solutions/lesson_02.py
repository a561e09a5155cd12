"""Reference solutions of lesson 02, as a learner would write them."""

import torch


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("offset", torch.arange(4.0))
        self.factors = torch.nn.ParameterList(torch.ones(4) for _ in range(2))

    def forward(self, x):
        for factor in self.factors:
            x = x * factor
        return x + self.offset


def total(batches, weights):
    weights = weights.to("cuda")
    result = torch.zeros((), device="cuda")
    for batch in batches:
        result += (batch.to("cuda") * weights).sum()
    return result.item()


def move(batch, device):
    if isinstance(batch, torch.Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {key: move(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):  # a namedtuple
        return type(batch)(*(move(value, device) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(move(value, device) for value in batch)
    return batch
