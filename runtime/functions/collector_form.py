"""Functions in the form of Flink's Java API, which get a collector as their last argument.

    def flat_map(self, value, out):
        out.collect(value)

PyFlink's return an iterable, or yield. Here both run: which one a method has is read off its parameters.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.join_functions import JoinFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_EMITTING_METHODS = (
    *("flat_map", "flat_map1", "flat_map2", "map_partition"),
    *("process_element", "process_element1", "process_element2", "process_broadcast_element"),
    *("on_timer", "process", "apply", "join", "co_group"),
)


class Collector:
    """Keeps what a call of a function emits. Flink: `Collector`."""

    __slots__ = ("_records",)

    def __init__(self) -> None:
        self._records: list[Any] = []

    def collect(self, record: Any) -> None:
        """Emits a record; a pair of an OutputTag and a record goes to that side output."""
        self._records.append(record)

    def close(self) -> None:
        """Does nothing: what was collected is emitted when the function returns."""

    def records(self) -> list[Any]:
        """What was collected, in order."""
        return self._records


class ReturnsCollected:
    """A method that takes a collector, called without one: it returns what was collected.

    What it returns or yields besides comes behind that.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method

    def __call__(self, *arguments: Any) -> Iterable[Any]:
        """What one call emits."""
        collector = Collector()
        returned = self._method(*arguments, collector)
        if returned is None:
            return collector.records()
        yielded = list(returned)
        return [*collector.records(), *yielded]


def accept_collectors(function: Any) -> None:
    """Replaces the methods of a function that take a collector by such that return what they emit.

    Only this object changes: it is the subtask's own.
    """
    for name in _EMITTING_METHODS:
        if _takes_one_more(type(function), name):
            method = getattr(function, name)
            if not isinstance(method, ReturnsCollected):
                object.__setattr__(function, name, ReturnsCollected(method))


def _takes_one_more(kind: type, name: str) -> bool:
    """Whether a class's method needs one argument more than where it was first declared.

    A JoinFunction returns its one result, in Flink too.
    """
    if issubclass(kind, JoinFunction):
        return False
    declared = [vars(ancestor)[name] for ancestor in kind.__mro__ if name in vars(ancestor)]
    if len(declared) < 2 or not all(map(inspect.isfunction, declared)):  # noqa: PLR2004
        return False
    return _required(declared[0]) == _required(declared[-1]) + 1


def _required(method: Any) -> int:
    return sum(
        parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        for parameter in inspect.signature(method).parameters.values()
    )
