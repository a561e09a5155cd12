"""The profiles of the simulated GPUs: figures, sources and the way to ask for them."""

import copy
import dataclasses
import pickle
import re
import reprlib

import pytest
import torch

from gpututor.simulator.profiles import GIB, MIB, PROFILES, Profile, parse

EACH = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
KINDS = ("measured: ", "reported: ", "model: ", "assumed: ", "chosen: ")
TEXTS = {"name", "full_name", "link_name"}


def numbers(profile: Profile) -> dict[str, float]:
    """Every number of a profile, under the name by which `sources` knows it."""
    found = {}
    for field in dataclasses.fields(profile):
        value = getattr(profile, field.name)
        if field.name == "peak":
            found |= {f"peak.{str(dtype).removeprefix('torch.')}": v for dtype, v in value.items()}
        elif field.name == "capability":
            found[field.name] = value[0]
        elif field.name not in TEXTS | {"sources"}:
            found[field.name] = value
    return found


def test_order_and_names():
    assert list(PROFILES) == ["T4", "L4", "A100", "H100", "H200"]
    assert all(name == profile.name for name, profile in PROFILES.items())
    assert PROFILES["T4"].device_name == "Simulated T4 (1/50 speed)"
    assert PROFILES["T4"].full_name == "Tesla T4"


@EACH
def test_every_number_has_one_source(profile):
    assert set(profile.sources) == set(numbers(profile))


@EACH
def test_a_source_is_a_dated_document_or_says_its_kind(profile):
    for name, source in profile.sources.items():
        dated = re.search(r"\b20[12]\d\b", source)
        assert source.startswith(KINDS) or dated, (name, source)
        assert "\n" not in source


@EACH
def test_numbers_are_positive(profile):
    for name, value in numbers(profile).items():
        assert isinstance(value, (int, float)), name
        assert value > 0, name


@EACH
def test_units_are_plausible(profile):
    """A slip by a factor of 1000, the likeliest error, fails here."""
    assert 1e9 < profile.clock_hz < 3e9
    assert 10 * GIB < profile.total_memory < 200 * GIB
    assert MIB < profile.l2_bytes < 100 * MIB
    assert 1e11 < profile.bandwidth < 1e13
    assert all(1e11 < rate < 1e16 for rate in profile.peak.values())
    assert 1e9 < profile.pageable_bandwidth < profile.pinned_bandwidth < profile.bandwidth
    assert profile.pinned_bandwidth <= profile.peer_bandwidth < profile.bandwidth
    assert 1e-6 < profile.kernel_seconds < profile.launch_seconds < 1e-5
    assert 1e-6 < profile.copy_latency < 1e-5


@EACH
def test_slow_motion_is_one_that_two_cores_keep_up_with(profile):
    assert isinstance(profile.slowdown, int)
    assert profile.slowdown % 50 == 0
    assert 130e9 <= profile.peak[torch.float32] / profile.slowdown <= 165e9
    assert profile.bandwidth / profile.slowdown <= 11e9


@EACH
def test_the_source_of_the_slowdown_states_the_rates_it_makes(profile):
    float32, bandwidth = re.findall(
        r"at ([\d.]+) GFLOP/s .* at ([\d.]+) GB/s", profile.sources["slowdown"]
    )[0]
    assert float(float32) == round(profile.peak[torch.float32] / profile.slowdown / 1e9)
    assert float(bandwidth) == round(profile.bandwidth / profile.slowdown / 1e9, 1)


def test_the_t4_in_slow_motion():
    t4 = PROFILES["T4"]
    assert t4.peak[torch.float32] / t4.slowdown == pytest.approx(162e9)
    assert t4.launch_seconds * t4.slowdown == pytest.approx(0.25e-3)


@pytest.mark.parametrize(
    ("name", "cores", "low"),
    [
        ("T4", 64, torch.float16),
        ("L4", 128, torch.float16),
        ("A100", 64, torch.float16),
        ("H100", 128, torch.bfloat16),
        ("H200", 128, torch.bfloat16),
    ],
)
def test_peak_float32_is_cores_times_clock(name, cores, low):
    """Two operations for each CUDA core and clock: a check from figures of other documents."""
    profile = PROFILES[name]
    cores_in_all = profile.multiprocessors * cores
    assert profile.peak[torch.float32] == pytest.approx(
        2 * cores_in_all * profile.clock_hz, rel=0.01
    )
    assert profile.peak[low] > 3 * profile.peak[torch.float32]
    assert profile.peak[torch.int8] == pytest.approx(2 * profile.peak[low], rel=0.01)


def test_larger_gpus_have_more():
    t4, l4, a100, h100, h200 = PROFILES.values()
    assert h200.bandwidth > h100.bandwidth > a100.bandwidth > t4.bandwidth > l4.bandwidth
    assert h200.total_memory > h100.total_memory > a100.total_memory > l4.total_memory
    assert l4.total_memory > t4.total_memory
    half = [profile.peak[torch.float16] for profile in PROFILES.values()]
    assert half == sorted(half)
    assert h100.peak == h200.peak
    capabilities = [t4.capability, a100.capability, l4.capability, h100.capability]
    assert capabilities == sorted(capabilities)
    for rate in ("pinned_bandwidth", "pageable_bandwidth"):
        assert getattr(t4, rate) < getattr(l4, rate) == getattr(a100, rate) < getattr(h100, rate)
    assert a100.peer_bandwidth > 5 * a100.pinned_bandwidth  # NVLink
    assert t4.peer_bandwidth == t4.pinned_bandwidth  # none


@EACH
def test_pageable_rate_follows_its_model(profile):
    modelled = 1 / (1 / 8.02e9 + 1 / profile.pinned_bandwidth)
    assert profile.pageable_bandwidth == pytest.approx(modelled, rel=0.01)


def test_h200_is_what_was_measured():
    """`facts.json` and `hazards.json`, 30 November 2026."""
    h200 = PROFILES["H200"]
    assert h200.total_memory == 150109880320
    assert h200.l2_bytes == 62914560
    assert (h200.multiprocessors, h200.clock_hz, h200.capability) == (132, 1_980_000_000, (9, 0))
    assert h200.pinned_bandwidth == pytest.approx(55.02e9, rel=0.01)
    assert h200.pageable_bandwidth == pytest.approx(6.95e9, rel=0.01)
    assert h200.peer_bandwidth == pytest.approx(377.6e9, rel=0.01)
    assert h200.launch_seconds == pytest.approx(8.64e-6, rel=0.01)
    assert h200.kernel_seconds == pytest.approx(2.625e-6, rel=0.01)


def test_flops_of_types_without_units_of_their_own():
    t4, a100 = PROFILES["T4"], PROFILES["A100"]
    assert torch.bfloat16 not in t4.peak
    assert t4.flops(torch.bfloat16) == t4.flops(torch.int64) == t4.peak[torch.float32]
    assert t4.flops(torch.float16) == 65e12
    assert t4.flops(torch.float32, tf32=True) == t4.flops(torch.float32) == 8.1e12
    assert a100.flops(torch.float32, tf32=True) == 156e12
    assert a100.flops(torch.float16, tf32=True) == 312e12
    assert t4.flops(torch.complex128) == t4.peak[torch.float64]


@EACH
def test_profiles_hash_pickle_copy_and_do_not_change(profile):
    assert pickle.loads(pickle.dumps(profile)) == profile
    assert copy.deepcopy(profile) == profile
    assert len({profile, copy.deepcopy(profile)}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        profile.slowdown = 1
    with pytest.raises(TypeError):
        PROFILES["mine"] = profile


@pytest.mark.parametrize(
    ("text", "name", "count", "memory"),
    [
        ("T4", "T4", 1, GIB),
        ("t4", "T4", 1, GIB),
        ("L4", "L4", 1, GIB),
        ("a100", "A100", 1, GIB),
        ("H100", "H100", 1, GIB),
        ("h200", "H200", 1, GIB),
        ("T4x2", "T4", 2, GIB),
        ("t4X2", "T4", 2, GIB),
        ("T4x02", "T4", 2, GIB),
        ("T4x64", "T4", 64, GIB),
        ("T4x1", "T4", 1, GIB),
        ("  T4  ", "T4", 1, GIB),
        ("\tT4x2\n", "T4", 2, GIB),
        ("T4 x 2 @ 4 GiB", "T4", 2, 4 * GIB),
        ("T4x2@4GiB", "T4", 2, 4 * GIB),
        ("t4x2@4gib", "T4", 2, 4 * GIB),
        ("T4X2@4GIB", "T4", 2, 4 * GIB),
        ("T4@4GiB", "T4", 1, 4 * GIB),
        ("H200x1@140GiB", "H200", 1, 140 * GIB),
        ("H200@140GiB", "H200", 1, 140 * GIB),
        ("T4@64MiB", "T4", 1, 64 * MIB),
        ("T4@512MiB", "T4", 1, 512 * MIB),
        ("T4@1024GiB", "T4", 1, 1024 * GIB),
        ("T4@1048576MiB", "T4", 1, 1024 * GIB),
        ("T4@0.5GiB", "T4", 1, 512 * MIB),
        ("T4@1.5GiB", "T4", 1, 1536 * MIB),
        ("T4@0.1GiB", "T4", 1, 107374182),
        ("T4@2GB", "T4", 1, 2 * 10**9),
        ("T4@100MB", "T4", 1, 10**8),
        ("T4@67.108864MB", "T4", 1, 64 * MIB),
        ("L4x8@22GB", "L4", 8, 22 * 10**9),
    ],
)
def test_parse(text, name, count, memory):
    spec = parse(text)
    assert spec.profile is PROFILES[name]
    assert (spec.count, spec.memory) == (count, memory)
    assert type(spec.count) is type(spec.memory) is int
    assert parse(text) == spec


# What the message says, and texts that it is said of.
BAD = {
    "profile": """
        x2 @4GiB x @ P100 T5 T 4 T42 T4-2 T4*2 T4,2 T4×2 2xT4 T4T4 T4+L4 T4,L4 V100x2 GTX1080
        A10 A1000 H2000 H20 TeslaT4 cuda cuda:0 cpu None True 1 NaN -1 T4; T4/ 'T4' (T4)
    """,
    "whole number": """
        T4x T4x@4GiB T4x-1 T4x+2 T4x1.5 T4x2.0 T4xNaN T4xinf T4xtwo T4x2x2 T4xx2 T4x2! T4x1e1
        T4x0x2 T4x² T4x1_0 T4x2GiB
    """,
    "count must be": "T4x0 T4x00 T4x65 T4x1000 T4x999999999 T4x0@4GiB",
    "after the @": """
        T4@ T4x2@ T4@4 T4@GiB T4@4G T4@4Gi T4@4B T4@4TiB T4@4KiB T4@-4GiB T4@+4GiB T4@NaNGiB
        T4@nan T4@infGiB T4@1e9GiB T4@4,5GiB T4@.5GiB T4@4.GiB T4@4GiBx2 T4@4GiB@4GiB T4@@4GiB
        T4@4GiB! T4@1/2GiB
    """,
    "memory of each GPU": """
        T4@0GiB T4@0MiB T4@0.0GB T4@1MiB T4@63MiB T4@63.999MiB T4@64MB T4@0.01GiB T4@1025GiB
        T4@1024.001GiB T4@999999999999999GiB T4@1100GB
    """,
}
# The same for texts with spaces, with digits and letters of other scripts, and very long ones.
ODD = {
    "profile": [
        "",
        " ",
        "\n",
        "T4 2",
        "2 T4",
        "T4\0",
        "T4\nL4",
        "\u0422" + "4",
        "T\u0664",
        "a" * 9999,
    ],
    "whole number": ["T4x ", "T4x2 2", "T4x2\n3", "T4x\u0662", "T4x" + "9" * 5000],
    "after the @": ["T4@ ", "T4@4 4GiB", "T4@4GiB each", "T4@4\nGiB", "T4@\u0664GiB"],
    "one of MiB": ["T4@" + "9" * 5000 + "GiB"],
}


@pytest.mark.parametrize(
    ("cause", "text"),
    [(cause, text) for cause, texts in BAD.items() for text in texts.split()]
    + [(cause, text) for cause, texts in ODD.items() for text in texts],
    ids=reprlib.repr,
)
def test_parse_refuses(cause, text):
    with pytest.raises(ValueError) as caught:
        parse(text)
    message = str(caught.value)
    assert cause in message
    assert message.isprintable()  # one line, whatever was given
    assert len(message) < 300
    for name in PROFILES:
        assert name in message
    assert "such as 'T4x2@4GiB'" in message


@pytest.mark.parametrize(
    "thing", [None, 2, 1.0, True, b"T4", ["T4"], ("T4", 2), {"T4": 2}, PROFILES["T4"], parse("T4")]
)
def test_parse_takes_strings_only(thing):
    with pytest.raises(TypeError, match=r"must be a string, such as 'T4x2@4GiB', not \w+$"):
        parse(thing)
