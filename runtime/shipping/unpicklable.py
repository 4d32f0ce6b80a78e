"""Finds the captured variable or attribute because of which a function cannot be pickled.

Pickle names the type of what it refuses, not the way there. The search goes down from the function, at
each step into the first part that cannot be pickled by itself, and notes the steps.
"""

from __future__ import annotations

import contextlib
import functools
import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import short_repr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MOST_STEPS = 50
"""A way that is longer is cut: structures that contain themselves have no end."""


@dataclass(frozen=True, slots=True)
class Unpicklable:
    """The culprit: the steps to it, its value, and what pickle says of it."""

    steps: tuple[str, ...]
    value: Any
    reason: str

    @property
    def way(self) -> str:
        """The steps as text; empty where the searched value is the culprit itself."""
        return ", ".join(self.steps)


def find_unpicklable(value: Any, dump: Callable[[Any], object]) -> Unpicklable | None:
    """What keeps a value from being pickled, None where `dump` takes it."""
    failure = _failure(value, dump)
    if failure is None:
        return None
    steps: list[str] = []
    seen = {id(value)}
    while len(steps) < MOST_STEPS:
        for step, part in _parts(value):
            if id(part) in seen:
                continue
            reason = _failure(part, dump)
            if reason is not None:
                steps.append(step)
                seen.add(id(part))
                value, failure = part, reason
                break
        else:
            break
    return Unpicklable(tuple(steps), value, failure)


def _failure(value: Any, dump: Callable[[Any], object]) -> str | None:
    try:
        dump(value)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a value's own __reduce__ may raise anything
        return f"{type(error).__name__}: {error}"
    return None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """What pickle would write for a value, each part with the step that leads there."""
    for kind, parts in _PARTS:
        if isinstance(value, kind):
            return parts(value)
    return _parts_of_object(value)


def _parts_of_method(method: types.MethodType) -> Iterator[tuple[str, Any]]:
    yield f"the object of its method '{method.__name__}'", method.__self__
    yield f"its method '{method.__name__}'", method.__func__


def _parts_of_partial(call: functools.partial[Any]) -> Iterator[tuple[str, Any]]:
    yield "the function of its partial()", call.func
    for number, argument in enumerate(call.args):
        yield f"argument {number} of its partial()", argument
    for name, argument in call.keywords.items():
        yield f"argument '{name}' of its partial()", argument


def _parts_of_dict(items: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    for key, item in items.items():
        yield f"item [{short_repr(key, 40)}]", item
        yield f"key {short_repr(key, 40)}", key


def _parts_of_collection(items: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    for number, item in enumerate(items):
        yield f"item [{number}]", item


def _parts_of_class(cls: type) -> Iterator[tuple[str, Any]]:
    for name, attribute in list(vars(cls).items()):
        if not name.startswith("__") or isinstance(attribute, types.FunctionType):
            yield f"class attribute '{name}'", attribute


def _parts_of_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        # A cell whose variable is not assigned yet raises instead.
        with contextlib.suppress(ValueError):
            yield f"captured variable '{name}'", cell.cell_contents
    for name in _global_names(function.__code__):
        if name in function.__globals__:
            yield f"global variable '{name}'", function.__globals__[name]
    for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield "the default of a parameter", default


def _global_names(code: types.CodeType) -> Iterator[str]:
    """Names that a function, or one defined inside it, may read from its module."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)


def _parts_of_object(value: Any) -> Iterator[tuple[str, Any]]:
    """The state that the object hands to pickle; nothing where it refuses to."""
    try:
        reduced = value.__reduce_ex__(5)
    except Exception:  # noqa: BLE001 - then the object is the culprit, and its error is the reason
        return
    if not isinstance(reduced, tuple):
        return
    arguments, state, items = (*reduced[1:4], None, None)[:3]
    for number, argument in enumerate(arguments or ()):
        if not isinstance(argument, type):
            yield f"constructor argument {number}", argument
    yield from _parts_of_state(state)
    for number, item in enumerate(items or ()):
        yield f"item [{number}]", item
    yield "its class", type(value)


def _parts_of_state(state: Any) -> Iterator[tuple[str, Any]]:
    # With __slots__, the state is a pair: the instance's dictionary, and its slots.
    for attributes in state if isinstance(state, tuple) else (state,):
        if isinstance(attributes, dict):
            for name, attribute in attributes.items():
                yield f"attribute '{name}'", attribute
        elif attributes is not None:
            yield "state", attributes


_PARTS: tuple[tuple[Any, Callable[[Any], Iterator[tuple[str, Any]]]], ...] = (
    (types.FunctionType, _parts_of_function),
    (types.MethodType, _parts_of_method),
    (functools.partial, _parts_of_partial),
    (dict, _parts_of_dict),
    ((list, tuple, set, frozenset), _parts_of_collection),
    (type, _parts_of_class),
)
