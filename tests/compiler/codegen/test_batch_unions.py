"""Batch mode: the batches of one input may have records of other forms, or keys of other types."""

from __future__ import annotations

from typing import Any

import pytest
from forms import FORMS, run_form, seen

from opchain.common import Row, Types, WatermarkStrategy
from opchain.datastream import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor


class Last(KeyedProcessFunction):
    """Emits the last value and this one."""

    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_state(
            ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY())
        )

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield ctx.get_current_key(), self.last.value(), value[1]
        self.last.update(value[1])


class Alarm(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(value)
        yield value % 2, 1

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        def text() -> str:  # so it is not inlined
            return "timer"

        yield timestamp % 2, text()


def first(row: Any) -> Any:
    return row[0]


def itself(value: Any, _: int) -> Any:
    return value


MAPS = {
    "value": lambda x: (x % 2, x),
    "one": lambda x: (x % 2, 1),
    "true": lambda x: (x % 2, True),
    "more": lambda x: (x % 2, x, 1),
    "row": lambda x: Row(x % 2, x),
    "list": lambda x: [x % 2, x],
}


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("other", ["one", "true", "more", "row", "list"])
@pytest.mark.parametrize("one", ["value", "one", "list"])
def test_a_union_may_have_records_in_different_forms(one: str, other: str, mode: str) -> None:
    def draw(env: Any) -> Any:
        numbers = env.from_sequence(1, 6)
        both = numbers.map(MAPS[one]).union(numbers.map(MAPS[other]))
        return seen(both.key_by(first).process(Last()), "out")

    def results(form: str) -> list[str]:
        return [repr(record) for record in run_form(draw, form, mode=mode).records("out")]

    expected = results("interpreted")
    assert [results(form) for form in FORMS] == [expected] * len(FORMS)


@pytest.mark.parametrize("other", [None, 1.5, (1, 2)])
@pytest.mark.parametrize("form", FORMS)
def test_a_batch_may_have_keys_of_other_types_than_the_batches_before(
    form: str, other: Any
) -> None:
    def draw(env: Any) -> Any:
        records = env.from_sequence(1, 40).map(lambda x: (other if x > 38 else x % 8, x, -x))
        return seen(records.key_by(first).process(Last()), "out")

    found = run_form(draw, form, mode="BATCH", parallelism=2).records("out")
    values = [(other if x > 38 else x % 8, x) for x in range(1, 41)]
    assert sorted(((key, x) for key, _, x in found), key=repr) == sorted(values, key=repr)


@pytest.mark.parametrize("form", FORMS)
def test_a_timer_may_emit_records_in_another_form(form: str) -> None:
    def draw(env: Any) -> Any:
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(itself)
        numbers = env.from_sequence(1, 2).assign_timestamps_and_watermarks(strategy)
        alarms = numbers.key_by(lambda x: x).process(Alarm())
        return seen(alarms.key_by(first).process(Last()), "out")

    found = run_form(draw, form, mode="BATCH").records("out")
    assert sorted(found, key=repr) == [
        (0, 1, "timer"),
        (0, None, 1),
        (1, 1, "timer"),
        (1, None, 1),
    ]
