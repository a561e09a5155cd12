"""The GPUs that can be simulated: their rates, where each rate comes from, how they are asked for.

A profile holds the figures of a real GPU at its real speed. The simulator divides every rate, and
multiplies every latency, by the profile's one `slowdown`, so that all ratios stay those of the GPU.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import NoReturn

import torch

MIB = 2**20
GIB = 2**30

DEFAULT_MEMORY = GIB
MIN_MEMORY = 64 * MIB
MAX_MEMORY = 1024 * GIB
MAX_COUNT = 64


@dataclass(frozen=True)
class Profile:
    """One model of GPU, at its real speed.

    Attributes
    ----------
    name : str
        The short name by which it is asked for: ``"T4"``.
    full_name : str
        What ``torch.cuda.get_device_name`` says of the real one: ``"Tesla T4"``.
    slowdown : int
        The one factor by which the simulator slows everything.
    capability : tuple of int
        Compute capability, major and minor.
    multiprocessors : int
        Streaming multiprocessors.
    clock_hz : int
        Boost clock, in hertz.
    total_memory : int
        Device memory that CUDA reports, in bytes. A simulated device has less unless told so.
    l2_bytes : int
        Level 2 cache, in bytes.
    bandwidth : float
        Device memory, reads and writes together, in bytes per second.
    peak : mapping of torch.dtype to float
        Peak arithmetic, in operations per second (a multiply and an add count two), dense, on the
        tensor cores where they take the type. A type without a published peak is left out.
    tf32 : float
        Peak arithmetic on float32 where TF32 is allowed, in operations per second.
    link_name : str
        The link between host and device.
    pinned_bandwidth : float
        Copies between page-locked host memory and the device, each way, in bytes per second.
    pageable_bandwidth : float
        Copies between ordinary host memory and the device, each way, in bytes per second.
    peer_bandwidth : float
        Copies from one device to another, in bytes per second.
    pin_bandwidth : float
        What the host page-locks of new memory, in bytes per second.
    copy_latency : float
        What a copy over a link takes beyond its bytes, in seconds.
    launch_seconds : float
        What one launch costs the host, in seconds.
    kernel_seconds : float
        The shortest that a kernel takes on the device, in seconds.
    sources : mapping of str to str
        Where each number comes from, by field (``"peak.float32"`` for an entry of `peak`): a
        document with its year, or a kind and an explanation. The kinds are *measured* (by us),
        *reported* (a printout that others published), *model* (computed from other figures),
        *assumed* (no figure was found) and *chosen* (a decision of the simulator's).
    """

    name: str
    full_name: str
    slowdown: int
    capability: tuple[int, int]
    multiprocessors: int
    clock_hz: int
    total_memory: int
    l2_bytes: int
    bandwidth: float
    peak: Mapping[torch.dtype, float] = field(hash=False)
    tf32: float
    link_name: str
    pinned_bandwidth: float
    pageable_bandwidth: float
    peer_bandwidth: float
    pin_bandwidth: float
    copy_latency: float
    launch_seconds: float
    kernel_seconds: float
    sources: Mapping[str, str] = field(hash=False, repr=False)

    @property
    def threads_per_multiprocessor(self) -> int:
        """Most threads that one multiprocessor runs at a time; CUDA C++ Programming Guide."""
        return {(7, 5): 1024, (8, 9): 1536}.get(self.capability, 2048)

    @property
    def device_name(self) -> str:
        """What the simulated device is called: ``"Simulated T4 (1/50 speed)"``."""
        return f"Simulated {self.name} (1/{self.slowdown} speed)"

    def flops(self, dtype: torch.dtype, *, tf32: bool = False) -> float:
        """Peak arithmetic for one type, in operations per second, at the real GPU's speed.

        Parameters
        ----------
        dtype : torch.dtype
            The type computed in. One that `peak` lacks counts as float32 (bfloat16 on a T4, which
            has no units for it), complex128 as float64.
        tf32 : bool
            Whether float32 may be computed as TF32.
        """
        if dtype is torch.float32 and tf32:
            return self.tf32
        if dtype is torch.complex128:
            dtype = torch.float64
        return self.peak.get(dtype, self.peak[torch.float32])


@dataclass(frozen=True)
class Spec:
    """What `parse` understood.

    Attributes
    ----------
    profile : Profile
        The model of GPU.
    count : int
        How many of them, at least 1.
    memory : int
        Memory of each, in bytes.
    """

    profile: Profile
    count: int
    memory: int


_MEASURED = "measured: NVIDIA H200, torch 2.11, 30 November 2026"
_TURING = "NVIDIA Turing GPU Architecture, white paper, NVIDIA, 2018"
_T4 = "NVIDIA T4 datasheet, NVIDIA, 2019"
_ADA = "NVIDIA Ada GPU Architecture, white paper, NVIDIA, 2023"
_L4 = "NVIDIA L4 datasheet, NVIDIA, 2023"
_AMPERE = "NVIDIA A100 Tensor Core GPU Architecture, white paper, NVIDIA, 2020"
_A100 = "NVIDIA A100 datasheet, NVIDIA, 2020"
_H100 = "NVIDIA H100 datasheet, NVIDIA, 2023"
_H200 = "NVIDIA H200 datasheet, NVIDIA, 2023"
_COLAB = "reported: CUDA's deviceQuery on a Tesla T4 in Google Colab"
_L4_QUERY = "reported: CUDA's deviceQuery on an NVIDIA L4, CUDA 12.0"
_PC2 = "reported: CUDA's deviceQuery on an A100-SXM4-40GB, documentation of PC2 Paderborn"
_H100_QUERY = "reported: CUDA's deviceQuery on an H100 80GB HBM3, github.com/thamada/nvidia-smi"
_PCIE4 = (
    "reported: CUDA's bandwidthTest at 300 MB, 26.2 GB/s in and 26.3 out, on an A100-PCIE-40GB "
    "over PCIe 4.0 x16, github.com/jdh4/della-gpu-A100"
)
_PEER = "model: no NVLink, through PCIe at the pinned rate"
_ASSUMED = {  # what no document says of any of them; a measured or reported figure replaces it
    "pageable_bandwidth": (
        "model: a copy in host memory at 8.0 GB/s, then one at the pinned rate; 8.0 is what makes "
        "an H200's 55.0 GB/s pinned its 7.0 GB/s pageable"
    ),
    "pin_bandwidth": "assumed: as on the host of an H200, 256 MiB in 154 ms",
    "copy_latency": "assumed: as on the T4 and on the H200, which agree",
    "launch_seconds": (
        "assumed: as on the T4; launching is the host's work, and the host of an H200 took 8.6 µs "
        "from Python"
    ),
    "kernel_seconds": "assumed: as on the H200",
}


def _tera(**rates: float) -> dict[torch.dtype, float]:
    """Peak arithmetic by type, from TFLOP/s."""
    return {getattr(torch, name): rate * 1e12 for name, rate in rates.items()}


def _sources(fields: Mapping[str, str], **more: str) -> dict[str, str]:
    """Turn ``{source: "field field"}`` round, over `_ASSUMED`; `more` maps fields to sources."""
    turned = {name: source for source, names in fields.items() for name in names.split()}
    return _ASSUMED | turned | more


def _slow(float32: int, bandwidth: float) -> str:
    return (
        f"chosen: float32 at {float32} GFLOP/s and memory at {bandwidth} GB/s, which two CPU cores "
        "can keep up with"
    )


def _half(document: str, published: str) -> str:
    return f"{document}: half of the {published} with sparsity"


_T4_PROFILE = Profile(
    name="T4",
    full_name="Tesla T4",
    slowdown=50,
    capability=(7, 5),
    multiprocessors=40,
    clock_hz=1_590_000_000,
    total_memory=15_835_660_288,
    l2_bytes=4 * MIB,
    bandwidth=320e9,
    peak=_tera(float64=0.253, float32=8.1, float16=65, int8=130),
    tf32=8.1e12,
    link_name="PCIe 3.0 x16",
    pinned_bandwidth=12.4e9,
    pageable_bandwidth=4.9e9,
    peer_bandwidth=12.4e9,
    pin_bandwidth=1.74e9,
    copy_latency=2.5e-6,
    launch_seconds=5e-6,
    kernel_seconds=2.6e-6,
    sources=_sources(
        {
            _TURING: "capability multiprocessors clock_hz l2_bytes bandwidth",
            f"{_TURING}: 1/32 of float32": "peak.float64",
            _T4: "peak.float32 peak.float16 peak.int8",
        },
        slowdown=_slow(162, 6.4),
        total_memory=_COLAB,
        tf32="model: Turing has no TF32 and computes in float32",
        pinned_bandwidth=(
            "reported: CUDA's bandwidthTest at 32 MB, 12.4 GB/s in and 13.1 out, on a Tesla T4 in "
            "a course report on GitHub; github.com/jdh4/della-gpu-A100 reports the same of another "
            "GPU over PCIe 3.0 x16"
        ),
        peer_bandwidth=_PEER,
        copy_latency=(
            "reported: CUDA's bandwidthTest at 1 kB, 2.5 µs, on a Tesla T4 in a course report on "
            "GitHub"
        ),
        launch_seconds="assumed: a round figure for a launch by the driver; 0.25 ms at 1/50 speed",
    ),
)

_L4_PROFILE = Profile(
    name="L4",
    full_name="NVIDIA L4",
    slowdown=200,
    capability=(8, 9),
    multiprocessors=58,
    clock_hz=2_040_000_000,
    total_memory=23_612_293_120,
    l2_bytes=48 * MIB,
    bandwidth=300e9,
    peak=_tera(float64=0.473, float32=30.3, float16=121, bfloat16=121, int8=242.5),
    tf32=60e12,
    link_name="PCIe 4.0 x16",
    pinned_bandwidth=26.2e9,
    pageable_bandwidth=6.1e9,
    peer_bandwidth=26.2e9,
    pin_bandwidth=1.74e9,
    copy_latency=2.5e-6,
    launch_seconds=5e-6,
    kernel_seconds=2.6e-6,
    sources=_sources(
        {
            _L4_QUERY: "capability multiprocessors clock_hz total_memory l2_bytes",
            _L4: "bandwidth peak.float32",
            f"{_ADA}: 1/64 of float32": "peak.float64",
            _half(_L4, "242 TFLOP/s"): "peak.float16 peak.bfloat16",
            _half(_L4, "485 TOP/s"): "peak.int8",
        },
        slowdown=_slow(152, 1.5),
        tf32=_half(_L4, "120 TFLOP/s"),
        pinned_bandwidth=_PCIE4,
        peer_bandwidth=_PEER,
    ),
)

_A100_PROFILE = Profile(  # the one with 40 GB on SXM4, which Colab lends
    name="A100",
    full_name="NVIDIA A100-SXM4-40GB",
    slowdown=150,
    capability=(8, 0),
    multiprocessors=108,
    clock_hz=1_410_000_000,
    total_memory=42_405_855_232,
    l2_bytes=40 * MIB,
    bandwidth=1555e9,
    peak=_tera(float64=19.5, float32=19.5, float16=312, bfloat16=312, int8=624),
    tf32=156e12,
    link_name="PCIe 4.0 x16",
    pinned_bandwidth=26.2e9,
    pageable_bandwidth=6.1e9,
    peer_bandwidth=252e9,
    pin_bandwidth=1.74e9,
    copy_latency=2.5e-6,
    launch_seconds=5e-6,
    kernel_seconds=2.6e-6,
    sources=_sources(
        {
            _AMPERE: "capability multiprocessors clock_hz l2_bytes",
            _A100: "bandwidth peak.float32 peak.float16 peak.bfloat16 peak.int8 tf32",
            f"{_A100}: tensor cores": "peak.float64",
        },
        slowdown=_slow(130, 10.4),
        total_memory=_PC2,
        pinned_bandwidth=_PCIE4,
        peer_bandwidth=(
            "model: 84 % of NVLink's 300 GB/s each way (the datasheet says 600 both ways), the "
            "share that an H200 reached of its 450"
        ),
    ),
)

_H100_PROFILE = Profile(  # the one on SXM5
    name="H100",
    full_name="NVIDIA H100 80GB HBM3",
    slowdown=500,
    capability=(9, 0),
    multiprocessors=132,
    clock_hz=1_980_000_000,
    total_memory=85_045_477_376,
    l2_bytes=50 * MIB,
    bandwidth=3350e9,
    peak=_tera(float64=67, float32=67, float16=989.5, bfloat16=989.5, int8=1979),
    tf32=494.5e12,
    link_name="PCIe 5.0 x16",
    pinned_bandwidth=55.0e9,
    pageable_bandwidth=7.0e9,
    peer_bandwidth=380e9,
    pin_bandwidth=1.74e9,
    copy_latency=2.5e-6,
    launch_seconds=5e-6,
    kernel_seconds=2.6e-6,
    sources=_sources(
        {
            _H100_QUERY: "capability multiprocessors clock_hz total_memory l2_bytes",
            _H100: "bandwidth peak.float32",
            f"{_H100}: tensor cores": "peak.float64",
            _half(_H100, "1979 TFLOP/s"): "peak.float16 peak.bfloat16",
            _half(_H100, "3958 TOP/s"): "peak.int8",
        },
        slowdown=_slow(134, 6.7),
        tf32=_half(_H100, "989 TFLOP/s"),
        pinned_bandwidth="assumed: as on the H200, over the same link",
        peer_bandwidth=(
            "reported: CUDA's p2pBandwidthLatencyTest, one way, github.com/NVIDIA/nccl issue 1264"
        ),
    ),
)

_H200_PROFILE = replace(  # an H100 with more and faster memory
    _H100_PROFILE,
    name="H200",
    full_name="NVIDIA H200",
    total_memory=150_109_880_320,
    l2_bytes=60 * MIB,
    bandwidth=4800e9,
    peer_bandwidth=378e9,
    launch_seconds=8.6e-6,
    sources=_sources(
        {
            _MEASURED: "capability multiprocessors clock_hz total_memory l2_bytes",
            _H200: "bandwidth peak.float32",
            f"{_H200}: tensor cores": "peak.float64",
            _half(_H200, "1979 TFLOP/s"): "peak.float16 peak.bfloat16",
            _half(_H200, "3958 TOP/s"): "peak.int8",
            f"{_MEASURED}; 256 MiB to the device": "pinned_bandwidth pageable_bandwidth",
        },
        slowdown=_slow(134, 9.6),
        tf32=_half(_H200, "989 TFLOP/s"),
        peer_bandwidth=f"{_MEASURED}; 256 MiB over NVLink",
        pin_bandwidth=f"{_MEASURED}; 256 MiB of new memory took its host 154 ms",
        copy_latency=(
            f"{_MEASURED}; a pinned copy of 1 MiB took 30.0 µs, of which 19.0 on the link and 8.6 "
            "to launch"
        ),
        launch_seconds=f"{_MEASURED}; from Python",
        kernel_seconds=f"{_MEASURED}; float16 matmul of 256×256, profiler, cache warm",
    ),
)

#: The profiles by name, from the smallest GPU to the largest.
PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        profile.name: profile
        for profile in (_T4_PROFILE, _L4_PROFILE, _A100_PROFILE, _H100_PROFILE, _H200_PROFILE)
    }
)

_UNITS = {"mib": MIB, "gib": GIB, "mb": 10**6, "gb": 10**9}
_COUNT = re.compile(r"[0-9]{1,9}")
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?) *([A-Za-z]{2,3})")


def parse(text: str) -> Spec:
    """Read which GPUs to simulate.

    Parameters
    ----------
    text : str
        A profile, then optionally ``x`` and how many, then optionally ``@`` and the memory of each
        in MiB, GiB, MB or GB: ``"T4"``, ``"T4x2"``, ``"T4x2@4GiB"``, ``"H200@140GiB"``. Case does
        not matter, nor do spaces around the parts. Without a count there is one GPU, without a
        memory it has 1 GiB.

    Returns
    -------
    Spec
        Profile, count (1 to 64) and memory in bytes (64 MiB to 1 TiB).

    Raises
    ------
    ValueError
        If `text` is anything else. The one line says what is wrong and what to write.
    TypeError
        If `text` is not a string.
    """
    if not isinstance(text, str):
        raise TypeError(
            f"which GPUs to simulate must be a string, such as 'T4x2@4GiB', "
            f"not {type(text).__name__}"
        )
    head, at, size = (part.strip() for part in text.partition("@"))
    profile, times, number = _profile(text, head)
    count = _count(text, number) if times else 1
    memory = _memory(text, size) if at else DEFAULT_MEMORY
    return Spec(profile, count, memory)


def _profile(text: str, head: str) -> tuple[Profile, str, str]:
    """Split ``"T4x2"`` into the profile, the ``x`` and what follows it."""
    for name, profile in PROFILES.items():
        match = re.fullmatch(rf"{name}\s*(?:(x)(.*))?", head, re.IGNORECASE | re.DOTALL)
        if match:
            return profile, match[1] or "", (match[2] or "").strip()
    _refuse(text, f"no profile is called {reprlib.repr(head)}" if head else "no profile is named")


def _count(text: str, number: str) -> int:
    if not _COUNT.fullmatch(number):
        _refuse(text, f"after the x comes a whole number, not {reprlib.repr(number)}")
    count = int(number)
    if not 1 <= count <= MAX_COUNT:
        _refuse(text, f"the count must be from 1 to {MAX_COUNT}, not {count}")
    return count


def _memory(text: str, size: str) -> int:
    match = _SIZE.fullmatch(size)
    unit = _UNITS.get(match[2].lower()) if match else None
    if not match or unit is None:
        cause = "after the @ comes a number and one of MiB, GiB, MB, GB"
        _refuse(text, f"{cause}, not {reprlib.repr(size)}")
    memory = int(Fraction(match[1]) * unit)
    if not MIN_MEMORY <= memory <= MAX_MEMORY:
        _refuse(text, f"the memory of each GPU must be from 64 MiB to 1024 GiB, not {match[0]}")
    return memory


def _refuse(text: str, cause: str) -> NoReturn:
    raise ValueError(
        f"cannot simulate {reprlib.repr(text)}: {cause}. Write a profile "
        f"({', '.join(PROFILES)}), optionally x and a count, optionally @ and the memory of each, "
        "such as 'T4x2@4GiB'."
    )
