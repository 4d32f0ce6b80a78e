"""Functions that call external systems without blocking the stream, and retry strategies for their calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from opchain.runtime.errors import short_repr
from opchain.runtime.functions.function import Function
from opchain.runtime.types.type_variables import IN_contra, OUT_co, T

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence, Sized
    from datetime import timedelta

    from typing_extensions import Self

    from opchain.runtime.time import Duration, Time

    ResultPredicate: TypeAlias = Callable[[list[T]], bool] | None
    ExceptionPredicate: TypeAlias = Callable[[Exception], bool] | None


class AsyncFunction(Function, Generic[IN_contra, OUT_co]):
    """Calls an external system for each record. Many calls run concurrently."""

    @abstractmethod
    async def async_invoke(self, value: IN_contra) -> Iterable[OUT_co]:
        """Returns the results of one record. Runs on an event loop of the task, which it must not block.

        An exception fails the task, unless the retry strategy covers it.
        """

    def timeout(self, value: IN_contra) -> Iterable[OUT_co]:
        """Returns the results to emit if a call, including its retries, took longer than the timeout.

        Raises:
            TimeoutError: Always, unless overridden. It fails the task.
        """
        from opchain.runtime.functions.callables import name_of  # noqa: PLC0415 - it imports this

        raise TimeoutError(
            f"'{name_of(self)}' gave no result for {short_repr(value)} within the timeout; pass a longer timeout, "
            "or override timeout() of an AsyncFunction to emit another result"
        )


class AsyncBatchFunction(Function, Generic[IN_contra, OUT_co]):
    """Calls an external system for several records at a time, such as a model or a bulk look-up.

    A call gets records that arrived together: at most `max_batch_size`, and never records on both sides of a watermark.
    If the results of some records ask for a retry, only these records are retried. After an exception, all records of
    the call are retried. Not in Flink 2.3 or PyFlink 2.3.
    """

    max_batch_size: int = 32
    """The maximum number of records per call. The capacity of the operator also limits it."""

    @abstractmethod
    async def async_invoke_batch(self, values: Sequence[IN_contra]) -> Sequence[Iterable[OUT_co]]:
        """Returns one iterable of results per value, in the order of the values."""

    def timeout(self, values: Sequence[IN_contra]) -> Sequence[Iterable[OUT_co]]:
        """Returns the results to emit if the call took longer than the timeout: one iterable per value.

        Raises:
            TimeoutError: Always, unless overridden. It fails the task.
        """
        raise TimeoutError(
            f"'{type(self).__name__}' gave no results for {len(values)} records, the first "
            f"{short_repr(values[0])}, within the timeout; pass a longer timeout, or override timeout() to emit other "
            "results"
        )


@dataclass(frozen=True)
class AsyncFunctionDescriptor:
    """An async function, with the settings passed to `AsyncDataStream`."""

    class OutputMode(Enum):
        """Whether results keep the order of their records."""

        ORDERED = 0
        UNORDERED = 1

    async_function: AsyncFunction[Any, Any]
    timeout: Duration | Time | timedelta | int
    capacity: int
    async_retry_strategy: AsyncRetryStrategy[Any]
    output_mode: OutputMode


def empty_result_predicate(result: Sized | None) -> bool:
    """Asks for a retry if there are no results."""
    return result is None or len(result) == 0


def has_exception_predicate(error: BaseException | None) -> bool:
    """Asks for a retry after any exception."""
    return error is not None


def exception_type_predicate(
    error: BaseException | None,
    expected_error_type: type[BaseException] | tuple[type[BaseException], ...],
) -> bool:
    """Asks for a retry after exceptions of certain classes. Bind the second argument to use it.

    >>> from functools import partial
    >>> retry_on = partial(exception_type_predicate, expected_error_type=ConnectionError)
    >>> retry_on(ConnectionResetError()), retry_on(ValueError())
    (True, False)
    """
    return isinstance(error, expected_error_type)


class AsyncRetryPredicate(ABC, Generic[T]):
    """Decides which results and which exceptions are retried. None retries none of them."""

    @abstractmethod
    def result_predicate(self) -> ResultPredicate[T]:
        """The predicate for the results of a successful attempt."""

    @abstractmethod
    def exception_predicate(self) -> ExceptionPredicate:
        """The predicate for the exception of a failed attempt."""


class AsyncRetryStrategy(ABC, Generic[T]):
    """Decides whether and when a call is retried.

    Retries are counted from 1. All concurrent records share the strategy, so it must not keep state between calls.
    """

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Whether the n-th retry is allowed."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """The pause before the n-th retry in milliseconds, or -1 for no retry."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[T]:
        """The predicate that decides on retries."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """Never retries a call."""
        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate[T] = None,
        exception_predicate: ExceptionPredicate = None,
    ) -> FixedDelayRetryStrategy[T]:
        """Retries a call after a fixed pause."""
        return FixedDelayRetryStrategy(
            max_attempts, backoff_time_millis, result_predicate, exception_predicate
        )

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate[T] = None,
        exception_predicate: ExceptionPredicate = None,
    ) -> ExponentialBackoffDelayRetryStrategy[T]:
        """Retries a call after increasing pauses."""
        return ExponentialBackoffDelayRetryStrategy(
            max_attempts,
            initial_delay,
            max_retry_delay,
            multiplier,
            result_predicate,
            exception_predicate,
        )


class RetryPredicate(AsyncRetryPredicate[T]):
    """A pair of predicates; either may be None."""

    def __init__(
        self, result_predicate: ResultPredicate[T], exception_predicate: ExceptionPredicate
    ) -> None:
        self._result_predicate = result_predicate
        self._exception_predicate = exception_predicate

    def result_predicate(self) -> ResultPredicate[T]:
        """The predicate for results."""
        return self._result_predicate

    def exception_predicate(self) -> ExceptionPredicate:
        """The predicate for exceptions."""
        return self._exception_predicate


class NoRetryStrategy(AsyncRetryStrategy[T]):
    """Never retries a call."""

    def can_retry(self, current_attempts: int) -> bool:  # noqa: ARG002 - the same for any number
        """Always False."""
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:  # noqa: ARG002 - the same for any number
        """Always -1: there is no retry."""
        return -1

    def get_retry_predicate(self) -> RetryPredicate[T]:
        """A predicate that retries nothing."""
        return RetryPredicate(None, None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoRetryStrategy)

    def __hash__(self) -> int:
        return hash(NoRetryStrategy.__name__)


NO_RETRY_STRATEGY: AsyncRetryStrategy[Any] = NoRetryStrategy()


class _LimitedRetryStrategy(AsyncRetryStrategy[T]):
    def __init__(
        self,
        max_attempts: int,
        result_predicate: ResultPredicate[T],
        exception_predicate: ExceptionPredicate,
    ) -> None:
        self._max_attempts = max_attempts
        self._predicate = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        """Whether the number is within the limit."""
        return current_attempts <= self._max_attempts

    def get_retry_predicate(self) -> RetryPredicate[T]:
        """The predicate that decides on retries."""
        return self._predicate


class FixedDelayRetryStrategy(_LimitedRetryStrategy[T]):
    """Retries a call after a fixed pause.

    Args:
        max_attempts: The maximum number of retries; at least 1.
        backoff_time_millis: The pause in milliseconds; at least 1.
        result_predicate: Decides which results are retried. None: no results.
        exception_predicate: Decides which exceptions are retried. None: no exceptions.
    """

    def __init__(
        self,
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate[T] = None,
        exception_predicate: ExceptionPredicate = None,
    ) -> None:
        _require_positive(max_attempts=max_attempts, backoff_time_millis=backoff_time_millis)
        super().__init__(max_attempts, result_predicate, exception_predicate)
        self._backoff_time_millis = backoff_time_millis

    def get_backoff_time_millis(self, current_attempts: int) -> int:  # noqa: ARG002 - the same for any number
        """The pause in milliseconds."""
        return self._backoff_time_millis


class ExponentialBackoffDelayRetryStrategy(_LimitedRetryStrategy[T]):
    """Retries a call after pauses that grow by a factor, up to a limit.

    Flink computes a pause from the last pause of any record, so concurrent records lengthen each other's pauses. Here a
    pause depends only on the number of the retry.

    Args:
        max_attempts: The maximum number of retries; at least 1.
        initial_delay: The first pause in milliseconds.
        max_retry_delay: The longest pause in milliseconds.
        multiplier: The factor; more than 0.
        result_predicate: Decides which results are retried. None: no results.
        exception_predicate: Decides which exceptions are retried. None: no exceptions.
    """

    def __init__(
        self,
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate[T] = None,
        exception_predicate: ExceptionPredicate = None,
    ) -> None:
        _require_positive(
            max_attempts=max_attempts,
            initial_delay=initial_delay,
            max_retry_delay=max_retry_delay,
            multiplier=multiplier,
        )
        super().__init__(max_attempts, result_predicate, exception_predicate)
        self._initial_delay = initial_delay
        self._max_retry_delay = max_retry_delay
        self._multiplier = multiplier

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """The pause before the n-th retry, in milliseconds.

        Each pause is rounded down before the next one is computed from it.
        """
        delay = self._initial_delay
        for _ in range(1, min(current_attempts, self._max_attempts)):
            delay = int(min(delay * self._multiplier, self._max_retry_delay))
        return delay


class _Builder(Generic[T]):
    def __init__(self, *arguments: Any) -> None:
        self._arguments = arguments
        self._result_predicate: ResultPredicate[T] = None
        self._exception_predicate: ExceptionPredicate = None

    def if_result(self, result_predicate: Callable[[list[T]], bool]) -> Self:
        """Sets which results are retried."""
        self._result_predicate = result_predicate
        return self

    def if_exception(self, exception_predicate: Callable[[Exception], bool]) -> Self:
        """Sets which exceptions are retried."""
        self._exception_predicate = exception_predicate
        return self

    def _all_arguments(self) -> tuple[Any, ...]:
        return *self._arguments, self._result_predicate, self._exception_predicate


class FixedDelayRetryStrategyBuilder(_Builder[T]):
    """Builds a FixedDelayRetryStrategy step by step, as in Flink's Java API."""

    def __init__(self, max_attempts: int, backoff_time_millis: int) -> None:
        super().__init__(max_attempts, backoff_time_millis)

    def build(self) -> FixedDelayRetryStrategy[T]:
        """Returns the strategy.

        Raises:
            ValueError: A number is not positive.
        """
        return FixedDelayRetryStrategy(*self._all_arguments())


class ExponentialBackoffDelayRetryStrategyBuilder(_Builder[T]):
    """Builds an ExponentialBackoffDelayRetryStrategy step by step, as in Flink's Java API."""

    def __init__(
        self, max_attempts: int, initial_delay: int, max_retry_delay: int, multiplier: float
    ) -> None:
        super().__init__(max_attempts, initial_delay, max_retry_delay, multiplier)

    def build(self) -> ExponentialBackoffDelayRetryStrategy[T]:
        """Returns the strategy.

        Raises:
            ValueError: A number is not positive.
        """
        return ExponentialBackoffDelayRetryStrategy(*self._all_arguments())


def _require_positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if number <= 0:
            raise ValueError(f"a retry strategy's {name} is {number}; it must be positive")
