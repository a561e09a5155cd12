"""The one live widget of the course: a function and its controls.

The panel is made of core widgets with Python callbacks, because those work in JupyterLab, in
Colab (ipywidgets 7.7.1) and in VS Code alike. It has no ``Output`` widget and no thread.
"""

from __future__ import annotations

import contextlib
import html
import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import ipywidgets
import torch
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display
from matplotlib.figure import Figure
from traitlets import TraitError

from .arguments import shown
from .picture import Picture

READY = "Ready: move a control to run it again."
#: While Python runs, the kernel cannot hear a button of the panel; it hears an interrupt.
RUNNING = "Running. To stop it, interrupt: ■ in Jupyter, Runtime → Interrupt in Colab."
STOPPED = "Stopped. You see the last result that was finished."
STOPPED_EARLY = "Stopped before there was a result: move a control to run it again."

#: A run under 0.3 seconds leaves "Ready" where it is: a text that flashes tells nobody anything.
_RUNNING = f"""
<style>@keyframes gpututor-late {{ from {{ opacity: 0; }} to {{ opacity: 1; }} }}
.gpututor-now {{ position: absolute; animation: gpututor-late 0s 0.3s reverse both; }}
.gpututor-late {{ animation: gpututor-late 0s 0.3s both; }}</style>
<span class="gpututor-now" aria-hidden="true">{READY}</span>
<span class="gpututor-late">{RUNNING}</span>"""


#: Sliders of one length, and the chosen text beside them uncut: a readout shrinks by itself.
STYLE = """<style>.gpututor-choice .widget-readout { flex: none; max-width: none; }
.gpututor-panel .slider-container { flex: 0 1 14em; }</style>"""


class Explorer:
    """A function, the controls of its arguments, and what it returned last.

    Made by `explore`. As a cell's last value it shows itself: the live panel where widgets can
    live, else the picture.

    Attributes
    ----------
    controls : dict of str to ipywidgets.Widget
        The control of each argument.
    result : object
        What the function returned last.
    error : str or None
        What the last run raised, in one line, or None when it ended well. The exception itself
        would keep the variables of the run, and their memory.
    """

    def __init__(self, function: Callable[..., Any], controls: dict[str, Any]) -> None:
        self.controls = controls
        self.result: Any = None
        self.error: str | None = None
        self._function = function
        self._quiet = False
        self._view = ipywidgets.HTML()
        self._status = ipywidgets.HTML()
        shown = [c for c in controls.values() if not isinstance(c, ipywidgets.fixed)]
        for name, control in controls.items():
            if getattr(control, "description", None) == "":
                control.description = name.replace("_", " ")
        longest = max((len(getattr(control, "description", "")) for control in shown), default=0)
        room = max((room_of(control) for control in shown), default=0.0)
        for control in shown:  # labels of one width, so that none is cut short
            control.style.description_width = f"{1 + 0.62 * longest:.1f}em"
            control.layout.width = f"{23 + 0.62 * longest + room:.1f}em"
            control.layout.max_width = "98%"
            control.observe(self._changed, names="value")
        self.panel = ipywidgets.VBox([*shown, self._status, self._view])
        self.panel.add_class("gpututor-panel")
        try:
            self.run()
        except BaseException:
            # The panel all the same: another value may do, such as a smaller one.
            if InteractiveShell.initialized():
                self._ipython_display_()
            raise

    @property
    def values(self) -> dict[str, Any]:
        """The value of each control, by the name of its argument."""
        return {name: control.value for name, control in self.controls.items()}

    def run(self) -> Any:
        """Call the function with the values of the controls, and redraw.

        Of a generator function each result is drawn when it comes, so that work that takes long
        can be watched.

        Returns
        -------
        object
            What it returned, or yielded last.

        Raises
        ------
        BaseException
            What the function raised. The panel says it too, and keeps the last result.
        """
        self.error = None
        self._say(_RUNNING)
        try:
            for name, control in self.controls.items():
                # Code that sets a slider of ipywidgets to None gets an error, and None in it.
                if control.value is None and None not in _options(control, [None]):
                    raise ValueError(f"{name} cannot be None: {_range(control)}")
            for result in _results(self._function(**self.values)):
                self._view.value = _as_html(result)
                self.result = result
        except KeyboardInterrupt as error:
            _let_go(error)
            self.error = STOPPED if self.result is not None else STOPPED_EARLY
            self._say(self.error)
            raise
        except BaseException as error:
            if any(isinstance(one, torch.OutOfMemoryError) for one in _chain(error)):
                _let_go(error)
            self.error = _one_line(error)
            self._say(f"⚠ {html.escape(self.error)}", role="alert")
            raise
        self._say(READY)
        return self.result

    def set(self, **values: Any) -> Any:
        """Move controls from code, then run once.

        Parameters
        ----------
        **values
            A new value for each argument that is named.

        Returns
        -------
        object
            What the function returned.

        Raises
        ------
        ValueError
            When an argument has no control, or its control cannot have that value. No control
            has moved then.
        """
        before = self.values
        self._quiet = True
        try:
            for name, value in values.items():
                self._move(name, value)
        except BaseException:
            for name, value in before.items():
                self.controls[name].value = value
            raise
        finally:
            self._quiet = False
        return self.run()

    def _move(self, name: str, value: Any) -> None:
        control = self.controls.get(name)
        if control is None:
            raise ValueError(f"there is no control {name!r}; there is {', '.join(self.controls)}")
        try:
            control.value = value
            fits = bool(control.value == value)
        except Exception:  # traitlets has its own class of error for each of its types
            fits = False
        if not fits:
            raise ValueError(f"{name} cannot be {shown(value)}: {_range(control)}")

    def _changed(self, _: Any) -> None:
        # What the function raises goes on to whoever moved the control: to a test, or into the
        # kernel's log. A stop is what the learner wanted, and no error.
        if not self._quiet:
            with contextlib.suppress(KeyboardInterrupt):
                self.run()

    def _say(self, words: str, role: str = "status") -> None:
        self._status.value = STYLE + (  # of one height: what lies below stays where it is
            f'<div role="{role}" style="height:2.7em;line-height:1.3;overflow:auto">{words}</div>'
        )

    def __repr__(self) -> str:
        if self.result is None:
            return str(self.error)
        return self.result if isinstance(self.result, str) else repr(self.result)

    def _ipython_display_(self) -> None:
        data: dict[str, Any] = {"text/plain": repr(self)}
        metadata: dict[str, Any] = {}
        if isinstance(self.result, Picture):
            data, metadata = self.result._repr_mimebundle_()
        elif hasattr(self.result, "_repr_html_"):
            data["text/html"] = self.result._repr_html_()
        view = {"version_major": 2, "version_minor": 0, "model_id": self.panel.model_id}
        data["application/vnd.jupyter.widget-view+json"] = view
        display(data, metadata=metadata, raw=True)


def explore(function: Callable[..., Any], **controls: Any) -> Explorer:
    """Call a function once, then offer controls that call it again and show what it returns.

    Parameters
    ----------
    function : callable
        What to run: an experiment that returns a `figures.Picture`, a text, or an object that
        a notebook shows as HTML; or a generator function that yields one after the other.
    **controls
        A control for each argument, abbreviated as for ``ipywidgets.interact``:
        ``(1, 16)`` or ``(1, 16, 3)`` is a slider, ``True`` a check box, a list or a dictionary
        a slider that stops at each of them; a widget is taken as it is. A default of
        `function` that fits is where the control begins.

    Returns
    -------
    Explorer
        The panel. As a cell's last value it shows itself.

    Raises
    ------
    BaseException
        What `function` raised in this first call. A notebook shows the panel too: another value
        of a control may do.
    TypeError
        When `function` cannot be called, has no such argument, or needs one that has no control.
    ValueError
        When there is no control, or one that is none of the abbreviations.
    """
    name = getattr(function, "__name__", type(function).__name__)
    if not callable(function):
        raise TypeError(f"explore needs a function to call, not {shown(function)}")
    if inspect.iscoroutinefunction(function):
        raise TypeError(f"explore cannot await: make {name} a plain function, with def alone")
    if not controls:
        raise ValueError(f"give a control for an argument of {name}, such as size=(1, 8)")
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # some functions written in C do not say
        raise TypeError(f"explore cannot see the arguments of {name}: wrap it in a def") from None
    named = {
        p.name for p in parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    }
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        for control in controls:
            if control not in named:
                has = f"it has {', '.join(sorted(named))}" if named else "it has none"
                raise TypeError(f"{name} has no argument {control!r}: {has}")
    for parameter in parameters.values():
        unnamed = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        needed = parameter.default is parameter.empty and not unnamed
        if needed and parameter.name not in named:
            raise TypeError(f"{name} takes {parameter.name!r} by place only: wrap it in a def")
        if needed and parameter.name not in controls:
            raise TypeError(f"{name} needs {parameter.name!r}: give explore a control for it")
    built = {
        key: _control(
            key, value, parameters[key].default if key in named else inspect.Parameter.empty
        )
        for key, value in controls.items()
    }
    return Explorer(function, built)


def choice(options: Iterable[Any]) -> ipywidgets.SelectionSlider:
    """Return a control for one of several options, beginning with the first.

    It is a slider because JupyterLab takes the arrow keys away from a drop-down list, and moves
    to another cell: with the keyboard alone nothing could be chosen there.
    """
    slider = ipywidgets.SelectionSlider(options=list(options))
    slider.add_class("gpututor-choice")
    return slider


def room_of(control: Any) -> float:
    """Return how much wider than usual a control's readout is, in em of its text."""
    if not isinstance(control, ipywidgets.SelectionSlider):
        return 0.0
    texts = [str(o[0] if isinstance(o, tuple) else o) for o in control.options]
    return max(0.0, 0.62 * max(map(len, texts)) - 5.5)


def _control(name: str, abbreviation: Any, default: Any) -> Any:
    """Build the control of one argument by the rules of ``interact``."""
    if isinstance(abbreviation, dict):
        abbreviation = list(abbreviation.items())
    if isinstance(abbreviation, list) and len(abbreviation) > 1:
        slider = choice(abbreviation)
        with contextlib.suppress(TraitError):  # a default that is none of them
            slider.value = default
        return slider
    try:
        control = ipywidgets.interactive.widget_from_abbrev(abbreviation, default)
    except Exception as error:  # traitlets has its own class of error for each of its types
        raise ValueError(
            f"no control can be made for {name} of {shown(abbreviation)}: {error}"
        ) from None
    if control is None:
        raise ValueError(
            f"no control for {name} can be made of {shown(abbreviation)}: "
            "give (low, high), a list, a dictionary, True or False, a number, a text, or a widget"
        )
    if not getattr(control, "options", True):
        raise ValueError(f"no control can be made for {name} of {shown(abbreviation)}: it is empty")
    if isinstance(control, ipywidgets.Text):
        control.continuous_update = False  # run when the text is done, not at every letter
    return control


def _results(returned: Any) -> Iterator[Any]:
    """Yield what there is to show: what was returned, or each that a generator yields."""
    if not inspect.isgenerator(returned):
        yield _showable(returned)
        return
    empty = True
    for result in returned:
        empty = False
        yield _showable(result)
    if empty:
        raise TypeError("the function yielded nothing: yield what the panel should show")


def _showable(result: Any) -> Any:
    if isinstance(result, Figure):
        raise TypeError(
            "the function returned a bare figure: return figures.show(figure, alt) instead, "
            "where alt says in words what the figure shows"
        )
    if result is None:
        raise TypeError("the function returned nothing: return what the panel should show")
    return result


def _as_html(result: Any) -> str:
    """Return what the panel shows; of a picture, its words too."""
    if isinstance(result, Picture):
        return result.as_html()
    if hasattr(result, "_repr_html_"):
        return str(result._repr_html_())
    return f"<pre>{html.escape(str(result))}</pre>"


def _options(control: Any, otherwise: list[Any]) -> list[Any]:
    """Return what there is to choose from, where a control offers a choice."""
    options = getattr(control, "options", otherwise)
    return [option[1] if isinstance(option, tuple) else option for option in options]


def _range(control: Any) -> str:
    options = _options(control, [])
    if options:
        return f"choose one of {', '.join(map(repr, options))}"
    if hasattr(control, "base"):
        low, high = (control.base**power for power in (control.min, control.max))
        return f"give a number from {low:g} to {high:g}"
    if hasattr(control, "min"):
        return f"give a number from {control.min} to {control.max}, in steps of {control.step}"
    return f"its control holds a {type(control.value).__name__}"


def _one_line(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # a class of the learner's own
        text = ""
    first = (text.strip().splitlines() or ["no message"])[0]
    if isinstance(error, torch.OutOfMemoryError):
        numbers = first.partition(" Including non-PyTorch memory")[0]
        return f"{numbers} Choose less, or free memory, and run it again."
    return f"{type(error).__name__}: {first}"


def _chain(error: BaseException) -> list[BaseException]:
    """Return an error and all that it came from."""
    found: list[BaseException] = []
    todo: list[BaseException | None] = [error]
    while todo:
        one = todo.pop()
        if one is not None and not any(one is known for known in found):
            found.append(one)
            todo += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    return found


def _let_go(error: BaseException) -> None:
    """Drop the variables of the calls that an error came from.

    A notebook keeps the last error, and with it those variables: their memory would be missing in
    the next run.
    """
    for one in _chain(error):
        traceback.clear_frames(one.__traceback__)
