"""The RuntimeContext that functions get on an executor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from opchain.runtime.connectors.sink import NO_LINEAGE, SinkOrigin
from opchain.runtime.errors import StateError
from opchain.runtime.functions.function import DistributedCache, RuntimeContext

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from opchain.runtime.metrics.accumulators import Accumulator
    from opchain.runtime.metrics.metric_group import MetricGroup
    from opchain.runtime.operators.context import TaskInfo
    from opchain.runtime.task.vertex_program import OperatorProgram

T = TypeVar("T")


class LocalFiles(DistributedCache):
    """Registered files as they lie on this machine."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._paths = paths

    def get_file(self, name: str) -> Path:
        """The path of a registered file."""
        try:
            return self._paths[name]
        except KeyError:
            known = ", ".join(map(repr, self._paths)) or "none"
            raise KeyError(f"no file is registered as {name!r}; registered are: {known}") from None


class TaskRuntimeContext(RuntimeContext):
    """Who and where a function is; its keyed states come from the operator's backend.

    `print_line(text, to_stderr)` has the driver print a line when the job has succeeded; it is None where
    the task's own output is the one to print on.
    """

    def __init__(
        self,
        program: OperatorProgram,
        task: TaskInfo,
        *,
        keyed_state: Any,
        metric_group: MetricGroup,
        job_parameters: Mapping[str, str],
        files: Mapping[str, Path],
        acknowledge: Callable[[Any], None],
        prints_on_driver: bool = False,
        lineage: str = NO_LINEAGE,
    ) -> None:
        self.origin = SinkOrigin(
            lineage, program.operator_id, f"'{program.name}' ({program.call_site})"
        )
        self._program = program
        self._task = task
        self._keyed_state = keyed_state
        self._metric_group = metric_group
        self._accumulators: dict[str, Accumulator[Any, Any]] = {}
        self._job_parameters = job_parameters
        self._files = LocalFiles(files)
        self.acknowledge = acknowledge
        self.print_line: Callable[[str, bool], None] | None = (
            self._print_on_driver if prints_on_driver else None
        )

    def _print_on_driver(self, text: str, to_stderr: bool) -> None:
        self.acknowledge(("print", to_stderr, [text]))

    def get_task_name(self) -> str:
        """The vertex's name."""
        return self._task.vertex.name

    def get_number_of_parallel_subtasks(self) -> int:
        """The parallelism."""
        return self._task.vertex.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        """The max parallelism."""
        return self._task.vertex.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        """From 0."""
        return self._task.subtask

    def get_attempt_number(self) -> int:
        """Spark's attempt number."""
        return self._task.attempt

    def get_task_name_with_subtasks(self) -> str:
        """`name (2/4)#0`."""
        return self._task.name_with_subtasks

    def get_job_parameter(self, key: str, default_value: T) -> str | T:
        """The global job parameter, or the default."""
        return self._job_parameters.get(key, default_value)

    def get_metrics_group(self) -> MetricGroup:
        """The operator's metric group."""
        return self._metric_group

    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        """Registers an accumulator of this operator."""
        if name in self._accumulators:
            program = self._program
            raise ValueError(
                f"'{program.name}' ({program.call_site}) has an accumulator '{name}' already; "
                "choose another name, or ask for it by get_accumulator()"
            )
        self._accumulators[name] = accumulator

    def get_accumulators(self) -> dict[str, Accumulator[Any, Any]]:
        """The registered accumulators, by name."""
        return dict(self._accumulators)

    def get_distributed_cache(self) -> DistributedCache:
        """The registered files."""
        return self._files

    def _keyed(self, descriptor: Any, kind: str) -> Any:
        if self._keyed_state is None:
            program = self._program
            raise StateError(
                f"'{program.name}' ({program.call_site}) asks for the {kind} '{descriptor.get_name()}', "
                "but its stream has no key; keyed state needs key_by() before the operator"
            )
        return self._keyed_state

    def get_state(self, state_descriptor: Any) -> Any:
        """A ValueState of the current key."""
        return self._keyed(state_descriptor, "value state").get_state(state_descriptor)

    def get_list_state(self, state_descriptor: Any) -> Any:
        """A ListState of the current key."""
        return self._keyed(state_descriptor, "list state").get_list_state(state_descriptor)

    def get_map_state(self, state_descriptor: Any) -> Any:
        """A MapState of the current key."""
        return self._keyed(state_descriptor, "map state").get_map_state(state_descriptor)

    def get_reducing_state(self, state_descriptor: Any) -> Any:
        """A ReducingState of the current key."""
        return self._keyed(state_descriptor, "reducing state").get_reducing_state(state_descriptor)

    def get_aggregating_state(self, state_descriptor: Any) -> Any:
        """An AggregatingState of the current key."""
        backend = self._keyed(state_descriptor, "aggregating state")
        return backend.get_aggregating_state(state_descriptor)
