from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from array import array
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.runtime.errors import (
    InternalError,
    KeyTypeError,
    PartitionError,
    StreamError,
    UnstableKeyError,
)
from opchain.runtime.program.vertex_program import (
    KeyProgram,
    OutputProgram,
    Shipping,
    pointwise_producers,
)
from opchain.runtime.state.keys.key_hashers import hasher_named, tuple_of
from opchain.runtime.state.keys.key_router import KeyRouter
from opchain.runtime.task.output.channel_selector import (
    ByRecord,
    ChannelSelector,
    InTurn,
    ToFirst,
    channels_of,
    create_channel_selector,
)

OPERATOR_ID = "cbc357ccb763df2852fee8c4fc7d55f2"
IDENTITY = KeyProgram(lambda value: value, "per_user", "clicks.py:14")


def output(shipping: Shipping, consumers: int = 3, **more: Any) -> OutputProgram:
    return OutputProgram(
        operator=0,
        tag=None,
        shipping=shipping,
        first_target=10,
        target_parallelism=consumers,
        target_max_parallelism=128,
        channel_base=0,
        label="a -> b",
        **more,
    )


def selector(
    shipping: Shipping,
    consumers: int = 3,
    subtask: int = 0,
    operator_id: str = OPERATOR_ID,
    **more: Any,
) -> ChannelSelector:
    program = output(shipping, consumers, **more)
    channels = 1 if shipping is Shipping.FORWARD else consumers
    return create_channel_selector(program, channels, operator_id, subtask)


def chosen(chooser: ChannelSelector, channels: int, *batches: list) -> list[int]:
    """The channel of each record, in the order of the records."""
    sequence = []
    for batch in batches:
        buckets: list[list[int]] = [[] for _ in range(channels)]
        chooser.assign(batch, batch).scatter(range(len(batch)), buckets)
        channel_of = {entry: number for number, bucket in enumerate(buckets) for entry in bucket}
        assert all(bucket == sorted(bucket) for bucket in buckets)
        sequence += [channel_of[place] for place in range(len(batch))]
    return sequence


# Golden sequences of ten records in batches of 4, 5 and 1.
SEQUENCES = {
    Shipping.FORWARD: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    Shipping.GLOBAL: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    Shipping.REBALANCE: [0, 1, 2, 0, 1, 2, 0, 1, 2, 0],
    Shipping.RESCALE: [0, 1, 2, 0, 1, 2, 0, 1, 2, 0],
    Shipping.SHUFFLE: [0, 1, 2, 2, 1, 2, 1, 2, 1, 2],
    Shipping.KEY_GROUP: KeyRouter(128, 3).route(list(range(10))),
    Shipping.CUSTOM: [2, 0, 1, 2, 0, 1, 2, 0, 1, 2],
}


@pytest.mark.parametrize(("shipping", "expected"), SEQUENCES.items(), ids=str)
def test_each_way_of_shipping_has_its_sequence_of_channels(
    shipping: Shipping, expected: list[int]
) -> None:
    chooser = selector(
        shipping, key=IDENTITY, custom_partitioner=lambda key, count: (key + 2) % count
    )
    assert chosen(chooser, 3, [0, 1, 2, 3], [4, 5, 6, 7, 8], [9]) == expected


def test_every_way_of_shipping_has_a_sequence() -> None:
    assert {*SEQUENCES, Shipping.BROADCAST} == set(Shipping)


@pytest.mark.parametrize("shipping", [Shipping.REBALANCE, Shipping.SHUFFLE])
@settings(deadline=None)
@given(sizes=st.lists(st.integers(0, 10)), channels=st.integers(1, 5), subtask=st.integers(0, 5))
def test_batch_boundaries_do_not_affect_the_channels(
    shipping: Shipping, sizes: list[int], channels: int, subtask: int
) -> None:
    batches = [list(range(size)) for size in sizes]
    whole = [list(range(sum(sizes)))]
    assert chosen(selector(shipping, channels, subtask), channels, *batches) == chosen(
        selector(shipping, channels, subtask), channels, *whole
    )


def test_subtasks_of_a_rebalance_start_at_different_channels() -> None:
    starts = [chosen(selector(Shipping.REBALANCE, 4, task), 4, [0])[0] for task in range(8)]
    assert Counter(starts) == {0: 2, 1: 2, 2: 2, 3: 2}


def test_a_rescale_starts_at_the_first_channel() -> None:
    """As in Flink, where users see the subtask of each record."""
    for task in range(4):
        chooser = selector(Shipping.RESCALE, 3, task, operator_id=f"operator {task}")
        assert chosen(chooser, 3, [0, 1], [2, 3]) == [0, 1, 2, 0]


def test_a_shuffle_depends_on_operator_and_subtask_and_is_even() -> None:
    records = list(range(3000))
    one = chosen(selector(Shipping.SHUFFLE), 3, records)
    assert one != chosen(selector(Shipping.SHUFFLE, subtask=1), 3, records)
    assert one != chosen(selector(Shipping.SHUFFLE, operator_id="other"), 3, records)
    assert all(900 < count < 1100 for count in Counter(one).values())


def test_channels_are_the_same_in_every_process() -> None:
    code = (
        "from opchain.runtime.program.vertex_program import OutputProgram, Shipping\n"
        "from opchain.runtime.task.output.channel_selector import create_channel_selector\n"
        "for shipping in (Shipping.SHUFFLE, Shipping.REBALANCE):\n"
        "    output = OutputProgram(0, None, shipping, 10, 3, 128, 0, 'a -> b')\n"
        f"    selector = create_channel_selector(output, 3, {OPERATOR_ID!r}, 0)\n"
        "    buckets = [[], [], []]\n"
        "    selector.assign(range(10), None).scatter(range(10), buckets)\n"
        "    print([number for value in range(10) for number in range(3) if value in buckets[number]])"
    )
    for seed in ("0", "1"):
        shown = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        )
        expected = [SEQUENCES[Shipping.SHUFFLE], SEQUENCES[Shipping.REBALANCE]]
        assert shown.stdout.splitlines() == [*map(str, expected)]


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        (ToFirst(), [["x", 1, 2, 3, 4, 5], [], []]),
        (InTurn(1), [["x", 3], [1, 4], [2, 5]]),
        (ByRecord([2, 0, 0, 2, 1]), [["x", 2, 3], [5], [1, 4]]),
        (ByRecord(np.array([2, 0, 0, 2, 1], np.uint32)), [["x", 2, 3], [5], [1, 4]]),
        (ByRecord(np.array([1, 0, 0, 1, 1], np.uint32)), [["x", 2, 3], [1, 4, 5], []]),
    ],
)
def test_scatter_appends_to_the_buckets(assignment: Any, expected: list) -> None:
    buckets: list[list] = [["x"], [], []]
    assignment.scatter([1, 2, 3, 4, 5], buckets)
    assert buckets == expected
    places = [[entry for entry in bucket if entry != "x"] for bucket in expected]
    pairs: list[list] = [[], [], []]
    assignment.scatter([(entry, [entry]) for entry in range(1, 6)], pairs)
    assert pairs == [[(entry, [entry]) for entry in bucket] for bucket in places]
    numbers = [array("q"), array("q", [7]), array("q")]
    assignment.scatter(array("q", [1, 2, 3, 4, 5]), numbers)
    assert list(map(list, numbers)) == [places[0], [7, *places[1]], places[2]]


def test_fewer_records_than_channels_are_assigned() -> None:
    buckets: list[list] = [[], [], [], []]
    InTurn(3).scatter([1, 2], buckets)
    assert buckets == [[2], [], [], [1]]


def test_the_declared_key_type_chooses_the_hasher() -> None:
    key = dataclasses.replace(IDENTITY, hasher=hasher_named("Integer"))
    numbers = [-1, -2, -300, 70_000]
    chooser = selector(Shipping.KEY_GROUP, key=key)
    assert chosen(chooser, 3, numbers) == KeyRouter(128, 3, hasher_named("Integer")).route(numbers)
    assert chosen(chooser, 3, numbers) != KeyRouter(128, 3).route(numbers)
    pair = tuple_of(hasher_named("String"), hasher_named("Integer"))
    nested = dataclasses.replace(IDENTITY, hasher=pair)
    keys = [("a", -1), ("b", -2), ("c", -3), ("d", -4)]
    assert chosen(selector(Shipping.KEY_GROUP, key=nested), 3, keys) == KeyRouter(
        128, 3, pair
    ).route(keys)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (None, "a key must not be None"),
        ({"a": 1}, "(dict) has no stable hash"),
        ((1, {2}), "(set) has no stable hash"),
        (object, "has no stable hash"),
    ],
)
def test_the_error_about_a_key_without_a_stable_hash_shows_its_record(
    key: Any, reason: str
) -> None:
    chooser = selector(Shipping.KEY_GROUP, key=IDENTITY)
    values = [f"record {number}" for number in range(100)]
    keys = [*range(57), key, *range(42)]
    with pytest.raises(UnstableKeyError) as caught:
        chooser.assign(values, keys)
    start = f"'per_user' (clicks.py:14) gives the record 'record 57' the key {key!r}: "
    assert str(caught.value).startswith(start)
    assert reason in str(caught.value)


def test_the_error_about_a_key_of_another_type_shows_its_record() -> None:
    key = dataclasses.replace(IDENTITY, hasher=hasher_named("Integer"))
    with pytest.raises(KeyTypeError, match=r"the record \('b', 'x'\) the key 'x': .*Integer"):
        selector(Shipping.KEY_GROUP, key=key).assign([("a", 1), ("b", "x")], [1, "x"])


class Modulo:
    def partition(self, key: int, count: int) -> int:
        return key % count


class Index:
    def __index__(self) -> int:
        return 1


@pytest.mark.parametrize(
    "partitioner",
    [Modulo(), lambda key, count: key % count, Modulo().partition],
    ids=["object", "function", "method"],
)
def test_partitioners_may_be_objects_or_functions(partitioner: Any) -> None:
    chooser = selector(Shipping.CUSTOM, key=IDENTITY, custom_partitioner=partitioner)
    assert chosen(chooser, 3, [5, 3, 1]) == [2, 0, 1]


def test_a_partitioner_may_return_other_integral_types() -> None:
    chooser = selector(Shipping.CUSTOM, key=IDENTITY, custom_partitioner=lambda key, _: key)
    assignment = chooser.assign("abc", [True, Index(), 0])
    buckets: list[list[str]] = [[], [], []]
    assignment.scatter("abc", buckets)
    assert buckets == [["c"], ["a", "b"], []]


@pytest.mark.parametrize("answer", [-1, 3, 1.0, None, "1", int])
def test_the_error_about_a_wrong_channel_shows_key_and_record(answer: Any) -> None:
    chooser = selector(
        Shipping.CUSTOM,
        key=IDENTITY,
        custom_partitioner=lambda key, _: answer if key == 7 else 0,
    )
    with pytest.raises(PartitionError) as caught:
        chooser.assign(["five", "seven", "nine"], [5, 7, 9])
    assert str(caught.value) == (
        f"the partitioner of 'per_user' (clicks.py:14) returns {answer!r} for the key 7 of the record "
        "'seven': expected an int from 0 to 2"
    )
    assert isinstance(caught.value, StreamError)


@pytest.mark.parametrize("kind", [ZeroDivisionError, StopIteration])
def test_an_error_of_a_partitioner_is_raised_unchanged(kind: type[Exception]) -> None:
    def partition(key: int, count: int) -> int:
        if key == 0:
            raise kind("mine")
        return 0

    chooser = selector(Shipping.CUSTOM, key=IDENTITY, custom_partitioner=partition)
    with pytest.raises(kind, match="mine") as caught:
        chooser.assign(["one", "zero"], [1, 0])
    assert caught.value.__notes__ == [
        "while partitioning the record 'zero' by 0, for 'per_user' (clicks.py:14)"
    ]


@pytest.mark.parametrize("shipping", [Shipping.KEY_GROUP, Shipping.CUSTOM])
def test_a_missing_key_selector_is_an_internal_error(shipping: Shipping) -> None:
    with pytest.raises(InternalError, match="without a key"):
        selector(shipping)


def test_a_forward_edge_to_several_channels_is_an_internal_error() -> None:
    with pytest.raises(InternalError, match="must have 1 channel, but has 2"):
        create_channel_selector(output(Shipping.FORWARD), 2, OPERATOR_ID, 0)


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(1, 12))
def test_pointwise_channels_are_those_that_consumers_read(producers: int, consumers: int) -> None:
    program = output(Shipping.RESCALE, consumers)
    for consumer in range(consumers):
        first, last = pointwise_producers(consumer, consumers, producers)
        assert [
            subtask
            for subtask in range(producers)
            if consumer in channels_of(program, subtask, producers)
        ] == list(range(first, last))


@pytest.mark.parametrize(
    "shipping", sorted(set(Shipping) - {Shipping.FORWARD, Shipping.RESCALE}, key=str)
)
def test_all_other_edges_reach_every_consumer(shipping: Shipping) -> None:
    assert channels_of(output(shipping), 1, 2) == range(3)
