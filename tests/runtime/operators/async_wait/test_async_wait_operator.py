"""The async wait operator in steps: the test says when calls end and the clock advances."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from async_wait_bench import Bench
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.functions.async_functions import (
    AsyncFunction,
    FixedDelayRetryStrategy,
)
from opchain.runtime.records.elements import LatencyMarker

Benches = Callable[..., Bench]


class Fetch(AsyncFunction[Any, Any]):
    """Never called in these tests unless they request real calls: then it returns the value."""

    def __init__(self) -> None:
        self.is_closed = False

    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.sleep(0)
        return [value]

    def close(self) -> None:
        self.is_closed = True


class FetchOrGuess(Fetch):
    def timeout(self, value: Any) -> list[Any]:
        return [f"guess of {value}"]


# Order


def test_ordered_results_wait_for_earlier_ones(benches: Benches) -> None:
    bench = benches(Fetch())
    bench.operator.process_element("a", 1)
    bench.operator.process_element("b", 2)
    bench.calls[1].returns(["B"])
    assert bench.out == []
    bench.calls[0].returns(["A", "AA"])
    assert bench.out == [("A", 1), ("AA", 1), ("B", 2)]


def test_unordered_results_are_emitted_when_their_calls_end(benches: Benches) -> None:
    bench = benches(Fetch(), is_ordered=False)
    bench.put("a", "b")
    bench.calls[1].returns(["B"])
    assert bench.values == ["B"]
    bench.calls[0].returns([])
    assert bench.values == ["B"]


@pytest.mark.parametrize("is_ordered", [True, False])
def test_watermarks_and_statuses_keep_their_place(benches: Benches, is_ordered: bool) -> None:
    bench = benches(Fetch(), is_ordered=is_ordered)
    bench.operator.process_watermark(1)
    bench.put("a")
    bench.operator.process_watermark(5)
    bench.operator.process_status(is_idle=True)
    bench.put("b")
    bench.calls[1].returns(["B"])
    assert bench.out == [("watermark", 1)]
    assert bench.operator.current_watermark == 1
    bench.calls[0].returns(["A"])
    assert bench.out[1:] == [("A", None), ("watermark", 5), ("idle", True), ("B", None)]
    assert bench.operator.current_watermark == 5


def test_a_latency_marker_waits_for_earlier_records(benches: Benches) -> None:
    bench = benches(Fetch())
    bench.put("a")
    marker = LatencyMarker(0, "source", 0)
    bench.operator.process_latency_marker(marker)
    assert bench.out == []
    bench.calls[0].returns(["A"])
    assert bench.out == [("A", None), ("marker", marker)]


# Capacity


def test_a_full_queue_makes_the_operator_yield_to_the_mailbox(benches: Benches) -> None:
    bench = benches(Fetch(), capacity=2)
    bench.put("a", "b")
    bench.once_it_waits(lambda: bench.calls[0].returns(["A"]))
    bench.put("c")
    assert bench.values == ["A"]
    assert [call.values for call in bench.calls] == ["a", "b", "c"]


def test_a_watermark_takes_a_place_in_the_queue_too(benches: Benches) -> None:
    bench = benches(Fetch(), capacity=1)
    bench.put("a")
    bench.once_it_waits(lambda: bench.calls[0].returns(["A"]))
    bench.operator.process_watermark(3)
    assert bench.out == [("A", None), ("watermark", 3)]


def test_mail_of_operators_upstream_does_not_run_while_the_operator_waits(benches: Benches) -> None:
    bench = benches(Fetch(), capacity=1)
    ran: list[str] = []
    bench.processor.mailbox_executor(-1).execute(lambda: ran.append("upstream"), "upstream")
    bench.processor.mailbox_executor(1).execute(lambda: ran.append("downstream"), "downstream")
    bench.put("a")
    bench.once_it_waits(lambda: bench.calls[0].returns(["A"]))
    bench.put("b")
    assert ran == ["downstream"]


# The end of input


def test_the_end_of_input_waits_for_all_calls(benches: Benches) -> None:
    bench = benches(Fetch(), real_calls=True)
    bench.put(*range(20))
    bench.operator.process_watermark(99)
    bench.operator.end_input(0)
    bench.operator.finish()
    assert bench.out == [*((number, None) for number in range(20)), ("watermark", 99)]


def test_retries_continue_at_the_end_of_input(benches: Benches) -> None:
    bench = benches(
        Fetch(),
        timeout_ms=100,
        retry_strategy=FixedDelayRetryStrategy(2, 5, exception_predicate=lambda error: True),
    )

    def fail_and_succeed() -> None:
        bench.calls[0].raises(OSError())
        bench.advance(5)
        bench.calls[1].returns(["A"])

    bench.put("a")
    bench.once_it_waits(fail_and_succeed)
    bench.operator.end_input(0)
    assert bench.values == ["A"]


def test_closing_stops_the_event_loop_and_closes_the_function(benches: Benches) -> None:
    function = Fetch()
    bench = benches(function, timeout_ms=10)
    bench.put("a")
    bench.operator.close()
    assert not bench.scripted.is_running
    assert function.is_closed
    assert bench.clock.waiting_calls == 0


def test_a_result_after_the_end_of_the_task_is_dropped(benches: Benches) -> None:
    bench = benches(Fetch())
    bench.put("a")
    bench.processor.close()
    bench.operator._report_end(None, ["A"], None)
    assert bench.out == []


# Errors


def test_an_error_of_a_call_fails_the_task_unchanged(benches: Benches) -> None:
    bench = benches(Fetch())
    bench.put("a", "b")
    error = ConnectionError("no route")
    with pytest.raises(ConnectionError, match="no route") as raised:
        bench.calls[1].raises(error)
    assert raised.value is error
    frames = [frame.tb_frame for frame in _steps(raised.value)]
    shown = [
        frame.f_locals["value"]
        for frame in frames
        if frame.f_locals.get("self") is bench.operator and "value" in frame.f_locals
    ]  # the frames that give a failed task the name of the record
    assert shown == ["b"]


def _steps(error: BaseException) -> list[Any]:
    steps = []
    step = error.__traceback__
    while step is not None:
        steps.append(step)
        step = step.tb_next
    return steps


def test_a_result_that_is_not_iterable_fails_the_task(benches: Benches) -> None:
    bench = benches(Fetch())
    bench.put("a")
    with pytest.raises(TypeError, match="return an iterable"):
        bench.calls[0].returns(None)


# Object reuse


@pytest.mark.parametrize("object_reuse", [True, False])
def test_records_are_copied_if_object_reuse_is_enabled(
    benches: Benches, object_reuse: bool
) -> None:
    bench = benches(Fetch(), object_reuse=object_reuse)
    record = [1]
    bench.put(record)
    record.append(2)
    assert bench.calls[0].values == ([1] if object_reuse else [1, 2])


# Random actions


class Script:
    """Runs random actions, and records its inputs."""

    def __init__(self, *, is_ordered: bool, capacity: int) -> None:
        retries: FixedDelayRetryStrategy[Any] = FixedDelayRetryStrategy(
            1000, 4, exception_predicate=lambda error: True
        )
        self.bench = Bench(
            FetchOrGuess(),
            timeout_ms=10,
            capacity=capacity,
            is_ordered=is_ordered,
            retry_strategy=retries,
        )
        self.came: list[tuple[str, int]] = []

    def run(self, kind: str, number: int) -> None:
        getattr(self, kind)(number)

    def record(self, _number: int) -> None:
        self.bench.once_it_waits(self.end_all)
        # The timestamp of a record is its arrival time.
        self.came.append((f"record {len(self.came)}", len(self.came)))
        self.bench.operator.process_element(*self.came[-1])

    def watermark(self, _number: int) -> None:
        self.bench.once_it_waits(self.end_all)
        self.came.append(("watermark", len(self.came)))
        self.bench.operator.process_watermark(self.came[-1][1])

    def clock(self, number: int) -> None:
        self.bench.advance(number)

    def succeed(self, number: int) -> None:
        if calls := self.under_way():
            call = calls[number % len(calls)]
            call.returns([call.values])

    def fail(self, number: int) -> None:
        if calls := self.under_way():
            calls[number % len(calls)].raises(OSError())

    def under_way(self) -> list[Any]:
        return [call for call in self.bench.calls if not (call.has_ended or call.is_cancelled)]

    def end_all(self) -> None:
        self.bench.advance(4)  # calls that wait for a retry are called again
        for call in self.under_way():
            call.returns([call.values])

    def left(self) -> list[tuple[str, int]]:
        self.bench.run_mail()
        self.end_all()
        self.bench.operator.end_input(0)
        self.bench.close()
        return [(str(value).removeprefix("guess of "), number) for value, number in self.bench.out]


@given(
    actions=st.lists(
        st.tuples(
            st.sampled_from(
                ["record", "record", "watermark", "succeed", "succeed", "fail", "clock"]
            ),
            st.integers(0, 9),
        ),
        max_size=50,
    ),
    is_ordered=st.booleans(),
    capacity=st.integers(1, 5),
)
def test_every_record_is_emitted_once_and_between_its_watermarks(
    actions: list[tuple[str, int]], is_ordered: bool, capacity: int
) -> None:
    script = Script(is_ordered=is_ordered, capacity=capacity)
    for action in actions:
        script.run(*action)
    left = script.left()
    if is_ordered:
        assert left == script.came
    else:
        assert _between_watermarks(left) == _between_watermarks(script.came)


def _between_watermarks(elements: list[tuple[str, int]]) -> list[list[tuple[str, int]]]:
    parts: list[list[tuple[str, int]]] = [[]]
    for element in elements:
        if element[0] == "watermark":
            parts += [[element], []]
        else:
            parts[-1].append(element)
    return [sorted(part) for part in parts]
