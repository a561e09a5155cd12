"""`python -m gpututor doctor`: what it prints, and its exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gpututor
from gpututor import doctor
from gpututor.__main__ import main
from gpututor.doctor import Facts

WORKS = Facts(
    os="Linux x86_64",
    torch_version="2.8.0+cu128",
    torch_cuda="12.8",
    devices=[{"name": "Tesla T4", "capability": "7.5", "memory_gib": 14.6}] * 2,
    is_available=True,
    device_count=2,
    tiny_op="ok",
)
HIDDEN = Facts(
    os="Linux x86_64",
    torch_version="2.8.0+cu128",
    torch_cuda="12.8",
    driver_cuda="12.8",
    devices=[{"name": "Tesla T4 <b>", "capability": "7.5"}],
    env={"CUDA_VISIBLE_DEVICES": "7"},
    is_available=False,
    device_count=0,
    tiny_op="RuntimeError: No CUDA GPUs are available",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    WORKS.save(tmp_path / "ada.json")
    HIDDEN.save(tmp_path / "grace.json")
    return tmp_path


def test_a_file_of_facts_is_diagnosed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(folder / "ada.json")]) == 0
    assert "a GPU works here (verdict: fine)" in capsys.readouterr().out
    assert main(["doctor", str(folder / "grace.json")]) == 1
    text = capsys.readouterr().out
    assert "1. visibility (certain): CUDA_VISIBLE_DEVICES hides every GPU" in text
    assert "CUDA_VISIBLE_DEVICES='7'" in text and "do    Remove CUDA_VISIBLE_DEVICES" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_json_is_read_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", str(folder / "grace.json")]) == 1
    text = capsys.readouterr().out
    answer = json.loads(text)
    assert answer["usable"] is False and answer["verdict"] == "visibility"
    assert answer["findings"][0]["verdict"] == "visibility"
    (folder / "again.json").write_text(text)
    assert Facts.load(folder / "again.json") == HIDDEN


@pytest.mark.parametrize(
    "arguments",
    [
        ["doctor", "none.json"],
        ["doctor", "."],
        ["doctor", "bad.json"],
        ["doctor", "--class", "none"],
        ["doctor", "--class", "bad.json"],
        ["doctor", "--class", "empty"],
        ["doctor", "--class", ".", "--json"],
        ["doctor", "--moon"],
        ["doctor", "a", "b"],
        ["nurse"],
        [],
    ],
)
def test_bad_input_is_one_line(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
) -> None:
    monkeypatch.chdir(folder)
    (folder / "bad.json").write_text("{")
    (folder / "empty").mkdir()
    try:
        status = main(arguments)
    except SystemExit as left:
        status = int(left.code or 0)
    said = capsys.readouterr()
    assert status == 2 and not said.out
    assert said.err.count("\n") == 1 and said.err.startswith("gpututor: ")


def test_a_class(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--class", str(folder)]) == 1
    text = capsys.readouterr().out
    ada, grace = (line for line in text.splitlines() if line.startswith(("ada", "grace")))
    assert "2 x Tesla T4" in ada and "lesson 05" in ada
    assert "simulated GPU" in grace and "visibility" in grace and "every GPU" in text
    assert "1 of 2" in text and all(len(line) <= 80 for line in text.splitlines())
    (folder / "alan.json").write_text("[]")
    assert main(["doctor", "--class", str(folder)]) == 2
    said = capsys.readouterr()
    assert "ada" in said.out and said.err.startswith("gpututor: alan.json: ")
    for name in ("alan.json", "grace.json"):
        (folder / name).unlink()
    assert main(["doctor", "--class", str(folder)]) == 0


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("annamariakatharinaschmidt", ["annamariakatharinaschmidt"]),
        ("maria_gonzalez_group_two", ["maria_gonzalez_group_two"]),
        (
            "maria_gonzalez-lopez.group_two.facts_of_the_laptop",
            ["maria_gonzalez-lopez.group_two.", "facts_of_the_laptop"],
        ),
    ],
)
def test_a_long_name_is_not_cut_within_a_word(tmp_path: Path, name: str, lines: list[str]) -> None:
    HIDDEN.save(tmp_path / f"{name}.json")
    HIDDEN.save(tmp_path / "ada.json")
    table, _, _ = doctor.class_table(tmp_path)
    assert all(len(line) <= 80 for line in table.splitlines())
    first = [line.partition("  ")[0] for line in table.splitlines()]
    assert [text for text in first if text and text in name] == lines


def test_the_panel_holds_the_same_and_no_markup_of_a_file() -> None:
    shown = doctor.report(HIDDEN)
    panel = shown._repr_html_()
    assert "visibility" in panel and "&lt;b&gt;" in panel and "Tesla T4 <b>" not in panel
    assert not shown.usable and "visibility" in shown.title


def test_a_terminal_with_few_letters(folder: Path) -> None:
    Facts(torch_version="2.8.0", devices=[{"name": "\u6771\u4eac"}], tiny_op="ok").save(
        folder / "x.json"
    )
    done = subprocess.run(
        [sys.executable, "-m", "gpututor", "doctor", str(folder / "x.json")],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        timeout=60,
    )
    assert done.returncode == 1 and b"??" in done.stdout and not done.stderr


def command(path: Path) -> list[str]:
    return [sys.executable, "-m", "gpututor", "doctor", "--json", str(path)]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has this full disk")
def test_a_full_disk_is_one_line(folder: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command(folder / "ada.json"), stdout=full, stderr=subprocess.PIPE, timeout=60, text=True
        )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "could not be written: No space left" in done.stderr
    assert "Free some space" in done.stderr


def test_who_reads_may_stop_reading(folder: Path) -> None:
    child = subprocess.Popen(
        command(folder / "ada.json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()  # before it has begun to write
    with child.stderr:
        assert child.stderr.read() == b""
    assert child.wait(60) == 0


def test_the_package_is_imported_without_torch() -> None:
    code = (
        "import sys, gpututor; assert 'torch' not in sys.modules; gpututor.doctor; "
        "gpututor.__main__; assert 'torch' not in sys.modules; gpututor.start; "
        "assert 'torch' in sys.modules"
    ).replace("gpututor.__main__;", "import gpututor.__main__;")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert set(gpututor.__all__) <= set(dir(gpututor))
    with pytest.raises(AttributeError, match="'moon'"):
        gpututor.moon  # noqa: B018


def test_the_recorded_machines_of_the_clinic() -> None:
    machines = doctor.machines()
    verdicts = {name: doctor.diagnose(item.facts)[0].verdict for name, item in machines.items()}
    assert len(machines) >= 12
    assert set(verdicts.values()) == {
        "build",
        "driver",
        "visibility",
        "architecture",
        "usability",
        "fine",
    }
    for item in machines.values():
        assert item.story.endswith((".", "?")) and item.facts.source
