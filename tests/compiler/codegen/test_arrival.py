"""How records come into the loop over a batch."""

from __future__ import annotations

from typing import Any

import pytest
from forms import FORMS, job_of, run_form, seen

from opchain.common import WatermarkStrategy
from opchain.datastream import KeyedProcessFunction


class Noting(KeyedProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, ctx.timestamp()


def timed(env: Any, assigner: Any, make: Any = tuple) -> Any:
    rows = [make((i % 3, (i * 7) % 40)) for i in range(40)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assigner)
    return env.from_collection(rows).assign_timestamps_and_watermarks(strategy)


def summed(stream: Any) -> Any:
    return stream.key_by(lambda row: row[0]).reduce(lambda a, b: (a[0], "sum", a[2] + b[2]))


def whole(env: Any) -> None:
    seen(env.from_sequence(0, 9).rebalance().map(lambda x: x + 1), "out")


def whole_with_times(env: Any) -> None:
    stream = timed(env, lambda row, _: row[1] + 1)
    seen(stream.key_by(lambda row: row[0]).process(Noting()), "out")


def with_times_inside(env: Any) -> None:
    stream = timed(env, lambda row, _: row[1])
    seen(stream.key_by(lambda row: row[0]).process(Noting()), "out")


def doubles_its_time(row: list[int]) -> bool:
    row[1] *= 2
    return True


def with_times_changed_inside(env: Any) -> None:
    stream = timed(env, lambda row, _: row[1], make=list).filter(doubles_its_time)
    seen(stream.key_by(lambda row: row[0]).process(Noting()), "out")


def with_times_read_inside(env: Any) -> None:
    stream = timed(env, lambda row, _: row[1], make=list).filter(lambda row: row[1] > 9)
    seen(stream.key_by(lambda row: row[0]).process(Noting()), "out")


def by_fields(env: Any) -> None:
    seen(summed(env.from_sequence(0, 9).map(lambda x: (x % 3, "sum", x))), "out")


def by_one_field(env: Any) -> None:
    ones = env.from_sequence(0, 9).map(lambda x: (x % 3, 1)).key_by(lambda pair: pair[0])
    seen(ones.reduce(lambda a, b: (a[0], a[1] + b[1])), "out")


def by_fields_with_times(env: Any) -> None:
    sums = summed(timed(env, lambda row, _: row[1]).map(lambda row: (row[0], "sum", row[1])))
    seen(sums.key_by(lambda row: row[0]).process(Noting()), "out")


def fields_read_whole(env: Any) -> None:
    pairs = env.from_sequence(0, 9).map(lambda x: (x % 3, x))
    seen(pairs.key_by(lambda pair: pair[0]).map(str), "out")


LOOPS = {
    whole: "for value in values:",
    whole_with_times: "for value, timestamp in zip(values, timestamps):",
    with_times_inside: "for value in values:\n        timestamp = value[1]\n",
    with_times_changed_inside: "for value, timestamp in zip(values, timestamps):",
    with_times_read_inside: "for value in values:\n        timestamp = value[1]\n",
    by_fields: "for field_0, field_2 in values.rows():",
    by_one_field: "for field_0 in values.rows():",
    by_fields_with_times: "for field_0, field_2, timestamp in values.rows(timestamps):",
    fields_read_whole: "for value in values:",
}


@pytest.mark.parametrize(("draw", "loop"), LOOPS.items())
def test_the_loop_takes_what_arrives(draw: Any, loop: str) -> None:
    sources = [vertex.source for vertex in job_of(draw).vertices]
    assert loop in "".join(sources[1:])


@pytest.mark.parametrize("draw", LOOPS)
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_all_forms_read_the_same(draw: Any, mode: str) -> None:
    runs = [run_form(draw, form, mode=mode, parallelism=2) for form in FORMS]
    assert runs[0].records("out")
    for run in runs:
        assert run.subtasks("out") == runs[0].subtasks("out")
        assert run.counters() == runs[0].counters()
