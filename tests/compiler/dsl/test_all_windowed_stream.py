from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Time, Types
from opchain.compiler.graph.transformation import OperatorTransformation
from opchain.datastream import (
    AllWindowFunction,
    DataStream,
    ProcessAllWindowFunction,
    ReduceFunction,
    StreamExecutionEnvironment,
    WindowFunction,
)
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.errors import GraphError
from opchain.runtime.functions.key_selectors import NullByteKeySelector
from opchain.runtime.program.operator_specs import WindowSpec

if TYPE_CHECKING:
    from opchain.datastream.data_stream import AllWindowedStream


class Add(ReduceFunction[int]):
    def reduce(self, value1: int, value2: int) -> int:
        return value1 + value2


class Whole(AllWindowFunction[int, str, Any]):
    def apply(self, window: Any, inputs: Any) -> Any:
        yield str(sorted(inputs))


class WithContext(ProcessAllWindowFunction[int, str, Any]):
    def process(self, context: Any, elements: Any) -> Any:
        yield str(sorted(elements))


class PerKey(WindowFunction[int, str, int, Any]):
    def apply(self, key: int, window: Any, inputs: Any) -> Any:
        yield str(key)


@pytest.fixture
def windowed(env: StreamExecutionEnvironment) -> AllWindowedStream[int, Any]:
    stream = env.from_collection([1, 2], Types.LONG())
    return stream.window_all(TumblingEventTimeWindows.of(Time.seconds(5)))


def window_of(stream: DataStream[Any]) -> tuple[OperatorTransformation, WindowSpec]:
    transformation = stream.transformation
    assert isinstance(transformation, OperatorTransformation)
    assert isinstance(transformation.spec, WindowSpec)
    return transformation, transformation.spec


def test_window_all_has_a_constant_key_and_parallelism_1(
    windowed: AllWindowedStream[int, Any],
) -> None:
    stream = windowed.reduce(Add())
    added, spec = window_of(stream)
    key_by = added.key_bys[0]
    assert key_by is not None
    assert isinstance(key_by.selector, NullByteKeySelector)
    assert (added.parallelism, added.max_parallelism, added.parallelism_configured) == (1, 1, True)
    assert spec.is_all
    assert added.name == "TumblingEventTimeWindows"
    assert added.description is not None
    assert added.description.startswith("AllWindow(TumblingEventTimeWindows(5000), ")
    with pytest.raises(GraphError, match="not parallel"):
        stream.set_parallelism(2)


def test_window_all_uses_two_transformation_ids_as_flink_does(
    env: StreamExecutionEnvironment,
) -> None:
    source = env.from_sequence(1, 3)
    stream = source.window_all(TumblingEventTimeWindows.of(Time.seconds(5))).reduce(max)
    assert stream.get_id() == source.get_id() + 2


@pytest.mark.parametrize("behind", [None, Whole(), WithContext()])
def test_reduce_takes_an_optional_window_function(
    windowed: AllWindowedStream[int, Any], behind: Any
) -> None:
    added, spec = window_of(windowed.reduce(max, behind))
    assert (spec.reduce, type(spec.function)) == (max, type(behind))
    assert added.output_type == (Types.LONG() if behind is None else None)


def test_apply_and_process_take_functions_over_all_records(
    windowed: AllWindowedStream[int, Any],
) -> None:
    assert isinstance(window_of(windowed.apply(Whole()))[1].function, Whole)
    assert isinstance(window_of(windowed.process(WithContext()))[1].function, WithContext)
    assert windowed.get_input_type() == Types.LONG()


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("reduce", (Whole(),)),
        ("reduce", (Add(), PerKey())),
        ("aggregate", (Add(),)),
        ("apply", (PerKey(),)),
        ("process", (Whole(),)),
    ],
)
def test_a_function_of_the_wrong_kind_is_refused(
    windowed: AllWindowedStream[int, Any], call: str, arguments: Any
) -> None:
    with pytest.raises(TypeError, match=rf"{call}\(\) \(test_all_windowed_stream.py:"):
        getattr(windowed, call)(*arguments)


def test_a_window_of_the_wrong_kind_is_refused(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(TypeError, match=r"window_all\(\) .*the window is 5 of type int"):
        env.from_sequence(1, 3).window_all(5)  # type: ignore[arg-type]
