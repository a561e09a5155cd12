"""Reference solutions of lesson 05, as a learner would write them."""

import copy

import torch
from torch import nn


def split_gradients(net, x, y):
    copies = [copy.deepcopy(net).to(f"cuda:{i}") for i in range(2)]
    for i, (part, target) in enumerate(zip(x.chunk(2), y.chunk(2), strict=True)):
        out = copies[i](part.to(f"cuda:{i}"))
        error = nn.functional.mse_loss(out, target.to(f"cuda:{i}"), reduction="sum")
        (error / y.numel()).backward()
    pairs = zip(*(each.parameters() for each in copies), strict=True)
    return [p.grad + q.grad.to("cuda:0") for p, q in pairs]


def load(net, state):
    inner = net.module if isinstance(net, nn.DataParallel) else net
    if state.keys() != inner.state_dict().keys():
        state = {name.removeprefix("module."): value for name, value in state.items()}
    inner.load_state_dict(state)


def first_win(one, two, batches):
    def milliseconds(step, batch):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        step(batch)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    for batch in batches:
        if milliseconds(two, batch) < milliseconds(one, batch):
            return batch
    return None
