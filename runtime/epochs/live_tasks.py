"""The tasks that a Python worker keeps from one epoch to the next, and how they restore a checkpoint.

Spark runs a task in any free worker process. So a worker may hold the task as it was after the previous epoch, as it was
after an earlier epoch, or not at all. A task of an earlier epoch applies the changes since then, if its operators can.
Otherwise the task is rebuilt from the checkpoint.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.metadata import (
    CheckpointMetadata,
    OperatorMetadata,
    StateDescription,
)
from opchain.runtime.checkpoint.state_files import TaskState, read_operator_state
from opchain.runtime.epochs.epoch_task import EpochTask
from opchain.runtime.state.keys.key_groups import key_group_range

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opchain.runtime.checkpoint.epoch import TaskSnapshot
    from opchain.runtime.checkpoint.restore_plan import RestorePlan
    from opchain.runtime.checkpoint.storage import CheckpointStorage
    from opchain.runtime.program.vertex_program import JobProgram, VertexProgram
    from opchain.runtime.task.stream_task import TaskEnvironment

_LOG = logging.getLogger("opchain.epochs")


@dataclass(frozen=True, slots=True)
class RestoredVertex:
    """The state of a vertex in a checkpoint.

    Attributes:
        checkpoint_id: The checkpoint.
        operators: By the operator id in the program: the stored operator, and the state of its tasks by subtask.
        event_time: The event time of all earlier subtasks.
        states: The states of the vertex's tasks, if its operators and its parallelism have not changed; else empty.
    """

    checkpoint_id: int
    operators: dict[str, tuple[OperatorMetadata, tuple[TaskState, ...]]]
    event_time: tuple[bytes, ...]
    states: tuple[TaskState, ...]


class LiveTasks:
    """The tasks of one run of a job, in one process."""

    def __init__(self) -> None:
        self._tasks: dict[int, EpochTask] = {}

    def take(
        self,
        task: int,
        restored: RestoredVertex | None,
        storage: CheckpointStorage,
        make: Callable[[], tuple[JobProgram, TaskEnvironment]],
        now_ms: int = 0,
    ) -> EpochTask:
        """Removes and returns the task, at the state of the checkpoint. It is rebuilt if necessary.

        Args:
            task: Its number.
            restored: The checkpointed state of its vertex; None for a start without state.
            storage: The storage of the state.
            make: Returns the job and the environment of a new task.
            now_ms: The processing time at which a new task starts.
        """
        found = self._tasks.pop(task, None)
        if found is not None:
            if (
                restored is not None
                and restored.states
                and _is_up_to_date(found, restored, storage)
            ):
                return found
            found.close()
        job, environment = make()
        made = EpochTask(job, task, environment, now_ms)
        _open(made, restored, storage)
        return made

    def keep(self, task: EpochTask) -> None:
        """Keeps a task that has completed its epoch."""
        self._tasks[task.info.task] = task

    def close(self) -> None:
        """Closes all tasks."""
        while self._tasks:
            _, task = self._tasks.popitem()
            task.close()

    def close_quietly(self) -> None:
        """Closes all tasks, and logs errors, because they belong to a run that has ended."""
        while self._tasks:
            try:
                self.close()
            except Exception:  # noqa: BLE001, PERF203 - functions of users
                _LOG.warning("a task of a job that has ended could not be closed", exc_info=True)


_runs: dict[str, LiveTasks] = {}


def live_tasks(run_id: str) -> LiveTasks:
    """The tasks of a run, or of a restart within it. Tasks of other runs, which must have ended, are closed."""
    found = _runs.get(run_id)
    if found is None:
        others = list(_runs.values())
        _runs.clear()
        for other in others:
            other.close_quietly()
        found = _runs[run_id] = LiveTasks()
    return found


def _is_up_to_date(task: EpochTask, restored: RestoredVertex, storage: CheckpointStorage) -> bool:
    """Whether a task has the state of the checkpoint. Applies later changes to it if possible."""
    state = _own(task, restored)
    if task.state is None or state.checkpoint_id < task.state.checkpoint_id:
        return False
    return task.state.is_same_state_as(state) or task.catch_up(state, restored.event_time, storage)


def _own(task: EpochTask, restored: RestoredVertex) -> TaskState:
    return restored.states[task.info.subtask]


def _open(task: EpochTask, restored: RestoredVertex | None, storage: CheckpointStorage) -> None:
    if restored is None:
        task.open({}, (), None)
        return
    vertex, subtask = task.info.vertex, task.info.subtask
    key_groups = key_group_range(vertex.max_parallelism, vertex.parallelism, subtask)
    snapshots: dict[str, Any] = {}
    for operator_id, (stored, tasks) in restored.operators.items():
        found = read_operator_state(
            storage, tasks, stored.operator_id, key_groups, vertex.parallelism, subtask
        )
        if found is not None:
            snapshots[operator_id] = found
    state = _own(task, restored) if restored.states else None
    described = {
        operator_id: stored.states for operator_id, (stored, _) in restored.operators.items()
    }
    task.open(snapshots, restored.event_time, restored.checkpoint_id, state, described)


def operators_with_state(
    job: JobProgram, snapshots: Mapping[int, TaskSnapshot]
) -> list[OperatorMetadata]:
    """The operators that have a state in some task, as a checkpoint describes them."""
    found = []
    for vertex in job.vertices:
        for operator in vertex.operators:
            states: dict[StateDescription, None] = {}
            for task in vertex.tasks:
                states.update(dict.fromkeys(snapshots[task].states.get(operator.operator_id, ())))
            if states:
                found.append(
                    OperatorMetadata(
                        operator_id=operator.operator_id,
                        name=operator.name,
                        call_site=operator.call_site,
                        first_task=vertex.first_task,
                        parallelism=vertex.parallelism,
                        max_parallelism=vertex.max_parallelism,
                        uid=operator.uid,
                        is_keyed=any(key is not None for key in operator.keys),
                        states=tuple(states),
                        key_types=operator.key_types,
                    )
                )
    return found


def restored_vertices(
    job: JobProgram, plan: RestorePlan | None
) -> dict[int, RestoredVertex | None]:
    """The restored state by the first task of each vertex; None for a start without state."""
    return {
        vertex.first_task: None if plan is None else _restored(vertex, plan)
        for vertex in job.vertices
    }


def _restored(vertex: VertexProgram, plan: RestorePlan) -> RestoredVertex:
    metadata, stored_by_id = plan.metadata, plan.stored_by_id
    operators = {
        operator.operator_id: (
            stored_by_id[operator.operator_id],
            tuple(metadata.tasks_of(stored_by_id[operator.operator_id])),
        )
        for operator in vertex.operators
        if operator.operator_id in stored_by_id
    }
    stored_id = _stored_vertex(vertex, metadata)
    tasks = sorted(
        (task for task in metadata.tasks if task.vertex_id == stored_id),
        key=lambda task: task.subtask,
    )
    # With the same operators, ids and parallelism, each task resumes from the state that it wrote last.
    is_same = len(tasks) == vertex.parallelism and {
        (operator_id, stored.operator_id) for operator_id, (stored, _) in operators.items()
    } == {
        (stored.operator_id, stored.operator_id)
        for stored in metadata.operators
        if stored.first_task == tasks[0].task
    }
    return RestoredVertex(
        metadata.checkpoint_id,
        operators,
        tuple(task.event_time for task in tasks),
        tuple(task.state for task in tasks) if is_same else (),
    )


def _stored_vertex(vertex: VertexProgram, metadata: CheckpointMetadata) -> str:
    """The id of a vertex in a checkpoint, which is the id of its first operator."""
    named = vertex.operators[0].uid_hash
    is_there = any(task.vertex_id == named for task in metadata.tasks)
    return named if named is not None and is_there else vertex.vertex_id
