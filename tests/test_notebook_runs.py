"""What learners do with a notebook besides running it from top to bottom, which nbval does.

They run the setup cell and then one section; they run cells twice; they move every control of
every panel; they run an exercise before they have solved it, and solve it. Each notebook is put
through all of it in one kernel on the simulated GPU: its sections one by one, each with nothing
but the setup before it; then every cell once more, with all names there; then every exercise
with its solution pasted below its stub, the last cell before its check whose id begins with
``exercise-``.

A cell may be exempt, by a tag that gives the reason:
``continues: ...`` on a section's first code cell: the section needs the one before;
``once: ...``: the cell cannot run a second time.
"""

import asyncio
import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from gpututor.exercises import every

pytestmark = pytest.mark.slow

PATHS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
SECONDS = 120  # for one cell
CHECK = re.compile(r"^(?:gpututor\.)?check\(\s*[\"']([\w-]+)[\"']", re.M)

#: What the kernel needs besides the notebook, in a module of its own: no name of it is in sight.
HELPER = '''
import gc

from IPython import get_ipython

import gpututor
from gpututor.explorer import Explorer

names = get_ipython().user_ns
own = set(names)
met = {}


def fresh():
    """Forget every name of the notebook, and remember them for later."""
    for name in set(names) - own:
        met[name] = names.pop(name)


def all_met():
    """Bring back every name that any section made."""
    names.update(met)


def reach(control):
    """Return values over the range of a control."""
    options = [o[1] if isinstance(o, tuple) else o for o in getattr(control, "options", ())]
    if options:
        return options if len(options) <= 4 else [options[0], options[-1]]
    if isinstance(control.value, bool):
        return [not control.value]
    if isinstance(control.value, (int, float)) and hasattr(control, "min"):
        base = getattr(control, "base", None)
        ends = (control.min, control.max)
        return list(ends) if base is None else [base**end for end in ends]
    return []


def move_all():
    """Move every control of every panel through its range; raise what went wrong, all of it."""
    faults = []
    for panel in [thing for thing in gc.get_objects() if type(thing) is Explorer]:
        before = panel.values
        for name, control in panel.controls.items():
            for value in reach(control):
                try:
                    control.value = value
                except Exception as error:
                    faults.append(f"{name}={value!r}: {type(error).__name__}: {error}")
        panel._quiet = True
        for name, value in before.items():
            panel.controls[name].value = value
        panel._quiet = False
        panel._function = lambda **_: "moved already"
    if faults:
        raise AssertionError("; ".join(faults))


def paste(exercise):
    """Run a reference solution as if it stood in a cell."""
    get_ipython().run_cell(gpututor.solution(exercise)).raise_error()
'''


@dataclass
class Report:
    """What happened to one notebook, one line for each fault."""

    alone: list[str] = field(default_factory=list)
    panels: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    pasted: list[str] = field(default_factory=list)
    stubs: dict[str, str] = field(default_factory=dict)
    solutions: dict[str, str] = field(default_factory=dict)


def sections(cells):
    """Return the code cells of each ``##`` section, without the one that installs the package."""
    found = [[]]
    for cell in cells:
        if cell.cell_type == "markdown" and re.search(r"^## ", cell.source, re.M):
            found.append([])
        elif cell.cell_type == "code" and cell.id != "install":
            found[-1].append(cell)
    return [cells for cells in found if cells]


def tagged(cell, tag):
    return any(t.startswith(f"{tag}: ") for t in cell.metadata.get("tags", []))


def programme(path):
    """Return the notebook's cells in the order of the docstring above, marked with their part."""
    cells = []

    def run(part, *sources):
        for cell in sources:
            new = nbformat.v4.new_code_cell(getattr(cell, "source", cell))
            new.metadata = nbformat.from_dict({"part": part, "of": getattr(cell, "id", "helper")})
            new.metadata["tags"] = cell.metadata.get("tags", []) if part != "helper" else []
            cells.append(new)

    def helper(call, part="helper", of="helper"):
        run("helper", f'__import__("course_helper").{call}')
        cells[-1].metadata.update(part=part, of=of)

    setup, *rest = sections(nbformat.read(path, 4).cells)
    run(
        "helper",
        "__import__('sys').modules['course_helper'] = __import__('types').ModuleType('helper')\n"
        f"exec({HELPER!r}, __import__('course_helper').__dict__)",
    )
    for section in rest:
        if not tagged(section[0], "continues"):
            helper("fresh()")
            run("alone", *setup)
        run("alone", *section)
        helper("move_all()", "panels", section[0].id)
    helper("all_met()")
    for section in (setup, *rest):
        run("twice", *(cell for cell in section if not tagged(cell, "once")))
    for section in rest:
        checks = {CHECK.search(c.source)[1]: c for c in section if CHECK.search(c.source)}
        for name, check in checks.items():
            helper("fresh()")
            run("pasted", *setup)
            before = [c for c in section[: section.index(check)] if c not in checks.values()]
            stub = [cell for cell in before if cell.id.startswith("exercise-")][-1:]
            for cell in before:
                run("pasted", cell)
                if [cell] == stub:
                    helper(f"paste({name!r})", "pasted", cell.id)
            run("solution", check)
    return nbformat.v4.new_notebook(cells=cells)


def text_of(cell):
    """Return the verdict that a cell shows, or its error."""
    for output in cell.outputs:
        if output.output_type == "error":
            return f"{output.ename}: {output.evalue}"
    return "".join(output.data.get("text/plain", "") for output in cell.outputs if "data" in output)


def report_of(path):
    notebook = programme(path)
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        allow_errors=True,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(path.parent)}},
    )
    # Of its two forms, execute leaves an event loop open in a thread that is not the main one.
    asyncio.run(client.async_execute(env={**os.environ, "GPUTUTOR_SIMULATE": "T4"}))
    report = Report()
    for cell in notebook.cells:
        part, place = cell.metadata["part"], cell.metadata["of"]
        checked = CHECK.search(cell.source)
        if checked and part == "alone":
            report.stubs[checked[1]] = text_of(cell)
        if checked and part == "solution":
            report.solutions[checked[1]] = text_of(cell)
        for output in cell.outputs:
            if output.output_type != "error" or "raises-exception" in cell.metadata["tags"]:
                continue
            assert part != "helper", f"the test itself is wrong: {text_of(cell)}"
            getattr(report, "pasted" if part == "solution" else part).append(
                f"{place}: {output.ename}: {output.evalue}"
            )
    return report


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture(scope="module")
def reports(request):
    """Return the coming report of each notebook; two kernels at a time, as they mostly wait."""
    asked = {
        item.callspec.params["path"]: None
        for item in request.session.items
        if item.path == Path(__file__)
        and "report" in item.fixturenames
        and hasattr(item, "callspec")
    }
    with ThreadPoolExecutor(max_workers=2) as pool:
        yield {path: pool.submit(report_of, path) for path in asked}


@pytest.fixture
def report(path, reports):
    return reports[path].result()


def test_each_section_runs_from_the_setup_cell(report):
    assert report.alone == []


def test_every_control_of_every_panel_can_be_moved(report):
    assert report.panels == []


def test_every_cell_runs_twice(report):
    assert report.twice == []


def test_no_stub_passes_its_check(report):
    passed = {name: text for name, text in report.stubs.items() if not text.startswith("Not yet")}
    assert not passed


def test_every_solution_passes_when_it_is_pasted_below_its_stub(report):
    assert report.pasted == []
    failed = {name: text for name, text in report.solutions.items() if text[:5] != "Right"}
    assert not failed


def test_every_exercise_has_its_check(path, report):
    exercises = [exercise.name for exercise in every() if exercise.name[:2] == path.stem[:2]]
    assert sorted(report.stubs) == sorted(report.solutions) == sorted(exercises)


def test_the_reasons_of_the_exempt_are_given(path):
    tags = [t for c in nbformat.read(path, 4).cells for t in c.metadata.get("tags", [])]
    exempt = [tag for tag in tags if tag.startswith(("continues", "once"))]
    assert not [tag for tag in exempt if not re.fullmatch(r"(continues|once): \w.{9,}", tag)]


SETUP = """
import gpututor
from gpututor import exercises
from gpututor.exercises import Exercise, Wrong

gpututor.start()


def test_it(answer):
    if answer() != 1:
        raise Wrong("1", "another number")
    return "1"


def good():
    return 1


def bad():
    return 2


exercises.every = lambda: [
    Exercise("09-good", test_it, good, ("hint",)), Exercise("09-bad", test_it, bad, ("hint",))
]
"""


@pytest.fixture(scope="module")
def spoiled(tmp_path_factory):
    """Return the report on a notebook with one fault of each kind, beside what is in order."""
    md, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
    cells = [
        md("# Title\n\n## Set up"),
        code(SETUP, id="setup"),
        md("## Panels"),
        code("gpututor.explore(lambda a: str(1 / (8 - a)), a=(1, 8))", id="broken-panel"),
        code("panel = gpututor.explore(lambda a, b: str(a), a=(1, 8), b=['x', 'y'])", id="panel"),
        code("made = 1", id="made"),
        md("## Needs the section before"),
        code("made + 1", id="needs"),
        md("## Says that it does"),
        code("made = 2", id="again"),
        md("## Continues"),
        code("made + 1", id="goes-on", metadata={"tags": ["continues: it reads what was made"]}),
        md("## Runs once"),
        code("import sys\nassert 'ran' not in vars(sys)\nsys.ran = True", id="once"),
        code(
            "assert 'ran2' not in vars(sys)\nsys.ran2 = True", id="once-too",
            metadata={"tags": ["once: it changes the process"]},
        ),
        md("## Exercises"),
        code("def answer():\n    return 1", id="exercise-good"),
        code('gpututor.check("09-good", answer)', id="check-good"),
        code("def answer():\n    raise NotImplementedError", id="exercise-bad"),
        code('gpututor.check("09-bad", answer)', id="check-bad"),
    ]  # fmt: skip
    path = tmp_path_factory.mktemp("spoiled") / "09_spoiled.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return report_of(path)


def test_a_broken_panel_is_found(spoiled):
    (fault,) = spoiled.panels
    assert fault == "broken-panel: AssertionError: a=8: ZeroDivisionError: division by zero"


def test_a_section_that_needs_another_is_found(spoiled):
    assert spoiled.alone == ["needs: NameError: name 'made' is not defined"]


def test_a_cell_that_runs_only_once_is_found(spoiled):
    assert spoiled.twice == ["once: AssertionError: "]


def test_a_stub_that_passes_is_found(spoiled):
    assert spoiled.stubs["09-good"] == "Right:    1"
    assert spoiled.stubs["09-bad"].startswith("Not yet")


def test_a_solution_that_fails_is_found(spoiled):
    assert spoiled.solutions["09-bad"].startswith("Not yet:  ")
