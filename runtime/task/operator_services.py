"""Makes the services of an operator: its state, its timers, its clock, its runtime context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.connectors.sink import NO_LINEAGE
from opchain.runtime.metrics.operator_group import operator_group
from opchain.runtime.operators.context import OperatorContext
from opchain.runtime.state.hash_map_backend import HashMapKeyedStateBackend
from opchain.runtime.state.key_groups import key_group_range
from opchain.runtime.state.key_identity import key_identity
from opchain.runtime.state.operator_state import SubtaskStateStore
from opchain.runtime.state.own_keys import OwnKeys
from opchain.runtime.state.timer_services import TimerServices
from opchain.runtime.task.mailbox.processing_time_service import MailboxProcessingTimeService
from opchain.runtime.task.task_runtime_context import TaskRuntimeContext

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from opchain.runtime.operators.context import TaskInfo
    from opchain.runtime.state.keyed_backend import KeyedStateBackend
    from opchain.runtime.task.mailbox.mailbox_executor import MailboxExecutor
    from opchain.runtime.task.mailbox.timer_service import TimerService
    from opchain.runtime.task.vertex_program import OperatorProgram, VertexProgram


def operator_context(
    program: OperatorProgram,
    task: TaskInfo,
    executor: MailboxExecutor,
    timers: TimerService,
    *,
    marker_timers: TimerService | None = None,
    acknowledge: Callable[[Any], None],
    job_parameters: Mapping[str, str],
    files: Mapping[str, Path],
    prints_on_driver: bool = False,
    lineage: str = NO_LINEAGE,
) -> OperatorContext:
    """The services of one operator of a task.

    `timers` is the operator's clock, `marker_timers` the one of latency markers where that is another.
    """
    processing_time = marker_time = MailboxProcessingTimeService(timers, executor)
    if marker_timers is not None:
        marker_time = MailboxProcessingTimeService(marker_timers, executor)
    where = f"'{program.name}' ({program.call_site})"
    keyed_state = _keyed_state(program, task, timers, where)
    runtime_context = TaskRuntimeContext(
        program,
        task,
        keyed_state=keyed_state,
        metric_group=operator_group(task, program),
        job_parameters=job_parameters,
        files=files,
        acknowledge=acknowledge,
        prints_on_driver=prints_on_driver,
        lineage=lineage,
    )
    context = OperatorContext(
        task=task,
        runtime_context=runtime_context,
        processing_time=processing_time,
        marker_time=marker_time,
        mailbox=executor,
        acknowledge=acknowledge,
        operator_state=SubtaskStateStore(where),
    )
    if keyed_state is not None:
        context.keyed_state = keyed_state
        context.timers = TimerServices(
            keyed_state,
            processing_time,
            hasher=_key(program).hasher,
            is_batch=task.vertex.is_batch,
            where=where,
        )
    return context


def _keyed_state(
    program: OperatorProgram, task: TaskInfo, timers: TimerService, where: str
) -> KeyedStateBackend | None:
    """The state by key of an operator that has a key on one of its inputs at least."""
    key, vertex = _key(program), task.vertex
    if key is None:
        return None
    groups = key_group_range(vertex.max_parallelism, vertex.parallelism, task.subtask)
    identity = key_identity(key.hasher)
    if vertex.parallelism > 1 and _comes_without_exchange(program, vertex):
        own_keys = OwnKeys(identity, groups, vertex.max_parallelism, key.hasher, where)
        identity = own_keys.identity
    if vertex.state_folders is None:
        return HashMapKeyedStateBackend(
            vertex.max_parallelism,
            groups,
            identity=identity,
            hasher=key.hasher,
            now=timers.current_processing_time,
            where=where,
        )
    from opchain.runtime.state.rocksdb_backend import RocksDBKeyedStateBackend  # noqa: PLC0415 - few need it

    return RocksDBKeyedStateBackend(
        vertex.max_parallelism,
        groups,
        identity=identity,
        hasher=key.hasher,
        now=timers.current_processing_time,
        where=where,
        folders=_folder(vertex.state_folders, task.subtask),
    )


def _folder(folders: tuple[str, ...], subtask: int) -> tuple[str, ...]:
    """The folder of a subtask: they take turns, so that disks have as many each."""
    return (folders[subtask % len(folders)],) if folders else ()


def _comes_without_exchange(program: OperatorProgram, vertex: VertexProgram) -> bool:
    """Whether a keyed stream gets here in place: it was reinterpreted as keyed."""
    return program.parent >= 0 or any(
        edge.is_pointwise and program.keys[edge.input_number] is not None for edge in vertex.inputs
    )


def _key(program: OperatorProgram) -> Any:
    return next((key for key in program.keys if key is not None), None)
