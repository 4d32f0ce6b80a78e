"""Turns plain callables into functions, and detects how the methods of a function emit records.

PyFlink's methods return an iterable or yield. Methods in the style of Flink's Java API get a collector as their last
argument:

    def flat_map(self, value, out):
        out.collect(value)

Both styles are accepted. The parameters of a method decide its style.
"""

from __future__ import annotations

import functools
import inspect
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from opchain.runtime.errors import short_repr
from opchain.runtime.functions.async_functions import AsyncFunction
from opchain.runtime.functions.function import Function
from opchain.runtime.functions.key_selectors import KeySelector, Partitioner
from opchain.runtime.functions.record_functions import (
    AggregateFunction,
    CoGroupFunction,
    CoMapFunction,
    DeltaFunction,
    FilterFunction,
    FlatJoinFunction,
    FlatMapFunction,
    JoinFunction,
    MapBatchesFunction,
    MapFunction,
    MapPartitionFunction,
    ReduceFunction,
)
from opchain.runtime.functions.source_sink_functions import SinkFunction
from opchain.runtime.functions.window import AllWindowFunction, WindowFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


F = TypeVar("F", bound=Function)


class _Method(NamedTuple):
    """The one method that a callable can implement, and the arguments of the method."""

    name: str
    arguments: tuple[str, ...]


_METHODS: dict[type[Function], _Method] = {
    MapFunction: _Method("map", ("value",)),
    FlatMapFunction: _Method("flat_map", ("value",)),
    FilterFunction: _Method("filter", ("value",)),
    ReduceFunction: _Method("reduce", ("value1", "value2")),
    KeySelector: _Method("get_key", ("value",)),
    Partitioner: _Method("partition", ("key", "num_partitions")),
    JoinFunction: _Method("join", ("first", "second")),
    FlatJoinFunction: _Method("join", ("first", "second")),
    CoGroupFunction: _Method("co_group", ("first", "second")),
    WindowFunction: _Method("apply", ("key", "window", "inputs")),
    AllWindowFunction: _Method("apply", ("window", "inputs")),
    AsyncFunction: _Method("async_invoke", ("value",)),
    DeltaFunction: _Method("get_delta", ("old_data_point", "new_data_point")),
    SinkFunction: _Method("invoke", ("value",)),
    MapPartitionFunction: _Method("map_partition", ("values",)),
    MapBatchesFunction: _Method("map_batches", ("batch",)),
}


_OF_ONE_RESULT: dict[type[Function], tuple[str, ...]] = {
    MapFunction: ("map",),
    CoMapFunction: ("map1", "map2"),
    FilterFunction: ("filter",),
    ReduceFunction: ("reduce",),
    AggregateFunction: ("create_accumulator", "add", "get_result", "merge"),
    KeySelector: ("get_key",),
    Partitioner: ("partition",),
    JoinFunction: ("join",),
    DeltaFunction: ("get_delta",),
    SinkFunction: ("invoke",),
}
"""Methods that return one value, or None. If such a method contains a `yield`, calling it does not run its code."""


_EACH_RECORD = frozenset(
    {
        *(
            "map",
            "map1",
            "map2",
            "flat_map",
            "flat_map1",
            "flat_map2",
            "filter",
            "reduce",
            "get_key",
        ),
        *("add", "process_element", "process_element1", "process_element2", "extract_timestamp"),
        *("partition", "join", "apply", "process", "async_invoke"),
    }
)
"""Methods that every job with records calls. Others, such as `on_timer` and `merge`, may never be called."""


class CallableFunction(Function):
    """A plain callable as a Function of some kind. Created by `as_function`.

    The callable itself is the method, so it is called directly.
    """

    _kind: type[Function]

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __repr__(self) -> str:
        return f"{self._kind.__name__}({name_of(self.function)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_function, (self._kind, self.function)


def as_function(kind: type[F], function: object, where: str = "") -> F:
    """Returns the function itself if it is an instance of `kind`, else wraps the callable in a Function.

    >>> as_function(MapFunction, str.upper).map("a")
    'A'

    Args:
        kind: The class of the function: MapFunction, KeySelector, ... A callable cannot replace a ProcessFunction.
        function: The user's function or callable.
        where: The start of error messages, such as `map 'parse' (clicks.py:14)`.

    Raises:
        TypeError: The function is neither an instance of `kind` nor a callable; it is a class; it is a coroutine
            function but must not be one, or the other way round; or it has other parameters.
    """
    start = f"{where}: " if where else ""
    if isinstance(function, kind):
        problem = generator_problem(function) or parameters_problem(function, kind)
        if problem is not None:
            raise TypeError(f"{start}{problem}")
        return function
    if inspect.isclass(function) and issubclass(function, Function):
        name = function.__name__
        raise TypeError(f"{start}{name} is a class; pass an instance, such as {name}()")
    method = _METHODS.get(kind)
    if method is None or not callable(function) or isinstance(function, Function):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        wanted = f"{article} {kind.__name__}{' or a callable' if method else ''}"
        found = f"{type(function).__name__} {short_repr(function)}"
        advice = ""
        if kind is KeySelector and isinstance(function, (str, int)):
            advice = f"; pass a function, such as lambda record: record[{function!r}]"
        raise TypeError(f"{start}expected {wanted}, got {found}{advice}")
    _check_is_async(function, kind, start)
    if kind in _OF_ONE_RESULT and _is_generator(function):
        raise TypeError(f"{start}{_generator_text(function, kind)}")
    problem = _problem_of(function, method)
    if problem is not None:
        raise TypeError(f"{start}{problem}")
    return cast("F", _class_of(kind)(function))


def name_of(function: object) -> str:
    """The name of a function in plans, metrics and messages.

    >>> name_of(str.upper), name_of(lambda value: value), name_of(functools.partial(int, base=2))
    ('upper', 'lambda', 'int')
    """
    if isinstance(function, CallableFunction):
        return name_of(function.function)
    if isinstance(function, functools.partial):
        return name_of(function.func)
    name = getattr(function, "__name__", None)
    if not isinstance(name, str):
        return type(function).__name__
    owner = getattr(function, "__self__", None)
    if inspect.ismethod(function):
        return f"{owner.__name__ if inspect.isclass(owner) else type(owner).__name__}.{name}"
    return "lambda" if name == "<lambda>" else name


@functools.cache
def _class_of(kind: type[Function]) -> type[CallableFunction]:
    body: dict[str, Any] = {"_kind": kind, "__doc__": CallableFunction.__doc__}
    if kind is SinkFunction:
        body["invoke"] = lambda self, value, context: self.function(value)  # noqa: ARG005
    else:
        body[_METHODS[kind].name] = property(attrgetter("function"))
    return type(f"Callable{kind.__name__}", (CallableFunction, kind), body)


def _check_is_async(function: Callable[..., Any], kind: type[Function], start: str) -> None:
    is_async = inspect.iscoroutinefunction(function)
    if is_async and kind is not AsyncFunction:
        raise TypeError(
            f"{start}'{name_of(function)}' is a coroutine function, and {kind.__name__} "
            f"functions are not awaited; use AsyncDataStream"
        )
    if not is_async and kind is AsyncFunction:
        raise TypeError(
            f"{start}'{name_of(function)}' is not a coroutine function; declare it with 'async def' "
            "(and call blocking code in it with 'await asyncio.to_thread(...)')"
        )


def generator_problem(function: object) -> str | None:
    """The error text for a method that must return one result but is a generator function. None if no method is one."""
    for kind, names in _OF_ONE_RESULT.items():
        if not isinstance(function, kind) or isinstance(function, CallableFunction):
            continue
        for name in names:
            method = getattr(function, name, None)
            if _is_generator(method):
                return _generator_text(method, kind)
    return None


def parameters_problem(function: object, *kinds: type) -> str | None:
    """The error text for a method with other parameters than in the class that declares it. None if there is none."""
    for kind in kinds:
        if not isinstance(function, kind) or isinstance(function, CallableFunction):
            continue
        for name in sorted(_EACH_RECORD):
            declared, method = getattr(kind, name, None), getattr(function, name, None)
            if declared is None or not inspect.ismethod(method) or method.__func__ is declared:
                continue
            arguments = tuple(inspect.signature(declared).parameters)[1:]
            if takes_collector(function, name):
                arguments += ("out",)
            problem = _problem_of(method, _Method(name, arguments))
            if problem is not None:
                return problem
    return None


def _is_generator(function: object) -> bool:
    if not (inspect.isroutine(function) or isinstance(function, functools.partial)):
        function = getattr(type(function), "__call__", None)  # noqa: B004 - the method is looked at
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


def _generator_text(function: object, kind: type[Function]) -> str:
    text = f"'{name_of(function)}' is a generator function (it has a 'yield'), and"
    if kind is SinkFunction:
        return f"{text} a SinkFunction returns nothing: a call would run nothing of it; remove the 'yield'"
    return (
        f"{text} {'an' if kind is AggregateFunction else 'a'} {kind.__name__} returns one result: return it, or use "
        "flat_map or process for several"
    )


def _problem_of(function: Callable[..., Any], method: _Method) -> str | None:
    """The error text for a callable that does not take the arguments of a method."""
    try:
        # A decorator's wrapper may pass more arguments than it gets.
        signature = inspect.signature(function, follow_wrapped=False)
    except ValueError:  # some built-ins, such as int, have no signature
        return None
    try:
        signature.bind(*method.arguments)
    except TypeError as error:
        return (
            f"'{name_of(function)}{signature}' can't be called with "
            f"({', '.join(method.arguments)}): {error}"
        )
    return None


_EMITTING_METHODS = (
    *("flat_map", "flat_map1", "flat_map2", "map_partition"),
    *("process_element", "process_element1", "process_element2", "process_broadcast_element"),
    *("on_timer", "process", "apply", "join", "co_group"),
)


class Collector:
    """Collects the records that a call of a function emits. Flink: `Collector`."""

    __slots__ = ("_records",)

    def __init__(self) -> None:
        self._records: list[Any] = []

    def collect(self, record: Any) -> None:
        """Emits a record. A tuple of an OutputTag and a record is emitted to that side output."""
        self._records.append(record)

    def close(self) -> None:
        """Does nothing: collected records are emitted when the function returns."""

    def records(self) -> list[Any]:
        """The collected records, in order."""
        return self._records


class ReturnsCollected:
    """Wraps a method with a collector parameter. The wrapper creates the collector and returns the collected records.

    Records that the method returns or yields are appended.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method

    @property
    def __func__(self) -> Any:
        """The function of the method, as a bound method has it."""
        return getattr(self._method, "__func__", self._method)

    def __call__(self, *arguments: Any) -> Iterable[Any]:
        """The records that one call emits."""
        collector = Collector()
        returned = self._method(*arguments, collector)
        if returned is None:
            return collector.records()
        yielded = list(returned)
        return [*collector.records(), *yielded]


def accept_collectors(function: Any) -> None:
    """Wraps all methods of a function that have a collector parameter, so that they return their records.

    Only this object changes, which is the copy of one subtask.
    """
    for name in _EMITTING_METHODS:
        if _takes_one_more(type(function), name):
            method = getattr(function, name)
            if not isinstance(method, ReturnsCollected):
                object.__setattr__(function, name, ReturnsCollected(method))


def takes_collector(function: Any, name: str) -> bool:
    """Whether the last parameter of the method is a collector."""
    return name in _EMITTING_METHODS and _takes_one_more(type(function), name)


def _takes_one_more(kind: type, name: str) -> bool:
    """Whether a class's method has one parameter more than the same method of its base class.

    A JoinFunction has no collector in Flink either: it returns its one result.
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
