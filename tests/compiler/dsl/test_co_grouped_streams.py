from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Time, Types
from opchain.compiler.graph.transformation import (
    OperatorTransformation,
    PartitionTransformation,
    UnionTransformation,
)
from opchain.datastream import CoGroupFunction, DataStream, OutputTag, StreamExecutionEnvironment
from opchain.datastream.window import CountEvictor, CountTrigger, TumblingEventTimeWindows
from opchain.runtime.errors import GraphError
from opchain.runtime.functions.co_grouping import CoGroupWindowFunction, UnionKeySelector
from opchain.runtime.program.operator_specs import WindowSpec


class Pairs(CoGroupFunction[int, str, str]):
    def co_group(self, first: Any, second: Any) -> Any:
        yield f"{sorted(first)} {sorted(second)}"


@pytest.fixture
def numbers(env: StreamExecutionEnvironment) -> DataStream[int]:
    return env.from_sequence(1, 3).map(abs).set_parallelism(2)


@pytest.fixture
def words(env: StreamExecutionEnvironment) -> DataStream[str]:
    return env.from_collection(["a"]).map(str.upper).set_parallelism(3)


FIVE_SECONDS = TumblingEventTimeWindows.of(Time.seconds(5))


def test_co_group_draws_two_maps_a_union_a_key_by_and_a_window(
    env: StreamExecutionEnvironment, numbers: DataStream[int], words: DataStream[str]
) -> None:
    stream = numbers.co_group(words).where(abs).equal_to(len).window(FIVE_SECONDS).apply(Pairs())
    first, second, window = env.get_transformations()[2:]
    assert [each.name for each in (first, second)] == ["Map", "Map"]
    assert [(each.parallelism, each.parallelism_configured) for each in (first, second)] == [
        (2, False),
        (3, False),
    ]
    assert stream.transformation is window
    keyed = window.inputs[0]
    assert isinstance(keyed, PartitionTransformation)
    assert isinstance(keyed.inputs[0], UnionTransformation)
    assert keyed.inputs[0].inputs == (first, second)
    assert [each.id for each in (first, second, keyed.inputs[0], keyed, window)] == [5, 6, 7, 8, 9]


def test_the_co_group_window_passes_both_sides_to_the_function(
    numbers: DataStream[int], words: DataStream[str]
) -> None:
    tag = OutputTag[Any]("late")
    windowed = numbers.co_group(words).where(abs).equal_to(len).window(FIVE_SECONDS)
    windowed.trigger(CountTrigger.of(2)).evictor(CountEvictor.of(3)).allowed_lateness(4)
    windowed.side_output_late_data(tag)
    added = windowed.apply(Pairs(), Types.STRING()).transformation
    assert isinstance(added, OperatorTransformation)
    assert isinstance(added.spec, WindowSpec)
    assert isinstance(added.spec.trigger, CountTrigger)
    assert isinstance(added.spec.evictor, CountEvictor)
    assert (added.spec.allowed_lateness_ms, added.spec.late_tag) == (4, tag)
    assert isinstance(added.spec.function, CoGroupWindowFunction)
    assert isinstance(added.spec.function.function, Pairs)
    key_by = added.key_bys[0]
    assert key_by is not None
    assert isinstance(key_by.selector, UnionKeySelector)
    assert added.output_type == Types.STRING()
    assert added.description == (
        "Window(TumblingEventTimeWindows(5000), CountTrigger, CountEvictor, CoGroupWindowFunction)"
    )


def test_co_group_accepts_a_plain_callable(
    numbers: DataStream[int], words: DataStream[str]
) -> None:
    windowed = numbers.co_group(words).where(abs).equal_to(len).window(FIVE_SECONDS)
    stream = windowed.apply(lambda first, second: [len(list(first)) + len(list(second))])
    assert stream.get_name() == "TumblingEventTimeWindows"


def test_co_group_refuses_different_declared_key_types(
    numbers: DataStream[int], words: DataStream[str]
) -> None:
    where = numbers.co_group(words).where(abs, Types.LONG())
    with pytest.raises(GraphError, match=r"the keys are declared as .* in where\(\) and"):
        where.equal_to(len, Types.STRING())
    assert where.equal_to(len) is not None


def test_co_group_uses_the_declared_key_type(
    numbers: DataStream[int], words: DataStream[str]
) -> None:
    windowed = numbers.co_group(words).where(abs).equal_to(len, Types.LONG()).window(FIVE_SECONDS)
    added: Any = windowed.apply(Pairs()).transformation
    assert added.key_bys[0].key_type == Types.LONG()


def test_co_group_refuses_arguments_of_the_wrong_kind_at_the_call(
    numbers: DataStream[int], words: DataStream[str]
) -> None:
    started: Any = numbers.co_group(words)
    with pytest.raises(TypeError, match="where"):
        started.where("field")
    with pytest.raises(TypeError, match="equal_to"):
        started.where(abs).equal_to(None)
    with pytest.raises(TypeError, match="the window is 5"):
        started.where(abs).equal_to(len).window(5)
    with pytest.raises(TypeError, match="apply"):
        started.where(abs).equal_to(len).window(FIVE_SECONDS).apply(abs)
