"""Timestamps are sent with records only if an operator reads them. Results do not change."""

from __future__ import annotations

from typing import Any

import pytest
from forms import FORMS, run_form, seen

from opchain.common import WatermarkStrategy
from opchain.datastream import KeyedProcessFunction


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


def either(row: Any, _: Any) -> Any:
    if row[2]:
        return row[1]
    return int(row[0])


@pytest.mark.parametrize("assigner", [ITEM, TRUTH, SUM, either])
@pytest.mark.parametrize("draw", [keyed, mapped, forked, united])
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_timestamps_are_the_same_in_all_forms_after_an_exchange(
    draw: Any, assigner: Any, mode: str
) -> None:
    runs = [
        run_form(lambda env: draw(env, assigner), form, mode=mode, parallelism=2) for form in FORMS
    ]
    for run in runs:
        for name in ("times", "times 0", "times 1"):
            assert run.subtasks(name) == runs[0].subtasks(name)
        assert run.counters() == runs[0].counters()
