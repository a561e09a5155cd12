"""Each lesson reads whole without running: as a page, with every figure, and as slides."""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest

nbconvert = pytest.importorskip("nbconvert")

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "scripts"))
PATHS = sorted((ROOT / "notebooks").glob("*.ipynb"))


class Images(HTMLParser):
    """Collects the text alternative of every picture that the page itself holds."""

    def __init__(self, page):
        super().__init__()
        self.words = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "img" and attributes.get("src", "").startswith("data:image/png"):
            self.words.append(attributes.get("alt", ""))


@pytest.fixture(scope="module")
def pages():
    import pages

    return pages


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def notebook(request):
    return nbformat.read(request.param, 4)


def figures(notebook):
    """Return the stored figures' text alternatives."""
    return [
        output.metadata["image/png"]["alt"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]


def shown(exporter, notebook):
    page, _ = exporter.from_notebook_node(notebook)
    return page


def spoken(words):
    return [" ".join(text.split()) for text in words]


def test_plain_nbconvert_holds_every_figure(notebook):
    page = shown(nbconvert.HTMLExporter(), notebook)
    assert len(Images(page).words) == len(figures(notebook)) > 0


def test_a_page_holds_every_figure_with_its_words(pages, notebook):
    page = shown(pages.exporter(nbconvert.HTMLExporter), notebook)
    assert spoken(Images(page).words) == spoken(figures(notebook))
    assert all(figures(notebook))
    for cell in notebook.cells:
        for heading in re.findall(r"^##+ ([\w ]+)", cell.source, re.M):
            assert cell.cell_type == "code" or heading in page


def test_slides_build_with_every_figure(pages, notebook):
    page = shown(pages.slides(), notebook)
    assert spoken(Images(page).words) == spoken(figures(notebook))
    prose = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    body = page.split('<div class="slides">')[1]
    columns = sum(bool(re.match("##? ", text)) for text in prose)
    assert body.count("<section") == columns + len(prose)  # a column each, in it a slide each
    assert body.count('class="fragment"') == len(notebook.cells) - len(prose) - 1
    assert "find_spec" not in body  # the cell that installs is no slide


def test_a_figure_that_a_page_loses_is_found():
    notebook = nbformat.read(PATHS[0], 4)
    kept = figures(notebook)
    lost = next(c for c in notebook.cells if c.get("outputs") and "image/png" in str(c.outputs))
    lost.outputs[0].data["text/html"] = "<p>what nbconvert shows first</p>"
    page = shown(nbconvert.HTMLExporter(), notebook)
    assert len(Images(page).words) == len(kept) - 1


def test_the_script_writes_pages_and_slides(pages, tmp_path, monkeypatch, capsys):
    one = tmp_path / "one"
    one.mkdir()
    (one / PATHS[0].name).write_bytes(PATHS[0].read_bytes())
    monkeypatch.setattr(pages, "NOTEBOOKS", one)
    assert pages.main([str(tmp_path / "out"), "--reveal", "../reveal.js"]) == 0
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert written == [f"{PATHS[0].stem}.html", f"{PATHS[0].stem}.slides.html"]
    assert "../reveal.js/dist/reveal.css" in (tmp_path / "out" / written[1]).read_text("utf-8")
    assert "written" in capsys.readouterr().out
