"""The function that Spark runs on each partition of a stage: it runs the tasks of a slot, and forwards other buffers."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import add_note, show_notes
from opchain.runtime.functions.sink import NO_LINEAGE, SinkWriter
from opchain.runtime.job.dependencies import working_folder
from opchain.runtime.records.buffer_store import BufferStore
from opchain.runtime.records.garbage_collection import freeze_imports, gc_relaxed
from opchain.runtime.shipping.functions import task_program
from opchain.runtime.spark.dataframes import batches_of_frames
from opchain.runtime.spark.exchange import addressed, receive, to_frame
from opchain.runtime.spark.stage_progress import CountsAddress, sending_counts
from opchain.runtime.task.stream_task import StreamTask, TaskEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyspark import Accumulator, Broadcast

    from opchain.runtime.measurements.task_metrics import TaskMetrics
    from opchain.runtime.program.vertex_program import JobProgram, StageProgram
    from opchain.runtime.records.elements import Buffer
    from opchain.runtime.spark.remote_error import ErrorSeal


_ADVICE: dict[tuple[type[Exception], ...], str] = {
    (
        ImportError,
    ): "modules beside the program are sent automatically; install others on the executors, or name them by "
    "env.add_python_file()",
    (
        FileNotFoundError,
        NotADirectoryError,
    ): "data files beside modules are not sent automatically; name their folder by "
    "env.add_python_file()",
}
"""What to do if functions cannot be loaded on an executor, by the kinds of errors."""


@dataclass(frozen=True, slots=True)
class ShippedVertex:
    """A pickled vertex. A large one is broadcast, and loaded only by its own tasks.

    `feed_schema` is the schema of the DataFrame that its source reads, if any. `sink_schemas` has the schemas of Arrow
    sinks, by operator. `sink_writers` has their writers, in an unbounded job.
    """

    name: str
    first_task: int
    parallelism: int
    data: bytes | Broadcast[bytes]
    feed_schema: str | None = None
    has_large_types: bool = False
    sink_schemas: Mapping[int, str] = field(default_factory=dict)
    sink_writers: Mapping[int, Callable[[str], SinkWriter[Any]]] = field(default_factory=dict)

    def load(self) -> bytes:
        """The pickle."""
        return self.data if isinstance(self.data, bytes) else self.data.value


@dataclass(frozen=True, slots=True)
class ShippedJob:
    """The parts of a job that all tasks share.

    Attributes:
        job_name: The job's name.
        parameters: The job's parameters.
        import_path: What precedes the import path of tasks: folders of this machine, and names of files that Spark copies.
        files: The names under which Spark knows cached files.
        seal: Signs the exceptions of tasks.
        finished: Takes the counts of tasks that have ended.
        lineage: Identifies the staged output of the job.
        staging: The folder for output that is staged, if the job has one.
        restarts: How often the job was restarted.
        live: Takes the counts of running tasks.
        has_archives: Whether tasks run in the folder of Spark's files, which has the archives.
    """

    job_name: str
    parameters: dict[str, str]
    import_path: tuple[str, ...]
    files: Mapping[str, str]
    seal: ErrorSeal
    finished: Accumulator[dict[int, TaskMetrics]] | None = None
    lineage: str = NO_LINEAGE
    staging: str | None = None
    restarts: int = 0
    live: CountsAddress | None = None
    has_archives: bool = False

    def count(self, task: StreamTask) -> None:
        """Sends the counts of a finished task to the driver."""
        if self.finished is not None and task.report is not None:
            self.finished.add({task.report.task: task.report.metrics.counts_only()})


class StageTasks:
    """The function of a stage, as `mapPartitionsWithIndex` calls it.

    The tasks of a slot run one after another, and share the memory for their input. Tasks of one stage send each other
    nothing. The input consists of frames, or of chunks of a DataFrame. The output is the input of the shuffle to
    `following`. The last stage yields frames. With `gives_rows` it yields the batches of its only sink, which become a
    DataFrame; then Spark shows errors.
    """

    def __init__(
        self,
        job: ShippedJob,
        stage: StageProgram,
        following: StageProgram | None,
        vertices: tuple[ShippedVertex, ...],
        *,
        gives_rows: bool = False,
    ) -> None:
        self.job = job
        self.stage = stage
        self.following = following
        self.vertices = vertices
        self.gives_rows = gives_rows

    def __call__(self, partition: int, frames: Iterable[bytes]) -> Iterator[bytes]:
        """Runs the tasks of a partition."""
        freeze_imports()
        buffers = self._run(self.stage.slots[partition], frames)
        if self.following is None and self.gives_rows:
            return batches_of_frames(buffers)
        if self.following is None:
            return (item if isinstance(item, bytes) else to_frame(item) for item in buffers)
        return addressed(buffers, self.following)

    def _run(self, slot: tuple[int, ...], frames: Iterable[bytes]) -> Iterator[Buffer | bytes]:
        try:
            with working_folder(self._folder()), gc_relaxed(), BufferStore() as store:
                if self._vertex_of(slot[0]).feed_schema is None:
                    # The first stage has no frames. It must read its input nevertheless, or Spark drops the worker
                    # process.
                    yield from receive(frames, slot, store)
                else:
                    assert len(slot) == 1, "a partition feeds one task"
                for task in slot:
                    with closing(store.read(task)) as buffers:
                        yield from self._run_task(task, buffers, frames)
        except (Exception, KeyboardInterrupt) as error:
            if self.gives_rows:
                show_notes(error)
                raise
            raise self.job.seal.sealed(error) from error

    def _folder(self) -> str | None:
        """The working folder of the tasks; None for that of the worker."""
        from pyspark import SparkFiles  # noqa: PLC0415 - for executors only

        return SparkFiles.getRootDirectory() if self.job.has_archives else None

    def _run_task(
        self, task: int, buffers: Iterator[Buffer], frames: Iterable[bytes]
    ) -> Iterator[Buffer]:
        """Runs one task; `frames` is the rest of the partition's input."""
        running = StreamTask(self._load(task), task, buffers, self._environment_of(task, frames))
        with sending_counts(self.job.live, task, running.counts_now):
            yield from running.run()
        self.job.count(running)

    def _vertex_of(self, task: int) -> ShippedVertex:
        return next(
            vertex
            for vertex in self.vertices
            if vertex.first_task <= task < vertex.first_task + vertex.parallelism
        )

    def _load(self, task: int) -> JobProgram:
        self._order_imports()
        vertex = self._vertex_of(task)
        try:
            return task_program(self.job.job_name, self.job.parameters, vertex.load())
        except Exception as error:
            add_note(error, f"while loading the functions of '{vertex.name}' on an executor")
            advice = next(
                (text for kinds, text in _ADVICE.items() if isinstance(error, kinds)), None
            )
            if advice is not None:
                add_note(error, advice)
            raise

    def _order_imports(self) -> None:
        """Puts the job's entries in front. Spark adds its files in an order that depends on their names, if there are 5."""
        from pyspark import SparkFiles  # noqa: PLC0415 - for executors only

        first = [SparkFiles.get(entry) for entry in self.job.import_path]
        sys.path[:] = [*first, *(entry for entry in sys.path if entry not in first)]

    def _environment_of(self, task: int, chunks: Iterable[bytes]) -> TaskEnvironment:
        """The environment, with the DataFrame that the task reads and the schemas of its sinks."""
        vertex = self._vertex_of(task)
        feed = None
        if vertex.feed_schema is not None:
            from opchain.runtime.connectors.dataframe_source import SparkRows  # noqa: PLC0415 - rarely needed

            feed = SparkRows(vertex.feed_schema, chunks, vertex.has_large_types)
        return replace(self._environment(), feed=feed, schemas=vertex.sink_schemas)

    def _environment(self) -> TaskEnvironment:
        from pyspark import SparkFiles, TaskContext  # noqa: PLC0415 - for executors only

        attempt: Any = TaskContext.get()
        return TaskEnvironment(
            attempt=self.job.restarts + attempt.attemptNumber(),
            attempt_id=str(attempt.taskAttemptId()),
            files={name: Path(SparkFiles.get(file)) for name, file in self.job.files.items()},
            prints_on_driver=True,
            lineage=self.job.lineage,
            staging=self.job.staging,
        )
