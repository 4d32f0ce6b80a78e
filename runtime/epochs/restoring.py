"""What the vertices of a program get of a checkpoint, and what a checkpoint says of their operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.metadata import OperatorMetadata
from opchain.runtime.epochs.live_tasks import RestoredVertex

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opchain.runtime.checkpoint.epoch import TaskSnapshot
    from opchain.runtime.checkpoint.metadata import CheckpointMetadata, StateDescription
    from opchain.runtime.checkpoint.restore_plan import RestorePlan
    from opchain.runtime.program.vertex_program import JobProgram, VertexProgram


def operators_with_state(
    job: JobProgram, snapshots: Mapping[int, TaskSnapshot]
) -> list[OperatorMetadata]:
    """The operators that have a state in some task, as a checkpoint describes them."""
    found = []
    for vertex in job.vertices:
        tasks = range(vertex.first_task, vertex.first_task + vertex.parallelism)
        for operator in vertex.operators:
            states: dict[StateDescription, None] = {}
            for task in tasks:
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
                    )
                )
    return found


def restored_vertices(
    job: JobProgram, plan: RestorePlan | None
) -> dict[int, RestoredVertex | None]:
    """By the first task of each vertex: where it continues; None for a fresh start."""
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
    # The same operators, by the same ids, in as many subtasks: what a task wrote last is what it resumes from.
    is_same = len(tasks) == vertex.parallelism and {
        (operator_id, stored.operator_id) for operator_id, (stored, _) in operators.items()
    } == {
        (stored.operator_id, stored.operator_id)
        for stored in metadata.operators
        if stored.first_task == tasks[0].task
    }
    return RestoredVertex(
        metadata.epoch,
        operators,
        tuple(task.rest for task in tasks),
        tuple(task.state for task in tasks) if is_same else (),
    )


def _stored_vertex(vertex: VertexProgram, metadata: CheckpointMetadata) -> str:
    """The id that a vertex has in a checkpoint: that of its first operator, by which that is found."""
    named = vertex.operators[0].uid_hash
    is_there = any(task.vertex_id == named for task in metadata.tasks)
    return named if named is not None and is_there else vertex.vertex_id
