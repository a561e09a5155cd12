"""Run the notebooks on the simulated GPU and store them in the one form that the tests demand.

``python scripts/notebooks.py`` runs every notebook in ``notebooks/`` and writes it back.
``python scripts/notebooks.py --form`` runs nothing: it writes them in that form, outputs kept.
``python scripts/notebooks.py --check`` only says which are not in that form.
All take the paths of notebooks, to treat these and no others; else README.md gets its badges too.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

import launch
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

FOLDER = Path(__file__).parents[1] / "notebooks"
SIMULATE = "T4"
SECONDS = 120  # for one cell
METADATA = {
    "accelerator": "GPU",
    "colab": {"gpuType": "T4"},
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
#: A live panel's id in one kernel: of no use to a reader, and another in every run.
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
#: How a traceback or a table names a cell by its count, whatever colour code stands before.
COUNTED = re.compile(r"(In\[|Out\[|(?<!\w)_)(\d+)\b")
IDENTIFIER = re.compile(r"[a-z][a-z0-9-]*[a-z0-9]")


class NotebookError(Exception):
    """A notebook that cannot be read or run; the message is one line."""


def read(path: Path) -> nbformat.NotebookNode:
    """Read a notebook, and refuse what is no valid notebook of format 4."""
    try:
        notebook = nbformat.from_dict(nbformat.reader.reads(path.read_text(encoding="utf-8")))
        nbformat.validate(notebook)
    except (ValueError, OSError, nbformat.ValidationError, nbformat.reader.NotJSONError) as error:
        first = (str(error).splitlines() or ["no message"])[0]
        raise NotebookError(f"{path.name}: not a valid notebook: {first}") from None
    if notebook.nbformat != 4:
        raise NotebookError(f"{path.name}: format {notebook.nbformat}, not 4")
    return notebook


def canonical(notebook: nbformat.NotebookNode, name: str) -> str:
    """Return the text of the notebook in its stored form: only what a reader needs."""
    tidy = nbformat.from_dict(notebook)
    launch.dress(tidy, name)
    tidy.nbformat_minor = 5
    tidy.metadata = nbformat.from_dict(METADATA)
    for cell in tidy.cells:
        cell.metadata = _only(cell.metadata, {"tags"})
        cell.metadata["slideshow"] = {"slide_type": slide_type(cell)}
        cell.pop("attachments", None)
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET_VIEW, None)
            if "metadata" in output:
                output.metadata = _only(output.metadata, set(output.get("data", {})))
    return nbformat.writes(tidy).rstrip("\n") + "\n"


def slide_type(cell: nbformat.NotebookNode) -> str:
    """Return what a cell is on slides: of ``nbconvert --to slides``, the names of its kinds.

    A section is a column of slides. Its prose begins a slide, and the code that belongs to it,
    with all that it shows, comes at the next key press: after the room has guessed.
    """
    if cell.get("id") == launch.INSTALL:
        return "skip"
    if cell.cell_type == "code":
        return "fragment"
    return "slide" if re.match(r"##? ", cell.source) else "subslide"


def _only(metadata: dict, keys: set[str]) -> nbformat.NotebookNode:
    return nbformat.from_dict({key: value for key, value in metadata.items() if key in keys})


def _may_fail(cell: nbformat.NotebookNode) -> bool:
    """Tell whether a lesson shows an error here; the tag is one that nbval and nbclient know."""
    return "raises-exception" in cell.metadata.get("tags", [])


def problems(path: Path) -> list[str]:
    """Return what keeps a stored notebook from its form, one line each; none if it has it."""
    try:
        notebook = read(path)
    except NotebookError as error:
        return [str(error)]
    found = []
    if "widgets" in notebook.metadata:
        found.append("metadata.widgets: GitHub shows such a notebook as invalid")
    count = 0
    for index, cell in enumerate(notebook.cells):
        place = f"cell {index} ({cell.get('id', 'no id')})"
        if not IDENTIFIER.fullmatch(cell.get("id", "")):
            found.append(f"{place}: the id should be words, such as 'first-matmul'")
        if cell.cell_type != "code":
            continue
        count += 1
        if cell.execution_count != count:
            found.append(f"{place}: execution count {cell.execution_count}, not {count}")
        for output in cell.outputs:
            if WIDGET_VIEW in output.get("data", {}):
                found.append(f"{place}: holds a live panel, which no reader's browser can show")
            if output.output_type == "error" and not _may_fail(cell):
                found.append(f"{place}: holds an error, {output.ename}")
            if output.get("name") == "stderr":
                found.append(f"{place}: wrote to stderr")
            if output.get("execution_count", count) != count:
                found.append(f"{place}: its output counts {output.execution_count}, not {count}")
    if path.read_bytes() != canonical(notebook, path.name).encode():
        found.append("its text is not in the stored form: run python scripts/notebooks.py")
    return [f"{path.name}: {line}" for line in found]


def form(path: Path) -> None:
    """Write a notebook in its stored form without running it, where every cell has been run."""
    notebook = read(path)
    launch.dress(notebook, path.name)
    renumber(notebook)
    path.write_text(canonical(notebook, path.name), encoding="utf-8", newline="\n")


def renumber(notebook: nbformat.NotebookNode) -> None:
    """Count the cells as a fresh run would, after one was added or taken out; in place.

    A cell that was never run keeps its missing count, which `problems` finds; but the one that
    installs shows nothing where the package is there.
    """
    ran = [cell for cell in notebook.cells if cell.cell_type == "code"]
    counts = {cell.execution_count: str(count) for count, cell in enumerate(ran, 1)}

    def new(match: re.Match[str]) -> str:
        return match[1] + counts.get(int(match[2]), match[2])

    for count, cell in enumerate(ran, 1):
        if cell.execution_count is not None or cell.id == launch.INSTALL:
            cell.execution_count = count
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = count
            if "traceback" in output:
                output.traceback = [COUNTED.sub(new, line) for line in output.traceback]
            for kind, text in output.get("data", {}).items():
                if kind.startswith("text/"):
                    output.data[kind] = COUNTED.sub(new, text)


def readme(check: bool) -> list[str]:
    """Write the badges into README.md, or only say that they are not there."""
    path = launch.ROOT / "README.md"
    text = path.read_text(encoding="utf-8")
    wanted = launch.with_badges(text, launch.FIRST)
    if check and text != wanted:
        return ["README.md: its badges do not fit: run python scripts/notebooks.py --form"]
    if text != wanted:
        path.write_text(wanted, encoding="utf-8", newline="\n")
    return []


def execute(path: Path) -> None:
    """Run a notebook in a fresh kernel on the simulated GPU and write it back."""
    notebook = read(path)
    launch.dress(notebook, path.name)
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=["--log-level=ERROR"],  # the kernel's own remarks are not the lesson's
        resources={"metadata": {"path": str(path.parent)}},
    )
    try:
        client.execute(env={**os.environ, "GPUTUTOR_SIMULATE": SIMULATE})
    except CellExecutionError as error:
        lines = " ".join(error.evalue.split()) or "no message"
        raise NotebookError(f"{path.name}: {_failed(notebook)}: {error.ename}: {lines}") from None
    except CellTimeoutError:
        raise NotebookError(
            f"{path.name}: {_failed(notebook)}: took over {SECONDS} seconds"
        ) from None
    except DeadKernelError:
        raise NotebookError(f"{path.name}: the kernel died") from None
    path.write_text(canonical(notebook, path.name), encoding="utf-8", newline="\n")


def _failed(notebook: nbformat.NotebookNode) -> str:
    """Name the first code cell without a count or with an error."""
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and (
            cell.execution_count is None
            or (
                any(output.output_type == "error" for output in cell.outputs)
                and not _may_fail(cell)
            )
        ):
            return f"cell {index} ({cell.id})"
    return "no cell"


def main(arguments: list[str] | None = None) -> int:
    """Run or check; return 0 when all is well, 1 when not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--form", action="store_true", help="write the form, run nothing")
    instead.add_argument("--check", action="store_true", help="only check the form")
    parser.add_argument("paths", nargs="*", type=Path, help="notebooks; all if none is named")
    options = parser.parse_args(arguments)
    done = "in form" if options.check or options.form else "run and written"
    bad = [] if options.paths else readme(options.check)
    for path in options.paths or sorted(FOLDER.glob("*.ipynb")):
        try:
            if not options.check:
                (form if options.form else execute)(path)
        except NotebookError as error:
            bad.append(str(error))
            continue
        found = problems(path)
        bad += found
        if not found:
            print(f"{path.name}: {done}")
    for line in bad:
        print(line, file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
