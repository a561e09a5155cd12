"""Write each lesson as a page to read, and as slides to teach from; both run nothing.

``python scripts/pages.py FOLDER`` writes ``FOLDER/00_start_here.html`` and
``FOLDER/00_start_here.slides.html``, and so for each lesson. It is ``nbconvert --to html`` and
``nbconvert --to slides``, with one thing added: the text alternatives of the figures, which the
notebooks hold and nbconvert leaves out.

Slides get reveal.js from the web. ``--reveal FOLDER`` names a copy of it instead.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import nbformat
from jinja2 import DictLoader
from nbconvert import HTMLExporter, SlidesExporter
from nbconvert.exporters import TemplateExporter

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
SPOKEN = """
{%- extends 'index.html.j2' -%}
{%- block data_png scoped -%}
{%- set words = output | get_metadata('alt', 'image/png') -%}
{{ super() | replace('<img ', '<img alt="' ~ (words or '') | escape_html ~ '" ', 1) }}
{%- endblock -%}
"""


def exporter(kind: type[TemplateExporter], **options: object) -> TemplateExporter:
    """Return an exporter that writes the text alternatives of the figures too."""
    loader = DictLoader({"spoken.html.j2": SPOKEN})
    return kind(extra_loaders=[loader], template_file="spoken.html.j2", **options)


def slides(reveal: str = "") -> TemplateExporter:
    """Return an exporter to slides, which can be scrolled where one is longer than the screen."""
    return exporter(SlidesExporter, reveal_scroll=True, reveal_url_prefix=reveal)


def main(arguments: list[str] | None = None) -> int:
    """Write all pages and slides."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where to write; made if it is not there")
    parser.add_argument("--reveal", default="", help="the address or folder of a reveal.js")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    kinds = {".html": exporter(HTMLExporter), ".slides.html": slides(options.reveal)}
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        notebook = nbformat.read(path, 4)
        for ending, kind in kinds.items():
            resources = {"metadata": {"name": path.stem}}
            text, _ = kind.from_notebook_node(notebook, resources)
            (options.folder / f"{path.stem}{ending}").write_text(text, encoding="utf-8")
        print(f"{path.stem}: page and slides written")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        sys.exit(
            f"the pages could not be written: {error}. Free some space, or name another folder"
        )
