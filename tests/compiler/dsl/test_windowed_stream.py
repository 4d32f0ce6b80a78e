from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Time, Types
from opchain.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from opchain.compiler.graph.transformation import OperatorTransformation
from opchain.datastream import (
    AggregateFunction,
    AllWindowFunction,
    DataStream,
    ProcessWindowFunction,
    ReduceFunction,
    StreamExecutionEnvironment,
    WindowedStream,
    WindowFunction,
)
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.program.operator_specs import WindowSpec


class Add(ReduceFunction[int]):
    def reduce(self, value1: int, value2: int) -> int:
        return value1 + value2


class Count(AggregateFunction[int, int, str]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: int, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> str:
        return str(accumulator)

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class Whole(WindowFunction[Any, str, int, Any]):
    def apply(self, key: int, window: Any, inputs: Any) -> Any:
        yield f"{key}: {sorted(inputs)}"


class WithContext(ProcessWindowFunction[Any, str, int, Any]):
    def process(self, key: int, context: Any, elements: Any) -> Any:
        yield f"{key}: {sorted(elements)}"


class ForAll(AllWindowFunction[int, int, Any]):
    def apply(self, window: Any, inputs: Any) -> Any:
        yield from inputs


def in_order(env: StreamExecutionEnvironment) -> None:
    """Runs the job in this process, one record after the other."""
    env.get_configuration().set_string("execution.target", "local")
    env.set_parallelism(1)


class AtZero(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return 0


@pytest.fixture
def windowed(env: StreamExecutionEnvironment) -> WindowedStream[int, int, Any]:
    keyed = env.from_collection([1, 2], Types.LONG()).key_by(lambda value: value % 2)
    return keyed.window(TumblingEventTimeWindows.of(Time.seconds(5)))


def window_of(stream: DataStream[Any]) -> tuple[OperatorTransformation, WindowSpec]:
    transformation = stream.transformation
    assert isinstance(transformation, OperatorTransformation)
    assert isinstance(transformation.spec, WindowSpec)
    return transformation, transformation.spec


def test_a_window_is_one_keyed_operator(
    env: StreamExecutionEnvironment, windowed: WindowedStream[int, int, Any]
) -> None:
    added, spec = window_of(windowed.reduce(Add()))
    assert env.get_transformations() == [added]
    assert added.is_keyed
    assert added.name == "TumblingEventTimeWindows"
    assert not spec.is_all
    assert added.description == (
        "Window(TumblingEventTimeWindows(5000), EventTimeTrigger, Add, PassThroughWindowFunction)"
    )


def test_a_window_without_a_function_says_what_to_call(
    windowed: WindowedStream[int, int, Any],
) -> None:
    with pytest.raises(AttributeError, match=r"^print\(\) .* call reduce\(\), aggregate\(\)"):
        windowed.print()  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="a WindowedStream has no attribute 'nothing'"):
        windowed.nothing  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("behind", [None, Whole(), WithContext()])
def test_reduce_takes_an_optional_window_function(
    windowed: WindowedStream[int, int, Any], behind: Any
) -> None:
    _, spec = window_of(windowed.reduce(max, behind))
    assert (spec.reduce, spec.aggregate, type(spec.function)) == (max, None, type(behind))


@pytest.mark.parametrize("behind", [None, Whole(), WithContext()])
def test_aggregate_takes_an_optional_window_function(
    windowed: WindowedStream[int, int, Any], behind: Any
) -> None:
    added, spec = window_of(
        windowed.aggregate(
            Count(), behind, accumulator_type=Types.LONG(), output_type=Types.STRING()
        )
    )
    assert (spec.reduce, type(spec.aggregate), type(spec.function)) == (None, Count, type(behind))
    assert added.output_type == Types.STRING()


def test_apply_and_process_take_functions_over_all_records(
    windowed: WindowedStream[int, int, Any],
) -> None:
    assert isinstance(window_of(windowed.apply(Whole()))[1].function, Whole)
    assert isinstance(window_of(windowed.process(WithContext()))[1].function, WithContext)

    def plain(key: int, window: Any, inputs: Any) -> list[str]:
        return [str(key)]

    added, spec = window_of(windowed.apply(plain))
    assert spec.function.__qualname__ == plain.__qualname__
    assert added.description == "Window(TumblingEventTimeWindows(5000), EventTimeTrigger, plain)"


def test_reduce_without_a_function_keeps_the_declared_type(
    windowed: WindowedStream[int, int, Any],
) -> None:
    assert windowed.get_input_type() == Types.LONG()
    assert windowed.reduce(max).get_type() == Types.LONG()
    assert windowed.reduce(max, Whole()).get_type() == Types.PICKLED_BYTE_ARRAY()


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("reduce", (Count(),)),
        ("reduce", (Add(), ForAll())),
        ("reduce", (Add(), max)),
        ("aggregate", (Add(),)),
        ("aggregate", (max,)),
        ("apply", (WithContext(),)),
        ("apply", (ForAll(),)),
        ("process", (Whole(),)),
        ("process", (max,)),
    ],
)
def test_windowed_streams_refuse_functions_of_the_wrong_kind(
    windowed: WindowedStream[int, int, Any], call: str, arguments: Any
) -> None:
    with pytest.raises(TypeError, match=rf"{call}\(\) \(test_windowed_stream.py:"):
        getattr(windowed, call)(*arguments)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("sum", [("a", 6, "1st"), ("b", 5, "4th")]),
        ("min", [("a", 1, "1st"), ("b", 5, "4th")]),
        ("max", [("a", 3, "1st"), ("b", 5, "4th")]),
        ("min_by", [("a", 1, "3rd"), ("b", 5, "4th")]),
        ("max_by", [("a", 3, "2nd"), ("b", 5, "4th")]),
    ],
)
def test_window_aggregations_aggregate_one_field(
    env: StreamExecutionEnvironment, method: str, expected: list[Any]
) -> None:
    records = [("a", 2, "1st"), ("a", 3, "2nd"), ("a", 1, "3rd"), ("b", 5, "4th")]
    in_order(env)
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(AtZero())
    stream = env.from_collection(records).assign_timestamps_and_watermarks(times)
    assigner = TumblingEventTimeWindows.of(Time.seconds(5))
    keyed = getattr(stream.key_by(lambda record: record[0]).window(assigner), method)(1)
    assert sorted(keyed.execute_and_collect()) == expected
    whole = getattr(stream.filter(lambda it: it[0] == "a").window_all(assigner), method)(1)
    assert list(whole.execute_and_collect()) == expected[:1]


def test_max_by_takes_the_first_or_the_last_of_equal_records(
    env: StreamExecutionEnvironment,
) -> None:
    in_order(env)
    stream = env.from_collection([(1, "1st"), (1, "2nd"), (0, "3rd"), (1, "4th")])
    windows = [
        stream.count_window_all(4).max_by(0),
        stream.count_window_all(4).max_by(0, first=False),
    ]
    found = windows[0].union(windows[1]).execute_and_collect()
    assert sorted(found) == [(1, "1st"), (1, "4th")]


def test_window_aggregations_have_flinks_descriptions(
    windowed: WindowedStream[int, int, Any],
) -> None:
    assert windowed.sum().transformation.description == (
        "Window(TumblingEventTimeWindows(5000), EventTimeTrigger, SumAggregator, PassThroughWindowFunction)"
    )
    assert "ComparableAggregator" in str(windowed.max_by().transformation.description)
