"""The root of everything a user writes, and what it learns about the task it runs in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

from opchain.runtime.state.state_stores import KeyedStateStore

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")


class DistributedCache(ABC):
    """The files registered with `register_cached_file`, as local copies of this executor."""

    @abstractmethod
    def get_file(self, name: str) -> Path:
        """The local copy of the file or directory registered under the name.

        Raises:
            KeyError: no file is registered under this name.
        """


class RuntimeContext(KeyedStateStore):
    """What a function can ask about its task, handed to `open`.

    The state getters of a function on a stream without key raise an error that says so.
    """

    @abstractmethod
    def get_task_name(self) -> str:
        """The name of the operator, as in the plan."""

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
        """The name, the subtask counted from 1, and the parallelism: `parse (3/6)`."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: T) -> str | T:
        """The global job parameter of this name (`pipeline.global-job-parameters`), or the default."""

    @abstractmethod
    def get_metrics_group(self) -> Any:
        """The metric group of this operator and subtask: counters, gauges, meters, histograms."""

    def get_metric_group(self) -> Any:
        """The same as `get_metrics_group`: Flink's spelling beside PyFlink's."""
        return self.get_metrics_group()

    @abstractmethod
    def get_distributed_cache(self) -> DistributedCache:
        """The files that the program registered for its executors."""


class Function(ABC):  # noqa: B024 - its subclasses have the abstract methods
    """A piece of user code with a life cycle, shipped to each subtask as a copy of its own.

    What `__init__` sets must pickle; what doesn't (connections, models) belongs into `open`.
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        """Runs once per subtask, before the first record."""

    def close(self) -> None:
        """Runs once per subtask, after the last record, also when the task failed."""
