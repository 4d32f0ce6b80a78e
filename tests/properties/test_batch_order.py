"""In batch mode, reduces and windows get the records of a key in the order of time, from all subtasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, run_form, seen
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.common import Time, WatermarkStrategy
from opchain.datastream.functions import AggregateFunction, ReduceFunction
from opchain.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from opchain.runtime.time import MAX_LONG_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable

Record = tuple[str, int, tuple[int, ...]]
"""Key, event time, a number that no other record has; or several of these, in the order of folding."""


class InOrder(ReduceFunction[Record]):
    def reduce(self, value1: Record, value2: Record) -> Record:
        return value1[0], value2[1], value1[2] + value2[2]


class Opened(InOrder):
    def open(self, runtime_context: Any) -> None:
        self.task = runtime_context.get_task_name()


class Listed(AggregateFunction[Record, list[Any], Record]):
    def create_accumulator(self) -> list[Any]:
        return []

    def add(self, value: Record, accumulator: list[Any]) -> list[Any]:
        return [*accumulator, value]

    def get_result(self, accumulator: list[Any]) -> Record:
        key, time, _ = accumulator[-1]
        return key, time, tuple(number for _, _, numbers in accumulator for number in numbers)

    def merge(self, acc_a: list[Any], acc_b: list[Any]) -> list[Any]:
        return acc_a + acc_b


def keyed(env: Any, records: list[Record]) -> Any:
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    timed = env.from_collection(records).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda record, _: record[1])
    )
    return timed.rebalance().map(lambda record: record).key_by(lambda record: record[0])


SIZE = 4

WAYS: dict[str, Callable[[Any], Any]] = {
    "a lambda": lambda keyed: keyed.reduce(lambda a, b: (a[0], b[1], a[2] + b[2])),
    "an object": lambda keyed: keyed.reduce(InOrder()),
    "an opened object": lambda keyed: keyed.reduce(Opened()),
}
WINDOWS: dict[str, Callable[[Any], Any]] = {
    "reduce": lambda windowed: windowed.reduce(InOrder()),
    "aggregate": lambda windowed: windowed.aggregate(Listed()),
}
RECORDS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9))).map(
    lambda rows: [(key, time, (number,)) for number, (key, time) in enumerate(rows)]
)
JOBS = {
    "records": RECORDS,
    "parallelism": st.integers(1, 3),
    "form": st.sampled_from(FORMS),
}


def check_folded(folded: list[Record], parts: dict[Any, list[Record]]) -> None:
    """Each part was folded once, in the order of time; of equal times the order is open."""
    times = {numbers[0]: time for part in parts.values() for _, time, numbers in part}
    by_numbers = {frozenset(numbers): numbers for _, _, numbers in folded}
    assert len(by_numbers) == len(folded) == len(parts)
    for part in parts.values():
        numbers = by_numbers[frozenset(number for _, _, (number,) in part)]
        assert [times[number] for number in numbers] == sorted(time for _, time, _ in part)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=30)
@given(**JOBS)
def test_reduces_in_batch_mode_get_records_in_the_order_of_time(
    way: str, records: list[Record], parallelism: int, form: str
) -> None:
    ran = run_form(
        lambda env: seen(WAYS[way](keyed(env, records)), "folded"),
        form,
        mode="BATCH",
        parallelism=parallelism,
    )
    parts: dict[Any, list[Record]] = {}
    for record in records:
        parts.setdefault(record[0], []).append(record)
    check_folded(ran.records("folded"), parts)
    assert set(ran.timestamps("folded")) <= {MAX_LONG_VALUE}


@pytest.mark.parametrize("way", WINDOWS)
@pytest.mark.parametrize("slide", [2, SIZE])
@settings(max_examples=30)
@given(**JOBS)
def test_windows_in_batch_mode_get_records_in_the_order_of_time(
    way: str, slide: int, records: list[Record], parallelism: int, form: str
) -> None:
    assigner = (
        TumblingEventTimeWindows.of(Time.milliseconds(SIZE))
        if slide == SIZE
        else SlidingEventTimeWindows.of(Time.milliseconds(SIZE), Time.milliseconds(slide))
    )
    ran = run_form(
        lambda env: seen(WINDOWS[way](keyed(env, records).window(assigner)), "folded"),
        form,
        mode="BATCH",
        parallelism=parallelism,
    )
    by_end: dict[int, list[Record]] = {}
    for record, end in zip(ran.records("folded"), ran.timestamps("folded"), strict=True):
        assert end is not None
        by_end.setdefault(end + 1, []).append(record)
    ends = range(slide, 10 + SIZE, slide)
    for end in ends:
        parts: dict[Any, list[Record]] = {}
        for record in records:
            if end - SIZE <= record[1] < end:
                parts.setdefault(record[0], []).append(record)
        check_folded(by_end.pop(end, []), parts)
    assert not by_end
