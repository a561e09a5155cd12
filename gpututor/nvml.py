"""What NVIDIA's driver says of a GPU, through its management library (nvidia-ml-py)."""

from __future__ import annotations


def pcie_link(uuid: str) -> str | None:
    """Return the best link that a GPU and its slot can have.

    Parameters
    ----------
    uuid : str
        The GPU's, as ``torch.cuda.get_device_properties`` has it, without ``GPU-``.

    Returns
    -------
    str or None
        Such as ``"PCIe 4.0 x16"``. None where there is no driver or no management library, as in
        Colab without a GPU, or where it does not say.
    """
    try:
        import pynvml
    except ModuleNotFoundError:
        return None
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


def processes(uuid: str) -> list[tuple[int, int | None]] | None:
    """Return the processes that compute on a GPU: number and bytes of its memory.

    Parameters
    ----------
    uuid : str
        The GPU's, as ``torch.cuda.get_device_properties`` has it, without ``GPU-``.

    Returns
    -------
    list of (int, int or None), or None
        The most memory first; None for the bytes that the driver does not tell, as on Windows.
        None instead of a list where there is no driver, or it does not say. In a container the
        list may be empty, and the numbers of the processes are the host's.
    """
    try:
        import pynvml
    except ModuleNotFoundError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        gpu = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
        found = pynvml.nvmlDeviceGetComputeRunningProcesses(gpu)
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()
    rows = [(int(each.pid), each.usedGpuMemory) for each in found]
    return sorted(rows, key=lambda row: -(row[1] or 0))
