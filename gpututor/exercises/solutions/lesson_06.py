"""Reference solutions of lesson 06, as a learner would write them."""

import torch
from torch import nn


def gradients(net, x, y):
    for part, target in zip(x.split(512), y.split(512), strict=True):
        out = net(part.to("cuda"))
        loss = nn.functional.mse_loss(out, target.to("cuda"), reduction="sum")
        (loss / y.numel()).backward()
        del out, loss  # or they live on while the next part is computed


class Monitor:
    def __init__(self, net):
        self.net = net
        self.history = []
        self.top = float("-inf")
        net.register_forward_hook(self.look)

    def look(self, net, args, out):
        self.top = max(self.top, out.max().item())

    def step(self, x):
        loss = (self.net(x) - x).square().mean()
        self.history.append(loss.detach())
        return loss

    def largest(self):
        return self.top


def largest_batch(step, most):
    def works(batch):
        try:
            step(batch)
        except torch.OutOfMemoryError:
            return False
        return True

    low, high = 0, most  # low works, and nothing above high does
    while low < high:
        middle = (low + high + 1) // 2
        if works(middle):
            low = middle
        else:
            torch.cuda.empty_cache()  # the error is gone, and its tensors with it
            high = middle - 1
    return low


def accumulate(net, x, y, size):
    for part, target in zip(x.split(size), y.split(size), strict=True):
        loss = nn.functional.mse_loss(net(part), target)
        (loss * len(part) / len(x)).backward()
