from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.compiler.graph.transformation import ChainingStrategy, OperatorTransformation
from opchain.datastream.functions import MapPartitionFunction
from opchain.runtime.program.operator_specs import FullWindowSpec, MapPartitionSpec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opchain.datastream import StreamExecutionEnvironment


class Total(MapPartitionFunction[int, int]):
    def map_partition(self, values: Iterable[int]) -> Iterable[int]:
        yield sum(values)


@pytest.mark.parametrize("function", [Total(), lambda values: [sum(values)]])
def test_full_window_partition_without_key_keeps_parallelism_and_never_chains(
    env: StreamExecutionEnvironment, function: Any
) -> None:
    mapped = env.from_sequence(1, 3).map(abs).set_parallelism(2)
    added = mapped.full_window_partition().map_partition(function).transformation
    assert isinstance(added, OperatorTransformation)
    assert isinstance(added.spec, MapPartitionSpec)
    assert type(added.spec.function) is type(function)
    assert added.name == "MapPartition"
    assert (added.parallelism, added.parallelism_configured) == (2, True)
    assert added.chaining_strategy is ChainingStrategy.NEVER
    assert env.get_transformations()[-1] is added


def test_full_window_partition_with_key_is_a_window_per_key(
    env: StreamExecutionEnvironment,
) -> None:
    keyed = env.from_sequence(1, 3).key_by(abs)
    added = keyed.full_window_partition().map_partition(Total()).transformation
    assert isinstance(added, OperatorTransformation)
    assert isinstance(added.spec, FullWindowSpec)
    assert isinstance(added.spec.function, Total)
    assert added.name == "GlobalWindows"
    assert added.key_bys == (keyed.state_key,)
    assert (added.parallelism, added.parallelism_configured) == (4, False)
    assert added.chaining_strategy is ChainingStrategy.ALWAYS


@pytest.mark.parametrize("function", [None, Total, lambda first, second: [first, second]])
def test_map_partition_refuses_a_function_of_the_wrong_kind(
    env: StreamExecutionEnvironment, function: Any
) -> None:
    with pytest.raises(TypeError, match=r"map_partition\(\) \(test_partition_window.py:"):
        env.from_sequence(1, 3).full_window_partition().map_partition(function)
