"""Reference solutions of lesson 07, as a learner would write them."""

import torch
from torch.nn.functional import cross_entropy


class Checkpoint:
    @staticmethod
    def save(file, net, optimizer, step):
        state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        torch.save(state, file)

    @staticmethod
    def resume(file, net, optimizer):
        saved = torch.load(file, map_location="cpu")
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        return saved["step"]


def train_quietly(net, optimizer, batches):
    total = torch.zeros((), device="cuda")
    right = torch.zeros((), dtype=torch.int64, device="cuda")
    for x, target in batches:
        output = net(x)
        loss = cross_entropy(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
        right += (output.argmax(1) == target).sum()
    return total.item() / len(batches), right.item()
