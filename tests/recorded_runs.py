"""Runs programs epoch by epoch in this process, with checkpoints of recorded epochs."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from forms import job_of

from opchain.runtime.checkpoint.coordinator import CheckpointCoordinator
from opchain.runtime.checkpoint.epoch import Epoch
from opchain.runtime.checkpoint.metadata import EpochInput, TaskMetadata
from opchain.runtime.checkpoint.storage import checkpoint_storage
from opchain.runtime.epochs.live_tasks import operators_with_state
from opchain.runtime.epochs.local_epochs import LocalEpochs
from opchain.runtime.task.stream_task import TaskEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from opchain.runtime.checkpoint.storage import CheckpointStorage
    from opchain.runtime.program.vertex_program import JobProgram


def run_recorded(
    draw: Callable[[Any], Any],
    folder: Path,
    epochs: Sequence[Mapping[str, Sequence[Any]]],
    *,
    parallelism: int = 2,
    retained: int = 100,
    is_recorded: bool = True,
    **settings: Any,
) -> tuple[JobProgram, CheckpointStorage]:
    """Runs an epoch per mapping, which has the records of each source; the clock shows 1000 per epoch."""
    storage = checkpoint_storage(str(folder))
    job = job_of(draw, "inlined", parallelism=parallelism, **settings)
    environment = TaskEnvironment(prints_on_driver=True)
    run = LocalEpochs(job, storage, environment=environment)
    coordinator = CheckpointCoordinator.open(storage, "test", "run", retained=retained)
    latest = coordinator.latest()
    for number, records in enumerate(epochs, 1 if latest is None else latest.checkpoint_id + 1):
        epoch = Epoch(number, 1000 * number, is_first=number == 1, is_recorded=is_recorded)
        by_task = {
            vertex.first_task + subtask: [pickle.dumps(list(found[subtask :: vertex.parallelism]))]
            for vertex in job.vertices
            if (found := records.get(vertex.operators[0].uid or "")) is not None
            for subtask in range(vertex.parallelism)
        }
        outcome = run.run(epoch, by_task, latest)
        pending = coordinator.begin(number, sorted(outcome.snapshots))
        for vertex in job.vertices:
            for subtask in range(vertex.parallelism):
                snapshot = outcome.snapshots[vertex.first_task + subtask]
                pending.acknowledge(
                    TaskMetadata(
                        vertex.first_task + subtask,
                        vertex.vertex_id,
                        subtask,
                        snapshot.state,
                        snapshot.event_time,
                        recorded=snapshot.recorded,
                    )
                )
        latest = coordinator.complete(
            pending,
            operators_with_state(job, outcome.snapshots),
            epoch_input=EpochInput(clock_ms=epoch.timestamp_ms),
        )
        outcome.close()
    run.close()
    coordinator.close()
    return job, storage
