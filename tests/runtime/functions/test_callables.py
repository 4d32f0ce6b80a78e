from __future__ import annotations

import functools
import pickle
from typing import Any

import cloudpickle
import pytest

from opchain.runtime.functions.async_functions import AsyncFunction
from opchain.runtime.functions.callables import as_function, name_of
from opchain.runtime.functions.key_selectors import KeySelector, Partitioner
from opchain.runtime.functions.process_functions import ProcessFunction
from opchain.runtime.functions.record_functions import (
    AggregateFunction,
    CoGroupFunction,
    DeltaFunction,
    FilterFunction,
    FlatJoinFunction,
    FlatMapFunction,
    JoinFunction,
    MapFunction,
    ReduceFunction,
)
from opchain.runtime.functions.source_sink_functions import SinkFunction
from opchain.runtime.functions.window import AllWindowFunction, WindowFunction


class Double(MapFunction[int, int]):
    def map(self, value: int) -> int:
        return 2 * value

    def method(self, value: int) -> int:
        return 3 * value

    @classmethod
    def built(cls, value: int) -> int:
        return 4 * value


class Adder:
    def __call__(self, left: int, right: int) -> int:
        return left + right


def parse(value: str) -> int:
    return int(value)


async def look_up(value: str) -> list[str]:
    return [value]


def pair(*values: Any) -> tuple[Any, ...]:
    return values


# class -> (method, arguments)
KINDS: dict[Any, tuple[str, tuple[Any, ...]]] = {
    MapFunction: ("map", (1,)),
    FlatMapFunction: ("flat_map", (1,)),
    FilterFunction: ("filter", (1,)),
    ReduceFunction: ("reduce", (1, 2)),
    KeySelector: ("get_key", (1,)),
    Partitioner: ("partition", (1, 2)),
    JoinFunction: ("join", (1, 2)),
    FlatJoinFunction: ("join", (1, 2)),
    CoGroupFunction: ("co_group", ([1], [2])),
    WindowFunction: ("apply", (1, 2, [3])),
    AllWindowFunction: ("apply", (1, [2])),
    DeltaFunction: ("get_delta", (1, 2)),
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_callable_replaces_the_method_of_the_function(kind: Any) -> None:
    method, arguments = KINDS[kind]
    function = as_function(kind, pair)
    assert isinstance(function, kind)
    assert getattr(function, method) is pair
    assert getattr(function, method)(*arguments) == arguments
    function.open(None)
    function.close()


def test_a_callable_as_a_sink_gets_only_the_value() -> None:
    seen: list[int] = []
    as_function(SinkFunction, seen.append).invoke(5, None)  # type: ignore[arg-type]
    assert seen == [5]


def test_a_coroutine_function_becomes_an_async_function() -> None:
    assert as_function(AsyncFunction, look_up).async_invoke is look_up


def test_an_instance_of_the_class_is_used_unchanged() -> None:
    double = Double()
    assert as_function(MapFunction, double) is double


@pytest.mark.parametrize(
    "function", [int, str.upper, len, functools.partial(parse), Double().method]
)
def test_any_callable_is_accepted(function: Any) -> None:
    assert as_function(MapFunction, function).map("1") == function("1")


def test_a_wrapped_callable_can_be_pickled() -> None:
    function = as_function(MapFunction, parse)
    copy = pickle.loads(pickle.dumps(function))
    assert isinstance(copy, MapFunction)
    assert copy.map("3") == 3
    inline = cloudpickle.loads(cloudpickle.dumps(as_function(ReduceFunction, lambda a, b: a - b)))
    assert inline.reduce(5, 3) == 2


NAMES: list[tuple[Any, str]] = [
    (parse, "parse"),
    (lambda value: value, "lambda"),
    (int, "int"),
    (str.upper, "upper"),
    (functools.partial(parse), "parse"),
    (functools.partial(functools.partial(int, base=2)), "int"),
    (Double(), "Double"),
    (Double().method, "Double.method"),
    (Double.built, "Double.built"),
    (Adder(), "Adder"),
    (as_function(MapFunction, parse), "parse"),
    (as_function(ReduceFunction, Adder()), "Adder"),
]


@pytest.mark.parametrize(("function", "name"), NAMES, ids=[name for _, name in NAMES])
def test_functions_have_names_for_the_plan(function: Any, name: str) -> None:
    assert name_of(function) == name


def test_the_repr_shows_class_and_name() -> None:
    assert repr(as_function(MapFunction, parse)) == "MapFunction(parse)"


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "not callable": (
        MapFunction,
        [1, 2],
        r"expected a MapFunction or a callable, got list \[1, 2\]",
    ),
    "None": (KeySelector, None, r"expected a KeySelector or a callable, got NoneType None"),
    "another kind": (
        FilterFunction,
        Double(),
        r"expected a FilterFunction or a callable, got Double",
    ),
    "a class": (
        MapFunction,
        Double,
        r"Double is a class; pass an instance, such as Double\(\)",
    ),
    "a process function can't be a callable": (
        ProcessFunction,
        parse,
        r"expected a ProcessFunction, got function",
    ),
    "nor an aggregate function": (AggregateFunction, sum, r"expected an AggregateFunction, got"),
    "a coroutine function": (
        MapFunction,
        look_up,
        r"'look_up' is a coroutine function, and MapFunction functions are not awaited",
    ),
    "no coroutine function": (AsyncFunction, parse, r"'parse' is not a coroutine function"),
    "too many parameters": (
        MapFunction,
        lambda a, b: a,
        r"'lambda\(a, b\)' can't be called with \(value\): missing a required argument: 'b'",
    ),
    "too few parameters": (
        ReduceFunction,
        lambda a: a,
        r"'lambda\(a\)' can't be called with \(value1, value2\): too many positional arguments",
    ),
}


@pytest.mark.parametrize(("kind", "function", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_the_error_about_an_object_that_is_not_callable_names_the_place(
    kind: Any, function: Any, message: str
) -> None:
    with pytest.raises(TypeError, match=rf"^map \(clicks.py:14\): {message}"):
        as_function(kind, function, "map (clicks.py:14)")
    with pytest.raises(TypeError, match=rf"^{message}"):
        as_function(kind, function)


def several(value: Any, other: Any = None) -> Any:
    yield value
    yield other


class Several(MapFunction[int, int]):
    def map(self, value: int) -> Any:
        yield value


@pytest.mark.parametrize("kind", [MapFunction, FilterFunction, KeySelector, ReduceFunction])
def test_a_generator_function_is_refused_where_one_result_is_expected(kind: Any) -> None:
    with pytest.raises(
        TypeError, match=r"map \(a.py:1\): 'several' is a generator function .* flat_map"
    ):
        as_function(kind, several, "map (a.py:1)")
    with pytest.raises(TypeError, match="is a generator function"):
        as_function(kind, functools.partial(several, other=1))


def test_a_method_that_is_a_generator_function_is_refused() -> None:
    with pytest.raises(TypeError, match=r"'Several\.map' is a generator function"):
        as_function(MapFunction, Several())
    assert as_function(FlatMapFunction, several).flat_map is several
