"""Runs epochs in this process: the same tasks and the same routing as on Spark, without a JVM.

For tests of programs, and for running an epoch again under a debugger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.restore_plan import describe_states, operators_of, plan_restore
from opchain.runtime.epochs.epoch_task import EpochTask
from opchain.runtime.epochs.live_tasks import LiveTasks, restored_vertices
from opchain.runtime.program.vertex_program import DRIVER, JobProgram
from opchain.runtime.records.elements import MIN_WATERMARK, Buffer, reading_order
from opchain.runtime.records.garbage_collection import gc_relaxed
from opchain.runtime.shipping.functions import ship_vertices, shipped_task
from opchain.runtime.shipping.outcome import JobOutcome, read_outcome
from opchain.runtime.task.stream_task import TaskEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opchain.runtime.checkpoint.epoch import Epoch
    from opchain.runtime.checkpoint.metadata import CheckpointMetadata, StateDescription
    from opchain.runtime.checkpoint.storage import CheckpointStorage


class LocalEpochs:
    """One run of a job, epoch by epoch.

    Args:
        job: The job.
        storage: The storage of the state.
        processes: The number of simulated processes that keep tasks; see `process_of` of `run`.
        environment: The environment of the tasks.
        prepare: Called with each task before it runs an epoch.
    """

    def __init__(
        self,
        job: JobProgram,
        storage: CheckpointStorage,
        processes: int = 1,
        environment: TaskEnvironment | None = None,
        prepare: Callable[[EpochTask], None] = lambda _: None,
    ) -> None:
        self._prepare = prepare
        self._job = job
        self._storage = storage
        self._shipped = ship_vertices(job)
        self._environment = environment or TaskEnvironment()
        self._live = [LiveTasks() for _ in range(processes)]

    def run(
        self,
        epoch: Epoch,
        deliveries: Mapping[int, Sequence[bytes]],
        latest: CheckpointMetadata | None,
        process_of: Callable[[int], int] = lambda _: 0,
    ) -> JobOutcome:
        """Runs an epoch, without commits. Returns the reports of its tasks.

        Args:
            epoch: The epoch.
            deliveries: The input of the tasks of sources, by task number, in order.
            latest: The previous checkpoint; None for the first epoch.
            process_of: The process that runs a task.
        """
        with gc_relaxed():
            return read_outcome(self._job, self._buffers(epoch, deliveries, latest, process_of))

    def close(self) -> None:
        """Closes all tasks."""
        for live in self._live:
            live.close()

    def close_quietly(self) -> None:
        """Closes all tasks, and logs errors."""
        for live in self._live:
            live.close_quietly()

    def _buffers(
        self,
        epoch: Epoch,
        deliveries: Mapping[int, Sequence[bytes]],
        latest: CheckpointMetadata | None,
        process_of: Callable[[int], int],
    ) -> Iterator[Buffer]:
        job = self._job
        plan = None if latest is None else plan_restore(latest, operators_of(job))
        restored = restored_vertices(job, plan)
        waiting: dict[int, list[Buffer]] = {
            task: [
                Buffer(task, MIN_WATERMARK, 0, number, payload)
                for number, payload in enumerate(payloads)
            ]
            for task, payloads in deliveries.items()
        }
        for task in job.tasks:
            vertex, _ = job.vertex_of(task)
            live = self._live[process_of(task)]
            running = live.take(
                task,
                restored[vertex.first_task],
                self._storage,
                lambda task=task: (  # type: ignore[misc]
                    shipped_task(job, self._shipped, task),
                    self._environment,
                ),
                epoch.timestamp_ms,
            )
            self._prepare(running)
            buffers = iter(sorted(waiting.pop(task, []), key=reading_order))
            attempt_id = self._environment.attempt_id
            for buffer in running.run_epoch(epoch, buffers, self._storage, attempt_id):
                if buffer.target == DRIVER:
                    yield buffer
                else:
                    for copy in buffer.for_each_reader():
                        waiting.setdefault(copy.target, []).append(copy)
            if epoch.drains:
                running.close()
            else:
                live.keep(running)
        assert not waiting, f"buffers are left for tasks {sorted(waiting)}"


def states_when_opened(job: JobProgram, task: int, operator: int) -> tuple[StateDescription, ...]:
    """The states that an operator of a task declares when it is opened, in this process.

    Raises:
        Exception: The exception of the user's `open()`.
    """
    running = EpochTask(shipped_task(job, ship_vertices(job), task), task, TaskEnvironment())
    try:
        opened = running.chain.operators[operator]
        opened.open()
        return describe_states(opened.context)
    finally:
        running.close()
