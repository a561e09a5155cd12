"""From an object to the names that lead to it: variables, lists, closures, tracebacks."""

from __future__ import annotations

import gc
import sys
import types
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

DEPTH = 7  # steps from an object to a name
MOST_NAMES = 6
_OWN = __name__.rpartition(".")[0]


def shell() -> Any:
    """Return IPython's shell, or None outside of it."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def names(groups: Sequence[Sequence[Any]]) -> list[list[str]]:
    """Say for each group of objects which names lead to any of them.

    Returns
    -------
    list of list of str
        At most 6 for each group: the shortest ways.
    """
    roots = _Roots()
    found: list[list[str]] = [[] for _ in groups]
    #: id -> the object, and for each group that it leads to the way from it
    level: dict[int, tuple[Any, dict[int, str]]] = {}
    for number, group in enumerate(groups):
        for item in group:
            level.setdefault(id(item), (item, {}))[1].setdefault(number, "")
    seen = {(number, key) for key, (_, ways) in level.items() for number in ways}
    for _ in range(DEPTH):
        if not level:
            break
        objects = [item for item, _ in level.values()]
        holders = [*gc.get_referrers(*objects), *roots.frames()]
        holders += _functions_of(holders, objects)
        following: dict[int, tuple[Any, dict[int, str]]] = {}
        mine = {id(objects), id(level), id(holders), id(following), id(groups), id(found)}
        mine |= {id(pair) for pair in level.values()} | {id(group) for group in groups}
        for holder in holders:
            if id(holder) in mine or roots.is_own(holder):
                continue
            for key, item in _parts(holder):
                entry = level.get(id(item))
                if entry is None or entry[0] is not item:
                    continue
                for number, way in entry[1].items():
                    text = roots.name(holder, key, way)
                    if text is not None:
                        if len(found[number]) < MOST_NAMES and text and text not in found[number]:
                            found[number].append(text)
                    elif (number, id(holder)) not in seen:
                        ways = following.setdefault(id(holder), (holder, {}))[1]
                        ways.setdefault(number, _step(holder, key, way))
        seen |= {(number, key) for key, (_, ways) in following.items() for number in ways}
        level = {
            key: (item, {n: way for n, way in ways.items() if len(found[n]) < MOST_NAMES})
            for key, (item, ways) in following.items()
        }
        level = {key: entry for key, entry in level.items() if entry[1]}
        del objects, holders, following
    return found


def _functions_of(holders: list[Any], objects: list[Any]) -> list[Any]:
    """Return the functions whose closures hold cells among `objects`."""
    cells = {id(item) for item in objects if type(item) is types.CellType}
    if not cells:
        return []
    closures = [
        holder
        for holder in holders
        if type(holder) is tuple and any(id(item) in cells for item in holder)
    ]
    found = gc.get_referrers(*closures) if closures else []
    return [function for function in found if type(function) is types.FunctionType]


class _Key:
    """How an object is in its holder: an attribute, an item, a variable."""

    __slots__ = ("kind", "value")

    def __init__(self, kind: str, value: Any) -> None:
        self.kind = kind
        self.value = value


def _parts(holder: Any) -> Iterator[tuple[_Key, Any]]:
    """Return what an object holds directly, with how."""
    kind = type(holder)
    if isinstance(holder, dict):
        for name, item in list(holder.items()):
            yield _Key("item", name), item
            yield _Key("key", name), name
    elif isinstance(holder, (list, tuple, deque)):
        for place, item in enumerate(list(holder)):
            yield _Key("item", place), item
    elif isinstance(holder, (set, frozenset)):
        for item in list(holder):
            yield _Key("element", None), item
    elif kind is types.CellType:
        try:
            yield _Key("cell", None), holder.cell_contents
        except ValueError:
            return
    elif kind is types.FrameType:
        for name, item in list(holder.f_locals.items()):
            yield _Key("local", name), item
    elif kind is types.FunctionType:
        cells = zip(holder.__code__.co_freevars, holder.__closure__ or (), strict=False)
        for name, cell in cells:
            yield _Key("closure", name), cell
        for item in holder.__defaults__ or ():
            yield _Key("default", None), item
        yield _Key("defaults", None), holder.__defaults__
    elif kind is types.MethodType:
        yield _Key("self", None), holder.__self__
    elif kind is types.GeneratorType and holder.gi_frame is not None:
        for name, item in list(holder.gi_frame.f_locals.items()):
            yield _Key("local", name), item
    elif not isinstance(holder, (type, types.ModuleType)):
        attributes = getattr(holder, "__dict__", None)
        if isinstance(attributes, dict):
            yield _Key("dict", None), attributes
            for name, item in list(attributes.items()):
                yield _Key("attribute", name), item


def _step(holder: Any, key: _Key, way: str) -> str:
    """Return the way from `holder`, given the way from what it holds."""
    if key.kind == "item":
        plain = isinstance(key.value, (str, int, float, bool, type(None)))
        return f"[{key.value!r:.40}]{way}" if plain else f"[…]{way}"
    if key.kind == "attribute":
        return f".{key.value}{way}"
    if key.kind == "element":
        return f" (a set's element){way}"
    if key.kind == "key":
        return f" (a key){way}"
    if key.kind == "dict":
        return way.replace("['", ".", 1).replace("']", "", 1) if way.startswith("['") else way
    return way


class _Roots:
    """The places that have names of their own: modules, running functions, the notebook."""

    def __init__(self) -> None:
        self._modules = {
            id(vars(module)): name
            for name, module in sorted(sys.modules.items(), reverse=True)  # __main__ last
            if isinstance(module, types.ModuleType) and not name.startswith(_OWN)
        }
        self._shell = shell()
        self._hidden: set[int] = set()
        if self._shell is not None:
            self._modules[id(self._shell.user_ns)] = "__main__"
            self._hidden.add(id(self._shell.user_ns_hidden))
            self._hidden.add(id(self._shell.user_global_ns))
            self._hidden.discard(id(self._shell.user_ns))
            self._out = id(self._shell.user_ns.get("Out"))
        self._tracebacks = dict(_last_traceback())
        self._running = {id(frame): frame for frame in _running()}
        self._locals: dict[int, types.FrameType] = {}
        for frame in (*self._running.values(), *self._tracebacks.values()):
            if frame.f_code.co_name != "<module>":
                self._locals[id(frame.f_locals)] = frame

    def frames(self) -> list[types.FrameType]:
        """Return the frames of running functions and of the last traceback."""
        found = (*self._running.values(), *self._tracebacks.values())
        return [frame for frame in found if frame.f_code.co_name != "<module>"]

    def is_own(self, holder: Any) -> bool:
        """Tell whether this search itself made `holder`."""
        if isinstance(holder, types.FrameType):
            return str(holder.f_globals.get("__name__", "")).startswith(_OWN)
        return id(holder) in self._hidden or holder is self.__dict__

    def name(self, holder: Any, key: _Key, way: str) -> str | None:
        """Return the name that ends a way, ``""`` for one to leave out, or None to go on."""
        if isinstance(holder, dict):
            if self._shell is not None and id(holder) == self._out:
                return f"Out[{key.value}]{way}, the notebook's memory of a cell's result"
            module = self._modules.get(id(holder))
            if module is not None:
                return self._variable(module, key, way)
            frame = self._locals.get(id(holder))
            if frame is not None:
                return self._local(frame, key, way)
        if isinstance(holder, types.FrameType):
            if holder.f_code.co_name == "<module>":
                return ""
            return self._local(holder, key, way)
        if isinstance(holder, types.FunctionType) and key.kind == "closure":
            return f"the closure of {holder.__qualname__}(): {key.value}{_at(way)}"
        if isinstance(holder, types.FunctionType):
            return f"a default argument of {holder.__qualname__}(){_at(way)}"
        if isinstance(holder, types.GeneratorType):
            return f"the paused generator {holder.__qualname__}(): {key.value}{_at(way)}"
        return None

    def _variable(self, module: str, key: _Key, way: str) -> str:
        name = str(key.value)
        if key.kind != "item":
            return ""
        kept = name in ("_", "__", "___") or (name[:1] == "_" and name[1:].isdigit())
        if kept and self._shell is not None and module == "__main__":
            return f"{name}, the notebook's memory of a cell's result{_at(way)}"
        where = "" if module == "__main__" else f" of the module {module}"
        if module == "sys" and name in ("last_value", "last_exc"):
            return ""  # its frames are named one by one
        if way:
            return f"the variable {_tidy(name + way)}{where}"
        return f"the variable {name}{where}"

    def _local(self, frame: types.FrameType, key: _Key, way: str) -> str:
        if str(frame.f_globals.get("__name__", "")).startswith(_OWN):
            return ""
        what = f"{_tidy(f'{key.value}{way}')} in {frame.f_code.co_name}()"
        if id(frame) in self._tracebacks:
            return f"the last traceback: {what}, line {frame.f_lineno}"
        if id(frame) in self._running:
            return f"the variable {what}, which is running"
        return f"an exception's traceback: {what}, line {frame.f_lineno}"


def _tidy(way: str) -> str:
    """Write a module's parameter as it is read: ``net.weight``."""
    for name in ("_parameters", "_buffers", "_modules"):
        while f".{name}['" in way:
            before, after = way.split(f".{name}['", 1)
            key, rest = after.split("']", 1)
            way = f"{before}.{key}{rest}"
    return way


def _at(way: str) -> str:
    return f", at {way.lstrip()}" if way else ""


def _running() -> Iterator[types.FrameType]:
    for frame in sys._current_frames().values():
        current: types.FrameType | None = frame
        while current is not None:
            yield current
            current = current.f_back


def _last_traceback() -> Iterator[tuple[int, types.FrameType]]:
    """Return the frames of the last error that nobody caught."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    tracebacks = [getattr(sys, "last_traceback", None)]
    while error is not None:
        tracebacks.append(error.__traceback__)
        error = error.__cause__ or error.__context__
    for traceback in tracebacks:
        while traceback is not None:
            yield id(traceback.tb_frame), traceback.tb_frame
            traceback = traceback.tb_next
