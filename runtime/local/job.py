"""Runs a job in this process: the same tasks and the same routing as on Spark, without a JVM.

For tests, experiments, and machines without Java. Vertices are pickled, and unpickled for each task. So each task has
its own copies of functions, as on executors, and a function that cannot be pickled fails here as well. Files and
modules that Spark would copy to executors are used in place.
"""

from __future__ import annotations

import logging
import threading
import uuid
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING

from opchain.runtime.errors import InternalError
from opchain.runtime.job.dependencies import NO_DEPENDENCIES, JobDependencies, local_files
from opchain.runtime.job.orphans import discarded_on_failure
from opchain.runtime.job.progress import CountedProgress
from opchain.runtime.job.restarts import Restarts, RestartStrategy
from opchain.runtime.job.run import NO_LIMIT, CollectedRecords, JobRun
from opchain.runtime.local.live_run import LiveRun, StopSwitch
from opchain.runtime.local.task_thread import TaskThread
from opchain.runtime.measurements.record_warnings import RecordWarnings
from opchain.runtime.program.vertex_program import DRIVER, JobProgram
from opchain.runtime.records.buffer_store import BufferStore
from opchain.runtime.records.garbage_collection import gc_relaxed
from opchain.runtime.shipping.functions import ship_vertices, shipped_task
from opchain.runtime.shipping.outcome import JobOutcome, commit, read_outcome
from opchain.runtime.task.stream_task import StreamTask, TaskEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opchain.runtime.records.elements import Buffer


_LOG = logging.getLogger("opchain.local")

MANY_TASKS = 1000
"""With more tasks, a job in this process logs a warning."""


def local_run(
    job: JobProgram,
    dependencies: JobDependencies = NO_DEPENDENCIES,
    restarts: RestartStrategy | None = None,
) -> JobRun:
    """The run of a job in this process. It can be stopped between two batches.

    A restart begins from the beginning, because nothing was committed.

    Raises:
        UnpicklableFunctionError: A function cannot be pickled.
    """
    warn_of_many_tasks(job)
    strategy = restarts or RestartStrategy()
    if job.endless_sources or job.running_sources:
        return _live_run(job, dependencies, strategy)
    shipped = ship_vertices(job)
    progress = CountedProgress(job)
    attempts = _Attempts(job, dependencies, strategy, start="from the beginning")

    def outcome_of(environment: TaskEnvironment, switch: StopSwitch) -> JobOutcome:
        buffers = run_tasks(job, shipped, environment=environment, switch=switch, progress=progress)
        return attempts.in_a_thread(lambda: read_outcome(job, buffers))

    return JobRun(
        lambda: attempts.run(outcome_of),
        attempts.stop,
        name=job.job_name,
        progress=progress,
        restarts=attempts.restarts,
    )


def _live_run(job: JobProgram, dependencies: JobDependencies, strategy: RestartStrategy) -> JobRun:
    """The run of a job that may not end. All of its tasks run at once."""
    progress = CountedProgress(job)
    collected = _collected_records(job)
    start = "from the beginning, without the state that it had"
    attempts = _Attempts(job, dependencies, strategy, start=start)

    def outcome_of(environment: TaskEnvironment, switch: StopSwitch) -> JobOutcome:
        environment = replace(environment, take_collected=collected.put)
        return read_outcome(job, LiveRun(job, environment, switch, progress).buffers())

    def run() -> JobOutcome:
        try:
            return attempts.run(outcome_of)
        finally:
            collected.end()

    def stop() -> None:
        collected.end()  # a task that waits for a reader continues
        attempts.stop()

    return _LiveJobRun(
        run,
        stop,
        name=job.job_name,
        progress=progress,
        restarts=attempts.restarts,
        records=collected,
    )


def warn_of_many_tasks(job: JobProgram) -> None:
    """Warns that a parallelism of this size is useless in one process."""
    if len(job.tasks) > MANY_TASKS:
        _LOG.warning(
            "job '%s' runs its %d tasks in this process, where a parallelism above 1 gives no speed-up; set a "
            "smaller one for -D execution.target=local",
            job.job_name,
            len(job.tasks),
        )


class _Attempts:
    """The attempts of a run, until one succeeds or the run is stopped. Each has its own stop switch.

    Args:
        job: The job.
        dependencies: The files that it needs.
        strategy: When a failed attempt is followed by another one.
        start: Where an attempt begins, for the log.
    """

    def __init__(
        self, job: JobProgram, dependencies: JobDependencies, strategy: RestartStrategy, start: str
    ) -> None:
        self.restarts = Restarts(strategy, job.job_name, start=start)
        self._job = job
        self._dependencies = dependencies
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._switch = StopSwitch()
        self._thread: TaskThread | None = None

    def run(self, outcome_of: Callable[[TaskEnvironment, StopSwitch], JobOutcome]) -> JobOutcome:
        """Runs attempts. `outcome_of` runs the tasks of one, without commits."""
        return self.restarts.run(lambda number: self._attempt(number, outcome_of), self._stopped)

    def _attempt(
        self, number: int, outcome_of: Callable[[TaskEnvironment, StopSwitch], JobOutcome]
    ) -> JobOutcome:
        switch, lineage = self._begin(), uuid.uuid4().hex
        with discarded_on_failure(self._job, lineage):
            with local_files(self._dependencies) as files:
                environment = TaskEnvironment(attempt=number, files=files, lineage=lineage)
                outcome = outcome_of(environment, switch)
            commit(self._job, outcome)
        RecordWarnings(self._job).look_at(outcome.metrics)
        return outcome

    def _begin(self) -> StopSwitch:
        """Returns the switch of a new attempt."""
        with self._lock:
            self._switch = StopSwitch()
            if self._stopped.is_set():
                self._switch.stop()
            return self._switch

    def in_a_thread(self, call: Callable[[], JobOutcome]) -> JobOutcome:
        """Makes a call: in the main thread, where Ctrl-C ends it, or in a thread that can be abandoned."""
        if threading.current_thread() is threading.main_thread():
            return call()
        thread = TaskThread(lambda: None)
        self._thread = thread
        try:
            return thread.run(call)
        finally:
            thread.close()

    def stop(self) -> None:
        """Stops the current attempt, and prevents further attempts."""
        with self._lock:
            self._stopped.set()
            self._switch.stop()
        if self._thread is not None:
            self._thread.stop()


def _collected_records(job: JobProgram) -> CollectedRecords:
    """The queue for the collected records of a live run.

    With a single sink, the job waits for its reader if the queue is full. With several sinks, a program may read one to
    its end first; and a program may wait for the end of a job before it reads. In these cases, the queue is unlimited.
    """
    sinks = [operator for operator in job.operators if operator.spec.kind == "collect_sink"]
    is_read_live = len(sinks) == 1 and job.endless_sources
    return CollectedRecords() if is_read_live else CollectedRecords(NO_LIMIT)


class _LiveJobRun(JobRun):
    """The run of an unbounded job in this process without checkpoints."""

    def why_no_savepoint(self) -> str:
        """The job has no checkpoints, or a source has no positions."""
        return (
            "this unbounded job runs in this process (execution.target = local) without checkpoints; set "
            "execution.checkpointing.interval, and read from sources that have positions"
        )


def run_in_process(job: JobProgram, environment: TaskEnvironment | None = None) -> JobOutcome:
    """Runs all stages, task by task, and returns what the tasks sent to the driver. Commits nothing.

    Raises:
        Exception: The exception of a user's function, with notes that name the operator and the record.
    """
    return read_outcome(job, run_tasks(job, ship_vertices(job), environment=environment))


def run_tasks(
    job: JobProgram,
    shipped: Sequence[bytes],
    *,
    environment: TaskEnvironment | None = None,
    switch: StopSwitch | None = None,
    progress: CountedProgress | None = None,
) -> Iterator[Buffer]:
    """Runs all stages, and yields the buffers for the driver.

    Of the buffers between two vertices, up to 16 MB per receiving vertex are kept in memory, the rest in a file.

    Raises:
        JobStoppedError: The job was stopped.
    """
    switch = switch or StopSwitch()
    progress = progress or CountedProgress(job)
    numbers = {task: number for number, vertex in enumerate(job.vertices) for task in vertex.tasks}
    # A store per vertex, so its file can be deleted when the vertex has finished.
    stores: dict[int, BufferStore] = {}
    with gc_relaxed(), ExitStack() as stack:

        def store_of(task: int) -> BufferStore:
            number = numbers[task]
            if number not in stores:
                stores[number] = stack.enter_context(BufferStore())
            return stores[number]

        for number, vertex in enumerate(job.vertices):
            for task in vertex.tasks:
                program = shipped_task(job, shipped, task)
                with closing(store_of(task).read(task)) as buffers:
                    running = StreamTask(program, task, buffers, environment)
                    switch.watch(running)
                    progress.started(task, running.counts_now)
                    for buffer in running.run():
                        if buffer.target == DRIVER:
                            yield buffer
                        else:
                            for copy in buffer.for_each_reader():
                                store_of(copy.target).add(copy)
                switch.forget(running)
                assert running.report is not None, "a task that has ended has its numbers"
                progress.finished(task, running.report.metrics)
            store = stores.pop(number)
            if len(store):
                raise InternalError(f"{len(store)} buffers are left for tasks of vertex {number}")
            store.close()
