"""What travels of records beside their fields: timestamps or none, keys that are counted. Nobody can tell."""

from __future__ import annotations

from typing import Any

import pytest
from forms import FORMS, job_of, run_form, seen
from opchain.common import WatermarkStrategy
from opchain.datastream import KeyedProcessFunction


def counted(env: Any) -> Any:
    words = env.from_sequence(0, 40).flat_map(lambda x: str(x * 7).split("1"))
    ones = words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0])
    return ones.reduce(lambda a, b: (a[0], a[1] + b[1]))


def weighted(env: Any) -> Any:
    sevens = env.from_sequence(0, 40).map(lambda x: (0.5, x % 3)).key_by(lambda pair: pair[1])
    return sevens.reduce(lambda a, b: (a[0] * 3.0 + b[0], a[1]))


def test_counting_before_sending_is_a_list_of_keys() -> None:
    def sender(draw: Any) -> str:
        return job_of(lambda env: seen(draw(env), "sums"), mode="BATCH").vertices[0].source

    assert "keys_0.extend(str(value * 7).split('1'))" in sender(counted)
    assert "counted here" in sender(counted)
    assert "counted here" not in sender(weighted)


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
