"""AsyncDataStream: asynchronous calls for records, such as look-ups in a database."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeVar

from opchain.compiler.dsl.argument_checks import DeclaredType, at_call, checked, checked_function
from opchain.compiler.dsl.data_stream import DataStream
from opchain.runtime.functions.async_functions import (
    NO_RETRY_STRATEGY,
    AsyncBatchFunction,
    AsyncFunction,
    AsyncRetryStrategy,
)
from opchain.runtime.program.operator_specs import AsyncWaitSpec
from opchain.runtime.time import Duration, Time, millis_of

if TYPE_CHECKING:
    from datetime import timedelta


T = TypeVar("T")
R = TypeVar("R")


class AsyncDataStream:
    """Applies async functions to streams.

    `timeout` limits the time from the first attempt for a record to its result, including retries; 0 is no limit.
    `capacity` is the number of records that may wait at once, per subtask.
    """

    @staticmethod
    def unordered_wait(
        data_stream: DataStream[T],
        async_function: AsyncFunction[T, R] | AsyncBatchFunction[T, R],
        timeout: Time | Duration | timedelta | int,
        capacity: int = 100,
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Emits results as they come. In event time no result overtakes a watermark."""
        limits = (timeout, capacity, NO_RETRY_STRATEGY)
        return _waiting("unordered_wait", data_stream, async_function, limits, output_type)

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream[T],
        async_function: AsyncFunction[T, R] | AsyncBatchFunction[T, R],
        timeout: Time | Duration | timedelta | int,
        async_retry_strategy: AsyncRetryStrategy[R],
        capacity: int = 100,
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Emits results as they come, and retries calls by the strategy."""
        limits = (timeout, capacity, async_retry_strategy)
        return _waiting(
            "unordered_wait_with_retry", data_stream, async_function, limits, output_type
        )

    @staticmethod
    def ordered_wait(
        data_stream: DataStream[T],
        async_function: AsyncFunction[T, R] | AsyncBatchFunction[T, R],
        timeout: Time | Duration | timedelta | int,
        capacity: int = 100,
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Emits results in the order of their records."""
        limits = (timeout, capacity, NO_RETRY_STRATEGY)
        return _waiting("ordered_wait", data_stream, async_function, limits, output_type)

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream[T],
        async_function: AsyncFunction[T, R] | AsyncBatchFunction[T, R],
        timeout: Time | Duration | timedelta | int,
        async_retry_strategy: AsyncRetryStrategy[R],
        capacity: int = 100,
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Emits results in the order of their records, and retries calls by the strategy."""
        limits = (timeout, capacity, async_retry_strategy)
        return _waiting("ordered_wait_with_retry", data_stream, async_function, limits, output_type)


def _waiting(
    call: str,
    data_stream: DataStream[Any],
    async_function: Any,
    limits: tuple[Time | Duration | timedelta | int, int, AsyncRetryStrategy[Any]],
    output_type: DeclaredType,
) -> DataStream[Any]:
    timeout, capacity, strategy = limits
    checked(data_stream, DataStream, call, "the stream")
    _check_async_function(async_function, call)
    checked(strategy, AsyncRetryStrategy, call, "the retry strategy")
    timeout_ms = millis_of(timeout)
    if timeout_ms < 0:
        raise ValueError(
            f"{at_call(call)}: the timeout is {timeout_ms} ms; it must not be negative"
        )
    has_retries = strategy != NO_RETRY_STRATEGY
    if has_retries and timeout_ms == 0:
        raise ValueError(
            f"{at_call(call)}: retries need a time limit; pass a timeout greater than 0"
        )
    if has_retries and strategy.get_retry_predicate() is None:
        raise ValueError(f"{at_call(call)}: the retry predicate of {strategy!r} is None")
    if checked(capacity, int, call, "the capacity") < 1:
        raise ValueError(f"{at_call(call)}: the capacity is {capacity}; it must be at least 1")
    spec = AsyncWaitSpec(
        async_function,
        timeout_ms,
        capacity,
        is_ordered=call.startswith("ordered"),
        retry_strategy=strategy if has_retries else None,
    )
    return data_stream.transform(spec, output_type)


def _check_async_function(function: Any, call: str) -> None:
    checked_function(function, (AsyncFunction, AsyncBatchFunction), call, callables=True)
    name = type(function).__name__
    for method in ("async_invoke", "async_invoke_batch"):
        invoked = getattr(function, method, None)
        if invoked is not None and not inspect.iscoroutinefunction(invoked):
            raise TypeError(
                f"{at_call(call)}: {name}.{method} is not a coroutine function; declare it with "
                f"'async def'"
            )
    if inspect.iscoroutinefunction(getattr(function, "timeout", None)):
        raise TypeError(
            f"{at_call(call)}: {name}.timeout is a coroutine function; it is not awaited; "
            f"declare it with 'def'"
        )
    size = getattr(function, "max_batch_size", 1)
    if not isinstance(size, int) or size < 1:
        raise ValueError(
            f"{at_call(call)}: {name}.max_batch_size is {size!r}; it must be an int of at least 1"
        )
