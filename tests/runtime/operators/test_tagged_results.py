"""Results (tag, value): which ones are sent to a side output, as in PyFlink 2.3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, run_form, seen

from opchain.common import Time, Types, WatermarkStrategy
from opchain.datastream import OutputTag
from opchain.datastream.functions import (
    AggregateFunction,
    CoFlatMapFunction,
    CoMapFunction,
    FlatMapFunction,
    MapFunction,
)
from opchain.datastream.state import ValueStateDescriptor
from opchain.datastream.window import TumblingEventTimeWindows

if TYPE_CHECKING:
    from opchain.datastream import StreamExecutionEnvironment

TAG: Any = OutputTag("t")
OTHER: Any = OutputTag("other")
WINDOWS = TumblingEventTimeWindows.of(Time.milliseconds(10))
ASCENDING: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda value, _: value
)


def odd_aside(value: int) -> Any:
    return (TAG, value * 10) if value % 2 else value


def both(value: int) -> list[Any]:
    return [(TAG, value * 10), value] if value % 2 else [value]


class Maps(MapFunction[Any, Any]):
    def map(self, value: Any) -> Any:
        return odd_aside(value)


class KeyedMaps(Maps):
    """Uses state, so that its key has to be set."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def map(self, value: Any) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        return (TAG, value * 10) if count == 1 else value


class FlatMaps(FlatMapFunction[Any, Any]):
    def flat_map(self, value: Any) -> Any:
        yield from both(value)


class CoMaps(CoMapFunction[Any, Any, Any]):
    def map1(self, value: Any) -> Any:
        return odd_aside(value)

    def map2(self, value: Any) -> Any:
        return TAG, -value


class CoFlatMaps(CoFlatMapFunction[Any, Any, Any]):
    def flat_map1(self, value: Any) -> Any:
        yield from both(value)

    def flat_map2(self, value: Any) -> Any:
        yield TAG, -value


class TaggedSum(AggregateFunction[Any, Any, Any]):
    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator + value

    def get_result(self, accumulator: Any) -> Any:
        return TAG, accumulator

    def merge(self, a: Any, b: Any) -> Any:
        return a + b


def numbers(env: StreamExecutionEnvironment) -> Any:
    return env.from_collection([1, 2, 3, 4])


def parity(value: int) -> int:
    return value % 2


def timed(env: StreamExecutionEnvironment) -> Any:
    return numbers(env).assign_timestamps_and_watermarks(ASCENDING).key_by(parity)


def connected(env: StreamExecutionEnvironment) -> Any:
    return numbers(env).connect(numbers(env))


MAPPED = [2, 4], [10, 30]
FLAT_MAPPED = [1, 2, 3, 4], [10, 30]
CO_MAPPED = [2, 4], [-4, -3, -2, -1, 10, 30]
CO_FLAT_MAPPED = [1, 2, 3, 4], [-4, -3, -2, -1, 10, 30]

CASES: dict[str, Any] = {
    "map": (lambda env: numbers(env).map(odd_aside), MAPPED),
    "map of a class": (lambda env: numbers(env).map(Maps()), MAPPED),
    "map with state": (
        lambda env: numbers(env).key_by(parity).map(KeyedMaps()),
        ([3, 4], [10, 20]),
    ),
    "flat map": (lambda env: numbers(env).flat_map(both), FLAT_MAPPED),
    "flat map of a class": (lambda env: numbers(env).flat_map(FlatMaps()), FLAT_MAPPED),
    "flat map in a chain": (lambda env: numbers(env).map(abs).flat_map(both), FLAT_MAPPED),
    "keyed flat map": (lambda env: numbers(env).key_by(parity).flat_map(both), FLAT_MAPPED),
    "filter": (lambda env: numbers(env).map(odd_aside).filter(bool), MAPPED),
    "co-map": (lambda env: connected(env).map(CoMaps()), CO_MAPPED),
    "co-flat-map": (lambda env: connected(env).flat_map(CoFlatMaps()), CO_FLAT_MAPPED),
    "keyed co-map": (lambda env: connected(env).key_by(parity, parity).map(CoMaps()), CO_MAPPED),
    "reduce": (
        lambda env: numbers(env).key_by(parity).reduce(lambda a, b: (TAG, b)),
        ([1, 2], [3, 4]),
    ),
    "aggregate of a window": (
        lambda env: timed(env).window(WINDOWS).aggregate(TaggedSum()),
        ([], [4, 6]),
    ),
    "reduce of a window": (
        lambda env: timed(env).window(WINDOWS).reduce(lambda a, b: (TAG, b)),
        ([], [3, 4]),
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_a_tagged_result_is_sent_to_its_side_output(case: str, form: str) -> None:
    make, expected = CASES[case]

    def draw(env: StreamExecutionEnvironment) -> None:
        stream = make(env)
        seen(stream, "main", reads_timestamps=False)
        seen(stream.get_side_output(TAG).map(lambda value: value), "side", reads_timestamps=False)

    ran = run_form(draw, form, parallelism=1)
    assert (sorted(ran.records("main")), sorted(ran.records("side"))) == expected


@pytest.mark.parametrize("form", FORMS)
def test_batch_reduce_sends_a_tagged_result_to_its_side_output(form: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        stream = numbers(env).key_by(parity).reduce(lambda a, b: (TAG, b))
        seen(stream, "main", reads_timestamps=False)
        seen(stream.get_side_output(TAG), "side", reads_timestamps=False)

    ran = run_form(draw, form, parallelism=1, mode="BATCH")
    assert (ran.records("main"), sorted(ran.records("side"))) == ([], [3, 4])


@pytest.mark.parametrize("form", FORMS)
def test_without_side_outputs_a_pair_with_a_tag_is_a_record(form: str) -> None:
    ran = run_form(lambda env: seen(numbers(env).map(odd_aside), "main"), form)
    assert ran.records("main") == [(TAG, 10), 2, (TAG, 30), 4]


@pytest.mark.parametrize("form", FORMS)
def test_a_result_for_a_side_output_without_readers_is_dropped(form: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        stream = numbers(env).flat_map(both)
        seen(stream, "main")
        seen(stream.get_side_output(OTHER), "side")

    ran = run_form(draw, form)
    assert (ran.records("main"), ran.records("side")) == ([1, 2, 3, 4], [])


@pytest.mark.parametrize("form", FORMS)
def test_records_of_main_and_side_outputs_are_counted(form: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        stream = numbers(env).map(odd_aside).name("aside")
        seen(stream, "main")
        seen(stream.get_side_output(TAG), "side")

    counters = run_form(draw, form).counters()
    (found,) = (counts for (name, _), counts in counters.items() if name.startswith("aside"))
    assert found == (4, 4)
