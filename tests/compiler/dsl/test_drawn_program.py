from __future__ import annotations

from opchain.datastream import StreamExecutionEnvironment


def test_operators_are_registered_in_call_order_without_sources(
    env: StreamExecutionEnvironment,
) -> None:
    source = env.from_collection([1])
    later = source.map(abs)
    source.filter(bool).print()
    later.rebalance().union(source)
    names = [transformation.name for transformation in env.get_transformations()]
    assert names == ["Map", "Filter", "Print to Std. Out"]


def test_get_transformations_returns_a_copy(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1]).map(abs)
    env.get_transformations().clear()
    assert len(env.get_transformations()) == 1


def test_transformation_ids_of_each_environment_start_at_1() -> None:
    first, second = StreamExecutionEnvironment(), StreamExecutionEnvironment()
    assert [first.next_transformation_id() for _ in range(3)] == [1, 2, 3]
    assert second.from_collection([1]).get_id() == 1
