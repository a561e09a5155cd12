"""Short facts as a table of two columns, in the one look of the course."""

from __future__ import annotations

import html
from collections.abc import Iterable

#: Written out on every cell, because JupyterLab, Colab and GitHub each bring styles of their own.
_CELL = "text-align:left;vertical-align:top;padding:2px 12px 2px 0;white-space:"


def rows_as_html(rows: Iterable[tuple[str, str]]) -> str:
    """Return the rows of such a table. A label is never broken, however narrow the page is."""
    return "".join(
        f'<tr><th style="{_CELL}nowrap">{html.escape(label)}</th>'
        f'<td style="{_CELL}pre-wrap">{html.escape(text)}</td></tr>'
        for label, text in rows
    )


def as_html(rows: Iterable[tuple[str, str]], dashed: bool = False) -> str:
    """Return a table with a line down its left side.

    Parameters
    ----------
    rows : iterable of (str, str)
        Label and text of each row, as plain text.
    dashed : bool
        Whether the line is dashed, which says that something is still to be done.
    """
    line = "dashed" if dashed else "solid"
    return (
        f'<div style="border-left:4px {line} currentColor;padding-left:10px;margin:4px 0">'
        f'<table style="margin:0">{rows_as_html(rows)}</table></div>'
    )
