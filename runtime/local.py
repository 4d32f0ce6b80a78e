"""Runs a job in this process: the same tasks and the same routing as on Spark, without a JVM.

For tests, for trying things out, for machines without Java. The job is pickled and read back first, so
that functions are copied as they would be for executors, and what cannot travel fails here as well.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from opchain.runtime.job_outcome import commit, read_outcome
from opchain.runtime.job_run import JobRun
from opchain.runtime.shipping import ship, unship
from opchain.runtime.task.report import read_driver_buffers
from opchain.runtime.task.stream_task import StreamTask, TaskEnvironment
from opchain.runtime.task.vertex_program import DRIVER

if TYPE_CHECKING:
    from opchain.runtime.job_outcome import JobOutcome
    from opchain.runtime.task.buffer import Buffer
    from opchain.runtime.task.vertex_program import JobProgram


class JobStoppedError(Exception):
    """The job was cancelled while it ran."""


def local_run(job: JobProgram) -> JobRun:
    """The run of a job in this process; it can be stopped between two buffers."""
    stopped = threading.Event()

    def run() -> JobOutcome:
        outcome = read_outcome(job, run_in_process(job, stopped=stopped))
        commit(job, outcome)
        return outcome

    return JobRun(run, stopped.set)


def run_in_process(
    job: JobProgram,
    environment: TaskEnvironment | None = None,
    *,
    stopped: threading.Event | None = None,
) -> dict[int, list[Any]]:
    """Runs all stages, task after task, and gives what each task told the driver.

    Raises:
        Exception: What a user's function raised, with notes that name the operator and the record.
    """
    shipped: JobProgram = unship(ship(job))
    waiting: dict[int, list[Buffer]] = {}
    for stage in shipped.stages:
        for task in range(stage.first_task, stage.first_task + stage.parallelism):
            buffers = sorted(waiting.pop(task, []), key=_reading_order)
            for buffer in StreamTask(shipped, task, iter(buffers), environment).run():
                if stopped is not None and stopped.is_set():
                    raise JobStoppedError
                waiting.setdefault(buffer.target, []).append(buffer)
    to_driver = waiting.pop(DRIVER, [])
    assert not waiting, f"buffers are left for tasks {sorted(waiting)}"
    return read_driver_buffers(to_driver)


def _reading_order(buffer: Buffer) -> tuple[int, int, int]:
    return buffer.order, buffer.channel, buffer.sequence
