"""Asynchronous calls in whole programs, on real event loops."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, failure_of, notes_of, run_form, seen

from opchain.common import Time, Types, WatermarkStrategy
from opchain.common.watermark_strategy import TimestampAssigner
from opchain.datastream import (
    AsyncBatchFunction,
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    KeyedProcessFunction,
    async_retry_predicates,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.datastream import RuntimeContext, StreamExecutionEnvironment

LONG = Time.seconds(60)
"""A timeout that no test reaches."""


class Doubled(AsyncFunction):
    """Answers sooner for greater numbers."""

    async def async_invoke(self, value: int) -> list[int]:
        for _ in range(50 - value):
            await asyncio.sleep(0)
        return [value * 2]


async def doubled(value: int) -> list[int]:
    await asyncio.sleep(0)
    return [value * 2]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("capacity", [1, 3, 100])
@pytest.mark.parametrize("function", [Doubled(), doubled], ids=["function", "coroutine function"])
def test_ordered_wait_keeps_the_order_of_records(form: str, capacity: int, function: Any) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_sequence(1, 40)
        results = AsyncDataStream.ordered_wait(numbers, function, LONG, capacity, Types.LONG())
        seen(results.map(lambda n: n + 1), "out")

    assert run_form(draw, form, batch_size=7).records("out") == [n * 2 + 1 for n in range(1, 41)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("capacity", [1, 3, 100])
def test_unordered_wait_emits_every_result(form: str, capacity: int) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        results = AsyncDataStream.unordered_wait(
            env.from_sequence(1, 40), Doubled(), LONG, capacity
        )
        seen(results.key_by(lambda n: n % 3).map(lambda n: n), "out")

    found = run_form(draw, form, parallelism=2).records("out")
    assert sorted(found) == [n * 2 for n in range(1, 41)]


class TenTimes(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value * 10


@pytest.mark.parametrize("wait", ["ordered_wait", "unordered_wait"])
def test_watermarks_do_not_overtake_async_results(wait: str) -> None:
    class AtTheTime(KeyedProcessFunction):
        def process_element(self, value: int, ctx: Any) -> Any:
            assert ctx.timer_service().current_watermark() < ctx.timestamp()
            ctx.timer_service().register_event_time_timer(ctx.timestamp())
            return ()

        def on_timer(self, timestamp: int, ctx: Any) -> Iterator[int]:
            yield timestamp

    def draw(env: StreamExecutionEnvironment) -> None:
        times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TenTimes())
        numbers = env.from_sequence(1, 30).assign_timestamps_and_watermarks(times)
        results = getattr(AsyncDataStream, wait)(numbers, Doubled(), LONG, 4)
        seen(results.key_by(lambda n: n % 2).process(AtTheTime()), "out")

    found = run_form(draw, batch_size=1).records("out")
    assert found == [n * 10 for n in range(1, 31)]


def test_an_async_function_is_opened_and_closed_on_each_subtask() -> None:
    class WithClient(AsyncFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.client = f"client {runtime_context.get_index_of_this_subtask()}"

        async def async_invoke(self, value: int) -> list[str]:
            return [self.client] * 2

        def close(self) -> None:
            assert self.client.startswith("client")

    def draw(env: StreamExecutionEnvironment) -> None:
        spread = env.from_sequence(1, 4).rebalance()
        seen(AsyncDataStream.ordered_wait(spread, WithClient(), LONG), "out")

    found = run_form(draw, parallelism=2).subtasks("out")
    assert {subtask: {value for value, _ in records} for subtask, records in found.items()} == {
        0: {"client 0"},
        1: {"client 1"},
    }


class Broken(AsyncFunction):
    def __init__(self, result: Any = None, error: Exception | None = None) -> None:
        self.result = result
        self.error = error

    async def async_invoke(self, value: int) -> Any:
        await asyncio.sleep(0)
        if self.error is not None and value == 3:
            raise self.error
        return self.result if value == 3 else [value]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("wait", ["ordered_wait", "unordered_wait"])
@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (Broken(error=ConnectionError("no route")), ConnectionError, "no route"),
        (Broken(result=None), TypeError, "'Broken.async_invoke' returned None for 3"),
        (Broken(result=7), TypeError, "'Broken.async_invoke' returned 7 for 3"),
    ],
    ids=["raises", "returns None", "returns no iterable"],
)
def test_an_error_of_an_async_function_fails_the_job_and_names_the_record(
    form: str, wait: str, function: Any, kind: type[Exception], message: str
) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        seen(getattr(AsyncDataStream, wait)(env.from_sequence(1, 9), function, LONG), "out")

    error = failure_of(draw, form)
    assert type(error) is kind
    assert message in str(error)
    assert "in 'async wait operator' (test_async_function.py:" in notes_of(error)
    assert "at record 3" in notes_of(error)


class Hangs(AsyncFunction):
    async def async_invoke(self, value: int) -> list[str]:
        await asyncio.Event().wait()
        return []


class HangsOrGuesses(Hangs):
    def timeout(self, value: int) -> list[str]:
        return [f"guess {value}"]


def test_an_async_call_that_never_answers_times_out() -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_sequence(1, 3)
        seen(AsyncDataStream.ordered_wait(numbers, HangsOrGuesses(), 5, 2), "out")

    assert run_form(draw).records("out") == ["guess 1", "guess 2", "guess 3"]


def test_a_timeout_that_the_function_does_not_handle_fails_the_job() -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        seen(AsyncDataStream.ordered_wait(env.from_sequence(7, 9), Hangs(), 5), "out")

    error = failure_of(draw)
    assert isinstance(error, TimeoutError)
    assert "'Hangs' gave no result for 7" in str(error)


class Flaky(AsyncFunction):
    """Succeeds with the third attempt for each value."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.attempts: dict[int, int] = {}

    async def async_invoke(self, value: int) -> list[str]:
        await asyncio.sleep(0)
        attempt = self.attempts[value] = self.attempts.get(value, 0) + 1
        if attempt >= 3:
            return [f"{value} at attempt {attempt}"]
        if self.how == "raises":
            raise ConnectionResetError(f"attempt {attempt}")
        return []


RETRIES = {
    "raises": AsyncRetryStrategy.fixed_delay(
        3, 1, exception_predicate=async_retry_predicates.has_exception_predicate
    ),
    "returns nothing": AsyncRetryStrategy.exponential_backoff(
        3, 1, 2, 2.0, result_predicate=async_retry_predicates.empty_result_predicate
    ),
}


@pytest.mark.parametrize("how", RETRIES)
@pytest.mark.parametrize("wait", ["ordered_wait_with_retry", "unordered_wait_with_retry"])
def test_async_calls_are_retried_even_after_the_end_of_the_input(how: str, wait: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_sequence(1, 5)
        seen(getattr(AsyncDataStream, wait)(numbers, Flaky(how), LONG, RETRIES[how], 3), "out")

    found = run_form(draw).records("out")
    assert sorted(found) == [f"{n} at attempt 3" for n in range(1, 6)]


def test_the_error_of_the_last_retry_fails_the_job() -> None:
    strategy: Any = AsyncRetryStrategy.fixed_delay(
        1, 1, exception_predicate=async_retry_predicates.has_exception_predicate
    )

    def draw(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_sequence(1, 2)
        stream = AsyncDataStream.ordered_wait_with_retry(numbers, Flaky("raises"), LONG, strategy)
        seen(stream, "out")

    error = failure_of(draw)
    assert isinstance(error, ConnectionResetError)
    assert str(error) == "attempt 2"


class Batched(AsyncBatchFunction):
    max_batch_size = 4

    async def async_invoke_batch(self, values: Sequence[int]) -> list[list[Any]]:
        await asyncio.sleep(0)
        return [[(value, len(values))] for value in values]


@pytest.mark.parametrize("form", FORMS)
def test_an_async_batch_function_gets_several_records_at_once(form: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        seen(AsyncDataStream.ordered_wait(env.from_sequence(1, 10), Batched(), LONG), "out")

    found = run_form(draw, form).records("out")
    assert found == [(n, 4) for n in range(1, 9)] + [(9, 2), (10, 2)]


def test_an_async_function_can_run_blocking_code_on_threads() -> None:
    class Blocking(AsyncFunction):
        async def async_invoke(self, value: int) -> list[bool]:
            caller = threading.current_thread()
            return [await asyncio.to_thread(lambda: threading.current_thread() is not caller)]

    def draw(env: StreamExecutionEnvironment) -> None:
        seen(AsyncDataStream.ordered_wait(env.from_sequence(1, 4), Blocking(), LONG), "out")

    assert run_form(draw).records("out") == [True] * 4


def test_two_async_operators_can_be_chained() -> None:
    """Two operators in one task: while the second waits, nothing of the first runs."""

    def draw(env: StreamExecutionEnvironment) -> None:
        first = AsyncDataStream.unordered_wait(env.from_sequence(1, 60), Doubled(), LONG, 2)
        second = AsyncDataStream.unordered_wait(first, doubled, LONG, 1)
        seen(second, "out")

    ran = run_form(draw)
    assert len(ran.job.vertices) == 1
    assert sorted(ran.records("out")) == [n * 4 for n in range(1, 61)]


def test_async_results_are_the_same_in_batch_mode() -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        keyed = env.from_sequence(1, 20).key_by(lambda n: n % 2)
        results = AsyncDataStream.ordered_wait(keyed, Doubled(), LONG, 3)
        seen(results.key_by(lambda n: n % 4).reduce(lambda a, b: a + b), "out")

    assert sorted(run_form(draw, mode="BATCH").records("out")) == [200, 220]
