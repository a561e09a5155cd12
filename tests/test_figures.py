"""Figures: what stands on them, what stands beside them, and what they refuse."""

import io
import itertools
import json
import math
import re
import signal
import statistics
import time
import warnings

import pytest
from matplotlib.artist import Artist
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

import gpututor
from gpututor import diagrams, figures, prediction, recorded, scale
from gpututor.recorded import Recording

SERIES = {
    "pinned": [(2.0**k, 0.02 * k**2) for k in range(12, 29)],
    "pageable": [(2.0**k, 0.01 * k**2) for k in range(12, 29)],
}
LINES = {"title": "What a copy costs", "x": ("size", "bytes"), "y": ("rate", "GB/s")}
BARS = {"title": "One or many", "x": ("time", "ms")}
OLD = Recording(
    "recorded on NVIDIA H200, torch 2.11.0, 30 November 2026",
    ("size", "bytes"),
    ("rate", "GB/s"),
    {"pinned": [(2.0**12, 0.2), (2.0**28, 55.0)]},
)
pytestmark = pytest.mark.usefixtures("simulated")


@pytest.fixture
def drawn(monkeypatch):
    """Return the list of the figures that were drawn, the last one last."""
    seen = []
    show = figures.show
    monkeypatch.setattr(
        figures, "show", lambda figure, alt: seen.append(figure) or show(figure, alt)
    )
    return seen


@pytest.fixture
def guess():
    """Return a function that gives a guess called ``g``, which is forgotten after the test."""

    def give(value, unit="GB/s", choices=None):
        gpututor.predict("g", "how fast?", choices, unit).guess(value)

    yield give
    prediction._kept.pop("g", None)


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a, b):
    """Return the contrast of two colours, as WCAG 2.2 defines it."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()] if axes.get_legend() else []


def shown_ticks(axis):
    low, high = sorted(axis.get_view_interval())
    labels = axis.get_major_formatter().format_ticks(axis.get_majorticklocs())
    return [
        label
        for place, label in zip(axis.get_majorticklocs(), labels, strict=True)
        if low <= place <= high
    ]


@pytest.mark.parametrize("log", ["", "x", "y", "xy"])
def test_lines_have_labels_units_title_and_source(drawn, log):
    figures.lines(SERIES, log=log, **LINES)
    (axes,) = drawn[-1].axes
    assert axes.get_xlabel() == "size (bytes)"
    assert axes.get_ylabel() == "rate (GB/s)"
    assert axes.get_title(loc="left") == "What a copy costs"
    assert [text.get_text() for text in drawn[-1].texts] == ["Source: simulated T4 (1/50 speed)."]
    assert legend(axes) == ["pinned", "pageable"]
    for axis in (axes.xaxis, axes.yaxis):
        assert 2 <= len(shown_ticks(axis)) <= 8
    assert all(label.endswith("iB") or label == "0 bytes" for label in shown_ticks(axes.xaxis))


def test_bars_have_label_unit_numbers_and_source(drawn):
    figures.bars({"one": 3.21, "many": 44.4}, limits={"best": 1.5}, **BARS)
    (axes,) = drawn[-1].axes
    assert axes.get_xlabel() == "time (ms)"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["one", "many"]
    assert [text.get_text() for text in axes.texts] == ["3.21", "44.4"]
    assert axes.get_xlim()[0] == 0, "a bar's length begins at zero"
    assert legend(axes) == ["best: 1.5 ms"]
    assert drawn[-1].texts[0].get_text().startswith("Source: simulated T4")


def test_a_linear_height_shows_zero(drawn):
    figures.lines({"a": [(1, 100), (2, 101)]}, **LINES)
    low, high = drawn[-1].axes[0].get_ylim()
    assert low == 0 < 101 < high


def test_words_hold_the_numbers_and_the_source():
    picture = figures.lines(SERIES, limits={"PCIe": 15.75}, recorded=OLD, **LINES)
    assert repr(picture) == picture.alt
    assert "pinned: 2.88 GB/s at 4 KiB, 8 GB/s at 1 MiB, 15.7 GB/s at 256 MiB." in picture.alt
    assert "pinned, recorded: 0.2 GB/s at 4 KiB, 55 GB/s at 256 MiB." in picture.alt
    assert "PCIe: 15.8 GB/s." in picture.alt
    assert picture.alt.startswith("What a copy costs.")
    assert picture.alt.endswith(
        "Source: simulated T4 (1/50 speed); "
        "recorded on NVIDIA H200, torch 2.11.0, 30 November 2026."
    )


def test_a_picture_shows_png_and_words():
    picture = figures.bars({"one": 3.0}, **BARS)
    data, metadata = picture._repr_mimebundle_()
    assert data["text/plain"] == metadata["image/png"]["alt"] == picture.alt
    image = Image.open(io.BytesIO(picture.png))
    assert image.size == picture.size
    assert picture.size[0] == 700


def test_the_source_can_be_given():
    assert figures.bars({"one": 3.0}, source="made up", **BARS).alt.endswith("Source: made up.")


def test_without_a_device_there_is_no_figure():
    gpututor.stop()
    with pytest.raises(RuntimeError, match=r"call gpututor\.start"):
        figures.bars({"one": 3.0}, **BARS)


def test_a_recorded_line_has_the_colour_of_its_name_and_is_hollow(drawn):
    figures.lines({"other": [(1, 1)], **SERIES}, recorded=OLD, **LINES)
    by_name = {line.get_label(): line for line in drawn[-1].axes[0].lines}
    new, old = by_name["pinned"], by_name["pinned, recorded"]
    assert new.get_color() == old.get_color()
    assert new.get_marker() == old.get_marker()
    assert old.get_markerfacecolor() == figures.PAPER != new.get_markerfacecolor()


def test_recorded_bars_are_paler(drawn):
    alt = figures.bars({"pinned": 2.0}, recorded=OLD, **BARS).alt
    assert "pinned, recorded: 55 ms." in alt
    assert drawn[-1].axes[0].patches[1].get_facecolor()[:3] == (1, 1, 1)


def test_all_that_is_packaged_as_recorded_can_be_drawn():
    paths = list(recorded._FOLDER.glob("*.json"))
    assert paths
    for path in paths:
        several = json.loads(path.read_text(encoding="utf-8")).get("experiments", [None])
        for old in [recorded.load(path.stem, experiment) for experiment in several]:
            for line in old.series:
                alt = figures.lines({}, title="t", x=old.x, y=old.y, recorded=old.only(line)).alt
                assert f"{line}, recorded: " in alt
                assert f"Source: {old.source}." in alt, "nothing is simulated here"


@pytest.mark.parametrize("kind", ["lines", "bars"])
def test_a_guess_is_marked(drawn, guess, kind):
    guess("9", unit="GB/s")
    if kind == "lines":
        alt = figures.lines(SERIES, guess="g", **LINES).alt
    else:
        alt = figures.bars({"one": 3.0}, guess="g", title="t", x=("rate", "GB/s")).alt
    (axes,) = drawn[-1].axes
    assert "Your guess: 9 GB/s." in alt
    assert "your guess: 9 GB/s" in legend(axes)
    low, high = axes.get_ylim() if kind == "lines" else axes.get_xlim()
    assert low < 9 < high


def test_no_guess_leaves_no_mark(drawn):
    assert "guess" not in figures.lines(SERIES, guess="never asked", **LINES).alt
    assert legend(drawn[-1].axes[0]) == ["pinned", "pageable"]


@pytest.mark.parametrize("value", ["1e9", "-1e9"])
def test_a_guess_far_off_does_not_squeeze_the_rest(drawn, guess, value):
    guess(value)
    assert "off the scale" in figures.lines(SERIES, guess="g", **LINES).alt
    assert drawn[-1].axes[0].get_ylim()[1] < 50
    assert any("off the scale" in text for text in legend(drawn[-1].axes[0]))


@pytest.mark.parametrize("value", ["0", "-3"])
def test_a_guess_that_a_logarithm_cannot_show_is_said(guess, value):
    guess(value)
    assert "off the scale" in figures.lines(SERIES, guess="g", log="y", **LINES).alt


def test_a_chosen_guess_is_said(drawn, guess):
    guess("pinned", unit=None, choices=["pinned", "pageable"])
    assert "Your guess: pinned." in figures.lines(SERIES, guess="g", **LINES).alt
    assert "your guess: pinned" in legend(drawn[-1].axes[0])


def test_nothing_depends_on_hue():
    colours, markers, dashes = zip(*figures.LINES, strict=True)
    assert len(set(colours)) == len(set(markers)) == len(set(dashes)) == len(figures.LINES)
    fills, hatches = zip(*figures.BARS, strict=True)
    assert len(set(fills)) == len(set(hatches)) == len(figures.BARS)


def test_contrasts():
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast(figures.INK, figures.PAPER) >= 4.5  # all text is ink on paper
    for colour, _, _ in figures.LINES:
        assert contrast(colour, figures.PAPER) >= 3, colour
    assert contrast(figures.INK, figures.PAPER) >= 3  # the edge of every bar


@pytest.mark.parametrize("colour", [figures.INK, figures.PAPER])
def test_colours_are_drawn_as_they_are(colour):
    wanted = tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))
    picture = figures.bars({"one": 3.0}, **BARS)
    counts = Image.open(io.BytesIO(picture.png)).convert("RGB").getcolors(1 << 16)
    assert max(count for count, c in counts if math.dist(c, wanted) < 12) > 500


def test_all_text_is_ink(drawn):
    figures.lines(SERIES, limits={"PCIe": 15.75}, **LINES)
    figures.bars({"one": 3.0}, limits={"PCIe": 15.75}, **BARS)
    for figure in drawn:
        figure.draw_without_rendering()
        texts = [t for t in figure.findobj(Text) if t.get_text()]
        assert len(texts) > 5
        assert {to_hex(t.get_color()).upper() for t in texts} == {figures.INK}


@pytest.mark.parametrize("many", [1, 12])
def test_nothing_is_cut_off_or_covered(drawn, many):
    name = "copies to the GPU, pageable"
    figures.lines(
        SERIES, recorded=OLD, title="W" * 40, x=LINES["x"], y=LINES["y"], log="xy",
        source="measured on NVIDIA GeForce RTX 4090 Laptop GPU, torch 2.14.1",
    )  # fmt: skip
    figures.bars({f"{name} {i}": 10.0**i for i in range(many)}, log=True, **BARS)
    for figure in drawn:
        figure.draw_without_rendering()
        (axes,) = figure.axes
        width, height = figure.canvas.get_width_height()
        boxes = {}
        for text in [*figure.texts, axes.xaxis.label, axes.yaxis.label, axes._left_title]:
            if text.get_text():
                boxes[text.get_text()] = text.get_window_extent()
        for axis in (axes.xaxis, axes.yaxis):
            shown = [t.label1 for t in axis.get_major_ticks() if t.label1.get_text()]
            boxes |= {f"{axis.axis_name} {t.get_text()}": t.get_window_extent() for t in shown}
        assert len(boxes) > 5
        for text, box in boxes.items():
            assert box.x0 >= 0 and box.y0 >= 0, f"{text!r} is cut off"
            assert box.x1 <= width and box.y1 <= height, f"{text!r} is cut off"
        for (one, a), (other, b) in itertools.combinations(boxes.items(), 2):
            assert not a.overlaps(b), f"{one!r} lies over {other!r}"


def test_the_same_figure_is_the_same_file():
    first = figures.lines(SERIES, log="x", recorded=OLD, **LINES)
    figures.bars({"one": 3.0}, **BARS)
    assert figures.lines(SERIES, log="x", recorded=OLD, **LINES).png == first.png


def test_files_are_small():
    assert len(figures.lines(SERIES, log="xy", recorded=OLD, **LINES).png) < 25_000
    assert len(diagrams.host_and_device().png) < 25_000


def test_drawing_is_fast(drawn):
    """Process time, and half of it is matplotlib's: 35 ms here, 51 before ticks were ours."""
    yardstick = []
    times = []
    for _ in range(9):
        start = time.process_time()
        bare = Figure(figsize=(7, 3.6))
        bare.add_subplot().plot([1, 2, 3])
        bare.savefig(io.BytesIO(), format="png", dpi=100)
        middle = time.process_time()
        figures.lines(SERIES, log="x", limits={"PCIe": 15.75}, **LINES)
        times.append(time.process_time() - middle)
        yardstick.append(middle - start)
    # A bare figure of matplotlib's own, with no legend and no text, is the unit.
    assert statistics.median(times) < 1.9 * statistics.median(yardstick)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: figures.lines({}, **LINES), "no points to draw"),
        (lambda: figures.lines({"a": []}, **LINES), "no points to draw"),
        (lambda: figures.lines([1, 2], **LINES), "series must be a dictionary"),
        (lambda: figures.lines({"a": [1, 2]}, **LINES), r"point 0 of 'a' is 1, not a pair"),
        (lambda: figures.lines({"a": [(1, 2), (3, 4, 5)]}, **LINES), "point 1 of 'a'"),
        (lambda: figures.lines({"a": [(1, "b")]}, **LINES), "y of point 0 of 'a' is 'b'"),
        (lambda: figures.lines({"a": [(1, math.nan)]}, **LINES), "y of point 0 of 'a' is nan"),
        (lambda: figures.lines({"a": [(math.inf, 1)]}, **LINES), "x of point 0 of 'a' is inf"),
        (lambda: figures.lines({"a": [(1, 10**400)]}, **LINES), "only finite numbers"),
        (lambda: figures.lines({"a": [(1, 1e300)]}, **LINES), "give numbers from"),
        (lambda: figures.lines({"a": [(1, 1e-300)]}, **LINES), "give numbers from"),
        (lambda: figures.lines({"a": [(0, 1)]}, log="x", **LINES), "x has 0.*logarithmic"),
        (lambda: figures.lines({"a": [(1, -2)]}, log="y", **LINES), "y has -2.*logarithmic"),
        (lambda: figures.lines({"a": [(1, 2)]}, log="z", **LINES), "log must be"),
        (lambda: figures.lines({"a": [(1, 2)] * 2001}, **LINES), "2001 points: give at most 2000"),
        (lambda: figures.lines({str(i): [(1, 2)] for i in range(7)}, **LINES), "7 lines are too"),
        (lambda: figures.lines({"a": [(1, 2)]}, limits={"b": math.nan}, **LINES), "limit 'b'"),
        (
            lambda: figures.lines({"a": [(1, 2)]}, title="t", x=("size", ""), y=("rate", "GB/s")),
            "x must be a quantity and its unit",
        ),
        (
            lambda: figures.lines({"a": [(1, 2)]}, title="t", x=("size", "bytes"), y="rate"),
            "y must be a quantity and its unit",
        ),
        (lambda: figures.lines({"a": [(1, 2)]}, **{**LINES, "title": ""}), "title must be"),
        (lambda: figures.lines({"a": [(1, 2)]}, **{**LINES, "title": "t" * 77}), "title must be"),
        (lambda: figures.bars({}, **BARS), "no numbers to draw"),
        (lambda: figures.bars({"a": math.nan}, **BARS), "'a' is nan"),
        (lambda: figures.bars({"a": None}, **BARS), "'a' is None, which is not a number"),
        (lambda: figures.bars({"a": 0}, log=True, **BARS), "x has 0.*logarithmic"),
        (lambda: figures.bars({str(i): 1 for i in range(13)}, **BARS), "13 bars are too many"),
        (lambda: figures.show(Figure(), " "), "alt is empty"),
        (lambda: figures.show(None, "alt"), "show needs a matplotlib Figure"),
    ],
)
def test_bad_input_gives_one_clear_line(call, message):
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 160


@pytest.mark.parametrize(
    "points",
    [
        [(0, 0)],
        [(5, -3)],
        [(5, 7), (5, 7)],
        [(-1, -1e30), (1, 1e30)],
        [(1e-30, 1e-30), (1e30, 1e30)],
        [(3, 0.1 + 0.2), (3, 0.3)],
        [(0, 0), (1023, 1), (1e15, 2)],
    ],
)
@pytest.mark.parametrize("unit", ["bytes", "ms"])
def test_strange_numbers_are_drawn(drawn, points, unit):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figures.lines({"a": points}, title="t", x=("size", unit), y=("time", unit))
        figures.bars({str(i): y for i, (_, y) in enumerate(points)}, title="t", x=("time", unit))
        if min(min(point) for point in points) > 0:
            figures.lines({"a": points}, title="t", x=("a", unit), y=("b", unit), log="xy")
    for figure in drawn:
        (axes,) = figure.axes
        assert shown_ticks(axes.xaxis)


@pytest.mark.parametrize(
    ("low", "high", "log", "binary", "expected"),
    [
        (0, 10, False, False, [0, 2, 4, 6, 8, 10]),
        (0, 0.34, False, False, [0, 0.1, 0.2, 0.3]),
        (-3, 3, False, False, [-3, -2, -1, 0, 1, 2, 3]),
        (0, 1000, False, True, [0, 256, 512, 768]),
        (1, 1000, True, False, [1, 10, 100, 1000]),
        (0.005, 0.4, True, False, [0.005, 0.01, 0.02, 0.05, 0.1, 0.2]),
        (0.35, 4.2, True, False, [0.5, 1, 2]),
        (2, 8, True, False, [2, 3, 4, 5, 6, 7, 8]),
        (2**12, 2**28, True, True, [2**k for k in (12, 15, 18, 21, 24, 27)]),
        (1e-30, 1e30, True, False, [10.0**k for k in range(-30, 31, 9)]),
    ],
)
def test_ticks_are_round_and_few(low, high, log, binary, expected):
    assert scale.ticks(low, high, log, binary) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("places", "unit", "expected"),
    [
        ([256, 1024, 4096, 8192], "rows", ["256", "1024", "4096", "8192"]),
        ([2**k for k in range(12, 26, 4)], "bytes", ["4 KiB", "64 KiB", "1 MiB", "16 MiB"]),
        ([100, 104, 1000, 10000], "rows", ["100", "1000", "10000"]),  # two are too close
        ([2**k for k in range(17)], "rows", [f"{10**k}" for k in range(6)]),  # too many
    ],
)
def test_few_sizes_are_themselves_the_ticks(drawn, places, unit, expected):
    figures.lines(
        {"a": [(x, 1) for x in places]}, title="t", x=("size", unit), y=("a", "b"), log="x"
    )
    assert shown_ticks(drawn[-1].axes[0].xaxis) == expected


def test_the_number_of_the_longest_bar_has_room_on_a_logarithmic_scale(drawn):
    figures.bars({"short": 0.0884, "long": 21555.0}, log=True, **BARS)
    (axes,) = drawn[-1].axes
    drawn[-1].draw_without_rendering()
    assert axes.texts[-1].get_window_extent().x1 <= axes.get_window_extent().x1


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1234, "1230"), (0.00012345, "0.000123"), (1e-7, "1e-07"), (15.75, "15.8")],
)
def test_numbers_have_three_digits(value, text):
    assert figures.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 bytes"), (1023, "1020 bytes"), (4096, "4 KiB"), (2**30, "1 GiB"), (2**41, "2050 GiB")],
)
def test_amounts_of_bytes(value, text):
    assert figures.amount(value) == text


def test_the_diagram_is_a_picture():
    assert re.search("Left, the host: .* Right, the device: ", diagrams.host_and_device().alt)


def test_an_interrupt_waits_until_the_figure_is_drawn():
    """Matplotlib's C++ would swallow it, and fail with "Invalid bounding box"."""
    drawn = []

    class Interrupted(Artist):
        def draw(self, renderer):
            signal.raise_signal(signal.SIGINT)
            drawn.append(True)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        figure = Figure(figsize=(1, 1))
        figure.add_artist(Interrupted())
        with pytest.raises(KeyboardInterrupt):
            figures.show(figure, "words")
        assert drawn
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
