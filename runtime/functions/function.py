"""Function, the base class of user functions, and RuntimeContext, the access of a function to its task."""

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
    """The files registered with `register_cached_file`, as local copies of this executor."""

    @abstractmethod
    def get_file(self, name: str) -> Path:
        """The local copy of the file or directory registered under the name.

        Raises:
            KeyError: no file is registered under this name.
        """


class RuntimeContext(KeyedStateStore):
    """Information about the task of a function, passed to `open`.

    The state getters of a function on a stream without key raise an error that says so.
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
        """How often this subtask was started before: 0 at first.

        Flink: `getAttemptNumber`. Here it is Spark's, which may give the same number twice to one
        subtask after a stage was retried: never name a file after it.
        """

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str:
        """The name, the subtask counted from 1, the parallelism, the attempt: `parse (3/6)#0`."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: T) -> str | T:
        """The global job parameter of this name (`pipeline.global-job-parameters`), or the default."""

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """The metric group of this operator and subtask: counters, gauges, meters, histograms."""

    def get_metric_group(self) -> MetricGroup:
        """`get_metrics_group` under its name in Java."""
        return self.get_metrics_group()

    @abstractmethod
    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        """Registers an accumulator of this operator, which the driver merges by its name.

        Raises:
            ValueError: The operator has one of this name. (Flink looks at the whole chain.)
        """

    @abstractmethod
    def get_accumulators(self) -> dict[str, Accumulator[Any, Any]]:
        """The registered accumulators of this operator, by name; a copy."""

    def get_accumulator(self, name: str) -> Accumulator[Any, Any] | None:
        """The accumulator of this name, or None."""
        return self.get_accumulators().get(name)

    def get_int_counter(self, name: str) -> IntCounter:
        """The IntCounter of this name, a new one if there is none."""
        from opchain.runtime.metrics.accumulators import IntCounter  # noqa: PLC0415 - as needed

        return self._accumulator(name, IntCounter)

    def get_long_counter(self, name: str) -> LongCounter:
        """The LongCounter of this name, a new one if there is none."""
        from opchain.runtime.metrics.accumulators import LongCounter  # noqa: PLC0415 - as needed

        return self._accumulator(name, LongCounter)

    def get_double_counter(self, name: str) -> DoubleCounter:
        """The DoubleCounter of this name, a new one if there is none."""
        from opchain.runtime.metrics.accumulators import DoubleCounter  # noqa: PLC0415 - as needed

        return self._accumulator(name, DoubleCounter)

    def get_histogram(self, name: str) -> Histogram:
        """The accumulator Histogram of this name, a new one if there is none."""
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
        """The files that the program registered for its executors."""


class Function(ABC):  # noqa: B024 - its subclasses have the abstract methods
    """A piece of user code with a life cycle. Each subtask gets its own copy.

    Attributes that `__init__` sets must pickle. Create everything else, such as connections and models, in `open`.
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        """Runs once per subtask, before the first record."""

    def close(self) -> None:
        """Runs once per subtask, after the last record, also when the task failed."""


def may_use_state(function: Any) -> bool:
    """Whether an object may have keyed state, which only `open` can get: it has an `open` that is not Function's."""
    opened = getattr(function, "open", None)
    return opened is not None and getattr(opened, "__func__", None) is not Function.open


def has_lifecycle(function: Any) -> bool:
    """Whether an object is a Function that overrides `open` or `close`."""
    kind = type(function)
    return isinstance(function, Function) and (kind.open, kind.close) != (
        Function.open,
        Function.close,
    )
