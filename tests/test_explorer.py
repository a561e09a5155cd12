"""The live panel: its controls, what it shows, and what it says when a run goes wrong."""

import functools
import gc
import html
import re
import weakref

import ipywidgets
import pytest
import torch
from matplotlib.figure import Figure

import gpututor
from gpututor import explorer, figures
from gpututor.explorer import Explorer, explore
from gpututor.picture import Picture, show

VIEW = "application/vnd.jupyter.widget-view+json"


def picture(size=2, pinned=False):
    figure = Figure(figsize=(1, 1))
    figure.text(0.1, 0.1, f"{size} {pinned}")
    return show(figure, f'size {size}, "pinned" {pinned}')


def text(panel):
    """Return what the status line says, without its markup."""
    return html.unescape(re.sub(r"<style>.*?</style>|<[^>]+>", "", panel._status.value, flags=re.S))


@pytest.fixture
def bundle(monkeypatch):
    """Return a function that gives data and metadata of the one output a notebook would show."""

    def of(shown):
        outputs = []
        monkeypatch.setattr(
            explorer, "display", lambda data, metadata, raw: outputs.append((data, metadata, raw))
        )
        shown._ipython_display_()
        ((data, metadata, raw),) = outputs
        assert raw
        return data, metadata

    return of


def test_the_package_offers_it():
    assert gpututor.explore is explore
    assert gpututor.Explorer is Explorer


def test_it_runs_once_from_the_defaults():
    calls = []
    panel = explore(lambda size=3, pinned=True: calls.append((size, pinned)) or "x", size=(1, 8))
    assert calls == [(3, True)]
    assert panel.values == {"size": 3}
    assert isinstance(panel, Explorer)


@pytest.mark.parametrize(
    ("abbreviation", "widget", "value"),
    [
        ((1, 16), ipywidgets.IntSlider, 8),
        ((1, 16, 3), ipywidgets.IntSlider, 7),
        ((0.0, 1.0), ipywidgets.FloatSlider, 0.5),
        (True, ipywidgets.Checkbox, True),
        (["a", "b"], ipywidgets.SelectionSlider, "a"),
        ([3072, 1024, 64], ipywidgets.SelectionSlider, 3072),
        ([0.5], ipywidgets.Dropdown, 0.5),
        ([True, False], ipywidgets.SelectionSlider, True),
        ([1, "all"], ipywidgets.SelectionSlider, 1),
        ([("one", 1), ("two", 2)], ipywidgets.SelectionSlider, 1),
        ({"one": 1, "two": 2}, ipywidgets.SelectionSlider, 1),
        ("words", ipywidgets.Text, "words"),
        (10, ipywidgets.IntSlider, 10),
        (ipywidgets.fixed(7), ipywidgets.fixed, 7),
    ],
)
def test_abbreviations_are_those_of_interact(abbreviation, widget, value):
    panel = explore(lambda x: f"{x!r}", x=abbreviation)
    assert type(panel.controls["x"]) is widget
    assert panel.values == {"x": value}
    assert panel.result == f"{value!r}"
    assert (panel.controls["x"] in panel.panel.children) == (widget is not ipywidgets.fixed)


def test_a_widget_is_taken_as_it_is():
    slider = ipywidgets.IntSlider(value=4, max=9, description="how many")
    panel = explore(lambda x: str(x), x=slider)
    assert panel.controls["x"] is slider
    assert slider.description == "how many"


def test_a_default_that_does_not_fit_is_left():
    assert explore(lambda x="no number": str(x), x=(1, 3)).result == "2"
    assert explore(lambda x="c": x, x=["a", "b"]).result == "a"
    assert explore(lambda x=5: str(x), x=[1, 4]).result == "1"


def test_a_default_that_fits_is_where_it_begins():
    assert explore(lambda x=3: str(x), x=(1, 8)).result == "3"
    assert explore(lambda x="b": x, x=["a", "b"]).result == "b"
    assert explore(lambda x=4: str(x), x=[1, 4]).result == "4"


def test_controls_are_named_and_labels_aligned():
    panel = explore(lambda **_: "x", number_of_chunks=(1, 8), n=(1, 2))
    assert [c.description for c in panel.controls.values()] == ["number of chunks", "n"]
    assert len({c.style.description_width for c in panel.controls.values()}) == 1
    assert len({c.layout.width for c in panel.controls.values()}) == 1


def test_a_long_choice_has_room_beside_its_slider():
    def em(choices):
        panel = explore(lambda x, n: x, x=choices, n=(1, 8))
        assert "gpututor-choice" in panel.controls["x"]._dom_classes
        assert len({c.layout.width for c in panel.controls.values()}) == 1  # sliders line up
        assert "max-width: none" in panel._status.value  # the toolkit cuts at 148 pixels
        return float(panel.controls["x"].layout.width.removesuffix("em"))

    assert em(["a", "b"]) == em(["c", "a text"])
    assert em(["a", "torch.cuda.synchronize()"]) >= em(["a", "b"]) + 9


def test_text_runs_when_it_is_done():
    assert explore(lambda x: x, x="words").controls["x"].continuous_update is False


def test_any_callable_will_do():
    class Doubled:
        def __call__(self, size):
            return str(2 * size)

    assert explore(Doubled(), size=(1, 3)).result == "4"
    assert explore(functools.partial(picture, pinned=True), size=(1, 3)).result.alt.endswith("True")
    assert explore(lambda **named: str(named), a=(1, 3)).result == "{'a': 2}"
    assert explore(lambda *, a: str(a), a=(1, 3)).result == "2"


def by_place(a, /):
    return a


async def awaited(a):
    return a


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: explore(3, a=(1, 2)), "needs a function to call, not 3"),
        (lambda: explore(picture), "give a control for an argument of picture"),
        (lambda: explore(picture, colour=True), "picture has no argument 'colour': it has pinned,"),
        (lambda: explore(lambda: "x", a=True), "has no argument 'a': it has none"),
        (lambda: explore(lambda a, b: "x", a=True), "needs 'b': give explore a control"),
        (lambda: explore(by_place, a=(1, 2)), "no argument 'a'"),
        (lambda: explore(lambda b, a, /, **k: "x", a=(1, 2)), "takes 'b' by place only"),
        (lambda: explore(awaited, a=(1, 2)), "cannot await: make awaited a plain function"),
        (lambda: explore(max, a=(1, 2)), "cannot see the arguments of max|no argument 'a'"),
        (lambda: explore(picture, size=(8, 1)), r"for size of \(8, 1\)"),
        (lambda: explore(picture, size=(1, 2, 3, 4)), r"for size can be made of \(1, 2, 3, 4\)"),
        (lambda: explore(picture, size=None), "for size can be made of None: give"),
        (lambda: explore(picture, size=ipywidgets.Button()), "for size can be made of"),
        (lambda: explore(picture, size=[]), r"for size of \[\]: it is empty"),
        (lambda: explore(lambda a: None, a=True), "returned nothing: return what the panel"),
        (lambda: explore(lambda a: Figure(), a=True), r"bare figure: return figures\.show"),
    ],
)
def test_bad_functions_and_controls_give_one_clear_line(make, message):
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_an_error_in_the_first_run_is_the_cells():
    with pytest.raises(ZeroDivisionError):
        explore(lambda a: 1 / 0, a=(1, 2))


FULL = torch.OutOfMemoryError(
    "CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 8.00 MiB of "
    "which 1.00 MiB is free. Including non-PyTorch memory, this process has 7.00 MiB in use."
)
TOLD = (
    "CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 8.00 MiB "
    "of which 1.00 MiB is free. Choose less, or free memory, and run it again."
)


@pytest.mark.parametrize(
    ("error", "said"), [(FULL, TOLD), (KeyboardInterrupt(), explorer.STOPPED_EARLY)]
)
def test_a_first_run_that_fails_leaves_a_panel(monkeypatch, error, said):
    shown = []
    monkeypatch.setattr(explorer.InteractiveShell, "initialized", lambda: True)
    monkeypatch.setattr(explorer.Explorer, "_ipython_display_", lambda self: shown.append(self))
    with pytest.raises(type(error)):
        explore(fails_above(3, error), a=ipywidgets.IntSlider(5, 1, 8))
    (panel,) = shown  # it is there, and says what to do
    assert panel.error == repr(panel) == text(panel).removeprefix("⚠ ") == said
    panel.controls["a"].value = 2
    assert (panel.result, panel.error, text(panel)) == ("2", None, explorer.READY)


def stopped(tensor):
    raise KeyboardInterrupt


def out_of_memory(tensor):
    raise torch.OutOfMemoryError("CUDA out of memory.")


def out_of_memory_twice(tensor):
    try:
        out_of_memory(tensor)
    except torch.OutOfMemoryError:
        raise torch.OutOfMemoryError("CUDA out of memory again.") from None


def told_otherwise(tensor):
    try:
        out_of_memory(tensor)
    except torch.OutOfMemoryError as error:
        raise ValueError("a message of its own") from error


@pytest.mark.parametrize("end", [stopped, out_of_memory, out_of_memory_twice, told_otherwise])
def test_a_notebook_that_keeps_the_error_does_not_keep_its_memory(end):
    alive = []

    def experiment(a=1):
        tensor = torch.zeros(a)
        alive.append(weakref.ref(tensor))
        end(tensor)

    try:
        explore(experiment, a=(1, 8))
    except BaseException as error:
        kept = error
    assert kept.__traceback__ is not None
    assert alive[0]() is None


def test_an_error_that_cannot_say_what_it_is():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    panel = explore(fails_above(3, Mute()), a=(1, 8))
    with pytest.raises(Mute):
        panel.set(a=5)
    assert text(panel) == "⚠ Mute: no message"


def test_moving_a_control_runs_again():
    panel = explore(picture, size=(1, 8), pinned=False)
    panel.controls["size"].value = 7
    assert panel.result.alt == 'size 7, "pinned" False'
    panel.controls["pinned"].value = True
    assert panel.result.alt == 'size 7, "pinned" True'
    assert text(panel) == explorer.READY


def test_moving_a_control_in_the_browser_runs_again():
    panel = explore(picture, size=(1, 8))
    panel.controls["size"].set_state({"value": 5})  # what a message from the browser ends in
    assert panel.result.alt.startswith("size 5")


def test_the_view_shows_the_picture_and_its_words():
    panel = explore(picture, size=(1, 8))
    before = panel._view.value
    assert 'alt="size 2, &quot;pinned&quot; False"' in before
    assert 'width="100" height="100"' in before, "the page keeps its place while it loads"
    panel.set(size=3)
    assert panel._view.value != before
    assert isinstance(panel.result, Picture)


def test_set_moves_several_and_runs_once():
    calls = []
    panel = explore(lambda a, b: calls.append((a, b)) or f"{a} {b}", a=(1, 8), b=["x", "y"])
    calls.clear()
    assert panel.set(a=8, b="y") == "8 y"
    assert calls == [(8, "y")]
    assert panel.values == {"a": 8, "b": "y"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"a": 2, "b": "z"}, "b cannot be 'z': choose one of 'x', 'y'"),
        ({"b": "y", "a": 9}, "a cannot be 9: give a number from 1 to 8, in steps of 1"),
        ({"b": "y", "a": 2.5}, "a cannot be 2.5"),
        ({"b": "y", "a": "many"}, "a cannot be 'many'"),
        ({"a": 2, "c": 1}, "there is no control 'c'; there is a, b"),
        ({"a": 2, "d": 1}, "there is no control 'd'"),
    ],
)
def test_set_is_all_or_nothing(values, message):
    calls = []
    panel = explore(lambda a, b: calls.append(a) or f"{a} {b}", a=(1, 8), b=["x", "y"])
    calls.clear()
    with pytest.raises(ValueError, match=message):
        panel.set(**values)
    assert panel.values == {"a": 4, "b": "x"}
    assert not calls
    panel.controls["a"].value = 5
    assert panel.result == "5 x", "the panel works as before"


def test_the_choices_of_a_list_of_numbers():
    panel = explore(lambda a: str(a), a=[1, 10, 100])
    assert panel.set(a=100) == "100"
    with pytest.raises(ValueError, match="a cannot be 50: choose one of 1, 10, 100"):
        panel.set(a=50)


def test_the_range_of_a_logarithmic_slider():
    panel = explore(lambda a: str(a), a=ipywidgets.FloatLogSlider(value=10, base=10, min=0, max=3))
    with pytest.raises(ValueError, match="give a number from 1 to 1000"):
        panel.set(a=20000)


def fails_above(limit, error):
    def experiment(a=1):
        if a > limit:
            raise error
        return str(a)

    return experiment


@pytest.mark.parametrize("move", ["python", "browser", "set"])
def test_an_error_is_shown_in_the_panel_and_raised(move):
    panel = explore(fails_above(3, RuntimeError("out of <memory>\nmore")), a=(1, 8))
    with pytest.raises(RuntimeError, match="out of"):
        if move == "python":
            panel.controls["a"].value = 5
        elif move == "browser":
            panel.controls["a"].set_state({"value": 5})
        else:
            panel.set(a=5)
    assert 'role="alert"' in panel._status.value
    assert "RuntimeError: out of &lt;memory&gt;</div>" in panel._status.value
    assert panel.error == "RuntimeError: out of <memory>"
    assert panel.result == "1"
    assert panel._view.value == "<pre>1</pre>", "the last result stays"
    panel.controls["a"].value = 2
    assert panel.error is None
    assert text(panel) == explorer.READY
    assert 'role="status"' in panel._status.value


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_run_that_failed_keeps_nothing(error):
    alive = []

    def experiment(a=1):
        tensor = torch.zeros(a)
        alive.append(weakref.ref(tensor))
        if a > 3:
            raise error
        return "x"

    panel = explore(experiment, a=(1, 8))
    with pytest.raises(error):
        panel.set(a=5)
    gc.collect()
    assert panel.error
    assert [reference() for reference in alive] == [None, None]


def test_an_error_without_words_is_named():
    panel = explore(fails_above(3, KeyError()), a=(1, 8))
    with pytest.raises(KeyError):
        panel.set(a=5)
    assert text(panel) == "⚠ KeyError: no message"


def test_a_result_that_cannot_be_shown_is_an_error():
    panel = explore(lambda a=1: None if a > 3 else "x", a=(1, 8))
    with pytest.raises(TypeError, match="returned nothing"):
        panel.controls["a"].value = 5
    assert "returned nothing" in text(panel)


def test_an_interrupt_stops_the_run_and_leaves_the_panel_working():
    panel = explore(fails_above(3, KeyboardInterrupt()), a=(1, 8))
    panel.controls["a"].value = 5  # a stop is what the learner wanted: nothing is raised
    assert text(panel) == explorer.STOPPED
    assert panel.error == explorer.STOPPED
    with pytest.raises(KeyboardInterrupt):
        panel.run()  # in a cell it stops the cell
    panel.controls["a"].value = 2
    assert (panel.result, panel.error, text(panel)) == ("2", None, explorer.READY)


def test_it_says_running_while_it_runs():
    seen = []
    panel = explore(lambda a: seen.append(text(panel) if seen else "") or "x", a=(1, 8))
    panel.controls["a"].value = 5
    assert explorer.RUNNING in seen[-1]
    assert text(panel) == explorer.READY


def test_the_status_has_one_height():
    heights = set()

    def experiment(a=1):
        heights.update(re.findall(r"height:[\d.]+em", panel._status.value) if panel else ())
        if a == 5:
            raise ValueError("long words " * 50)
        if a == 6:
            raise KeyboardInterrupt
        return "x"

    panel = None
    panel = explore(experiment, a=(1, 8))
    for value in (2, 6, 3):
        panel.controls["a"].value = value
        heights.update(re.findall(r"height:[\d.]+em", panel._status.value))
    with pytest.raises(ValueError, match="long words"):
        panel.controls["a"].value = 5
    assert heights == {"height:2.7em"}
    assert "height:2.7em" in panel._status.value
    assert "overflow:auto" in panel._status.value


def test_a_generator_draws_each_result_when_it_comes():
    views = []

    def experiment(steps=2):
        for step in range(steps):
            yield f"step {step}"
            views.append(panel._view.value if panel else "")

    panel = None
    panel = explore(experiment, steps=(0, 8))
    assert panel.result == "step 1"
    panel.set(steps=3)
    assert views[-3:] == ["<pre>step 0</pre>", "<pre>step 1</pre>", "<pre>step 2</pre>"]
    with pytest.raises(TypeError, match="yielded nothing"):
        panel.set(steps=0)


def test_an_interrupted_generator_keeps_its_last_result():
    def experiment(steps=2):
        yield "one"
        if steps > 2:
            raise KeyboardInterrupt
        yield "two"

    panel = explore(experiment, steps=(1, 8))
    panel.controls["steps"].value = 5
    assert (panel.result, panel._view.value) == ("one", "<pre>one</pre>")
    assert text(panel) == explorer.STOPPED


def test_what_a_notebook_gets_of_a_picture(bundle):
    panel = explore(picture, size=(1, 8))
    data, metadata = bundle(panel)
    assert data["text/plain"] == 'size 2, "pinned" False'
    assert metadata["image/png"] == {"alt": data["text/plain"]}
    assert data["image/png"] == panel.result._repr_mimebundle_()[0]["image/png"]
    assert data[VIEW] == {
        "version_major": 2,
        "version_minor": 0,
        "model_id": panel.panel.model_id,
    }


def test_what_a_notebook_gets_of_a_text_and_of_a_table(bundle, simulated):
    data, _ = bundle(explore(lambda a: "some 'words'", a=True))
    assert data["text/plain"] == "some 'words'"
    assert set(data) == {"text/plain", VIEW}
    data, _ = bundle(explore(lambda a: simulated, a=True))
    assert data["text/html"] == simulated._repr_html_()
    assert data["text/plain"] == repr(simulated)


def test_a_real_figure_redraws(simulated):
    def experiment(power=3, log=False):
        points = [(2.0**k, k**power) for k in range(1, 9)]
        x, y = ("size", "bytes"), ("time", "ms")
        return figures.lines({"a": points}, title="t", x=x, y=y, log="xy" if log else "")

    panel = explore(experiment, power=(1, 5), log=False)
    before = panel.result.png
    assert panel.set(log=True).png != before
    assert panel.set(log=False).png == before
