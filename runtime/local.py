"""Runs a job in this process: the same tasks and the same routing as on Spark, without a JVM.

For tests, for trying things out, for machines without Java. The vertices are pickled first, and read back
for each task, so that functions are copied as they would be for executors, and what cannot travel fails
here as well.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from opchain.runtime.job_dependencies import NO_DEPENDENCIES
from opchain.runtime.job_outcome import commit, read_outcome
from opchain.runtime.job_run import JobRun
from opchain.runtime.local_files import local_files
from opchain.runtime.shipping import ship_vertices, shipped_task
from opchain.runtime.task.relaxed_collector import relaxed_collector
from opchain.runtime.task.stream_task import StreamTask, TaskEnvironment
from opchain.runtime.task.vertex_program import DRIVER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.runtime.job_dependencies import JobDependencies
    from opchain.runtime.job_outcome import JobOutcome
    from opchain.runtime.task.buffer import Buffer
    from opchain.runtime.task.vertex_program import JobProgram


class JobStoppedError(Exception):
    """The job was cancelled while it ran."""


def local_run(job: JobProgram, dependencies: JobDependencies = NO_DEPENDENCIES) -> JobRun:
    """The run of a job in this process; it can be stopped between two buffers.

    Raises:
        UnpicklableFunctionError: A function cannot be pickled.
    """
    shipped = ship_vertices(job)
    stopped = threading.Event()

    def run() -> JobOutcome:
        with local_files(dependencies) as files:
            environment = TaskEnvironment(files=files)
            buffers = run_tasks(job, shipped, environment=environment, stopped=stopped)
            outcome = read_outcome(job, buffers)
        commit(job, outcome)
        return outcome

    return JobRun(run, stopped.set)


def run_in_process(job: JobProgram, environment: TaskEnvironment | None = None) -> JobOutcome:
    """Runs all stages, task after task, and gives what the tasks told the driver; commits nothing.

    Raises:
        Exception: What a user's function raised, with notes that name the operator and the record.
    """
    return read_outcome(job, run_tasks(job, ship_vertices(job), environment=environment))


def run_tasks(
    job: JobProgram,
    shipped: Sequence[bytes],
    *,
    environment: TaskEnvironment | None = None,
    stopped: threading.Event | None = None,
) -> Iterator[Buffer]:
    """Runs all stages; yields the buffers for the driver.

    Raises:
        JobStoppedError: `stopped` was set.
    """
    waiting: dict[int, list[Buffer]] = {}
    with relaxed_collector():
        for stage in job.stages:
            for task in range(stage.first_task, stage.first_task + stage.parallelism):
                buffers = sorted(waiting.pop(task, []), key=_reading_order)
                program = shipped_task(job, shipped, task)
                for buffer in StreamTask(program, task, iter(buffers), environment).run():
                    if stopped is not None and stopped.is_set():
                        raise JobStoppedError
                    if buffer.target == DRIVER:
                        yield buffer
                    else:
                        waiting.setdefault(buffer.target, []).append(buffer)
    assert not waiting, f"buffers are left for tasks {sorted(waiting)}"


def _reading_order(buffer: Buffer) -> tuple[int, int, int]:
    return buffer.order, buffer.channel, buffer.sequence
