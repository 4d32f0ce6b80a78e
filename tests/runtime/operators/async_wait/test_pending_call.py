"""Timeouts, retries and batches of the async wait operator, in steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from async_wait_bench import Bench

from opchain.runtime.functions.async_functions import (
    AsyncBatchFunction,
    AsyncFunction,
    ExponentialBackoffDelayRetryStrategy,
    FixedDelayRetryStrategy,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

Benches = Callable[..., Bench]


class Fetch(AsyncFunction[Any, Any]):
    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.sleep(0)
        return [value]


class FetchOrGuess(Fetch):
    def timeout(self, value: Any) -> list[Any]:
        return [f"guess of {value}"]


class FetchAll(AsyncBatchFunction[Any, Any]):
    max_batch_size = 3

    async def async_invoke_batch(self, values: Sequence[Any]) -> list[list[Any]]:
        return [[value] for value in values]

    def timeout(self, values: Sequence[Any]) -> list[list[Any]]:
        return [[f"guess of {value}"] for value in values]


# Timeouts


def test_a_call_that_times_out_is_cancelled_and_replaced_by_timeout_results(
    benches: Benches,
) -> None:
    bench = benches(FetchOrGuess(), timeout_ms=10)
    bench.operator.process_element("a", 7)
    bench.advance(9)
    assert not bench.calls[0].is_cancelled
    bench.advance(1)
    assert bench.calls[0].is_cancelled
    assert bench.out == [("guess of a", 7)]
    bench.calls[0].returns(["too late"])
    assert bench.values == ["guess of a"]


def test_without_timeout_results_the_task_fails(benches: Benches) -> None:
    bench = benches(Fetch(), timeout_ms=10)
    bench.put("a")
    with pytest.raises(TimeoutError, match="'Fetch' gave no result for 'a'"):
        bench.advance(10)


def test_a_result_in_time_cancels_the_timeout(benches: Benches) -> None:
    bench = benches(Fetch(), timeout_ms=10)
    bench.put("a")
    bench.advance(9)
    bench.calls[0].returns(["A"])
    bench.advance(100)
    assert bench.values == ["A"]


def test_a_timeout_of_0_never_ends_a_call(benches: Benches) -> None:
    bench = benches(Fetch(), timeout_ms=0)
    bench.put("a")
    bench.advance(1000)
    assert bench.clock.waiting_calls == 0
    bench.calls[0].returns(["A"])
    assert bench.values == ["A"]


# Retries


def test_a_call_is_retried_until_its_results_satisfy_the_predicate(benches: Benches) -> None:
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


def test_the_results_of_the_last_attempt_are_emitted_whatever_they_are(benches: Benches) -> None:
    strategy = FixedDelayRetryStrategy(1, 10, result_predicate=lambda results: True)
    bench = benches(Fetch(), timeout_ms=1000, retry_strategy=strategy)
    bench.put("a")
    bench.calls[0].returns(["first"])
    bench.advance(10)
    bench.calls[1].returns(["second"])
    assert bench.values == ["second"]


def test_the_error_of_the_last_attempt_fails_the_task(benches: Benches) -> None:
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
def test_an_error_that_the_predicate_does_not_match_fails_at_once(
    benches: Benches, error: BaseException
) -> None:
    strategy = FixedDelayRetryStrategy(
        1, 10, exception_predicate=lambda error: not isinstance(error, ValueError)
    )
    bench = benches(Fetch(), timeout_ms=1000, retry_strategy=strategy)
    bench.put("a")
    with pytest.raises(type(error)):
        bench.calls[0].raises(error)


def test_delays_between_attempts_are_those_of_the_strategy(benches: Benches) -> None:
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
        made_at.append(bench.clock.current_processing_time())
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
    # The predicate would retry, but the timeout is over.
    assert bench.values == ["guess of a"]
    bench.advance(100)
    assert len(bench.calls) == 2
    assert bench.clock.waiting_calls == 0


# Batches


def test_records_are_collected_into_batches(benches: Benches) -> None:
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


def test_a_batch_is_called_before_the_operator_waits_for_capacity(benches: Benches) -> None:
    bench = benches(FetchAll(), capacity=2)
    bench.once_it_waits(lambda: bench.calls[0].returns([["one"], ["two"]]))
    bench.put(1, 2, 3)
    assert [call.values for call in bench.calls] == [[1, 2]]
    assert bench.values == ["one", "two"]


def test_the_end_of_input_calls_the_last_partial_batch(benches: Benches) -> None:
    bench = benches(FetchAll(), real_calls=True)
    bench.put(1, 2, 3, 4, 5)
    bench.operator.end_input(0)
    assert bench.values == [1, 2, 3, 4, 5]


def test_only_records_without_good_results_are_retried(benches: Benches) -> None:
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


def test_after_an_error_all_records_of_the_batch_are_retried(benches: Benches) -> None:
    strategy = FixedDelayRetryStrategy(1, 10, exception_predicate=lambda error: True)
    bench = benches(FetchAll(), timeout_ms=100, retry_strategy=strategy)
    bench.put(1, 2, 3)
    bench.calls[0].raises(OSError())
    bench.advance(10)
    assert bench.calls[1].values == [1, 2, 3]


def test_a_batch_that_times_out_is_replaced_for_the_pending_records(benches: Benches) -> None:
    strategy = FixedDelayRetryStrategy(9, 3, result_predicate=lambda results: not results)
    bench = benches(FetchAll(), timeout_ms=10, retry_strategy=strategy)
    bench.put(1, 2, 3)
    bench.calls[0].returns([["one"], [], []])
    bench.advance(10)
    assert bench.values == ["one", "guess of 2", "guess of 3"]
