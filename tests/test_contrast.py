"""All text can be read: contrast of 4.5 or more in figures, and in tables and panels.

Of every kind of figure each text is looked at where it stands, against the pixels behind it. The
HTML of tables and panels names no colour, so that it has its reader's theme's; those of
JupyterLab's light and dark theme are looked at. And no kind is told from another by hue alone.
"""

import itertools
import re
import sys
from pathlib import Path

import matplotlib.colors
import nbformat
import numpy
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from torch import nn

import gpututor
from gpututor import diagrams, figures, gantt, live, memory, picture, prediction, recorded
from gpututor.memory.account import _FILLS
from gpututor.memory.blocks import _KINDS

ROOT = Path(__file__).parents[1]
THEMES = Path(sys.prefix) / "share/jupyter/lab/themes/@jupyterlab"
LEAST = 4.5  # WCAG 2.2, success criterion 1.4.3, for text of ordinary size
#: What colours text or its ground in HTML, unless it takes what is there.
COLOURING = re.compile(
    r"(?<![\w-])(?:color|background(?:-color)?|opacity|filter)\s*:\s*"
    r"(?!inherit|currentColor)(?:#|\d|\w+\(|[a-z]+\s*[;\"'}])"
)


def luminance(colours):
    """Return the relative luminance of colours, as WCAG 2.2 defines it."""
    colours = numpy.asarray(colours, dtype=float)[..., :3]
    low = colours <= 0.04045
    linear = numpy.where(low, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    return linear @ numpy.array([0.2126, 0.7152, 0.0722])


def contrast(text, ground):
    a, b = luminance(text), luminance(ground)
    return (numpy.maximum(a, b) + 0.05) / (numpy.minimum(a, b) + 0.05)


def over(text, ground):
    """Lay a colour with an alpha over another."""
    *colour, alpha = matplotlib.colors.to_rgba(text)
    return [alpha * c + (1 - alpha) * g for c, g in zip(colour, ground, strict=False)]


def faint(figure):
    """Return the texts of a figure that do not stand out from what is behind them.

    Behind a text is what is drawn when the text is not, its own plate included. One pixel in ten
    may be a line or a hatch that crosses it.
    """
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    texts = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
    places = [t.get_window_extent(canvas.get_renderer()) for t in texts]
    colours = [matplotlib.colors.to_rgba(t.get_color(), t.get_alpha()) for t in texts]
    for text in texts:
        text.set_color("none")
    canvas.draw()
    pixels = numpy.asarray(canvas.buffer_rgba())[::-1] / 255
    found = []
    for text, place, colour in zip(texts, places, colours, strict=True):
        left, right = max(0, int(place.x0)), int(place.x1) + 1
        low, high = max(0, int(place.y0)), int(place.y1) + 1
        ground = pixels[low:high, left:right].reshape(-1, 4)
        if colour[3] == 0 or not ground.size:
            continue
        if numpy.quantile(contrast(over(colour, (1, 1, 1)), ground), 0.1) < LEAST:
            found.append(text.get_text())
    return found


def draw_lines():
    names = [f"line {k}" for k in range(len(figures.LINES))]
    series = {name: [(k, 1 + k * n) for k in range(9)] for n, name in enumerate(names)}
    figures.lines(series, title="Lines", x=("k", "count"), y=("n", "count"), limits={"top": 30})


def draw_bars():
    values = {f"bar {k}": 1 + k for k in range(figures.MOST_BARS)}
    gpututor.predict("contrast", "how many?", unit="ms").guess(7)
    try:
        title, limits = "Bars", {"limit": 5}
        figures.bars(values, title=title, x=("time", "ms"), guess="contrast", limits=limits)
    finally:
        prediction._kept.pop("contrast", None)


def draw_recorded():
    for name in ("rates_h200", "pipeline_h200"):
        figures.replay(recorded.load(name), title="Recorded")


def draw_gantt():
    kinds = ("host", "copy in", "kernel", "copy out")
    spans = [
        gantt.Span(f"{kind} {k}", "host" if kind == "host" else f"stream {n}", kind, k, k + 0.9)
        for n, kind in enumerate(kinds)
        for k in range(3)
    ]
    figure, _ = gantt.draw(spans, [gantt.Mark("read", 1.5)], "What ran when", [], "simulated")
    picture.show(figure, "What ran when")


def draw_map():
    kept = [torch.ones(k * 100_000, device="cuda") for k in range(1, 9)]
    del kept[::2]
    memory.map()


def draw_account():
    net = nn.Linear(256, 256).cuda()
    x = torch.ones(64, 256, device="cuda")

    def step():
        net(x).sum().backward()

    memory.account(step, model=net).picture()


def draw_board():
    board = live.board(5, loss="nats", speed="samples/s")
    board.update(loss=1.0, speed=10.0)
    board.update(loss=0.5, speed=12.0)
    board.picture()


KINDS = (
    draw_lines,
    draw_bars,
    draw_recorded,
    draw_gantt,
    draw_map,
    draw_account,
    draw_board,
    diagrams.host_and_device,
    diagrams.five_checks,
)


@pytest.fixture
def drawn(monkeypatch):
    """Return the list of the figures that become pictures."""
    seen = []
    show = picture.show
    for module in (picture, figures, diagrams):
        monkeypatch.setattr(
            module, "show", lambda figure, *rest, **more: seen.append(figure) or show(figure, *rest)
        )
    return seen


@pytest.mark.parametrize("draw", KINDS, ids=lambda draw: draw.__name__)
def test_text_stands_out_in_every_kind_of_figure(simulated, drawn, draw):
    draw()
    assert drawn
    for figure in drawn:
        assert faint(figure) == []


def test_a_faint_text_is_found():
    figure, axes = figures.figure_of("Faint")
    axes.text(0.1, 0.1, "grey on paper", color="#8A8A80")
    axes.text(0.1, 0.5, "ink on blue", color=figures.INK, bbox={"facecolor": figures.BLUE})
    axes.text(0.1, 0.9, "ink, and half of it seen", color=figures.INK, alpha=0.4)
    assert faint(figure) == ["grey on paper", "ink on blue", "ink, and half of it seen"]


def test_no_html_colours_text_or_its_ground():
    found = {}
    for path in sorted((ROOT / "gpututor").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        named = [n for n in COLOURING.findall(text) if "opacity" not in n]  # a fade ends at 1
        if "<" in text and named:
            found[path.name] = named
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in nbformat.read(path, 4).cells:
            for output in cell.get("outputs", []):
                if named := COLOURING.findall(output.get("data", {}).get("text/html", "")):
                    found[f"{path.name}: {cell.id}"] = named
    assert not found


@pytest.mark.parametrize(
    "html", ['<p style="color:#999">', '<p style="margin:0;background: red">', "p {opacity: 0.5}"]
)
def test_html_that_colours_is_found(html):
    assert COLOURING.search(html)
    assert not COLOURING.search('<p style="border:1px solid currentColor;color:inherit">')


@pytest.mark.skipif(not THEMES.is_dir(), reason="needs JupyterLab's themes")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_themes_colours_stand_out(theme):
    """Tables, panels and prose have the theme's colours, also in the rows under the pointer."""
    css = (THEMES / f"theme-{theme}-extension/index.css").read_text(encoding="utf-8")
    variables = dict(re.findall(r"(--jp-[\w-]+):\s*([^;}]+)", css))

    def colour(name):
        value = variables[name]
        while found := re.fullmatch(r"var\((--[\w-]+)(?:,\s*(.+))?\)", value):
            value = variables.get(found[1], found[2])
        if found := re.fullmatch(r"rgba?\(([^)]+)\)", value):
            parts = [float(part) for part in found[1].split(",")]
            return (*(part / 255 for part in parts[:3]), *parts[3:])
        return matplotlib.colors.to_rgba(value)

    paper = colour("--jp-layout-color0")
    rows = ("--jp-rendermime-table-row-background", "--jp-rendermime-table-row-hover-background")
    for ground in (paper, *(over(colour(row), paper) for row in rows)):
        for text in ("--jp-content-font-color1", "--jp-ui-font-color1"):
            assert contrast(over(colour(text), ground), ground) >= LEAST, (text, ground)


def test_kinds_are_told_apart_without_hue():
    """Lines by marker and dash; fills by hatch, or by being as dark as paper and ink are not."""
    _, markers, dashes = zip(*figures.LINES, strict=True)
    assert len(set(markers)) == len(set(dashes)) == len(figures.LINES)
    palettes = {
        "bars": figures.BARS,
        "timeline": list(gantt.STYLES.values()),
        "memory map": [(fill, hatch) for fill, hatch, _ in _KINDS.values()],
        "account": _FILLS,
    }
    for name, styles in palettes.items():
        for (fill, hatch), (other, another) in itertools.combinations(styles, 2):
            lighter = contrast(matplotlib.colors.to_rgb(fill), matplotlib.colors.to_rgb(other))
            assert hatch != another or lighter >= 1.2, (name, fill, other)
