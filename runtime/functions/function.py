"""Function, the base class of user functions. RuntimeContext, which gives a function access to its task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

from opchain.runtime.functions.state import KeyedStateStore

if TYPE_CHECKING:
    from pathlib import Path

    from opchain.runtime.metrics.accumulators import (
        Accumulator,
        DoubleCounter,
        Histogram,
        IntCounter,
        LongCounter,
    )
    from opchain.runtime.metrics.metric_group import MetricGroup

T = TypeVar("T")
A = TypeVar("A", bound="Accumulator[Any, Any]")


class DistributedCache(ABC):
    """The files registered with `register_cached_file`, as local copies on this executor."""

    @abstractmethod
    def get_file(self, name: str) -> Path:
        """The local copy of the file or directory that is registered under the name.

        Raises:
            KeyError: No file is registered under this name.
        """


class RuntimeContext(KeyedStateStore):
    """Information about the task of a function, passed to `open`.

    On a stream without key, the getters of keyed state raise an error.
    """

    @abstractmethod
    def get_task_name(self) -> str:
        """The name of the task, which is the name of its vertex in the plan."""

    @abstractmethod
    def get_number_of_parallel_subtasks(self) -> int:
        """The operator's parallelism."""

    @abstractmethod
    def get_max_number_of_parallel_subtasks(self) -> int:
        """The operator's max parallelism: its number of key groups."""

    @abstractmethod
    def get_index_of_this_subtask(self) -> int:
        """The subtask's number, from 0 to parallelism - 1."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """How often this subtask was started before; 0 for the first attempt.

        It is Spark's attempt number. After a stage is retried, a subtask may get the same number again, so never use it
        in a file name. Flink: `getAttemptNumber`.
        """

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str:
        """Task name, subtask (from 1), parallelism and attempt: `parse (3/6)#0`."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: T) -> str | T:
        """The global job parameter (`pipeline.global-job-parameters`) with this name, or the default."""

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """The metric group of this operator and subtask: counters, gauges, meters, histograms."""

    def get_metric_group(self) -> MetricGroup:
        """The same as `get_metrics_group`: its name in Flink's Java API."""
        return self.get_metrics_group()

    @abstractmethod
    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        """Registers an accumulator of this operator. The driver merges the accumulators of all subtasks by name.

        Raises:
            ValueError: The operator already has an accumulator with this name. (In Flink: the chain.)
        """

    @abstractmethod
    def get_accumulators(self) -> dict[str, Accumulator[Any, Any]]:
        """A copy of the accumulators of this operator, by name."""

    def get_accumulator(self, name: str) -> Accumulator[Any, Any] | None:
        """The accumulator with this name, or None."""
        return self.get_accumulators().get(name)

    def get_int_counter(self, name: str) -> IntCounter:
        """The IntCounter with this name. It is created if it does not exist."""
        from opchain.runtime.metrics.accumulators import IntCounter  # noqa: PLC0415 - as needed

        return self._accumulator(name, IntCounter)

    def get_long_counter(self, name: str) -> LongCounter:
        """The LongCounter with this name. It is created if it does not exist."""
        from opchain.runtime.metrics.accumulators import LongCounter  # noqa: PLC0415 - as needed

        return self._accumulator(name, LongCounter)

    def get_double_counter(self, name: str) -> DoubleCounter:
        """The DoubleCounter with this name. It is created if it does not exist."""
        from opchain.runtime.metrics.accumulators import DoubleCounter  # noqa: PLC0415 - as needed

        return self._accumulator(name, DoubleCounter)

    def get_histogram(self, name: str) -> Histogram:
        """The accumulator Histogram with this name. It is created if it does not exist."""
        from opchain.runtime.metrics.accumulators import Histogram  # noqa: PLC0415 - as needed

        return self._accumulator(name, Histogram)

    def _accumulator(self, name: str, kind: type[A]) -> A:
        accumulator = self.get_accumulator(name)
        if accumulator is None:
            accumulator = kind()
            self.add_accumulator(name, accumulator)
        if type(accumulator) is not kind:
            raise TypeError(
                f"the accumulator '{name}' is a {type(accumulator).__name__}, but was requested "
                f"as {kind.__name__}"
            )
        return accumulator

    @abstractmethod
    def get_distributed_cache(self) -> DistributedCache:
        """The files that the program registered with `register_cached_file`."""


class Function(ABC):  # noqa: B024 - its subclasses have the abstract methods
    """The base class of user functions, with `open` and `close`. Each subtask gets its own copy.

    Attributes that `__init__` sets must be picklable. Create everything else, such as connections and models, in
    `open`.
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        """Runs once per subtask, before the first record."""

    def close(self) -> None:
        """Runs once per subtask, after the last record, also when the task failed."""


def may_use_state(function: Any) -> bool:
    """Whether the object may have keyed state, which requires an `open` method that overrides that of Function."""
    opened = getattr(function, "open", None)
    return opened is not None and getattr(opened, "__func__", None) is not Function.open


def has_lifecycle(function: Any) -> bool:
    """Whether an object is a Function that overrides `open` or `close`."""
    kind = type(function)
    return isinstance(function, Function) and (kind.open, kind.close) != (
        Function.open,
        Function.close,
    )
