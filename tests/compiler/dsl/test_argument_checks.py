from __future__ import annotations

import functools
from typing import Any

import pytest

from opchain.common.serialization import Encoder
from opchain.compiler.dsl.argument_checks import at_call, checked, checked_function, checked_stream
from opchain.datastream import (
    CoMapFunction,
    DataStream,
    KeyedProcessFunction,
    KeyedStream,
    MapFunction,
    ProcessFunction,
    StreamExecutionEnvironment,
)
from opchain.datastream.connectors.base import Sink, Source
from opchain.datastream.connectors.file_system import FileSink, FileSource, StreamFormat
from opchain.datastream.connectors.number_seq import NumberSequenceSource
from opchain.datastream.functions import SinkFunction, SourceFunction
from opchain.runtime.errors import GraphError

LINES = StreamFormat.text_line_format()


class Double(MapFunction[int, int]):
    def map(self, value: int) -> int:
        return 2 * value


class PassOn(ProcessFunction[int, int]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        yield value


def test_an_error_begins_with_the_call_and_the_users_line() -> None:
    assert at_call("map").startswith("map() (test_argument_checks.py:")


def test_checked_function_accepts_an_object_of_the_class() -> None:
    function = Double()
    assert checked_function(function, MapFunction, "map") is function
    assert checked_function(function, (CoMapFunction, MapFunction), "map") is function


def test_checked_function_accepts_a_callable_if_callables_are_allowed() -> None:
    assert checked_function(abs, MapFunction, "map", callables=True) is abs


class Collecting(SinkFunction[Any]):
    def invoke(self, value: Any, context: Any) -> None: ...


@pytest.mark.parametrize(
    ("argument", "kind", "call", "other"),
    [
        (FileSink.for_row_format("out", Encoder.simple_string_encoder()).build(), SinkFunction, "add_sink", "sink_to"),
        (Collecting(), Sink, "sink_to", "add_sink"),
        (NumberSequenceSource(1, 2), SourceFunction, "add_source", "from_source"),
    ],
)  # fmt: skip
def test_a_sink_or_source_of_the_other_kind_has_its_own_call(
    argument: Any, kind: type, call: str, other: str
) -> None:
    with pytest.raises(TypeError, match=rf"it takes a {kind.__name__}; pass it to {other}\(\)"):
        checked_function(argument, kind, call)


class WithoutContext(ProcessFunction[Any, Any]):
    """A function whose method has too few parameters."""

    def process_element(self, value: Any) -> Any:  # type: ignore[override]
        yield value


def passing_more(method: Any) -> Any:
    """A decorator whose wrapper passes one more argument."""

    @functools.wraps(method)
    def wrapper(*arguments: Any) -> Any:
        return method(*arguments, 7)

    return wrapper


class TakesMore(MapFunction[Any, Any]):
    """Its decorator adds an argument."""

    @passing_more
    def map(self, value: Any, more: Any) -> Any:  # type: ignore[override]
        return value + more


class Collects(ProcessFunction[Any, Any]):
    """Has a collector, as in Java, and a default."""

    def process_element(self, value: Any, ctx: Any, out: Any) -> Any:  # type: ignore[override]
        out.collect(value)


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (TakesMore(), MapFunction),
        (passing_more(lambda value, more: value + more), MapFunction),
        (Collects(), ProcessFunction),
    ],
)
def test_checked_function_accepts_compatible_parameters(function: Any, kind: Any) -> None:
    assert checked_function(function, kind, "call", callables=True) is function


@pytest.mark.parametrize(
    ("function", "accepted", "callables", "message"),
    [
        (5, MapFunction, True, "expected a MapFunction or a callable, got int 5"),
        (None, MapFunction, True, "expected a MapFunction or a callable, got NoneType None"),
        (Double, MapFunction, True, "Double is a class; pass an instance, such as Double()"),
        (PassOn(), MapFunction, True, "expected a MapFunction or a callable, got PassOn"),
        (lambda a, b: a, MapFunction, True, "can't be called with"),
        (
            WithoutContext(),
            *(ProcessFunction, False),
            r"'WithoutContext.process_element.*' can't be called with \(value, ctx\): too many positional",
        ),
        (5, ProcessFunction, False, "got 5 of type int; it takes a ProcessFunction"),
        (None, ProcessFunction, False, "got None; it takes a ProcessFunction"),
        (PassOn, ProcessFunction, False, "got the class PassOn; .* pass an object, PassOn"),
        (
            lambda a: a,
            ProcessFunction,
            False,
            "got the function lambda; it takes a ProcessFunction",
        ),
        (abs, ProcessFunction, False, "it takes a ProcessFunction: write a subclass"),
        (
            FileSource.for_record_stream_format(LINES, "in"),
            Source,
            False,
            r"Source: call build\(\) first",
        ),
        (
            5,
            (ProcessFunction, KeyedProcessFunction),
            False,
            "it takes a ProcessFunction or a KeyedProcessFunction",
        ),
    ],
)
def test_checked_function_names_the_accepted_kinds_in_its_error(
    function: Any, accepted: Any, callables: bool, message: str
) -> None:
    with pytest.raises(TypeError, match=message) as refused:
        checked_function(function, accepted, "call", callables=callables)
    assert str(refused.value).startswith("call() (test_argument_checks.py:")


def test_checked_accepts_a_value_of_the_class() -> None:
    assert checked("a", str, "name", "the name") == "a"
    assert checked(True, bool, "call", "the switch") is True


@pytest.mark.parametrize(
    ("value", "found"), [(1.5, "1.5 of type float"), (True, "True of type bool")]
)
def test_checked_refuses_a_value_of_another_class(value: Any, found: str) -> None:
    with pytest.raises(TypeError, match=f"the parallelism is {found}; it must be an int"):
        checked(value, int, "set_parallelism", "the parallelism")


def test_checked_stream_accepts_a_stream_of_the_same_environment(
    env: StreamExecutionEnvironment,
) -> None:
    one, two = env.from_collection([1]), env.from_collection([2])
    assert checked_stream(two, DataStream, one, "union") is two


def test_checked_stream_refuses_another_environment_and_names_both_lines(
    env: StreamExecutionEnvironment,
) -> None:
    other = StreamExecutionEnvironment().from_collection([1]).map(abs).name("far")
    with pytest.raises(GraphError) as refused:
        checked_stream(other, DataStream, env.from_collection([1]), "union")
    text = str(refused.value)
    assert "'far' (test_argument_checks.py:" in text
    assert "'Collection Source' (test_argument_checks.py:" in text
    assert "another StreamExecutionEnvironment" in text


@pytest.mark.parametrize("stream", [None, [1, 2], DataStream])
def test_checked_stream_refuses_objects_that_are_not_streams(
    env: StreamExecutionEnvironment, stream: Any
) -> None:
    with pytest.raises(TypeError, match="it takes a DataStream"):
        checked_stream(stream, DataStream, env.from_collection([1]), "union")


def test_checked_stream_refuses_a_plain_stream_for_a_keyed_one(
    env: StreamExecutionEnvironment,
) -> None:
    stream = env.from_collection([1])
    with pytest.raises(TypeError, match="it takes a KeyedStream"):
        checked_stream(stream, KeyedStream, stream, "interval_join")
