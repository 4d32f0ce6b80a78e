"""`on_error`: generated and interpreted code agree on failures, results and counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, failure_of, run_form, seen

from opchain.common import Types
from opchain.datastream import FailedRecord, OutputTag, StreamExecutionEnvironment
from opchain.datastream.functions import (
    CoMapFunction,
    KeyedProcessFunction,
    MapFunction,
)
from opchain.datastream.state import ValueStateDescriptor
from opchain.runtime.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Iterator


FAILED: Any = OutputTag("failed")
TEXTS = ["1", "x", "3"]


def parts(text: str) -> Iterator[int]:
    yield 0
    yield int(text)


class Parse(MapFunction[str, int]):
    def map(self, value: str) -> int:
        return int(value)


class Counts(KeyedProcessFunction[Any, Any, Any]):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield "before"
        yield int(value) + count


class Alarms(KeyedProcessFunction[int, int, Any]):
    """Registers a timer for each record. Fails for records above 1, and at the timer `fails_at`."""

    def __init__(self, fails_at: int = 0) -> None:
        self.fails_at = fails_at

    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        ctx.timer_service().register_event_time_timer(value)
        if value > 1:
            raise ValueError(f"record {value}")
        yield "record"

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        if timestamp == self.fails_at:
            raise ValueError(f"timer {timestamp}")
        yield timestamp


class ParseBoth(CoMapFunction[Any, Any, Any]):
    def map1(self, value: Any) -> int:
        return int(value)

    def map2(self, value: Any) -> int:
        return -int(value)


SHAPES = {
    "lambda": (lambda texts: texts.map(lambda text: int(text) + 0), [1, 3]),
    "class": (lambda texts: texts.map(Parse()), [1, 3]),
    "filter": (lambda texts: texts.filter(lambda text: int(text) > 1), ["3"]),
    "generator": (lambda texts: texts.flat_map(parts), [0, 1, 0, 3]),
    "keyed": (
        lambda texts: texts.key_by(lambda text: 0).process(Counts()),
        ["before", 2, "before", 6],
    ),
    "two inputs": (lambda texts: texts.connect(texts).map(ParseBoth()), [1, 3, -1, -3]),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_failing_record_goes_to_the_side_output(form: str, shape: str) -> None:
    make, expected = SHAPES[shape]

    def draw(env: StreamExecutionEnvironment) -> None:
        result = make(env.from_collection(TEXTS)).name("parse").on_error(FAILED)
        seen(result.map(lambda value: value), "main")
        seen(result.get_side_output(FAILED), "failed")

    ran = run_form(draw, form)
    assert sorted(ran.records("main"), key=str) == sorted(expected, key=str)
    failed = ran.records("failed")
    assert len(failed) == (2 if shape == "two inputs" else 1)
    for record in failed:
        assert isinstance(record, FailedRecord)
        assert (record.value, record.operator) == ("x", "parse")
        assert record.error == "ValueError: invalid literal for int() with base 10: 'x'"
        assert "test_on_error.py:" in record.place
    assert "numRecordsInErrors" in str(ran.outcome.metrics)


@pytest.mark.parametrize("form", FORMS)
def test_skip_continues_with_the_next_record(form: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        seen(env.from_collection(TEXTS).map(int).on_error("skip"), "main")

    assert run_form(draw, form).records("main") == [1, 3]


@pytest.mark.parametrize("form", FORMS)
def test_an_error_in_an_operator_downstream_is_not_caught(form: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        doubled = env.from_collection(["1"]).map(int).on_error("skip")
        seen(doubled.map(lambda number: 1 // (number - 1)), "main")

    assert isinstance(failure_of(draw, form), ZeroDivisionError)


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("form", FORMS)
def test_timers_emit_their_results_if_the_record_of_the_next_key_fails(
    form: str, mode: str
) -> None:
    def draw(env: Any) -> None:
        alarms = env.from_sequence(1, 3).key_by(lambda value: value).process(Alarms())
        seen(alarms.on_error("skip"), "out")

    found = run_form(draw, form, mode=mode).records("out")
    assert sorted(found, key=str) == [1, 2, 3, "record"]


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("fails_at", [1, 2, 3])
@pytest.mark.parametrize("form", FORMS)
def test_an_error_in_a_timer_is_not_caught(form: str, fails_at: int, mode: str) -> None:
    def draw(env: Any) -> None:
        alarms = env.from_sequence(1, 3).key_by(lambda value: value).process(Alarms(fails_at))
        seen(alarms.on_error("skip"), "out")

    assert str(failure_of(draw, form, mode=mode)) == f"timer {fails_at}"


def test_fail_restores_the_default() -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        seen(env.from_collection(TEXTS).map(int).on_error("skip").on_error("fail"), "main")

    assert isinstance(failure_of(draw), ValueError)


def test_operators_that_cannot_have_on_error_are_refused() -> None:
    texts = StreamExecutionEnvironment.get_execution_environment().from_collection(TEXTS)
    with pytest.raises(
        UnsupportedFeatureError, match=r"on_error\(\).*calls no function with single"
    ):
        texts.key_by(lambda text: text).reduce(max).on_error("skip")
    with pytest.raises(ValueError, match="it takes 'fail', 'skip' or an OutputTag"):
        texts.map(int).on_error("ignore")
