from __future__ import annotations

from typing import Any

import pytest
from forms import failure_of

from opchain.datastream.functions import CoMapFunction, MapFunction
from opchain.runtime.operators.operator import Output, StreamOperator
from opchain.runtime.records.elements import LatencyMarker
from opchain.runtime.testing.operator_harness import (
    EmittedRecord,
    EmittedWatermark,
    OneInputOperatorHarness,
    TwoInputOperatorHarness,
)


class Plus(MapFunction[int, int]):
    """Adds the number with which it was opened."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def open(self, runtime_context: Any) -> None:
        self.log.append(f"open {runtime_context.get_task_name()}")
        self.plus = 1

    def map(self, value: int) -> int:
        return value + self.plus

    def close(self) -> None:
        self.log.append("close")


class Pair(CoMapFunction[int, int, tuple[int, int]]):
    def map1(self, value: int) -> tuple[int, int]:
        return 1, value

    def map2(self, value: int) -> tuple[int, int]:
        return 2, value


# Output


def test_an_output_without_readers_drops_everything() -> None:
    output = Output()
    output.collect(1, None)
    output.collect_to("side", 1, None)
    output.emit_watermark(5)
    output.emit_status(is_idle=True)
    output.emit_latency_marker(LatencyMarker(0, "s", 0))
    assert output.current_watermark == 5


def test_everything_is_sent_to_every_reader_in_their_order() -> None:
    log: list[Any] = []
    output = Output(
        watermark_receivers=[lambda w: log.append(("a", w)), lambda w: log.append(("b", w))],
        idle_receivers=[lambda i: log.append(("a", i)), lambda i: log.append(("b", i))],
        marker_receivers=[lambda m: log.append(("a", m)), lambda m: log.append(("b", m))],
        sides={"side": lambda value, time: log.append((value, time))},
    )
    output.emit_watermark(5)
    output.emit_status(is_idle=True)
    output.emit_latency_marker("m")
    output.collect_to("side", 1, 2)
    output.collect_to("other", 3, 4)
    assert log == [("a", 5), ("b", 5), ("a", True), ("b", True), ("a", "m"), ("b", "m"), (1, 2)]


# One input


def test_a_function_is_opened_called_and_closed() -> None:
    function = Plus()
    with OneInputOperatorHarness(function) as harness:
        harness.process_element(1, 10)
        assert harness.records() == [EmittedRecord(2, 10)]
    assert function.log == ["open Map", "close"]


def test_watermarks_and_statuses_are_forwarded_without_the_function() -> None:
    with OneInputOperatorHarness(Plus()) as harness:
        harness.process_element(1)
        harness.process_watermark(7)
        harness.process_status(is_idle=True)
        harness.process_status(is_idle=False)
        assert harness.elements() == [EmittedRecord(2, None), EmittedWatermark(7)]
        assert harness.statuses() == [True, False]
        assert harness.operator.current_watermark == 7


@pytest.mark.parametrize("timestamps", [None, [10, None]])
def test_a_batch_is_processed_record_by_record(timestamps: Any) -> None:
    with OneInputOperatorHarness(Plus()) as harness:
        harness.operator.process_batch(0, [1, 2], timestamps)
        assert harness.records() == [(2, timestamps and 10), (3, None)]


def test_the_base_operator_processes_no_records() -> None:
    with OneInputOperatorHarness(Plus()) as harness:
        operator = harness.operator
        bare = StreamOperator(operator.program, operator.context, Output())
        assert bare.current_key is None
        for number, which in ((0, "has no first input"), (1, "has no second input")):
            with pytest.raises(NotImplementedError, match=f"'Map' .*{which}"):
                bare.input(number)(1, None)


def test_the_repr_shows_class_name_and_task() -> None:
    with OneInputOperatorHarness(Plus()) as harness:
        assert repr(harness.operator) == "<MapOperator 'Map' (test harness)>"


def test_generated_code_counts_records_per_batch() -> None:
    with OneInputOperatorHarness(Plus()) as harness:
        harness.operator.count(4, 3)
        harness.operator.count(1, 0)
        assert (harness.operator.records_in, harness.operator.records_out) == (5, 3)


# Two inputs


def test_each_input_calls_its_own_method() -> None:
    with TwoInputOperatorHarness(Pair()) as harness:
        harness.process_element1(7, 1)
        harness.process_element2(8, 2)
        assert harness.records() == [((1, 7), 1), ((2, 8), 2)]


@pytest.mark.parametrize(
    ("marks", "passed"),
    [
        ([(1, 5), (2, 3), (2, 9), (1, 6)], [3, 5, 6]),
        ([(1, 5), (2, 5), (1, 5)], [5]),
        ([(1, 5), (2, True)], [5]),
        ([(1, True), (2, 4), (1, False), (1, 2), (2, 8), (1, 6)], [4, 6]),
        ([(1, 5), (1, True), (2, 4), (2, True), (1, False)], [4, True, False, 5]),
        ([(1, True), (2, True), (2, True), (2, False), (2, 3)], [True, False, 3]),
    ],
)
def test_watermarks_and_statuses_of_two_inputs_are_combined(
    marks: list[Any], passed: list[Any]
) -> None:
    """A number is a watermark, True is idle and False is active.

    Flink: IndexedCombinedWatermarkStatus.
    """
    with TwoInputOperatorHarness(Pair()) as harness:
        operator, found = harness.operator, list[Any]()
        operator.output.watermark_receivers.append(found.append)
        operator.output.idle_receivers.append(found.append)
        for number, mark in marks:
            if isinstance(mark, bool):
                operator.process_status_of(number - 1, is_idle=mark)
            else:
                operator.process_watermark_of(number - 1, mark)
        assert found == passed


@pytest.mark.parametrize(
    ("marks", "passed"),
    [
        # The idle second input counts until it is closed: with its watermark 3, then with 50.
        ([(2, 3), (2, True), "open", (1, 9), "close 2", (1, 10)], [3, 9, 10]),
        ([(1, 4), (2, 3), (2, True), "open", (1, 9), (2, False), (2, 5)], [3, 4, 5]),
        ([(1, 4), (2, 50), (2, True), "open", (1, 9), (1, 60), "close 2"], [4, 9, 50, 60]),
        # Two idle inputs do not raise the watermark.
        ([(1, 4), (2, 50), (2, True), (1, True), "open", "close 1", "close 2"], [4, True]),
        (
            [(1, 4), (2, 50), (2, True), (1, True), "open", "close 1", (2, False)],
            [4, True, False, 50],
        ),
    ],
)
def test_in_an_epoch_an_idle_input_counts_until_it_is_closed(
    marks: list[Any], passed: list[Any]
) -> None:
    with TwoInputOperatorHarness(Pair()) as harness:
        operator, found = harness.operator, list[Any]()
        operator.output.watermark_receivers.append(found.append)
        operator.output.idle_receivers.append(found.append)
        for step in marks:
            if step == "open":
                operator.open_inputs = {0, 1}
            elif isinstance(step, str):
                operator.close_input(int(step[-1]) - 1)
            elif isinstance(step[1], bool):
                operator.process_status_of(step[0] - 1, is_idle=step[1])
            else:
                operator.process_watermark_of(step[0] - 1, step[1])
        assert found == passed


class YieldsInClose(MapFunction[int, int]):
    def map(self, value: int) -> int:
        return value

    def close(self) -> Any:  # type: ignore[override]
        yield 1


class YieldsInOpen(MapFunction[int, int]):
    def open(self, runtime_context: Any) -> Any:  # type: ignore[override]
        yield 1

    def map(self, value: int) -> int:
        return value


@pytest.mark.parametrize(
    ("function", "method"), [(YieldsInClose(), "close"), (YieldsInOpen(), "open")]
)
def test_a_method_that_cannot_emit_must_not_be_a_generator(function: Any, method: str) -> None:
    error = failure_of(lambda env: env.from_collection([1]).map(function).print())
    assert type(error) is TypeError
    assert f"{method}() contains a yield" in str(error)
    assert "'Map' (test_operator.py:" in str(error)
