"""Functions that wait for something outside without holding up the stream."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.errors import short_repr
from opchain.runtime.functions.function import Function
from opchain.runtime.types.type_variables import IN_contra, OUT_co

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import timedelta

    from opchain.runtime.functions.async_retry import AsyncRetryStrategy
    from opchain.runtime.time import Duration, Time


class AsyncFunction(Function, Generic[IN_contra, OUT_co]):
    """Calls something outside for each record; many calls are under way at once."""

    @abstractmethod
    async def async_invoke(self, value: IN_contra) -> Iterable[OUT_co]:
        """The results of one record. Runs on an event loop of the task: it must not block it.

        An exception fails the task, unless the retry strategy covers it.
        """

    def timeout(self, value: IN_contra) -> Iterable[OUT_co]:
        """The results in place of those that didn't come in time, all retries included.

        Raises:
            TimeoutError: always, if not overridden; it fails the task.
        """
        from opchain.runtime.functions.callables import name_of  # noqa: PLC0415 - it imports this

        raise TimeoutError(
            f"'{name_of(self)}' timed out for {short_repr(value)}; override the timeout() of "
            "an AsyncFunction to emit something else instead"
        )


class AsyncBatchFunction(Function, Generic[IN_contra, OUT_co]):
    """Calls something outside for several records at a time, such as a model or a bulk look-up.

    A call gets the records that came together: at most `max_batch_size`, and none from behind a
    watermark. Retries are for the records whose results ask for one; after an exception for all.
    Neither PyFlink 2.3 nor Flink 2.3 has it.
    """

    max_batch_size: int = 32
    """The largest number of records for a call; the capacity is an upper limit too."""

    @abstractmethod
    async def async_invoke_batch(self, values: Sequence[IN_contra]) -> Sequence[Iterable[OUT_co]]:
        """The results of each record: one iterable per value, in the order of the values."""

    def timeout(self, values: Sequence[IN_contra]) -> Sequence[Iterable[OUT_co]]:
        """The results in place of those that didn't come in time; one iterable per value.

        Raises:
            TimeoutError: always, if not overridden; it fails the task.
        """
        raise TimeoutError(
            f"'{type(self).__name__}' timed out for {len(values)} records, the first "
            f"{short_repr(values[0])}; override timeout() to emit something else instead"
        )


@dataclass(frozen=True)
class AsyncFunctionDescriptor:
    """An async function with the settings it was given to `AsyncDataStream` with."""

    class OutputMode(Enum):
        """Whether results keep the order of their records."""

        ORDERED = 0
        UNORDERED = 1

    async_function: AsyncFunction[Any, Any]
    timeout: Duration | Time | timedelta | int
    capacity: int
    async_retry_strategy: AsyncRetryStrategy[Any]
    output_mode: OutputMode
