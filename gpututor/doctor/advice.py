"""What to do about it on this platform: every function returns sentences, the first one first."""

from __future__ import annotations

from .case import Case
from .versions import Version, oldest_driver

Advice = tuple[str, ...]

SELECTOR = "https://pytorch.org/get-started/locally/"
# Places that lend a GPU when asked, and have neither driver nor device when not.
LENT = ("colab", "kaggle", "slurm", "kubernetes", "docker", "podman", "apptainer", "container")
SIMULATED = "Until then the lessons run on a simulated GPU: gpututor.start() says so."


def dotted(version: Version) -> str:
    """Return ``"12.4"`` for ``(12, 4)``."""
    return ".".join(map(str, version))


def cuda_build(case: Case) -> Advice:
    """Return how to get a PyTorch that was built for NVIDIA GPUs."""
    if case.place == "colab":
        return (
            "Choose Runtime > Disconnect and delete runtime, connect to a GPU runtime again, and "
            "do not install torch: Colab's own has CUDA.",
        )
    if case.place == "kaggle":
        return (
            "Restart the session and do not install torch: with a GPU as accelerator, Kaggle's "
            "own PyTorch has CUDA.",
        )
    if case.jetson:
        return (
            "Install NVIDIA's PyTorch build for your JetPack version (Jetson documentation, "
            '"Installing PyTorch for Jetson Platform").',
            "The general wheels for aarch64 have no CUDA, or no code for a Jetson.",
        )
    if case.container:
        first = "Reinstall PyTorch with CUDA in the image, or start from an image that has it."
    elif case.conda:
        first = (
            "Reinstall PyTorch with CUDA in this environment: "
            "conda install -c conda-forge pytorch-gpu"
        )
    else:
        first = (
            f"Reinstall PyTorch with CUDA: pip uninstall torch, then the line that {SELECTOR} "
            "gives for your system and a CUDA version."
        )
    steps = [first]
    if case.system == "windows" and not case.conda:
        steps.append("On Windows, plain pip install torch takes the build for the CPU.")
    if case.arm and case.system != "mac":
        steps.append("On 64-bit Arm, plain pip install torch may take the build for the CPU.")
    if case.driver_cuda:
        major = case.driver_cuda[0]
        steps.append(f"Your driver runs every build for CUDA {major} and older: choose one.")
    if not case.container:
        steps.append("Leave a CUDA toolkit aside: PyTorch brings the CUDA that it needs.")
    return tuple(steps)


def ask_for_gpu(case: Case) -> Advice:
    """Return how to get a GPU where one is lent only when asked for."""
    if case.kind == "rocm" and case.place in ("docker", "podman", "container"):
        return ("Start the container with --device=/dev/kfd --device=/dev/dri --group-add video.",)
    return {
        "colab": (
            "Choose Runtime > Change runtime type > T4 GPU, and run the notebook from the top.",
            "If Colab has no GPU to give, try again later.",
        ),
        "kaggle": (
            "Open Settings > Accelerator, choose GPU T4 x2, and run the notebook from the top.",
            "If it is greyed out, verify your phone number in your account first.",
        ),
        "slurm": (
            "Ask Slurm for a GPU: srun --gres=gpu:1 (or --gpus=1), on a partition that has some.",
            "A login node has none.",
        ),
        "kubernetes": (
            'Ask for a GPU in the pod: resources, limits, "nvidia.com/gpu: 1".',
            "The cluster needs NVIDIA's device plugin on a node with a GPU.",
        ),
        "podman": (
            "Start the container with --device nvidia.com/gpu=all.",
            "Make that name on the host first: nvidia-ctk cdi generate (NVIDIA Container Toolkit).",
        ),
        "apptainer": ("Start the container with --nv.",),
    }.get(
        case.place,
        (
            "Start the container with --gpus all: docker run --gpus all IMAGE",
            "Install the NVIDIA Container Toolkit on the host, and its driver in Windows."
            if case.wsl
            else "Install the driver and the NVIDIA Container Toolkit on the host.",
            "The driver comes from the host. nvcc in the image proves nothing.",
        ),
    )


def install_driver(case: Case) -> Advice:
    """Return how to get an NVIDIA driver."""
    if case.wsl:
        return (
            "Install NVIDIA's driver in Windows, not in WSL, then run wsl --update and "
            "wsl --shutdown in Windows.",
            "Remove any NVIDIA driver that was installed inside WSL: it hides the one of Windows.",
        )
    if case.jetson:
        return ("Reinstall JetPack: on a Jetson the driver is part of it.",)
    if case.system == "windows":
        return (
            "Look in the Device Manager whether there is an NVIDIA GPU. If so, install NVIDIA's "
            "driver for it and restart.",
            SIMULATED,
        )
    return (
        "Look whether there is an NVIDIA GPU: lspci | grep -i nvidia. If so, install NVIDIA's "
        "driver (Ubuntu: sudo ubuntu-drivers install) and restart.",
        SIMULATED,
    )


def load_driver(case: Case) -> Advice:
    """Return what to do where the driver is installed and does not answer."""
    if case.driver_system == "windows":
        return install_driver(case)
    return (
        "Restart the computer: the driver's kernel module is not loaded.",
        "If that is not enough, reinstall the driver. After a kernel update it must be built "
        "again; with Secure Boot its module must be signed; nouveau must not hold the card.",
    )


def newer_driver(case: Case) -> Advice:
    """Return how to bring driver and build together."""
    oldest = oldest_driver(case.build, case.driver_system)
    wanted = f"to {dotted(oldest)} or newer" if oldest else f"to one for CUDA {dotted(case.build)}"
    if not case.build:
        wanted = "to the newest"
    older = "Or install a PyTorch build for an older CUDA"
    if case.driver_cuda:
        older += f": up to {dotted(case.driver_cuda[:2])}"
        if case.driver_cuda[0] >= 11:
            older += f", or any {case.driver_cuda[0]}.x"
    if case.place in ("colab", "kaggle"):
        return (
            "Nobody can update the driver here: go back to the PyTorch that was installed, with a "
            "new session.",
        )
    if case.jetson:
        return (
            "Update JetPack, which brings the driver, or install NVIDIA's PyTorch for the JetPack "
            "you have.",
        )
    if case.place == "slurm":
        return (f"{older}.", f"Or ask the administrators to update the driver {wanted}.")
    if case.container:
        where = "Windows" if case.wsl else "the host"
        return (
            f"Update the NVIDIA driver of {where} {wanted}: the container cannot.",
            "Or use an image with an older CUDA.",
        )
    if case.wsl:
        return (f"Update the NVIDIA driver in Windows, not in WSL, {wanted}.", f"{older}.")
    return (f"Update the NVIDIA driver {wanted}, and restart.", f"{older}.")


def restart(case: Case) -> str:
    """Return how to get a fresh process."""
    if case.place == "colab":
        return "Choose Runtime > Restart session"
    return "Restart the Python process (in Jupyter: Kernel > Restart)"


def show_devices(case: Case, name: str) -> Advice:
    """Return how to mend a variable that hides every GPU."""
    indices = ", ".join(map(str, range(len(case.gpus))))
    right = f"a number that exists ({indices})" if indices else "a number that exists, such as 0"
    if "MIG-" in case.env.get(name, ""):
        return (
            f"Set {name} to a slice that exists: nvidia-smi -L lists them as MIG-...",
            f"{restart(case)} afterwards: the variable is read once.",
        )
    if case.place == "slurm":
        return (
            "Ask Slurm for a GPU: srun --gres=gpu:1 (or --gpus=1). Slurm sets this variable "
            "itself; without a GPU in the job it hides them all.",
            f"If the job has a GPU, leave {name} as Slurm sets it: look for a line that changes "
            "it.",
        )
    return (
        f"Remove {name}, or set it to {right}, before Python starts. Look for a line that sets "
        "it in the notebook's first cells.",
        f"{restart(case)} afterwards: the variable is read once.",
    )


def code_for(case: Case, capability: Version) -> Advice:
    """Return how to get a build with code for a GPU."""
    if case.kind == "rocm":
        return (
            "Install the PyTorch build for the newest ROCm, and look in AMD's list whether it "
            "supports this GPU.",
        )
    if case.jetson or capability in ((5, 3), (6, 2), (7, 2), (8, 7)):
        return (
            "Install NVIDIA's PyTorch build for your JetPack version: the general wheels have no "
            "code for a Jetson.",
        )
    if not capability:
        return (
            f"Compare torch.cuda.get_arch_list() with the GPU's capability, and choose a build "
            f"that has code for it: {SELECTOR}",
        )
    if capability < (5, 0):
        return (
            "Use another GPU: no PyTorch of today has code for one this old.",
            SIMULATED,
        )
    if capability < (7, 5):
        return (
            "Install a PyTorch build for CUDA 12.6: the last with code for Maxwell, Pascal and "
            "Volta, published up to PyTorch 2.14.",
        )
    needed = next(cuda for least, cuda in _FIRST if capability >= least)
    return (
        f"Install a PyTorch build for CUDA {dotted(needed)} or newer: the line is at {SELECTOR}",
        "Older builds have no code for this GPU, however new the driver is.",
    )


# The first toolkit that compiles for a capability: NVIDIA's release notes of each.
_FIRST: list[tuple[Version, Version]] = [
    ((12, 1), (12, 9)),
    ((12, 0), (12, 8)),
    ((11, 0), (13, 0)),
    ((10, 3), (12, 9)),
    ((10, 0), (12, 8)),
    ((8, 9), (11, 8)),
    ((8, 6), (11, 1)),
    ((8, 0), (11, 0)),
    ((0,), (10, 0)),
]
