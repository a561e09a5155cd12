"""The run sheets add up, and every section that docs/instructor.md names exists."""

import json
import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs/instructor.md").read_text(encoding="utf-8")
PATHS = {path.name[:2]: path for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}
MARK = re.compile(r" \((core|further)\)$")
NO_WORK = {  # headings below which nobody spends time of their own
    *("What you will do", "What you will learn", "What you need"),
    *("Takeaways", "Exercises", "Where to go next"),
}


def rows(title):
    """Return the cells of the table below a heading, without its first two lines."""
    part = re.split(r"^##+ ", TEXT.split(f" {title}\n", 1)[1], flags=re.M)[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def headings(lesson):
    """Return the headings of a lesson, and of each its mark: core, further or None."""
    cells = nbformat.read(PATHS[lesson], 4).cells
    prose = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    prose = re.sub(r"^```.*?^```$", "", prose, flags=re.M | re.S)
    found = re.findall(r"^##+ (.+)$", prose, re.M)
    return {MARK.sub("", name): (MARK.search(name) or [None, None])[1] for name in found}


@pytest.mark.parametrize("hours", [2, 4, 8])
def test_a_run_sheet_adds_up(hours):
    clock = 0
    for begins, minutes, _, _ in rows(f"{hours} hours"):
        assert begins == f"{clock // 60}:{clock % 60:02}"
        clock += int(minutes)
    assert clock == 60 * hours


@pytest.mark.parametrize("hours", [2, 4, 8])
def test_a_run_sheet_names_sections_that_exist_and_gives_them_time(hours):
    alone = {(lesson, name): int(core or more) for lesson, name, core, more in times()}
    for begins, minutes, lesson, sections in rows(f"{hours} hours"):
        if lesson == "–":
            continue
        named = sections.split("; ")
        assert not set(named) - set(headings(lesson)), begins
        assert sum(alone[lesson, name] for name in named) <= int(minutes), begins


def times():
    return rows("Minutes per section")


@pytest.mark.parametrize("lesson", PATHS)
def test_the_minutes_of_a_lesson_are_those_its_notebook_names(lesson):
    core = [int(core) for name, _, core, _ in times() if name == lesson and core]
    title = nbformat.read(PATHS[lesson], 4).cells[0].source
    assert sum(core) == int(re.search(r"Time: (\d+) minutes", title)[1])


@pytest.mark.parametrize("lesson", PATHS)
def test_every_section_has_its_minutes_in_the_column_of_its_mark(lesson):
    there = headings(lesson)
    listed = {name: "core" if core else "further" for n, name, core, _ in times() if n == lesson}
    assert not set(listed) - set(there)
    marked = {name for name, mark in there.items() if mark}
    assert marked <= set(listed)
    for name, column in listed.items():
        assert name not in NO_WORK
        assert there[name] in (None, column), name


def test_the_recorded_numbers_are_the_recorded_ones():
    def series(name, *keys):
        data = json.loads((ROOT / f"gpututor/recorded/{name}.json").read_text(encoding="utf-8"))
        for key in keys:
            data = data[key]
        return dict(data)

    parallel = series("h200x2", "experiments", "data parallel", "series", "two GPUs, 128 channels")
    clocks = "waiting_h200", "series"
    surprise = series("h200", "experiments", "surprise", "series", "matrix product")
    pieces = series("h200", "experiments", "pieces", "series", "4 MiB in pieces")
    speeds = series("h200", "experiments", "training", "series")
    hazards = series("h200", "experiments", "hazards", "series", "read early")
    host = series(*clocks, "host, not synchronised")
    expected = [
        f"{surprise[3072]} ×",
        f"{series('transfer_h200', 'series', 'to the GPU, pinned')[2**30]} GB/s at 1 GiB",
        f"{pieces[1000] / pieces[1]:.0f} ×",
        f"{hazards[0.0]:.0f} of 20",
        f"{host[8192]:.3f} and {series(*clocks, 'CUDA events')[8192]} ms",
        f"{parallel[8]}, {parallel[256]}, {parallel[4096]:.3f} ×",
        "20 of 20",
        f"{speeds['all'][0][1] / speeds['plain'][0][1]:.1f} ×",
    ]
    assert [recorded for _, _, recorded, _ in rows("What to expect on which GPU")] == expected


def test_links_lead_somewhere():
    anchors = {
        re.sub(r"[^\w -]", "", name).lower().replace(" ", "-")
        for name in re.findall(r"^##+ (.+)$", TEXT, re.M)
    }
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        file, _, anchor = target.partition("#")
        assert (ROOT / "docs" / file).exists() if file else anchor in anchors, target
