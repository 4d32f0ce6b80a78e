"""The services of an operator on a subtask: state, timers, clock, RuntimeContext, and metric group with Flink's scope."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import StateError, short_repr
from opchain.runtime.functions.function import DistributedCache, RuntimeContext
from opchain.runtime.functions.sink import SinkOrigin
from opchain.runtime.functions.state_descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from opchain.runtime.mailbox.processing_time_service import ProcessingTimeService
from opchain.runtime.metrics.metric_group import MetricGroup
from opchain.runtime.operators.operator import KeyedServices, OperatorContext, TaskInfo
from opchain.runtime.state.keyed.keyed_backend import KeyedStateBackend, KeyedSubtask
from opchain.runtime.state.keys.key_groups import key_group_range
from opchain.runtime.state.keys.key_identity import SubtaskKeyCheck, key_identity
from opchain.runtime.state.operator_state import SubtaskStateStore
from opchain.runtime.state.timers.timer_services import TimerServices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from opchain.runtime.functions.state import (
        AggregatingState,
        ListState,
        MapState,
        ReducingState,
        ValueState,
    )
    from opchain.runtime.mailbox.mailbox_executor import MailboxExecutor
    from opchain.runtime.mailbox.timer_service import TimerService
    from opchain.runtime.metrics.accumulators import Accumulator
    from opchain.runtime.program.vertex_program import KeyProgram, OperatorProgram, VertexProgram
    from opchain.runtime.task.stream_task import TaskEnvironment
    from opchain.runtime.types.type_variables import IN_contra, K, OUT_co, T, V


def operator_group(task: TaskInfo, operator: OperatorProgram) -> MetricGroup:
    """The group whose identifiers have the form of Flink's `metrics.scope.operator`.

    That is `<host>.taskmanager.<tm_id>.<job_name>.<operator_name>.<subtask_index>`. `<tm_id>` is the process id of the
    Python worker. Only the driver knows `<job_id>`.
    """
    host, worker = socket.gethostname(), str(os.getpid())
    subtask = str(task.subtask)
    return MetricGroup(
        (host, "taskmanager", worker, task.job_name, operator.name, subtask),
        {
            "<host>": host,
            "<tm_id>": worker,
            "<job_name>": task.job_name,
            "<task_id>": task.vertex.vertex_id,
            "<task_name>": task.vertex.name,
            "<task_attempt_id>": task.attempt_id,
            "<task_attempt_num>": str(task.attempt),
            "<subtask_index>": subtask,
            "<operator_id>": operator.operator_id,
            "<operator_name>": operator.name,
        },
    )


class LocalFiles(DistributedCache):
    """The paths of registered files on this machine."""

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
    """The RuntimeContext of a function. Its keyed states are in the operator's backend.

    `print_line(text, to_stderr)` makes the driver print a line when the job has succeeded. It is None if the task
    prints itself.
    """

    def __init__(
        self,
        program: OperatorProgram,
        task: TaskInfo,
        environment: TaskEnvironment,
        *,
        keyed_state: KeyedStateBackend | None,
        metric_group: MetricGroup,
        job_parameters: Mapping[str, str],
        send_to_driver: Callable[[Any], None],
    ) -> None:
        self.origin = SinkOrigin(
            environment.lineage, program.operator_id, program.label, environment.staging
        )
        self._program = program
        self._task = task
        self._keyed_state = keyed_state
        self._metric_group = metric_group
        self._accumulators: dict[str, Accumulator[Any, Any]] = {}
        self._job_parameters = job_parameters
        self._files = LocalFiles(environment.files)
        self.send_to_driver = send_to_driver
        self.print_line: Callable[[str, bool], None] | None = (
            self._print_on_driver if environment.prints_on_driver else None
        )

    def _print_on_driver(self, text: str, to_stderr: bool) -> None:
        self.send_to_driver(("print", to_stderr, [text]))

    def get_task_name(self) -> str:
        """The name of the vertex."""
        return self._task.vertex.name

    def get_number_of_parallel_subtasks(self) -> int:
        """The parallelism."""
        return self._task.vertex.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        """The max parallelism."""
        return self._task.vertex.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        """The number of the subtask, from 0."""
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
                f"{program.label} already has an accumulator '{name}'; choose another name, or use get_accumulator()"
            )
        self._accumulators[name] = accumulator

    def get_accumulators(self) -> dict[str, Accumulator[Any, Any]]:
        """The registered accumulators, by name."""
        return dict(self._accumulators)

    def get_distributed_cache(self) -> DistributedCache:
        """The registered files."""
        return self._files

    def _keyed(
        self, descriptor: StateDescriptor[Any], accepted: type[StateDescriptor[Any]], kind: str
    ) -> KeyedStateBackend:
        if not isinstance(descriptor, accepted):
            raise TypeError(
                f"{self._program.label} asks for a {kind} with {_described(descriptor)}; it takes a {accepted.__name__}"
            )
        if self._keyed_state is None:
            program = self._program
            raise StateError(
                f"{program.label} uses the {kind} '{descriptor.get_name()}', "
                "but its stream has no key; keyed state needs key_by() before the operator"
            )
        return self._keyed_state

    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """A ValueState of the current key."""
        return self._keyed(state_descriptor, StateDescriptor, "value state").get_state(
            state_descriptor
        )

    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """A ListState of the current key."""
        return self._keyed(state_descriptor, ListStateDescriptor, "list state").get_list_state(
            state_descriptor
        )

    def get_map_state(self, state_descriptor: MapStateDescriptor[K, V]) -> MapState[K, V]:
        """A MapState of the current key."""
        return self._keyed(state_descriptor, MapStateDescriptor, "map state").get_map_state(
            state_descriptor
        )

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T]) -> ReducingState[T]:
        """A ReducingState of the current key."""
        return self._keyed(
            state_descriptor, ReducingStateDescriptor, "reducing state"
        ).get_reducing_state(state_descriptor)

    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor[IN_contra, Any, OUT_co]
    ) -> AggregatingState[IN_contra, OUT_co]:
        """An AggregatingState of the current key."""
        backend = self._keyed(state_descriptor, AggregatingStateDescriptor, "aggregating state")
        return backend.get_aggregating_state(state_descriptor)


def _described(descriptor: object) -> str:
    """A state descriptor, or what was passed instead of one, in a message."""
    if not isinstance(descriptor, StateDescriptor):
        return short_repr(descriptor)
    return f"the {type(descriptor).__name__} {descriptor.get_name()!r}"


def operator_context(
    program: OperatorProgram,
    task: TaskInfo,
    executor: MailboxExecutor,
    timers: TimerService,
    environment: TaskEnvironment,
    *,
    marker_timers: TimerService | None = None,
    send_to_driver: Callable[[Any], None],
    job_parameters: Mapping[str, str],
) -> OperatorContext:
    """The services of one operator of a task.

    `timers` is the operator's clock. `marker_timers` is the clock of latency markers, if it differs.
    """
    processing_time = marker_time = ProcessingTimeService(timers, executor)
    if marker_timers is not None:
        marker_time = ProcessingTimeService(marker_timers, executor)
    where = program.label
    key = next((key for key in program.keys if key is not None), None)
    keyed_state = None if key is None else _keyed_state(program, task, key, timers, where)
    runtime_context = TaskRuntimeContext(
        program,
        task,
        environment,
        keyed_state=keyed_state,
        metric_group=operator_group(task, program),
        job_parameters=job_parameters,
        send_to_driver=send_to_driver,
    )
    context = OperatorContext(
        task=task,
        runtime_context=runtime_context,
        processing_time=processing_time,
        marker_time=marker_time,
        mailbox=executor,
        send_to_driver=send_to_driver,
        operator_state=SubtaskStateStore(where),
        feed=environment.feed,
        schema=environment.schemas.get(program.index),
        make_writer=environment.sink_writers.get(program.index),
        alignment=environment.alignment,
    )
    if key is not None and keyed_state is not None:
        timer_services = TimerServices(
            keyed_state,
            processing_time,
            hasher=key.hasher,
            is_batch=task.vertex.is_batch,
            where=where,
        )
        context.keyed = KeyedServices(keyed_state, timer_services)
    return context


def _keyed_state(
    program: OperatorProgram, task: TaskInfo, key: KeyProgram, timers: TimerService, where: str
) -> KeyedStateBackend:
    """The state of an operator of which an input has a key."""
    vertex = task.vertex
    groups = key_group_range(vertex.max_parallelism, vertex.parallelism, task.subtask)
    identity = key_identity(key.hasher)
    if vertex.parallelism > 1 and _comes_without_exchange(program, vertex):
        check = SubtaskKeyCheck(identity, groups, vertex.max_parallelism, key.hasher, where)
        identity = check.identity
    return vertex.state_backend.create(
        KeyedSubtask(
            task.subtask,
            vertex.max_parallelism,
            groups,
            identity,
            key.hasher,
            timers.current_processing_time,
            where,
        )
    )


def _comes_without_exchange(program: OperatorProgram, vertex: VertexProgram) -> bool:
    """Whether the vertex reads a keyed stream without an exchange, after `reinterpret_as_keyed_stream`."""
    return program.parent >= 0 or any(
        edge.is_pointwise and program.keys[edge.input_number] is not None for edge in vertex.inputs
    )
