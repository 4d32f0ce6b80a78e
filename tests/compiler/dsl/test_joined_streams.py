from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Time
from opchain.compiler.graph.transformation import OperatorTransformation
from opchain.datastream import (
    CoGroupFunction,
    DataStream,
    FlatJoinFunction,
    JoinFunction,
    StreamExecutionEnvironment,
)
from opchain.datastream.window import CountTrigger, TumblingEventTimeWindows
from opchain.runtime.functions.co_grouping import CoGroupWindowFunction, JoinCoGroupFunction
from opchain.runtime.program.operator_specs import WindowSpec


class Pair(JoinFunction[int, str, str]):
    def join(self, first: int, second: str) -> str:
        return f"{first}{second}"


class Both(FlatJoinFunction[int, str, str]):
    def join(self, first: int, second: str) -> Any:
        yield str(first)
        yield second


class Group(CoGroupFunction[int, str, str]):
    def co_group(self, first: Any, second: Any) -> Any:
        yield ""


@pytest.fixture
def windowed(env: StreamExecutionEnvironment) -> Any:
    numbers: DataStream[int] = env.from_sequence(1, 3)
    words = env.from_collection(["a"])
    return (
        numbers.join(words)
        .where(abs)
        .equal_to(len)
        .window(TumblingEventTimeWindows.of(Time.seconds(5)))
    )


@pytest.mark.parametrize("function", [Pair(), Both(), lambda first, second: f"{first}{second}"])
def test_join_is_a_co_group_that_passes_each_pair_to_the_function(
    windowed: Any, function: Any
) -> None:
    added = windowed.trigger(CountTrigger.of(2)).apply(function).transformation
    assert isinstance(added, OperatorTransformation)
    assert isinstance(added.spec, WindowSpec)
    assert isinstance(added.spec.trigger, CountTrigger)
    assert isinstance(added.spec.function, CoGroupWindowFunction)
    assert isinstance(added.spec.function.function, JoinCoGroupFunction)
    assert added.name == "TumblingEventTimeWindows"


@pytest.mark.parametrize("function", [Group(), abs, None, Pair])
def test_apply_of_a_window_join_refuses_a_function_of_the_wrong_kind(
    windowed: Any, function: Any
) -> None:
    with pytest.raises(TypeError, match=r"apply\(\) \(test_joined_streams.py:"):
        windowed.apply(function)
