from __future__ import annotations

from opchain.datastream import StreamExecutionEnvironment


def test_operators_are_registered_in_the_order_of_the_calls_and_sources_are_not(
    env: StreamExecutionEnvironment,
) -> None:
    source = env.from_collection([1])
    later = source.map(abs)
    source.filter(bool).print()
    later.rebalance().union(source)
    names = [transformation.name for transformation in env.get_transformations()]
    assert names == ["Map", "Filter", "Print to Std. Out"]


def test_the_list_that_is_handed_out_is_a_copy(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1]).map(abs)
    env.get_transformations().clear()
    assert len(env.get_transformations()) == 1


def test_each_environment_counts_its_ids_from_1() -> None:
    first, second = StreamExecutionEnvironment(), StreamExecutionEnvironment()
    assert [first.next_transformation_id() for _ in range(3)] == [1, 2, 3]
    assert second.from_collection([1]).get_id() == 1
