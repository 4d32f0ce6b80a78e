"""The operator in steps: calls end, and the clock moves, when the test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from async_wait_bench import Bench
from hypothesis import given
from hypothesis import strategies as st
from opchain.runtime.functions.async_functions import AsyncBatchFunction, AsyncFunction
from opchain.runtime.functions.async_retry_strategies import (
    ExponentialBackoffDelayRetryStrategy,
    FixedDelayRetryStrategy,
)
from opchain.runtime.task.elements import LatencyMarker

if TYPE_CHECKING:
    from collections.abc import Sequence

Benches = Callable[..., Bench]


class Fetch(AsyncFunction[Any, Any]):
    """Never called in these tests but where real calls are asked for: then it gives the value back."""

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


class FetchAll(AsyncBatchFunction[Any, Any]):
    max_batch_size = 3

    async def async_invoke_batch(self, values: Sequence[Any]) -> list[list[Any]]:
        return [[value] for value in values]

    def timeout(self, values: Sequence[Any]) -> list[list[Any]]:
        return [[f"guess of {value}"] for value in values]


# Order


def test_ordered_results_wait_for_those_before_them(benches: Benches) -> None:
    bench = benches(Fetch())
    bench.operator.process_element("a", 1)
    bench.operator.process_element("b", 2)
    bench.calls[1].returns(["B"])
    assert bench.out == []
    bench.calls[0].returns(["A", "AA"])
    assert bench.out == [("A", 1), ("AA", 1), ("B", 2)]


def test_unordered_results_come_as_they_come(benches: Benches) -> None:
    bench = benches(Fetch(), is_ordered=False)
    bench.put("a", "b")
    bench.calls[1].returns(["B"])
    assert bench.values == ["B"]
    bench.calls[0].returns([])
    assert bench.values == ["B"]


@pytest.mark.parametrize("is_ordered", [True, False])
def test_marks_keep_their_place(benches: Benches, is_ordered: bool) -> None:
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


def test_a_latency_marker_waits_as_long_as_a_record(benches: Benches) -> None:
    bench = benches(Fetch())
    bench.put("a")
    marker = LatencyMarker(0, "source", 0)
    bench.operator.process_latency_marker(marker)
    assert bench.out == []
    bench.calls[0].returns(["A"])
    assert bench.out == [("A", None), ("marker", marker)]


# Capacity


def test_a_full_queue_waits_in_the_mailbox(benches: Benches) -> None:
    bench = benches(Fetch(), capacity=2)
    bench.put("a", "b")
    bench.once_it_waits(lambda: bench.calls[0].returns(["A"]))
    bench.put("c")
    assert bench.values == ["A"]
    assert [call.values for call in bench.calls] == ["a", "b", "c"]


def test_a_mark_takes_a_place_too(benches: Benches) -> None:
    bench = benches(Fetch(), capacity=1)
    bench.put("a")
    bench.once_it_waits(lambda: bench.calls[0].returns(["A"]))
    bench.operator.process_watermark(3)
    assert bench.out == [("A", None), ("watermark", 3)]


def test_mail_of_operators_upstream_waits(benches: Benches) -> None:
    bench = benches(Fetch(), capacity=1)
    ran: list[str] = []
    bench.processor.mailbox_executor(-1).execute(lambda: ran.append("upstream"), "upstream")
    bench.processor.mailbox_executor(1).execute(lambda: ran.append("downstream"), "downstream")
    bench.put("a")
    bench.once_it_waits(lambda: bench.calls[0].returns(["A"]))
    bench.put("b")
    assert ran == ["downstream"]


# The end


def test_the_end_waits_for_all_calls(benches: Benches) -> None:
    bench = benches(Fetch(), real_calls=True)
    bench.put(*range(20))
    bench.operator.process_watermark(99)
    bench.operator.end_input(0)
    bench.operator.finish()
    assert bench.out == [*((number, None) for number in range(20)), ("watermark", 99)]


def test_retries_go_on_at_the_end(benches: Benches) -> None:
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
    assert bench.service.clock.waiting_calls == 0


def test_a_result_after_the_end_of_the_task_is_dropped(benches: Benches) -> None:
    bench = benches(Fetch())
    bench.put("a")
    bench.processor.close()
    bench.operator._report_end(None, ["A"], None)
    assert bench.out == []


# Errors


def test_an_error_fails_the_task_as_it_is(benches: Benches) -> None:
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
    ]  # what the message of a failed task calls the record
    assert shown == ["b"]


def _steps(error: BaseException) -> list[Any]:
    steps = []
    step = error.__traceback__
    while step is not None:
        steps.append(step)
        step = step.tb_next
    return steps


def test_a_wrong_result_fails_the_task(benches: Benches) -> None:
    bench = benches(Fetch())
    bench.put("a")
    with pytest.raises(TypeError, match="must return an iterable"):
        bench.calls[0].returns(None)


# Time-outs


def test_a_call_that_takes_too_long_is_cancelled_and_replaced(benches: Benches) -> None:
    bench = benches(FetchOrGuess(), timeout_ms=10)
    bench.operator.process_element("a", 7)
    bench.advance(9)
    assert not bench.calls[0].is_cancelled
    bench.advance(1)
    assert bench.calls[0].is_cancelled
    assert bench.out == [("guess of a", 7)]
    bench.calls[0].returns(["too late"])
    assert bench.values == ["guess of a"]


def test_without_a_replacement_the_task_fails(benches: Benches) -> None:
    bench = benches(Fetch(), timeout_ms=10)
    bench.put("a")
    with pytest.raises(TimeoutError, match="'Fetch' gave no result in time for 'a'"):
        bench.advance(10)


def test_a_result_in_time_stops_the_clock(benches: Benches) -> None:
    bench = benches(Fetch(), timeout_ms=10)
    bench.put("a")
    bench.advance(9)
    bench.calls[0].returns(["A"])
    bench.advance(100)
    assert bench.values == ["A"]


def test_no_timeout_never_ends(benches: Benches) -> None:
    bench = benches(Fetch(), timeout_ms=0)
    bench.put("a")
    bench.advance(1000)
    assert bench.service.clock.waiting_calls == 0
    bench.calls[0].returns(["A"])
    assert bench.values == ["A"]


# Retries


def test_results_ask_for_a_retry_until_they_are_good(benches: Benches) -> None:
    strategy = FixedDelayRetryStrategy(3, 10, result_predicate=lambda results: not results)
    bench = benches(Fetch(), timeout_ms=1000, retry_strategy=strategy)
    bench.put("a")
    bench.calls[0].returns([])
    bench.advance(9)
    assert len(bench.calls) == 1
    bench.advance(1)
    assert [call.values for call in bench.calls] == ["a", "a"]
    bench.calls[1].returns(["A"])
    assert bench.values == ["A"]


def test_the_last_attempts_results_are_taken_as_they_are(benches: Benches) -> None:
    strategy = FixedDelayRetryStrategy(1, 10, result_predicate=lambda results: True)
    bench = benches(Fetch(), timeout_ms=1000, retry_strategy=strategy)
    bench.put("a")
    bench.calls[0].returns(["first"])
    bench.advance(10)
    bench.calls[1].returns(["second"])
    assert bench.values == ["second"]


def test_the_last_attempts_error_fails_the_task(benches: Benches) -> None:
    strategy = FixedDelayRetryStrategy(
        1, 10, exception_predicate=lambda error: isinstance(error, OSError)
    )
    bench = benches(Fetch(), timeout_ms=1000, retry_strategy=strategy)
    bench.put("a")
    bench.calls[0].raises(OSError("first"))
    bench.advance(10)
    with pytest.raises(OSError, match="second"):
        bench.calls[1].raises(OSError("second"))


@pytest.mark.parametrize("error", [ValueError("bad"), SystemExit(1)])
def test_an_error_that_the_predicate_does_not_name_fails_at_once(
    benches: Benches, error: BaseException
) -> None:
    strategy = FixedDelayRetryStrategy(
        1, 10, exception_predicate=lambda error: not isinstance(error, ValueError)
    )
    bench = benches(Fetch(), timeout_ms=1000, retry_strategy=strategy)
    bench.put("a")
    with pytest.raises(type(error)):
        bench.calls[0].raises(error)


def test_pauses_are_those_of_the_strategy(benches: Benches) -> None:
    strategy = ExponentialBackoffDelayRetryStrategy(
        3, 2, 5, 2.0, exception_predicate=lambda error: True
    )
    bench = benches(Fetch(), timeout_ms=1000, retry_strategy=strategy)
    bench.put("a")
    made_at = []
    for _ in range(3):
        bench.calls[-1].raises(OSError())
        attempts = len(bench.calls)
        while len(bench.calls) == attempts:
            bench.advance(1)
        made_at.append(bench.service.clock.current_processing_time())
    assert made_at == [2, 2 + 4, 2 + 4 + 5]


@pytest.mark.parametrize("is_paused", [True, False])
def test_the_timeout_ends_retries(benches: Benches, is_paused: bool) -> None:
    strategy = FixedDelayRetryStrategy(
        100, 8, result_predicate=lambda results: True, exception_predicate=lambda error: True
    )
    bench = benches(FetchOrGuess(), timeout_ms=10, retry_strategy=strategy)
    bench.put("a")
    bench.calls[0].raises(OSError())
    bench.advance(8)
    if is_paused:
        bench.calls[1].raises(OSError())
    bench.advance(2)
    # The predicate would want another attempt, but the time is over.
    assert bench.values == ["guess of a"]
    bench.advance(100)
    assert len(bench.calls) == 2
    assert bench.service.clock.waiting_calls == 0


# Batches


def test_records_gather_to_a_batch(benches: Benches) -> None:
    bench = benches(FetchAll())
    bench.put(1, 2, 3, 4)
    assert [call.values for call in bench.calls] == [[1, 2, 3]]
    bench.operator.on_batch_end()
    assert [call.values for call in bench.calls] == [[1, 2, 3], [4]]
    bench.calls[1].returns([["four"]])
    bench.calls[0].returns([["one"], [], ["three", "3"]])
    assert bench.values == ["one", "three", "3", "four"]


def test_a_watermark_ends_a_batch(benches: Benches) -> None:
    bench = benches(FetchAll(), is_ordered=False)
    bench.put(1)
    bench.operator.process_watermark(5)
    bench.put(2, 3, 4)
    assert [call.values for call in bench.calls] == [[1], [2, 3, 4]]


def test_a_batch_is_called_before_the_operator_waits_for_a_place(benches: Benches) -> None:
    bench = benches(FetchAll(), capacity=2)
    bench.once_it_waits(lambda: bench.calls[0].returns([["one"], ["two"]]))
    bench.put(1, 2, 3)
    assert [call.values for call in bench.calls] == [[1, 2]]
    assert bench.values == ["one", "two"]


def test_the_end_of_the_input_calls_for_the_rest(benches: Benches) -> None:
    bench = benches(FetchAll(), real_calls=True)
    bench.put(1, 2, 3, 4, 5)
    bench.operator.end_input(0)
    assert bench.values == [1, 2, 3, 4, 5]


def test_only_the_records_that_need_it_are_called_for_again(benches: Benches) -> None:
    strategy = FixedDelayRetryStrategy(1, 10, result_predicate=lambda results: not results)
    bench = benches(FetchAll(), timeout_ms=100, retry_strategy=strategy, is_ordered=False)
    bench.put(1, 2, 3)
    bench.calls[0].returns([["one"], [], []])
    assert bench.values == ["one"]
    bench.advance(10)
    assert bench.calls[1].values == [2, 3]
    bench.calls[1].returns([[], ["three"]])
    assert bench.values == ["one", "three"]
    bench.operator.end_input(0)


def test_after_an_error_all_are_called_for_again(benches: Benches) -> None:
    strategy = FixedDelayRetryStrategy(1, 10, exception_predicate=lambda error: True)
    bench = benches(FetchAll(), timeout_ms=100, retry_strategy=strategy)
    bench.put(1, 2, 3)
    bench.calls[0].raises(OSError())
    bench.advance(10)
    assert bench.calls[1].values == [1, 2, 3]


def test_a_batch_that_takes_too_long_is_replaced_for_those_who_wait(benches: Benches) -> None:
    strategy = FixedDelayRetryStrategy(9, 3, result_predicate=lambda results: not results)
    bench = benches(FetchAll(), timeout_ms=10, retry_strategy=strategy)
    bench.put(1, 2, 3)
    bench.calls[0].returns([["one"], [], []])
    bench.advance(10)
    assert bench.values == ["one", "guess of 2", "guess of 3"]


# Objects


@pytest.mark.parametrize("object_reuse", [True, False])
def test_records_are_kept_private_where_objects_are_reused(
    benches: Benches, object_reuse: bool
) -> None:
    bench = benches(Fetch(), object_reuse=object_reuse)
    record = [1]
    bench.put(record)
    record.append(2)
    assert bench.calls[0].values == ([1] if object_reuse else [1, 2])


# All together


class Script:
    """Runs random actions, and remembers what came in."""

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
        # A record's timestamp tells when it came.
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
        self.bench.advance(4)  # those that pause try again
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
def test_every_record_comes_out_once_and_between_its_watermarks(
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
