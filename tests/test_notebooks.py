"""The notebooks have their one stored form, the anatomy of a lesson, and exercises that check."""

import ast
import itertools
import re
import statistics
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "scripts"))
PATHS = sorted((ROOT / "notebooks").glob("*.ipynb"))
START_HERE = ROOT / "notebooks/00_start_here.ipynb"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
SECTIONS = [
    "What you will do",
    "What you will learn",
    "What you need",
    "Takeaways",
    "Exercises",
    "Where to go next",
]


@pytest.fixture(scope="module")
def script():
    import notebooks

    return notebooks


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def cells(script, path):
    return script.read(path).cells


def markdown(cells):
    """Return the prose of a notebook, without its fenced code."""
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def lines_of_code(cell):
    return len([line for line in cell.source.splitlines() if line.strip()])


def test_there_is_a_first_lesson():
    assert START_HERE in PATHS


def test_stored_form(script, path):
    assert script.problems(path) == []


def test_one_title_first(cells):
    titles = re.findall(r"^# (.+)$", markdown(cells), re.M)
    assert len(titles) == 1
    assert cells[0].source.startswith(f"# {titles[0]}")
    capitalised = [w for w in titles[0].split()[1:] if re.fullmatch(r"[A-Z][a-z]+\W?", w)]
    assert not capitalised, "the title should be in sentence case"


def test_sections_in_order_and_minutes(cells):
    headings = re.findall(r"^## (.+)$", markdown(cells), re.M)
    assert [heading for heading in headings if heading in SECTIONS] == SECTIONS
    assert re.search(r"\b\d+ minutes\b", cells[0].source)


def test_setup_comes_first(cells):
    install, first = [cell for cell in cells if cell.cell_type == "code"][:2]
    assert install is cells[1] and install.id == "install"
    assert "import gpututor" in first.source
    assert "gpututor.start(" in first.source


def test_code_cells_are_short(cells):
    lengths = sorted(lines_of_code(cell) for cell in cells if cell.cell_type == "code")
    assert statistics.median(lengths) <= 4
    assert lengths[-1] <= 20
    assert sum(length <= 10 for length in lengths) >= 0.9 * len(lengths)


def test_prose_comes_before_nearly_every_code_cell(cells):
    bare = [
        b.id
        for a, b in itertools.pairwise(cells)
        if b.cell_type == "code" and a.cell_type == "code"
    ]
    assert len(bare) <= 0.1 * len(cells)


def test_one_sentence_per_line(cells):
    lines = [line for line in markdown(cells).splitlines() if not line.startswith("|")]
    assert not [line for line in lines if re.search(r"[^\W\d][`)]*[.?!][*`)]* [A-Z`*]", line)]


def test_links_are_relative_and_lead_to_files(cells, path):
    targets = re.findall(r"\]\(([^)\s]+)\)", markdown(cells))
    local = [target.split("#")[0] for target in targets if not target.startswith("https://")]
    assert not [target for target in local if target.startswith(("/", "http:", "file:"))]
    assert not [target for target in local if target and not (path.parent / target).is_file()]


def test_each_lesson_links_back_and_forward(cells, path):
    text = next(c.source for c in cells if c.source.startswith("## Where to go next"))
    place = PATHS.index(path)
    for neighbour in PATHS[max(0, place - 1) : place + 2]:
        assert neighbour == path or f"]({neighbour.name})" in text


def test_pictures_are_small_and_have_words(cells):
    for cell in cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                assert len(output.data["image/png"]) * 3 / 4 < 60_000, cell.id
                assert output.metadata["image/png"]["alt"].strip(), cell.id


#: How a quantity's name ends or begins -> the units it may have; the first that fits counts.
UNITS = (
    (r"relative to|with it| / ", {"×"}),
    (r"\btime\b|^median of", {"s", "ms", "µs"}),
    (r"^rate", {"GB/s", "TFLOP/s"}),
    (r"^speed", {"samples/s"}),
    (r"^(memory|peak)", {"bytes", "MiB", "GiB", "%"}),
    (r"^(share|overlap)", {"%"}),
    (r"^size", {"bytes", "rows"}),
    (r"^batch", {"samples"}),
    (r"^(call|turn|chunks|copies)", {"count"}),
    (r"^(wrong results|successes)", {"of 20", "of 50"}),
)


def keywords(cell, *names):
    """Return what a cell's calls get as these arguments, where it is text, or texts in a tuple."""
    found = []
    for node in ast.walk(ast.parse(re.sub(r"^( *)[%!].*$", r"\1pass", cell.source, flags=re.M))):
        if isinstance(node, ast.keyword) and node.arg in names:
            parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            if all(isinstance(part, ast.Constant) for part in parts):
                found.append(tuple(part.value for part in parts))
    return found


def odd_units(cells):
    """Return the axes whose unit is none of its quantity's."""
    axes = {
        (cell.id, *pair)
        for cell in cells
        if cell.cell_type == "code"
        for pair in keywords(cell, "x", "y")
        if len(pair) == 2 and all(isinstance(part, str) for part in pair)
    }
    units = {
        axis: next((units for name, units in UNITS if re.search(name, axis[1])), ())
        for axis in axes
    }
    return sorted(axis for axis in axes if axis[2] not in units[axis])


def stale(cells):
    """Return the titles and units in the code of a cell that its stored figures do not have."""
    found = []
    for cell in cells:
        words = [
            output.metadata["image/png"]["alt"]
            for output in cell.get("outputs", [])
            if "image/png" in output.get("data", {})
        ]
        if not words:
            continue
        titles = [title for (title,) in keywords(cell, "title")]
        units = [pair[-1] for pair in keywords(cell, "x", "y") if pair[-1] != "bytes"]
        found += [
            (cell.id, text)
            for text in (*titles, *units)
            if isinstance(text, str) and not any(text in said for said in words)
        ]
    return found


def test_every_axis_has_a_unit_of_its_quantity(cells):
    assert odd_units(cells) == []


def test_stored_figures_are_those_of_their_cells(cells):
    assert stale(cells) == []


def test_a_wrong_unit_and_a_stale_figure_are_found(script):
    cells = script.read(START_HERE).cells
    (cell,) = [cell for cell in cells if cell.id == "surprise-result"]
    assert '"×"' in cell.source and 'title=f"A product' in cell.source
    cell.source = cell.source.replace('"×"', '"GB/s"')
    odd = ("surprise-result", "time relative to the line", "GB/s")
    assert odd_units(cells) == [odd]
    assert stale(cells) == [("surprise-result", "GB/s")]
    cell.source = cell.source.replace('"GB/s"', '"×"').replace('f"A product of {size}', '"Another')
    cell.source = re.sub(r'"Another[^"]*"', '"Another figure"', cell.source)
    assert odd_units(cells) == []
    assert stale(cells) == [("surprise-result", "Another figure")]


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda nb: nb.metadata.update(widgets={}), "metadata.widgets"),
        (
            lambda nb: nb.cells[3].outputs.append(
                nbformat.v4.new_output("display_data", data={WIDGET_VIEW: {"model_id": "3f"}})
            ),
            "holds a live panel",
        ),
        (lambda nb: nb.cells[0].metadata.update(execution={"iopub": "now"}), "stored form"),
        (lambda nb: nb.cells[3].update(execution_count=7), "execution count 7, not 2"),
        (lambda nb: nb.cells[3].update(execution_count=None), "execution count None, not 2"),
        (
            lambda nb: nb.cells[3].outputs.append(
                nbformat.v4.new_output("error", ename="ValueError", evalue="", traceback=[])
            ),
            "holds an error, ValueError",
        ),
        (lambda nb: nb.cells[0].update(id="3F1A"), "the id should be words"),
    ],
    ids=["widgets", "panel", "timestamps", "count", "no count", "error", "id"],
)
def test_the_check_finds(script, tmp_path, spoil, problem):
    notebook = script.read(START_HERE)
    assert notebook.cells[3].cell_type == "code"
    spoil(notebook)
    spoiled = tmp_path / "spoiled.ipynb"
    spoiled.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    assert any(problem in line for line in script.problems(spoiled))


def test_the_stored_form_keeps_what_a_reader_can_see(script):
    notebook = script.read(START_HERE)
    seen = {"text/plain": "words", "image/png": "aGFsbG8="}
    output = nbformat.v4.new_output(
        "display_data",
        data={**seen, WIDGET_VIEW: {"version_major": 2, "version_minor": 0, "model_id": "3f"}},
        metadata={"image/png": {"alt": "words"}, "more": 1},
    )
    notebook.cells[3].outputs = [output]
    notebook.metadata["widgets"] = {}
    stored = nbformat.reads(script.canonical(notebook, START_HERE.name), 4)
    assert "widgets" not in stored.metadata
    (kept,) = stored.cells[3].outputs
    assert kept.data == seen
    assert kept.metadata == {"image/png": {"alt": "words"}}


def test_the_form_counts_anew_and_keeps_what_ran(script, tmp_path):
    notebook = script.read(START_HERE)
    del notebook.cells[1]  # the install cell, which comes back
    ran = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for count, cell in enumerate(ran, 1):
        cell.execution_count = count
    text = "Out[2], _2 and \x1b[32mIn[3]; x_2, Out[99]"
    ran[1].outputs = [nbformat.v4.new_output("execute_result", {"text/plain": text})]
    ran[-1].execution_count = None
    copy = tmp_path / START_HERE.name
    copy.write_text(nbformat.writes(notebook), encoding="utf-8")
    assert script.main(["--form", str(copy)]) == 1  # the last cell never ran
    (fault,) = script.problems(copy)
    assert "execution count None" in fault
    formed = script.read(copy)
    assert formed.cells[1].id == "install"
    second = next(cell for cell in formed.cells if cell.id == ran[1].id)
    assert second.execution_count == second.outputs[0].execution_count == 3
    assert second.outputs[0].data["text/plain"] == "Out[3], _3 and \x1b[32mIn[4]; x_2, Out[99]"


def test_the_check_finds_what_is_no_notebook(script, tmp_path, capsys):
    broken = tmp_path / "broken.ipynb"
    broken.write_text("{}", encoding="utf-8")
    assert script.main(["--check", str(broken)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("broken.ipynb: not a valid notebook")
