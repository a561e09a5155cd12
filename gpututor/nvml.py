"""What NVIDIA's driver says of a GPU, through its management library (nvidia-ml-py)."""

from __future__ import annotations

import pynvml


def pcie_link(uuid: str) -> str | None:
    """Return the best link that a GPU and its slot can have.

    Parameters
    ----------
    uuid : str
        The GPU's, as ``torch.cuda.get_device_properties`` has it, without ``GPU-``.

    Returns
    -------
    str or None
        Such as ``"PCIe 4.0 x16"``. None where there is no driver, or it does not say.
    """
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        gpu = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
        generation = pynvml.nvmlDeviceGetMaxPcieLinkGeneration(gpu)
        lanes = pynvml.nvmlDeviceGetMaxPcieLinkWidth(gpu)
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()
    return f"PCIe {generation}.0 x{lanes}"
