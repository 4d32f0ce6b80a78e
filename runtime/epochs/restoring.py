"""What the vertices of a program get of a checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.metadata import OperatorMetadata
from opchain.runtime.epochs.live_tasks import RestoredVertex

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.metadata import CheckpointMetadata
    from opchain.runtime.task.vertex_program import JobProgram, VertexProgram


def operators_with_state(job: JobProgram) -> list[OperatorMetadata]:
    """All operators of a job, as its checkpoints describe them."""
    return [
        OperatorMetadata(
            operator_id=operator.operator_id,
            name=operator.name,
            call_site=operator.call_site,
            first_task=vertex.first_task,
            parallelism=vertex.parallelism,
            max_parallelism=vertex.max_parallelism,
            uid=operator.uid,
            is_keyed=any(key is not None for key in operator.keys),
        )
        for vertex in job.vertices
        for operator in vertex.operators
    ]


def restored_vertices(
    job: JobProgram, metadata: CheckpointMetadata | None
) -> dict[int, RestoredVertex | None]:
    """By the first task of each vertex: where it goes on; None for a fresh start."""
    return {
        vertex.first_task: None if metadata is None else _restored(vertex, metadata)
        for vertex in job.vertices
    }


def _restored(vertex: VertexProgram, metadata: CheckpointMetadata) -> RestoredVertex:
    stored = {operator.operator_id: operator for operator in metadata.operators}
    operators = {
        operator.operator_id: (
            operator.operator_id,
            tuple(metadata.tasks_of(stored[operator.operator_id])),
        )
        for operator in vertex.operators
        if operator.operator_id in stored
    }
    tasks = sorted(
        (task for task in metadata.tasks if task.vertex_id == vertex.vertex_id),
        key=lambda task: task.subtask,
    )
    is_same = len(tasks) == vertex.parallelism and {
        operator.operator_id for operator in vertex.operators
    } == {
        operator.operator_id
        for operator in metadata.operators
        if tasks and operator.first_task == tasks[0].task
    }
    return RestoredVertex(
        metadata.epoch,
        operators,
        tuple(task.rest for task in tasks),
        tuple(task.state for task in tasks) if is_same else (),
    )
