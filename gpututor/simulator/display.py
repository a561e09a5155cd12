"""How a simulated tensor prints: as the CUDA tensor it stands for."""

from __future__ import annotations

import torch
from torch import _tensor_str, nn


def tensor_text(tensor: torch.Tensor) -> str:
    """Return PyTorch's own text of `tensor`; reading the values waits for them."""
    with torch.no_grad(), torch._C.DisableTorchFunction():
        contents = None
        if tensor.numel():
            values = tensor.detach().cpu()
            contents = _tensor_str._tensor_str(values, len("tensor("))
        if isinstance(tensor, nn.Parameter):  # PyTorch would put its name around the values
            tensor = tensor.detach().requires_grad_(tensor.requires_grad)
        text: str = _tensor_str._str_intern(tensor, tensor_contents=contents)
    # PyTorch puts the class's name in front of the values where the class is not its own.
    return "tensor(" + text.split("(", 1)[1]
