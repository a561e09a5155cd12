"""The small rules below a diagnosis, one by one: what whole machines seldom reach."""

from __future__ import annotations

import json
from typing import Any

import pytest
from test_doctor_machines import (
    ADA,
    AMPERE,
    CU121,
    MACHINES,
    NO_GPUS,
    UNKNOWN,
    bare,
    blind,
    failing,
    gpu,
    healthy,
    shown,
)

from gpututor.doctor import Facts, FactsError, Finding, advice, architecture, diagnose, usability
from gpututor.doctor.case import Case, amd, read
from gpututor.doctor.finding import CONFIDENCES, VERDICTS
from gpututor.doctor.versions import driver_fits, has_code, number, oldest_driver, runs_on


def case(facts: dict[str, Any]) -> Case:
    return read(Facts(**facts))


def found(facts: dict[str, Any], words: str) -> Finding:
    """Return the one finding whose summary has these words."""
    (finding,) = [item for item in diagnose(Facts(**facts)) if words in item.summary]
    assert finding.verdict in VERDICTS and finding.confidence in CONFIDENCES
    assert finding.advice and all(text and isinstance(text, str) for text in finding.advice)
    assert all(text and isinstance(text, str) for text in finding.evidence)
    return finding


@pytest.mark.parametrize("name", MACHINES)
def test_every_finding_is_whole(name: str) -> None:
    for item in diagnose(Facts(**MACHINES[name][0])):
        found(MACHINES[name][0], item.summary)


# -- versions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("12.4", (12, 4)),
        ("12040", (12, 4)),
        ("1000", (1, 0)),
        ("999", (999,)),
        ("570.133.20", (570, 133, 20)),
        ("v1050.2", (1050, 2)),
        ("", ()),
        ("none", ()),
    ],
)
def test_versions_are_read(text: str, version: tuple[int, ...]) -> None:
    assert number(text) == version


def test_the_oldest_driver_itself_fits() -> None:
    for build, system in (((12, 4), "linux"), ((12, 4), "windows"), ((10, 2), "linux")):
        oldest = oldest_driver(build, system)
        assert oldest
        assert driver_fits(build, (), oldest, system) is True
        older = (oldest[0] - 1, *oldest[1:])
        assert driver_fits(build, (), older, system) is False
    oldest = oldest_driver((12, 4), "linux")
    assert driver_fits((12, 4), (12, 2), oldest, "linux") is True
    assert driver_fits((12, 4), (12, 2), (*oldest[:2], oldest[2] - 1), "linux") is False
    assert driver_fits((), (12, 2), oldest, "linux") is None
    assert driver_fits((12, 4), (), (), "linux") is None


@pytest.mark.parametrize("build", [(12, 4), (10, 2), (9, 9), (99, 0), ()])
def test_an_unknown_system_has_no_oldest_driver(build: tuple[int, ...]) -> None:
    assert oldest_driver(build, "solaris") == ()


@pytest.mark.parametrize(
    ("code", "capability", "runs"),
    [
        ("sm_80", (8, 6), True),
        ("sm_86", (8, 0), False),
        ("sm_80", (8,), True),
        ("sm_81", (8,), False),
        ("sm_80", (9, 0), False),
        ("compute_80", (9, 0), True),
        ("compute_90", (8, 9), False),
        ("sm_90a", (9, 0), True),
        ("sm_90a", (9, 1), False),
        ("compute_90a", (10, 0), False),
        ("sm_100f", (10, 3), True),
        ("sm_101", (11, 0), True),
        ("sm_110", (10, 1), True),
        ("sm_100", (11, 0), False),
        ("sm_80", (8, 7), False),
        ("sm_87", (8, 9), False),
        ("sm_120", (12, 1), True),
        ("gfx90a", (9, 0), None),
    ],
)
def test_which_code_runs_where(code: str, capability: tuple[int, ...], runs: bool | None) -> None:
    assert runs_on(code, capability) is runs


def test_how_a_build_serves_a_gpu() -> None:
    assert has_code(["sm_80", "compute_80"], (8, 6)) == "machine code"
    assert has_code(["sm_80", "compute_80"], (9, 0)) == "PTX"
    assert has_code(["sm_80"], (9, 0)) == ""
    assert has_code([], (9, 0)) is has_code(["gfx90a"], (9, 0)) is has_code(["sm_80"], ()) is None


@pytest.mark.parametrize("operation", ["ok", "RuntimeError: odd", None])
def test_a_gpu_of_unknown_capability_is_diagnosed(operation: str | None) -> None:
    facts = healthy(devices=[gpu(capability=None)], tiny_op=operation)
    assert (diagnose(Facts(**facts))[0].verdict == "fine") == (operation != "RuntimeError: odd")


# -- the case --------------------------------------------------------------------------------


def test_what_was_said() -> None:
    three = {"init_error": "b", "nvml_error": "c"}
    assert read(Facts(tiny_op="a", **three)).text == "a | b | c"
    assert read(Facts(tiny_op="ok", **three)).text == "b | c"
    assert read(Facts(tiny_op="timeout", init_error="c", nvml_error="c")).text == "c"


def test_whose_gpus_they_are() -> None:
    assert amd(read(Facts(pci_gpus=["amd"])))
    assert not amd(read(Facts(pci_gpus=["nvidia"])))
    assert not amd(read(Facts(pci_gpus=["amd", "nvidia"])))
    assert amd(read(Facts(devices=[{"name": "AMD Radeon"}])))
    assert not amd(read(Facts(devices=[{"name": "AMD Radeon"}, {"name": "Tesla T4"}])))
    assert not amd(read(Facts()))


@pytest.mark.parametrize(
    ("os", "system", "kind"),
    [
        ("Darwin 24.1 arm64", "mac", "mac"),
        ("macOS-15 arm64", "mac", "mac"),
        ("Linux x86_64", "linux", "cpu"),
        ("Windows AMD64", "windows", "cpu"),
        ("Microsoft Windows 11", "windows", "cpu"),
        ("CYGWIN_NT", "windows", "cpu"),
    ],
)
def test_which_system_and_which_build(os: str, system: str, kind: str) -> None:
    for error in (None, "AssertionError: Torch not compiled with CUDA enabled"):
        found = read(Facts(os=os, torch_version="2.8.0", is_available=False, init_error=error))
        assert (found.system, found.kind) == (system, kind)


def test_a_device_is_read() -> None:
    (device,) = case(
        {"devices": [gpu(memory_used_gib=3.5, processes=2, uuid="GPU-1", compute_mode="2")]}
    ).gpus
    assert (device.name, device.capability, device.uuid) == ("Tesla T4", (7, 5), "GPU-1")
    assert (device.memory, device.used, device.processes) == (16.0, 3.5, 2)
    assert (device.mode, device.mig) == ("prohibited", False)


# -- findings --------------------------------------------------------------------------------


def test_a_driver_that_must_compile_and_is_behind() -> None:
    facts = failing(
        "RuntimeError: CUDA error: the provided PTX was compiled otherwise",
        devices=[ADA],
        arch_list=["compute_80"],
        driver_cuda="12.2",
    )
    facts["tiny_op"] = "RuntimeError: something else"
    finding = found(facts, "code that the driver must compile")
    assert (finding.verdict, finding.confidence) == ("driver", "likely")
    assert finding.evidence == (
        "the driver runs up to CUDA 12.2",
        "this PyTorch is built for CUDA 12.8",
        "the build has compute_80",
    )
    assert "Update the NVIDIA driver" in finding.advice[0]


def test_the_advice_for_a_gpu_without_code_fits_that_gpu() -> None:
    old = gpu("NVIDIA GeForce GTX 1080", "6.1")
    finding = found(healthy(devices=[old], tiny_op="RuntimeError: odd"), "no code for this GPU")
    assert finding.confidence == "likely" or finding.confidence == "possible"
    assert finding.advice == advice.code_for(case(healthy()), (6, 1))
    new = gpu("NVIDIA RTX 5090", "12.0")
    beside = found(healthy(devices=[ADA, new], arch_list=CU121), "Another GPU of this machine")
    assert beside.advice == advice.code_for(case(healthy()), (12, 0))


def test_a_number_past_the_last_gpu_chooses_none() -> None:
    for value, names in (("1", [AMPERE["name"]]), ("2", [ADA["name"], AMPERE["name"]])):
        order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": value}
        left = architecture.visible(case(healthy(devices=[ADA, AMPERE], env=order)))
        assert [item.name for item in left] == names


def test_a_fresh_process_on_colab_and_elsewhere() -> None:
    assert "Restart session" in advice.restart(case(healthy(platform="colab")))
    assert "Kernel > Restart" in advice.restart(case(healthy()))


def test_a_variable_set_too_late_beside_a_gpu_that_works() -> None:
    facts = shown("1", devices=[ADA, ADA], cuda_initialized_before_env=True)
    finding = found(facts, "too late")
    assert finding.summary.startswith("CUDA_VISIBLE_DEVICES may have been")
    assert finding.verdict == "visibility"


def test_two_counts_are_a_matter_of_visibility() -> None:
    facts = healthy(devices=[gpu("GTX 745", "5.0"), ADA], device_count=2)
    assert found(facts, "counts the fastest").verdict == "visibility"


@pytest.mark.parametrize(
    ("changes", "restart"),
    [
        ({}, True),
        ({"os": "Windows AMD64"}, False),
    ],
)
def test_what_nothing_explains(changes: dict[str, Any], restart: bool) -> None:
    known = {"os": "Linux x86_64", "torch_version": "2.8.0+cu128", "driver_version": "570.1"}
    finding = diagnose(Facts(**{**known, **changes}))[-1]
    assert finding.confidence == "possible"
    assert finding.advice[0].startswith("Restart the computer") == restart
    assert finding.advice[0].endswith("run the doctor again." if restart else "in a fresh process.")


def test_an_old_driver_beside_a_gpu_that_answers_is_possible_only() -> None:
    old = {"driver_cuda": "11.4", "driver_version": "470.1"}
    works = found(failing("RuntimeError: odd", **old), "driver is too old")
    assert works.confidence == "possible"
    assert found(blind(**old), "driver is too old").confidence == "certain"


def test_windows_is_restarted_before_its_driver_is_updated() -> None:
    linux = found(blind(init_error=UNKNOWN, tiny_op=UNKNOWN), "driver").advice
    windows = found(blind(init_error=UNKNOWN, tiny_op=UNKNOWN, os="Windows AMD64"), "driver").advice
    assert windows == ("Restart Windows, then update its NVIDIA driver.", *linux[1:])


@pytest.mark.parametrize(("used", "noted"), [(12.7, False), (12.8, False), (12.9, True)])
def test_little_memory_free_is_noted_from_four_fifths_on(used: float, noted: bool) -> None:
    facts = healthy(devices=[gpu(memory_used_gib=used, processes=2)])
    notes = [item for item in diagnose(Facts(**facts)) if "little memory free" in item.summary]
    assert bool(notes) == noted
    if noted:
        assert notes[0].evidence == (
            f"{used} of 16.0 GiB are in use",
            "2 other processes on it",
        )


def test_other_processes_are_counted() -> None:
    assert usability._others(None) == usability._others(0) == []
    assert usability._others(1) == ["1 other process on it"]
    assert usability._others(2) == ["2 other processes on it"]


@pytest.mark.parametrize(
    ("mode", "rows"),
    [("Default", []), ("0", []), ("3", ["Tesla T4: compute mode exclusive_process"])],
)
def test_only_an_unusual_mode_is_said(mode: str, rows: list[str]) -> None:
    assert usability._states(case(healthy(devices=[gpu(compute_mode=mode)]))) == rows


def test_a_driver_that_shows_no_gpu() -> None:
    assert found(blind(), "shows this process no GPU").confidence == "possible"
    lent = [item.summary for item in diagnose(Facts(**blind(container="docker")))]
    assert not any("shows this process no GPU" in text for text in lent)
    assert any("no device that CUDA may open" in text for text in lent)


def test_how_sure_it_is_that_no_gpu_was_lent() -> None:
    words = "started without a GPU"
    assert found(bare(container="docker"), words).confidence == "certain"
    unsure = {"nvidia_smi_present": None, "device_nodes_present": None}
    silent = {"init_error": None, "tiny_op": None}
    assert found(bare(container="docker", **unsure, **silent), words).confidence == "likely"
    assert found(bare(container="docker", **unsure), words).confidence == "certain"
    assert found(bare(container="docker", **silent), words).confidence == "certain"


@pytest.mark.parametrize(
    "said", ["OSError: libcuda.so.1: cannot open shared object file", "Found no NVIDIA driver on"]
)
def test_a_container_without_the_drivers_library(said: str) -> None:
    facts = blind(container="docker", init_error=said, tiny_op=said)
    finding = found(facts, "not the driver's CUDA library")
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in finding.advice[0]


def test_json_too_deep_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def deep(text: str) -> None:
        raise RecursionError

    monkeypatch.setattr(json, "loads", deep)
    with pytest.raises(FactsError, match="can be read: RecursionError"):
        Facts.from_json("[]")


def test_no_gpus_are_no_driver() -> None:
    assert case(blind(init_error=NO_GPUS)).error == ("visibility", "no device")


@pytest.mark.parametrize(
    ("system", "build"), [("macOS arm64", "2.8.0"), ("Linux x86_64", "2.8.0+xpu")]
)
def test_a_variable_of_cudas_hides_nothing_of_others(system: str, build: str) -> None:
    facts = Facts(
        os=system, torch_version=build, is_available=False, env={"CUDA_VISIBLE_DEVICES": ""}
    )
    assert {item.verdict for item in diagnose(facts)} == {"build"}
