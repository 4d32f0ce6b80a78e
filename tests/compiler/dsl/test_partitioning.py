from __future__ import annotations

from typing import Any

import pytest

from opchain.compiler.graph.partitioner import ExchangeMode, KeyBy, PartitionerKind
from opchain.compiler.graph.transformation import PartitionTransformation
from opchain.datastream import DataStream, Partitioner, StreamExecutionEnvironment
from opchain.datastream.state import MapStateDescriptor

KINDS = {
    "shuffle": PartitionerKind.SHUFFLE,
    "rebalance": PartitionerKind.REBALANCE,
    "rescale": PartitionerKind.RESCALE,
    "forward": PartitionerKind.FORWARD,
    "global_": PartitionerKind.GLOBAL,
    "broadcast": PartitionerKind.BROADCAST,
}


@pytest.fixture
def mapped(env: StreamExecutionEnvironment) -> DataStream[int]:
    return env.from_sequence(1, 3).map(abs).set_parallelism(2)


def partitioning(stream: DataStream[Any]) -> PartitionTransformation:
    assert isinstance(stream.transformation, PartitionTransformation)
    return stream.transformation


@pytest.mark.parametrize("call", KINDS)
def test_a_partitioning_is_not_registered_as_an_operator(
    env: StreamExecutionEnvironment, mapped: DataStream[int], call: str
) -> None:
    transformation = partitioning(getattr(mapped, call)())
    assert transformation.partitioner.kind is KINDS[call]
    assert transformation.exchange_mode is ExchangeMode.UNDEFINED
    assert transformation.inputs == (mapped.transformation,)
    assert transformation not in env.get_transformations()
    assert transformation.id == mapped.get_id() + 1


def test_a_partitioning_has_the_parallelism_of_its_input(mapped: DataStream[int]) -> None:
    transformation = partitioning(mapped.rebalance())
    assert (transformation.parallelism, transformation.parallelism_configured) == (2, True)


class Even(Partitioner[int]):
    def partition(self, key: int, num_partitions: int) -> int:
        return key % num_partitions


@pytest.mark.parametrize("partitioner", [Even(), lambda key, count: key % count])
def test_partition_custom_takes_a_partitioner_and_a_key_selector(
    mapped: DataStream[int], partitioner: Any
) -> None:
    chosen = partitioning(mapped.partition_custom(partitioner, abs)).partitioner
    assert (chosen.kind, type(chosen.custom)) == (PartitionerKind.CUSTOM, type(partitioner))
    assert chosen.key_by is not None
    assert chosen.key_by.selector is abs


@pytest.mark.parametrize(("partitioner", "selector"), [(None, abs), (Even(), None), (abs, abs)])
def test_partition_custom_refuses_arguments_of_the_wrong_kind(
    mapped: DataStream[int], partitioner: Any, selector: Any
) -> None:
    with pytest.raises(TypeError, match="partition_custom"):
        mapped.partition_custom(partitioner, selector)


def test_an_internal_partitioner_and_an_exchange_mode_can_be_set(mapped: DataStream[int]) -> None:
    transformation = partitioning(
        mapped.partition(
            PartitionerKind.FORWARD_FOR_UNSPECIFIED, exchange_mode=ExchangeMode.PIPELINED
        )
    )
    assert transformation.partitioner.kind is PartitionerKind.FORWARD_FOR_UNSPECIFIED
    assert transformation.exchange_mode is ExchangeMode.PIPELINED


def test_partition_by_hash_uses_the_key_of_the_stream_or_a_given_one(
    mapped: DataStream[int],
) -> None:
    kind = PartitionerKind.FORWARD_FOR_CONSECUTIVE_HASH
    keyed = mapped.key_by(abs)
    assert partitioning(keyed.partition(kind)).partitioner.key_by is keyed.state_key
    own = KeyBy(abs)
    assert partitioning(mapped.partition(kind, key_by=own)).partitioner.key_by is own
    with pytest.raises(ValueError, match="a FORWARD_FOR_CONSECUTIVE_HASH partitioner needs a key"):
        mapped.partition(kind)


@pytest.mark.parametrize(
    ("kind", "mode"), [("HASH", ExchangeMode.BATCH), (PartitionerKind.GLOBAL, "BATCH")]
)
def test_partition_refuses_arguments_of_the_wrong_kind(
    mapped: DataStream[int], kind: Any, mode: Any
) -> None:
    with pytest.raises(TypeError, match="partition"):
        mapped.partition(kind, exchange_mode=mode)


def test_broadcast_with_state_descriptors_returns_a_broadcast_stream(
    mapped: DataStream[int],
) -> None:
    rules, limits = MapStateDescriptor("rules"), MapStateDescriptor("limits")
    broadcast = mapped.broadcast(rules, limits)
    assert broadcast.broadcast_state_descriptors == [rules, limits]
    assert partitioning(broadcast.input_stream).partitioner.kind is PartitionerKind.BROADCAST
