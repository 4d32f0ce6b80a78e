from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Types
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.columnar.spark_types import SparkType
from opchain.runtime.errors import GraphError
from opchain.runtime.program.operator_specs import MapBatchesSpec


def doubled(batch: Any) -> Any:
    return batch


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def test_map_batches_on_lists_needs_no_declared_type(env: StreamExecutionEnvironment) -> None:
    stream = env.from_sequence(1, 3).map_batches(doubled, Types.INT(), one_to_one=True)
    assert stream.transformation.spec == MapBatchesSpec(doubled, "list", True)  # type: ignore[attr-defined]
    assert stream.get_type() == Types.INT()
    assert stream.get_name() == "Map Batches"


def test_map_batches_on_arrow_has_the_columns_of_the_declared_type(
    env: StreamExecutionEnvironment,
) -> None:
    numbers = env.from_collection([1], Types.LONG())
    spec: Any = numbers.map_batches(doubled, batch_format="arrow").transformation.spec  # type: ignore[attr-defined]
    assert (spec.record_type, spec.gives_values) == (SparkType("long"), False)
    spec = numbers.map_batches(doubled, Types.LONG(), "arrow").transformation.spec  # type: ignore[attr-defined]
    assert spec.gives_values


def test_map_batches_on_a_keyed_stream_ignores_the_key(env: StreamExecutionEnvironment) -> None:
    keyed = env.from_sequence(1, 3).key_by(lambda n: n % 2)
    assert keyed.map_batches(doubled).transformation.key_bys == (None,)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (None, r"map_batches\(\) .*: 'Map' .* has no declared record type"),
        (Types.PICKLED_BYTE_ARRAY(), r"map_batches\(\) .*: the records are of type Pickled"),
    ],
)
def test_map_batches_on_arrow_refuses_a_stream_without_columns(
    env: StreamExecutionEnvironment, declared: Any, said: str
) -> None:
    stream = env.from_sequence(1, 3).map(lambda n: n, declared)
    with pytest.raises(GraphError, match=said):
        stream.map_batches(doubled, batch_format="arrow")


def test_map_batches_refuses_an_unknown_format(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(
        ValueError, match="got batch_format='pandas'; the formats are 'list' and 'arrow'"
    ):
        env.from_sequence(1, 3).map_batches(doubled, batch_format="pandas")


@pytest.mark.parametrize("function", [5, lambda: 1, None])
def test_map_batches_refuses_objects_that_are_not_functions(
    env: StreamExecutionEnvironment, function: Any
) -> None:
    with pytest.raises(TypeError, match="map_batches"):
        env.from_sequence(1, 3).map_batches(function)
