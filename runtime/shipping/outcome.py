"""The results of tasks on the driver: collected records, printed lines, committables, metrics."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import COMMIT_FIRST, InternalError, SinkError, add_note
from opchain.runtime.measurements.job_metrics import (
    JobMetrics,
    merge_task_accumulators,
    merge_task_metrics,
    over_span,
)
from opchain.runtime.records.buffer_store import BufferStore
from opchain.runtime.records.wire import PayloadKind, kind_of
from opchain.runtime.task.report import RecordKey, TaskReport, read_items, read_records, record_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from opchain.runtime.checkpoint.epoch import TaskSnapshot
    from opchain.runtime.program.vertex_program import JobProgram, OperatorProgram
    from opchain.runtime.records.elements import Buffer


@dataclass(slots=True)
class JobOutcome:
    """The results of a job, or of an epoch of a job.

    These are the report of every task, the committables by vertex and operator, and the records. For an epoch, they
    include the acknowledged state of each task.
    """

    reports: dict[int, TaskReport] = field(default_factory=dict)
    snapshots: dict[int, TaskSnapshot] = field(default_factory=dict)
    committables: dict[tuple[int, int], list[Any]] = field(default_factory=dict)
    records: dict[RecordKey, BufferStore] = field(default_factory=dict)
    metrics: JobMetrics = field(default_factory=JobMetrics)
    accumulators: dict[str, Any] = field(default_factory=dict)

    def collected(self, sink_uid: str) -> Iterator[Any]:
        """The records of a collecting sink, subtask by subtask. They can be read once.

        They stay pickled until they are read; above a size limit, they are in a file.
        """
        return self._taken(("collect", sink_uid))

    def printed(self, *, to_stderr: bool) -> Iterator[str]:
        """The lines that tasks sent to be printed here, task by task. They can be read once."""
        return self._taken(("print", to_stderr))

    def close(self) -> None:
        """Drops the records that were not read."""
        for store in self.records.values():
            store.close()
        self.records.clear()

    def _taken(self, key: RecordKey) -> Iterator[Any]:
        store = self.records.pop(key, None)
        if store is not None:
            with store:
                for buffer in store:
                    yield from read_records(buffer)


def with_idle_time(job: JobProgram, outcome: JobOutcome, span_ms: float) -> JobOutcome:
    """The outcome of an epoch, with the time since the previous epoch counted as idle time of its tasks.

    Args:
        job: The job.
        outcome: The outcome, whose metrics only cover the time that tasks ran.
        span_ms: From the end of the previous epoch to the end of this one.
    """
    span_ns = int(span_ms * 1_000_000)
    reports = {
        task: replace(report, metrics=over_span(report.metrics, span_ns))
        for task, report in outcome.reports.items()
    }
    tasks = {task: report.metrics for task, report in reports.items()}
    return replace(outcome, reports=reports, metrics=merge_task_metrics(job, tasks))


def read_outcome(job: JobProgram, buffers: Iterable[Buffer]) -> JobOutcome:
    """Sorts the buffers that tasks sent to the driver. They may arrive in any order.

    Raises:
        InternalError: A task's report or buffer is missing, or has an unknown kind. Nothing partial is used.
    """
    outcome = JobOutcome()
    acknowledged: list[Buffer] = []
    numbers: dict[int, list[int]] = {}
    try:
        for buffer in buffers:
            numbers.setdefault(buffer.channel, []).append(buffer.sequence)
            if kind_of(buffer.payload) == PayloadKind.RECORDS:
                key = record_key(buffer)
                if key not in outcome.records:
                    outcome.records[key] = BufferStore()
                outcome.records[key].add(buffer)
            else:
                acknowledged.append(buffer)
        _read_acknowledgements(job, outcome, acknowledged)
        _check_whole(job, outcome, numbers)
        tasks = {task: report.metrics for task, report in outcome.reports.items()}
        outcome.metrics = merge_task_metrics(job, tasks)
        outcome.accumulators = merge_task_accumulators(job, tasks)
    except BaseException:
        outcome.close()
        raise
    return outcome


def print_lines(outcome: JobOutcome) -> None:
    """Prints the lines of print sinks. Called when all tasks have succeeded."""
    for to_stderr, stream in ((False, sys.stdout), (True, sys.stderr)):
        for line in outcome.printed(to_stderr=to_stderr):
            stream.write(line + "\n")
        stream.flush()


def commit(
    job: JobProgram, outcome: JobOutcome, after_each: Callable[[], None] = lambda: None
) -> None:
    """Commits the output of the sinks. Called when all tasks have succeeded.

    Args:
        job: The job.
        outcome: The results of its tasks.
        after_each: Called when a sink has committed.
    """
    for (vertex, index), committables in sorted(outcome.committables.items()):
        program = job.vertices[vertex].operators[index]
        try:
            _commit_one(program, committables)
        except Exception as error:
            add_note(error, f"while committing {program.label}")
            raise
        after_each()


def _commit_one(program: OperatorProgram, committables: Sequence[Any]) -> None:
    sink = program.spec.sink  # type: ignore[attr-defined]  # whoever sends committables has one
    committer = sink.create_committer()
    if committer is None:
        raise InternalError(f"{sink!r} has committables but no committer")
    try:
        _require_kind(committer.committable, program, committables)
        committer.commit(committables)
    except BaseException as failure:
        try:
            committer.close()
        except Exception as error:  # noqa: BLE001 - the first failure is what counts
            add_note(failure, f"and then closing failed: {type(error).__name__}: {error}")
        raise
    committer.close()


def _require_kind(kind: type, program: OperatorProgram, committables: Sequence[Any]) -> None:
    """Checks that committables are of the sink's kind. A previous program may have had another sink in its place.

    Raises:
        SinkError: They are of another kind.
    """
    if not all(isinstance(item, kind) for item in committables):
        raise SinkError(
            f"{program.label}: the checkpoint has output of another kind of sink with the same uid, which may wait for "
            f"its commit: {COMMIT_FIRST}"
        )


def _read_acknowledgements(job: JobProgram, outcome: JobOutcome, buffers: list[Buffer]) -> None:
    vertices = _vertices_of_tasks(job)
    for buffer in sorted(buffers, key=lambda item: (item.channel, item.sequence)):
        task = buffer.channel
        for item in read_items(buffer):
            if isinstance(item, TaskReport):
                outcome.reports[task] = item
                continue
            kind, where, value = item
            if kind == "snapshot":
                outcome.snapshots[task] = value
                continue
            if kind != "commit":
                raise InternalError(f"task {task} sent a {kind!r}, which is unknown to the driver")
            outcome.committables.setdefault((vertices[task], where), []).append(value)


def _check_whole(job: JobProgram, outcome: JobOutcome, numbers: dict[int, list[int]]) -> None:
    missing = sorted(_vertices_of_tasks(job).keys() - outcome.reports.keys())
    if missing:
        raise InternalError(f"the job ended without a report of tasks {missing}")
    for task, sequences in numbers.items():
        if sorted(sequences) != list(range(len(sequences))):
            raise InternalError(
                f"task {task} sent the driver buffers 0 to {max(sequences)}, and "
                f"{len(sequences)} of them arrived"
            )


def _vertices_of_tasks(job: JobProgram) -> dict[int, int]:
    """The number of each task's vertex."""
    return {task: number for number, vertex in enumerate(job.vertices) for task in vertex.tasks}
