from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from opchain.common import Duration, Time
from opchain.compiler.graph.transformation import OperatorTransformation
from opchain.datastream import (
    AsyncBatchFunction,
    AsyncDataStream,
    AsyncFunction,
    DataStream,
    StreamExecutionEnvironment,
)
from opchain.datastream.async_retry_strategies import (
    NO_RETRY_STRATEGY,
    FixedDelayRetryStrategy,
)
from opchain.runtime.program.operator_specs import AsyncWaitSpec


class Lookup(AsyncFunction[int, str]):
    async def async_invoke(self, value: int) -> list[str]:
        return [str(value)]


class Bulk(AsyncBatchFunction[int, str]):
    async def async_invoke_batch(self, values: Any) -> Any:
        return [[str(value)] for value in values]


class Blocking(AsyncFunction[int, str]):
    def async_invoke(self, value: int) -> Any:
        return [str(value)]


class WaitingTimeout(Lookup):
    async def timeout(self, value: int) -> Any:
        return ["?"]


class NoBatch(Bulk):
    max_batch_size = 0


RETRY: FixedDelayRetryStrategy[str] = FixedDelayRetryStrategy(3, 10, None, None)


@pytest.fixture
def numbers(env: StreamExecutionEnvironment) -> DataStream[int]:
    return env.from_sequence(1, 3)


def spec_of(stream: DataStream[Any]) -> AsyncWaitSpec:
    assert isinstance(stream.transformation, OperatorTransformation)
    assert isinstance(stream.transformation.spec, AsyncWaitSpec)
    return stream.transformation.spec


@pytest.mark.parametrize(
    ("call", "is_ordered"), [("unordered_wait", False), ("ordered_wait", True)]
)
def test_ordered_wait_and_unordered_wait_add_an_async_operator(
    numbers: DataStream[int], call: str, is_ordered: bool
) -> None:
    function = Lookup()
    stream = getattr(AsyncDataStream, call)(numbers, function, Time.seconds(5))
    assert stream.get_name() == "async wait operator"
    spec = spec_of(stream)
    assert isinstance(spec.function, Lookup)
    assert spec == AsyncWaitSpec(spec.function, 5000, 100, is_ordered, None)
    retried = getattr(AsyncDataStream, f"{call}_with_retry")(
        numbers, function, Time.seconds(5), RETRY, 7
    )
    spec = spec_of(retried)
    assert (spec.capacity, type(spec.retry_strategy)) == (7, type(RETRY))


@pytest.mark.parametrize("timeout", [250, timedelta(milliseconds=250), Duration.of_millis(250)])
def test_the_timeout_takes_any_kind_of_duration(numbers: DataStream[int], timeout: Any) -> None:
    assert spec_of(AsyncDataStream.ordered_wait(numbers, Lookup(), timeout)).timeout_ms == 250


def test_an_async_batch_function_is_accepted(numbers: DataStream[int]) -> None:
    spec = spec_of(AsyncDataStream.unordered_wait(numbers, Bulk(), 0))
    assert isinstance(spec.function, Bulk)


def test_a_strategy_without_retries_needs_no_timeout(numbers: DataStream[int]) -> None:
    stream = AsyncDataStream.ordered_wait_with_retry(numbers, Lookup(), 0, NO_RETRY_STRATEGY)
    assert spec_of(stream).retry_strategy is None


def test_an_async_operator_on_a_keyed_stream_keeps_its_key(numbers: DataStream[int]) -> None:
    keyed = numbers.key_by(abs)
    added = AsyncDataStream.ordered_wait(keyed, Lookup(), 0).transformation
    assert isinstance(added, OperatorTransformation)
    assert added.key_bys == (keyed.state_key,)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((Blocking(), 1), TypeError, "Blocking.async_invoke is not a coroutine function"),
        ((abs, 1), TypeError, "is not a coroutine function"),
        ((Lookup, 1), TypeError, "Lookup is a class; pass an instance"),
        ((WaitingTimeout(), 1), TypeError, "WaitingTimeout.timeout is a coroutine function"),
        (
            (NoBatch(), 1),
            ValueError,
            "NoBatch.max_batch_size is 0; it must be an int of at least 1",
        ),
        ((Lookup(), -1), ValueError, "the timeout is -1 ms; it must not be negative"),
        ((Lookup(), "5 s"), TypeError, "a span of time is"),
        ((Lookup(), 1, 0), ValueError, "the capacity is 0; it must be at least 1"),
        ((Lookup(), 1, 2.5), TypeError, "the capacity is 2.5"),
    ],
)
def test_a_wrong_argument_is_refused_at_the_call(
    numbers: DataStream[int], arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        AsyncDataStream.unordered_wait(numbers, *arguments)


class WithResultFuture(AsyncFunction[int, int]):
    """Has the parameters of Flink's Java API."""

    async def async_invoke(self, value: int, result_future: Any) -> Any:  # type: ignore[override]
        result_future.complete([value])


def test_an_async_function_with_other_parameters_is_refused(numbers: DataStream[int]) -> None:
    message = r"can't be called with \(value\): missing a required argument: 'result_future'"
    with pytest.raises(TypeError, match=message):
        AsyncDataStream.ordered_wait(numbers, WithResultFuture(), 1)


def test_async_data_stream_refuses_objects_that_are_not_streams() -> None:
    with pytest.raises(TypeError, match=r"the stream is .* it must be a DataStream"):
        AsyncDataStream.ordered_wait([1, 2], Lookup(), 1)  # type: ignore[arg-type]


def test_retries_need_a_timeout_and_a_strategy(numbers: DataStream[int]) -> None:
    with pytest.raises(ValueError, match="retries need a time limit"):
        AsyncDataStream.ordered_wait_with_retry(numbers, Lookup(), 0, RETRY)
    with pytest.raises(TypeError, match="the retry strategy is None"):
        AsyncDataStream.ordered_wait_with_retry(numbers, Lookup(), 1, None)  # type: ignore[arg-type]
