"""What travels of records: the key of pairs that are counted, timestamps or none. Nobody can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, job_of, run_form, seen
from hypothesis import given, settings
from hypothesis import strategies as st
from opchain.common import WatermarkStrategy
from opchain.datastream import DataStreamUtils, KeyedProcessFunction, ReduceFunction

if TYPE_CHECKING:
    from collections.abc import Callable


class AddingUp(ReduceFunction[Any]):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], value1[1] + value2[1]


def counted(env: Any) -> Any:
    words = env.from_sequence(0, 40).flat_map(lambda x: str(x * 7).split("1"))
    ones = words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0])
    return ones.reduce(lambda a, b: (a[0], a[1] + b[1]))


def weighted(env: Any) -> Any:
    sevens = env.from_sequence(0, 40).map(lambda x: (0.5, x % 3)).key_by(lambda pair: pair[1])
    return sevens.reduce(lambda a, b: (a[0] * 3.0 + b[0], a[1]))


def filtered(env: Any) -> Any:
    ones = env.from_sequence(0, 40).filter(lambda x: x % 4 != 1).map(lambda x: (x % 3, 1))
    return ones.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], 1 + b[1]))


def not_only_pairs(env: Any) -> Any:
    numbers = env.from_sequence(0, 40)
    ones, twos = numbers.map(lambda x: (x % 3, 1)), numbers.map(lambda x: (x % 3, 2))
    both = ones.union(twos).key_by(lambda pair: pair[0])
    return both.reduce(lambda a, b: (a[0], a[1] + b[1]))


def seen_on_the_way(env: Any) -> Any:
    ones = env.from_sequence(0, 40).map(lambda x: (x % 3, 1))
    seen(ones, "ones")
    return ones.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


def in_an_object(env: Any) -> Any:
    ones = env.from_sequence(0, 40).map(lambda x: (x % 3, 1))
    return ones.key_by(lambda pair: pair[0]).reduce(AddingUp())


def read_twice(env: Any) -> Any:
    keyed = env.from_sequence(0, 40).map(lambda x: (x % 3, 1)).key_by(lambda pair: pair[0])
    seen(keyed.map(lambda pair: pair[1]), "ones")
    return keyed.reduce(lambda a, b: (a[0], a[1] + b[1]))


def keyed_otherwise(env: Any) -> Any:
    ones = env.from_sequence(0, 40).map(lambda x: (x % 3, 1))
    moved = ones.partition_custom(lambda key, count: key % count, lambda pair: pair[0])
    keyed = DataStreamUtils.reinterpret_as_keyed_stream(moved, lambda pair: pair[1])
    return keyed.reduce(lambda a, b: (a[0] + b[0], a[1]))


ALONE = (counted, weighted, filtered)
AS_PAIRS = (not_only_pairs, seen_on_the_way, in_an_object, read_twice)


def sources_of(draw: Callable[[Any], Any], mode: str) -> list[str]:
    job = job_of(lambda env: seen(draw(env), "sums"), mode=mode)
    return [vertex.source for vertex in job.vertices]


@pytest.mark.parametrize("draw", ALONE)
def test_the_key_travels_alone(draw: Callable[[Any], Any]) -> None:
    sender, receiver, *_ = sources_of(draw, "STREAMING")
    assert "the key alone" in sender
    assert ", 1)" not in sender
    assert "sums_0.get(value)" in receiver


@pytest.mark.parametrize("draw", [*AS_PAIRS, keyed_otherwise])
def test_pairs_travel_where_somebody_else_could_see_them(draw: Callable[[Any], Any]) -> None:
    assert not any("the key alone" in source for source in sources_of(draw, "STREAMING"))


def test_counting_before_sending_is_a_list_of_keys() -> None:
    sender, *_ = sources_of(counted, "BATCH")
    assert "keys_0.extend(str(value * 7).split('1'))" in sender
    assert "counted here" in sender
    assert "counted here" not in sources_of(weighted, "BATCH")[0]


@settings(max_examples=40, deadline=None)
@given(
    draw=st.sampled_from(ALONE + AS_PAIRS),
    parallelism=st.integers(1, 3),
    mode=st.sampled_from(["STREAMING", "BATCH"]),
    reuse=st.booleans(),
)
def test_nobody_can_tell(
    draw: Callable[[Any], Any], parallelism: int, mode: str, reuse: bool
) -> None:
    def drawn(env: Any) -> None:
        if reuse:
            env.get_config().enable_object_reuse()
        seen(draw(env), "sums")

    runs = [run_form(drawn, form, mode=mode, parallelism=parallelism) for form in FORMS]
    for run in runs:
        assert run.subtasks("sums") == runs[0].subtasks("sums")
        assert run.counters() == runs[0].counters()


def test_a_key_that_is_not_the_one_that_was_routed_by_is_found() -> None:
    runs = [run_form(lambda env: seen(keyed_otherwise(env), "sums"), form) for form in FORMS]
    assert runs[0].records("sums")[-1] == (sum(x % 3 for x in range(41)), 1)
    for run in runs:
        assert run.subtasks("sums") == runs[0].subtasks("sums")


class Noting(KeyedProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, ctx.timestamp()


def timed(env: Any, assigner: Any) -> Any:
    rows = [(i % 3, (i * 7) % 40, i % 2 == 0) for i in range(40)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assigner)
    return env.from_collection(rows).assign_timestamps_and_watermarks(strategy)


def keyed(env: Any, assigner: Any) -> None:
    stream = timed(env, assigner).key_by(lambda row: row[0])
    seen(stream.process(Noting()), "times")


def mapped(env: Any, assigner: Any) -> None:
    stream = timed(env, assigner).map(lambda row: (row[0], row[2], row[1]))
    seen(stream.key_by(lambda row: row[0]).process(Noting()), "times")


def forked(env: Any, assigner: Any) -> None:
    stream = timed(env, assigner)
    seen(stream.key_by(lambda row: row[0]).process(Noting()), "times 0")
    seen(stream.key_by(lambda row: row[1]).process(Noting()), "times 1")


def united(env: Any, assigner: Any) -> None:
    stream = timed(env, assigner)
    both = stream.union(stream.filter(lambda row: row[1] > 3))
    seen(both.key_by(lambda row: row[0]).process(Noting()), "times")


ITEM: Any = lambda row, _: row[1]  # noqa: E731
TRUTH: Any = lambda row, _: row[2]  # noqa: E731 - True counts as 1
SUM: Any = lambda row, _: row[1] + 1  # noqa: E731


@pytest.mark.parametrize("assigner", [ITEM, TRUTH, SUM])
@pytest.mark.parametrize("draw", [keyed, mapped, forked, united])
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_timestamps_arrive_however_they_travel(draw: Any, assigner: Any, mode: str) -> None:
    runs = [
        run_form(lambda env: draw(env, assigner), form, mode=mode, parallelism=2) for form in FORMS
    ]
    for run in runs:
        for name in ("times", "times 0", "times 1"):
            assert run.subtasks(name) == runs[0].subtasks(name)
        assert run.counters() == runs[0].counters()


def test_a_timestamp_that_is_an_item_stays_in_the_record() -> None:
    first, second, *_ = job_of(lambda env: keyed(env, ITEM)).vertices
    assert "timestamps_0" not in first.source
    assert "timestamp = value[1]" in second.source
    assert not first.outputs[0].carries_timestamps
    assert not second.inputs[0].carries_timestamps


@pytest.mark.parametrize(
    ("draw", "assigner", "mode"),
    [
        pytest.param(keyed, SUM, "STREAMING", id="computed"),
        pytest.param(mapped, ITEM, "STREAMING", id="another record by then"),
        pytest.param(united, ITEM, "STREAMING", id="one of two inputs"),
        pytest.param(keyed, ITEM, "BATCH", id="sorted by it on arrival"),
    ],
)
def test_other_timestamps_travel_beside_the_records(draw: Any, assigner: Any, mode: str) -> None:
    job = job_of(lambda env: draw(env, assigner), mode=mode)
    assert any("timestamps_0.append" in (vertex.source or "") for vertex in job.vertices)
