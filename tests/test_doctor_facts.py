"""Facts go to a file and come back, and none are too absurd for a diagnosis."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest

from gpututor import doctor
from gpututor.doctor import Facts, FactsError, diagnose
from gpututor.doctor.facts import anonymous, scrub
from gpututor.doctor.finding import CONFIDENCES, VERDICTS
from gpututor.doctor.visible import choose

NAMES = [item.name for item in fields(Facts)]
WORDS = (
    "",
    " ",
    "ok",
    "timeout",
    "none",
    "docker",
    "colab",
    "Linux x86_64",
    "Windows AMD64",
    "macOS arm64",
    "2.8.0+cpu",
    "12.8",
    "12040",
    "570.133.20",
    "sm_90a",
    "sm_",
    "sm_9999999999",
    "compute_120",
    "gfx90a",
    "8.9",
    "0,9,1",
    "GPU-bad",
    "MIG-",
    "No CUDA GPUs are available",
    "Error 804",
    "no kernel image is available",
    "found version 99999999",
    "Exclusive_Process",
    "\x1b[31m\x00\ud800",
    "9" * 5000,
    "٣٤",
    "²",
)
KEYS = ("name", "capability", "memory_gib", "mig", "compute_mode", "uuid", "processes")


class Absurd:
    def __str__(self) -> str:
        raise RuntimeError("no text")


def absurd(rng: random.Random, depth: int = 0) -> Any:
    """Return any value: JSON's, Python's, or one that belongs to another key."""
    kind = rng.randrange(11 if depth < 3 else 7)
    if kind < 3:
        return rng.choice(WORDS)
    if kind == 3:
        return rng.choice([None, True, False])
    if kind == 4:
        return rng.choice([0, 1, -1, 3, 10**400, 2**63])
    if kind == 5:
        return rng.choice([0.5, float("nan"), float("inf"), -1e308])
    if kind == 6:
        return rng.choice([Absurd(), object(), b"bytes", 1j])
    if kind == 7:
        return [absurd(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 8:
        return tuple(absurd(rng, depth + 1) for _ in range(rng.randrange(4)))
    keys = (*KEYS, "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "SLURM_JOB_ID", 3)
    return {key: absurd(rng, depth + 1) for key in rng.sample(keys, rng.randrange(4))}


def sensible(rng: random.Random, name: str) -> Any:
    """Return a value of the right shape, so that the deeper rules are reached too."""
    if name == "devices":
        return [
            {key: rng.choice([*WORDS, True, False, None, 2.5]) for key in KEYS}
            for _ in range(rng.randrange(4))
        ]
    if name == "env":
        return {"CUDA_VISIBLE_DEVICES": rng.choice(WORDS), "HIP_VISIBLE_DEVICES": "0"}
    if name == "arch_list":
        return rng.sample(WORDS, 3)
    if name in ("is_available", "nvidia_smi_present", "device_nodes_present", "wsl"):
        return rng.choice([True, False])
    return rng.choice(WORDS)


def check(facts: Facts) -> None:
    found = diagnose(facts)
    assert found
    for item in found:
        assert item.verdict in VERDICTS and item.confidence in CONFIDENCES
        assert item.summary and item.advice and all(isinstance(text, str) for text in item.advice)
        assert all(isinstance(text, str) and "\x1b" not in text for text in item.evidence)
    assert sum(item.verdict == "fine" for item in found) <= 1
    shown = doctor.report(facts)
    text = repr(shown)
    assert "\x1b" not in text and all(len(line) <= 80 for line in text.splitlines())
    assert "\x1b" not in shown._repr_html_()
    assert json.loads(shown.to_json())["verdict"] == found[0].verdict


@pytest.mark.parametrize("seed", range(40))
def test_no_facts_are_too_absurd(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(25):
        chosen = rng.sample(NAMES, rng.randrange(len(NAMES)))
        facts = Facts()
        for name in chosen:
            pick = absurd(rng) if rng.random() < 0.4 else sensible(rng, name)
            setattr(facts, name, pick)
        check(facts)


@pytest.mark.parametrize("name", NAMES)
def test_each_field_may_hold_anything(name: str) -> None:
    rng = random.Random(name)
    for _ in range(40):
        facts = Facts(torch_version="2.8.0", torch_cuda="12.8", is_available=False)
        setattr(facts, name, absurd(rng))
        check(facts)


def test_without_any_facts() -> None:
    check(Facts())


def test_facts_come_back_from_a_file(tmp_path: Path) -> None:
    facts = Facts(
        os="Linux x86_64",
        torch_version="2.8.0+cu128",
        devices=[{"name": "Tesla T4", "capability": "7.5", "memory_gib": 14.6}],
        env={"CUDA_VISIBLE_DEVICES": " 0, 1"},
        is_available=True,
        tiny_op="ok",
    )
    facts.save(tmp_path / "facts.json")
    assert Facts.load(tmp_path / "facts.json") == facts
    assert Facts.from_json(doctor.report(facts).to_json()) == facts
    wanted = {
        "os wsl container platform torch_version torch_cuda torch_hip arch_list driver_version "
        "driver_cuda nvidia_smi_present devices device_nodes_present env "
        "cuda_initialized_before_env is_available device_count init_error tiny_op"
    }
    assert set(" ".join(wanted).split()) <= json.loads(facts.to_json()).keys()


def test_other_keys_and_nulls_are_accepted() -> None:
    data = dict.fromkeys(asdict(Facts()))
    assert Facts.from_dict({**data, "moon": "full"}) == Facts()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a list"),
        ("null", "not null"),
        ("5", "not a number"),
        ('"facts"', "not text"),
        ("{}", "no facts"),
        ('{"moon": 1}', "no facts"),
        ('{"facts": {}}', "no facts"),
        ('{"devices": "T4"}', "devices must be a list or null, not text"),
        ('{"devices": [1]}', "each of devices must be an object"),
        ('{"env": []}', "env must be an object"),
        ('{"is_available": "yes"}', "is_available must be true or false"),
        ('{"device_count": true}', "device_count must be a whole number"),
        ('{"device_count": 1.5}', "device_count must be a whole number"),
        ('{"tiny_op": 1}', "tiny_op must be text"),
        ('{"torch_version": ["2.8"]}', "torch_version must be text"),
    ],
)
def test_what_holds_no_facts_is_refused_in_one_line(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(FactsError, match=reason) as caught:
        Facts.from_json(text)
    assert "\n" not in str(caught.value)
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(FactsError, match=r"^bad\.json: ") as caught:
        Facts.load(tmp_path / "bad.json")
    assert str(tmp_path) not in str(caught.value)


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "image.json").write_bytes(b"\x89PNG\xff\xfe")
    (tmp_path / "large.json").write_bytes(b" " * (1 << 21))
    for name, reason in (
        ("image.json", "UTF-8"),
        ("large.json", "too large"),
        ("none.json", "not there"),
        (".", "no file"),
    ):
        with pytest.raises(FactsError, match=reason):
            Facts.load(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            "OSError: /home/ada/.venv/lib/python3.12/site-packages/torch/lib/libcudart.so.12: no",
            "OSError: libcudart.so.12: no",
        ),
        (
            'Error loading "C:\\Users\\Ada Byron\\venv\\Lib\\torch\\lib\\c10.dll" or one of its',
            'Error loading "c10.dll" or one of its',
        ),
        ("(Triggered internally at /pytorch/c10/cuda/x.cpp:109.)", "at x.cpp:109.)"),
        ("from http://www.nvidia.com/Download/index.aspx", "http://www.nvidia.com/Download/index"),
        ('Traceback (most recent call last):\n  File "/home/ada/x.py", line 3\nOSError: a', "OSE"),
        ("cannot open /home/ada", "cannot open"),
        ("/Users/ada: not found", ": not found"),
        ("cannot open C:\\Users\\ada", "cannot open"),
    ],
)
def test_paths_become_names(text: str, left: str) -> None:
    said = scrub(text)
    assert left in said
    assert not {"ada", "Ada", "Byron", "home", "Users"} & set(said.replace("/", " ").split())


def test_ids_are_cut() -> None:
    whole = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6, GPU-bad"
    assert anonymous(whole) == "GPU-8932f937, GPU-bad"


@pytest.mark.parametrize(
    ("value", "total", "chosen"),
    [
        ("", 2, ()),
        (" ", 2, ()),
        ("0", 2, ("0",)),
        (" 1 , 0 ", 2, ("1", "0")),
        ("0,9,1", 2, ("0",)),
        ("9,0", 2, ()),
        ("-1", 2, ()),
        ("0,-1,1", 2, ("0",)),
        ("0,,1", 2, ("0",)),
        ("1,1", 2, ()),
        ("+1", 2, ("1",)),
        ("01", 2, ("1",)),
        ("1gpu,0", 2, ("1", "0")),
        ("none", 2, ()),
        ("7", None, ("7",)),
        ("99999999999999", None, ()),
        ("GPU-89", None, ("GPU-89",)),
        ("MIG-GPU-89/1/0", 1, ("MIG-GPU-89/1/0",)),
        ("GPU-89,0", 2, ("GPU-89", "0")),
    ],
)
def test_what_a_list_chooses(value: str, total: int | None, chosen: tuple[str, ...]) -> None:
    found = choose(value, total)
    assert found.chosen == chosen
    assert bool(found.why) == (found.chosen == () or len(chosen) < value.count(",") + 1)


def test_ids_are_matched_by_their_first_digits() -> None:
    ids = ("GPU-8932f937", "GPU-8931aaaa")
    assert choose("GPU-8932", 2, ids).chosen == ("GPU-8932f937",)
    assert choose("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", 2, ids).chosen == ids[:1]
    assert choose("GPU-893", 2, ids).chosen == ()
    assert choose("GPU-8931,GPU-bad,GPU-8932", 2, ids).chosen == ids[1:]
