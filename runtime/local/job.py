"""Runs a job in this process: the same tasks and the same routing as on Spark, without a JVM.

For tests, experiments, and machines without Java. Vertices are pickled, and unpickled for each task. So each task has
its own copies of functions, as on executors, and a function that cannot be pickled fails here as well. Files and
modules that Spark would copy to executors are used in place.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tarfile
import tempfile
import threading
import uuid
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from opchain.runtime.errors import InternalError
from opchain.runtime.job.dependencies import (
    NO_DEPENDENCIES,
    JobDependencies,
    PythonArchive,
    installed_requirements,
    missing_file,
    working_folder,
)
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
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opchain.runtime.records.elements import Buffer


_LOG = logging.getLogger("opchain.local")

MANY_TASKS = 1000
"""With more tasks, a job in this process logs a warning."""


@contextmanager
def local_files(dependencies: JobDependencies) -> Iterator[Mapping[str, Path]]:
    """Within the block, the cached files and unpacked archives by name. Python files can be imported.

    Requirements are installed. If there are archives, their folder is the working directory. `python_executable` and
    jars have no effect: this process is the interpreter.

    Raises:
        FileNotFoundError: A file does not exist.
    """
    files = {file.name: Path(file.path).absolute() for file in dependencies.cached_files}
    for path in (*files.values(), *map(Path, dependencies.python_files)):
        if not path.exists():
            raise missing_file(path)
    installed = installed_requirements(dependencies.requirements)
    with importable((*dependencies.python_files, *installed)):
        if not dependencies.archives:
            yield files
            return
        with tempfile.TemporaryDirectory(prefix="opchain-archives-") as folder:
            unpacked = _unpacked(dependencies.archives, Path(folder))
            with working_folder(folder):
                yield files | unpacked


@contextmanager
def importable(python_files: Sequence[str]) -> Iterator[None]:
    """Within the block, modules can be imported from these files and folders."""
    added = [_import_root(Path(file)) for file in python_files]
    sys.path[:0] = added
    try:
        yield
    finally:
        for root in added:
            if root in sys.path:
                sys.path.remove(root)


def _import_root(path: Path) -> str:
    """The import path entry: the folder of a .py file, the parent of a package, or the folder or zip itself."""
    is_module = path.suffix == ".py" or (path / "__init__.py").is_file()
    return str((path.parent if is_module else path).absolute())


def _unpacked(archives: Sequence[PythonArchive], folder: Path) -> dict[str, Path]:
    for archive in archives:
        target = folder / archive.name
        if tarfile.is_tarfile(archive.path):
            with tarfile.open(archive.path) as tar:
                tar.extraction_filter = lambda member, _: member  # _members_inside has checked them
                tar.extractall(target, _members_inside(tar, target))  # noqa: S202 - checked as well
        else:
            shutil.unpack_archive(archive.path, target)
    return {archive.name: folder / archive.name for archive in archives}


def _members_inside(tar: tarfile.TarFile, folder: Path) -> Iterator[tarfile.TarInfo]:
    """The members of an archive, each checked when those before it are unpacked, because they may be links.

    The filters of the standard library are missing in Python 3.11.2 of Debian 12. `data` also refuses the links of a
    virtual environment to its interpreter.
    """
    root = os.path.realpath(folder)
    for member in tar:
        names = (member.name, member.linkname) if member.islnk() else (member.name,)
        for name in names:
            place = os.path.realpath(folder / name)
            if member.isdev() or os.path.commonpath([root, place]) != root:
                raise ValueError(
                    f"the archive {tar.name!r} is refused: its member {member.name!r} is a device, or would be "
                    f"written outside of the folder into which the archive is unpacked: use another archive"
                )
        yield member


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
    is_endless = bool(job.endless_sources or job.running_sources)
    shipped = () if is_endless else ship_vertices(job)
    progress = CountedProgress(job)
    attempts = _Attempts()
    collected = _collected_records(job)
    start = "from the beginning" + (", without the state that it had" if is_endless else "")
    counted = Restarts(restarts or RestartStrategy(), job.job_name, start=start)

    def attempt(number: int) -> JobOutcome:
        switch, lineage = attempts.begin(), uuid.uuid4().hex
        with discarded_on_failure(job, lineage):
            with local_files(dependencies) as files:
                environment = TaskEnvironment(
                    attempt=number,
                    files=files,
                    lineage=lineage,
                    take_collected=collected.put if is_endless else None,
                )
                if is_endless:
                    outcome = read_outcome(
                        job, LiveRun(job, environment, switch, progress).buffers()
                    )
                else:
                    buffers = run_tasks(
                        job, shipped, environment=environment, switch=switch, progress=progress
                    )
                    outcome = attempts.run(lambda: read_outcome(job, buffers))
            commit(job, outcome)
        RecordWarnings(job).look_at(outcome.metrics)
        return outcome

    def run() -> JobOutcome:
        return counted.run(attempt, attempts.stopped)

    def run_live() -> JobOutcome:
        try:
            return run()
        finally:
            collected.end()

    def stop_live() -> None:
        collected.end()  # a task that waits for a reader continues
        attempts.stop()

    if is_endless:
        return _LiveJobRun(
            run_live,
            stop_live,
            name=job.job_name,
            progress=progress,
            restarts=counted,
            records=collected,
        )
    return JobRun(run, attempts.stop, name=job.job_name, progress=progress, restarts=counted)


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
    """The attempts of a run. Each has its own stop switch."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self._lock = threading.Lock()
        self._switch = StopSwitch()
        self._thread: TaskThread | None = None

    def begin(self) -> StopSwitch:
        """Returns the switch of a new attempt."""
        with self._lock:
            self._switch = StopSwitch()
            if self.stopped.is_set():
                self._switch.stop()
            return self._switch

    def run(self, call: Callable[[], JobOutcome]) -> JobOutcome:
        """Runs the tasks of an attempt: in the main thread, where Ctrl-C ends them, or in a thread that can be abandoned."""
        if threading.current_thread() is threading.main_thread():
            return call()
        thread = TaskThread("tasks", lambda: None)
        self._thread = thread
        try:
            return thread.run(call)
        finally:
            thread.close()

    def stop(self) -> None:
        """Stops the current attempt, and prevents further attempts."""
        with self._lock:
            self.stopped.set()
            self._switch.stop()
        if self._thread is not None:
            self._thread.stop()


def _collected_records(job: JobProgram) -> CollectedRecords:
    """The queue for the collected records of a live run.

    With a single sink, the job waits for its reader if the queue is full. With several sinks, a program may read one to
    its end first; and a program may wait for the end of a job before it reads. In these cases, the queue is unlimited.
    """
    sinks = [
        operator
        for vertex in job.vertices
        for operator in vertex.operators
        if operator.spec.kind == "collect_sink"
    ]
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

        for number in (number for stage in job.stages for number in stage.vertices):
            vertex = job.vertices[number]
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
