"""The progress of an epoch of an unbounded job: for listeners, the job client, the terminal, the log and the plan page.

    {"job": "visits", "epoch": 12, "records_in": 1000, "durations_ms": {"tasks": 310.2, ...}, "vertices": [...], ...}

`as_dict` gives plain values for JSON, with the names of the attributes; `from_dict` reads them back. Counts are those
of this epoch. A watermark is in milliseconds; it is "end" after the last record, and None before the first watermark.
Phases cover the epoch without gaps: each ends where the next begins.

EpochHistory keeps the latest epochs of a run and the totals, and calls listeners.

The progress log is a file with one line of JSON per epoch. Each run appends to it. A line is written after its epoch.
If the process is killed while it writes a line, `read_progress_log` skips the line and the next run starts a new one.

Spark: `StreamingQueryProgress`. Flink: the REST interface's values of vertices and checkpoints.
"""

from __future__ import annotations

import json
import logging
import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import reduce
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from opchain.runtime.measurements.job_metrics import (
    JobMetrics,
    RunTotals,
    added,
    merge_task_metrics,
    metrics_so_far,
)
from opchain.runtime.measurements.record_warnings import RecordWarnings
from opchain.runtime.metrics.histogram import HistogramValue
from opchain.runtime.program.operator_specs import LegacySinkSpec, SinkWriterSpec
from opchain.runtime.records.elements import MAX_WATERMARK, MIN_WATERMARK

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.epoch import Epoch, StateSize
    from opchain.runtime.measurements.task_metrics import TaskMetrics
    from opchain.runtime.measurements.vertex_metrics import OperatorMetrics, VertexMetrics
    from opchain.runtime.program.vertex_program import JobProgram
    from opchain.runtime.shipping.outcome import JobOutcome


class PhaseClock:
    """Measures the phases of epochs.

    Attributes:
        durations_ms: The durations of the phases that ended since `begin_epoch`.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._since = clock()
        self.durations_ms: dict[str, float] = {}

    def begin_epoch(self) -> None:
        """Drops the phases of the previous epoch. The time since its last phase counts for the next phase that ends."""
        self.durations_ms = {}

    def end_phase(self, phase: str) -> None:
        """Ends a phase. The durations of a repeated phase are added up."""
        now = self._clock()
        spent_ms = 1000 * (now - self._since)
        self.durations_ms[phase] = self.durations_ms.get(phase, 0.0) + spent_ms
        self._since = now


class ProgressLog:
    """An EpochListener that appends epochs to a file. It creates the file and its folders.

    Raises:
        OSError: The file can't be written. The constructor raises it, before the job begins.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a+b") as file:
            if file.tell():
                file.seek(-1, 2)
                if file.read(1) != b"\n":
                    file.write(b"\n")

    def __call__(self, progress: EpochProgress) -> None:
        """Writes a line."""
        line = json.dumps(progress.as_dict(), separators=(",", ":"), allow_nan=False)
        # Opened for each line, so that the file may be rotated while the job runs.
        with self._path.open("a", encoding="ascii") as file:
            file.write(f"{line}\n")


def read_progress_log(path: str | Path) -> Iterator[EpochProgress]:
    """The epochs of a file, in its order."""
    with Path(path).open(encoding="ascii") as file:
        for line in file:
            try:
                values = json.loads(line)
            except ValueError:  # half a line
                continue
            yield EpochProgress.from_dict(values)


WatermarkMs = int | Literal["end"] | None

WAITING = "waiting"  # since the end of the previous epoch: for the trigger, for input, and for Spark's log
TASKS = "tasks"  # reading, all stages, and the state of all tasks written
CHECKPOINT = (
    "checkpoint"  # completing the checkpoint, and dropping the oldest one if there are too many
)
COMMIT = "commit"  # committing sinks, printing, and passing collected records to the program
"""The phases of an epoch, in order and without gaps. `waiting` is not part of the epoch's duration."""

_SECOND_MS = 1000


@dataclass(frozen=True, slots=True)
class OperatorProgress:
    """An operator in an epoch, over all its subtasks.

    Attributes:
        id: The operator id, by which state is found.
        name: As in the plan.
        uid: The uid that the program set.
        records_in: The records that it received, or that a source read.
        records_out: The records that it emitted.
        watermark: The lowest watermark that a subtask has emitted.
        state_entries: The number of (state, key, namespace) with contents. If there are very many namespaces, it is as
            of the last full snapshot.
        written_bytes: The size of its part of the state files of this epoch.
        latency_ms: How long the epoch's latency markers took to get here, from all sources: their number
            ("count"), "min", "max", "mean", "p50", "p95" and "p99"; empty if there were none.
        splits: For a source with partitions, such as KafkaSource, by the name of the partition: "next", the offset at
            which the next epoch begins, and "lag", the number of offsets that the epoch left unread.
    """

    id: str
    name: str
    uid: str | None
    records_in: int
    records_out: int
    watermark: WatermarkMs
    state_entries: int
    written_bytes: int
    latency_ms: dict[str, float] = field(default_factory=dict)
    splits: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def lag(self) -> int:
        """The number of offsets of all splits that the epoch left unread."""
        return sum(split.get("lag", 0) for split in self.splits.values())


@dataclass(frozen=True, slots=True)
class VertexProgress:
    """A vertex in an epoch, over all its subtasks.

    Attributes:
        id: The vertex id.
        name: As in the plan.
        parallelism: How many subtasks it has.
        records_in: The records from other vertices, or that its source read.
        records_out: The records that it sent to other vertices.
        bytes_in: The size of the buffers that it received.
        bytes_out: The size of the buffers that it sent.
        busy: The share of time since the previous epoch, from 0 to 1, in which its tasks worked; None if unknown.
        back_pressured: The share of time in which its tasks waited until their buffers were read.
        idle: The share of time in which its tasks waited for input.
        skew: The records of the busiest subtask, divided by the mean.
        state_bytes: The size of its state files in the checkpoint: bases and changes.
        snapshot_ms: How long the slowest subtask took to take and write its snapshot.
        operators: In the order of the chain.
        mails: The number of mails that its tasks ran: timers, asynchronous results, the checkpoint.
        mail_latency_ms: How long the latest mails waited: "count", "min", "max", "mean", "p50", "p95", "p99".
        mail_queue: The length of the longest queue of mails in a subtask.
    """

    id: str
    name: str
    parallelism: int
    records_in: int
    records_out: int
    bytes_in: int
    bytes_out: int
    busy: float | None
    back_pressured: float
    idle: float
    skew: float
    state_bytes: int
    snapshot_ms: float
    operators: tuple[OperatorProgress, ...]
    mails: int = 0
    mail_latency_ms: dict[str, float] = field(default_factory=dict)
    mail_queue: int = 0


@dataclass(frozen=True, slots=True)
class EpochProgress:
    """One epoch, once its sinks have committed.

    Attributes:
        job: The job's name.
        run_id: The unique id of this run.
        epoch: The number of the checkpoint that ended it.
        batch: The number of its micro-batch in Spark's listeners and log.
        timestamp_ms: The processing time during the epoch, in milliseconds since the Unix epoch.
        duration_ms: From the start of the micro-batch to its end.
        durations_ms: By phase: waiting, tasks, checkpoint, commit.
        records_in: The records that all sources read.
        records_out: The records that all sinks received.
        watermark: The lowest watermark of the sources that have not ended.
        watermark_lag_ms: `timestamp_ms` minus the watermark. It is meaningful if event time is wall-clock time.
        state_entries: The sum over all operators.
        state_bytes: The size of all state files in the checkpoint.
        written_bytes: The size of the state that was written in this epoch.
        next_timer_ms: When the first processing-time timer is due, or None if there is none.
        checkpoint: The path or URL of the checkpoint. `--from` accepts it as long as the checkpoint is retained.
        vertices: In the order of the plan.
        declined: Why earlier attempts at its checkpoint failed, as names of DeclineReason.
    """

    job: str
    run_id: str
    epoch: int
    batch: int
    timestamp_ms: int
    duration_ms: float
    durations_ms: dict[str, float]
    records_in: int
    records_out: int
    watermark: WatermarkMs
    watermark_lag_ms: int | None
    state_entries: int
    state_bytes: int
    written_bytes: int
    next_timer_ms: int | None
    checkpoint: str
    vertices: tuple[VertexProgress, ...]
    declined: list[str] = field(default_factory=list)

    @property
    def records_per_second(self) -> float:
        """Records that sources read, per second of the epoch and of the waiting before it."""
        span_ms = self.duration_ms + self.durations_ms.get(WAITING, 0.0)
        return _SECOND_MS * self.records_in / span_ms if span_ms > 0 else 0.0

    def as_dict(self) -> dict[str, Any]:
        """All attributes as plain values for JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> EpochProgress:
        """Reads the result of `as_dict`. Unknown keys, from a later version, are ignored.

        Raises:
            KeyError: An attribute is missing.
        """
        vertices = tuple(
            _read(
                VertexProgress,
                vertex,
                operators=tuple(_read(OperatorProgress, item) for item in vertex["operators"]),
            )
            for vertex in values["vertices"]
        )
        found: EpochProgress = _read(EpochProgress, values, vertices=vertices)
        return found


def epoch_progress(
    job: JobProgram,
    outcome: JobOutcome,
    epoch: Epoch,
    *,
    run_id: str,
    batch: int,
    checkpoint: str,
    durations_ms: dict[str, float],
    splits: Mapping[str, dict[str, dict[str, int]]] | None = None,
    declined: Sequence[str] = (),
) -> EpochProgress:
    """The progress of an epoch that has ended, from the reports of its tasks.

    `splits` has the splits of sources with partitions, by operator id; see OperatorProgress.
    """
    vertices = tuple(
        _vertex(vertex.first_task, metrics, outcome, splits or {})
        for vertex, metrics in zip(job.vertices, outcome.metrics.vertices, strict=True)
    )
    heads = [vertex.operators[0] for vertex in outcome.metrics.vertices]
    sources = [head for head in heads if not head.input_watermarks]
    sinks = [
        metrics
        for vertex, counted in zip(job.vertices, outcome.metrics.vertices, strict=True)
        for program, metrics in zip(vertex.operators, counted.operators, strict=False)
        if isinstance(program.spec, (LegacySinkSpec, SinkWriterSpec))
    ]
    least = min(source.output_watermark for source in sources) if sources else MIN_WATERMARK
    watermark = _watermark(least)
    return EpochProgress(
        job=job.job_name,
        run_id=run_id,
        epoch=epoch.checkpoint_id,
        batch=batch,
        timestamp_ms=epoch.timestamp_ms,
        duration_ms=_rounded(sum(ms for name, ms in durations_ms.items() if name != WAITING)),
        durations_ms={name: _rounded(ms) for name, ms in durations_ms.items()},
        declined=list(declined),
        records_in=sum(source.records_in for source in sources),
        records_out=sum(sink.records_in for sink in sinks),
        watermark=watermark,
        watermark_lag_ms=epoch.timestamp_ms - watermark if isinstance(watermark, int) else None,
        state_entries=sum(item.state_entries for vertex in vertices for item in vertex.operators),
        state_bytes=sum(vertex.state_bytes for vertex in vertices),
        written_bytes=sum(item.written_bytes for vertex in vertices for item in vertex.operators),
        next_timer_ms=min(
            (
                snapshot.next_timer_ms
                for snapshot in outcome.snapshots.values()
                if snapshot.next_timer_ms is not None
            ),
            default=None,
        ),
        checkpoint=checkpoint,
        vertices=vertices,
    )


def _vertex(
    first_task: int,
    vertex: VertexMetrics,
    outcome: JobOutcome,
    splits: Mapping[str, dict[str, dict[str, int]]],
) -> VertexProgress:
    snapshots = [outcome.snapshots[first_task + subtask] for subtask in range(vertex.parallelism)]
    sizes: dict[str, list[StateSize]] = {}
    for snapshot in snapshots:
        for operator_id, size in snapshot.sizes.items():
            sizes.setdefault(operator_id, []).append(size)
    return VertexProgress(
        id=vertex.id,
        name=vertex.name,
        parallelism=vertex.parallelism,
        records_in=vertex.records_in,
        records_out=vertex.records_out,
        bytes_in=vertex.bytes_in,
        bytes_out=vertex.bytes_out,
        busy=_share(vertex.busy_time_ms_per_second),
        back_pressured=_share(vertex.back_pressured_time_ms_per_second) or 0.0,
        idle=_share(vertex.idle_time_ms_per_second) or 0.0,
        skew=round(vertex.skew, 3),
        state_bytes=sum(file.size for snapshot in snapshots for file in snapshot.state.files),
        snapshot_ms=_rounded(max(snapshot.duration_ms for snapshot in snapshots)),
        operators=tuple(
            _operator(
                operator,
                sizes.get(operator.operator_id, ()),
                splits.get(operator.operator_id, {}),
            )
            for operator in vertex.operators
        ),
        mails=vertex.mails,
        mail_latency_ms=_distribution([vertex.mail_latency_ms]),
        mail_queue=vertex.longest_mail_queue,
    )


def _operator(
    operator: OperatorMetrics, sizes: Sequence[StateSize], splits: dict[str, dict[str, int]]
) -> OperatorProgress:
    return OperatorProgress(
        id=operator.operator_id,
        name=operator.name,
        uid=operator.uid,
        records_in=operator.records_in,
        records_out=operator.records_out,
        watermark=_watermark(operator.output_watermark),
        state_entries=sum(size.entries for size in sizes),
        written_bytes=sum(size.written_bytes for size in sizes),
        latency_ms=_distribution(operator.latencies.values()),
        splits=splits,
    )


def _distribution(histograms: Iterable[HistogramValue]) -> dict[str, float]:
    """The merged histograms as plain numbers, or {} if there are no values."""
    merged = reduce(HistogramValue.merged, histograms, HistogramValue())
    return {name: round(value, 3) for name, value in merged.as_plain().items() if merged.count}


def _watermark(watermark: int) -> WatermarkMs:
    """The smallest watermark as None and the largest as "end", because JSON readers would round these numbers."""
    if watermark <= MIN_WATERMARK:
        return None
    return "end" if watermark >= MAX_WATERMARK else watermark


def _share(ms_per_second: float) -> float | None:
    return None if math.isnan(ms_per_second) else round(ms_per_second / _SECOND_MS, 4)


def _rounded(milliseconds: float) -> float:
    return round(milliseconds, 1)


def _read(kind: Any, values: Mapping[str, Any], **others: Any) -> Any:
    given = {
        item.name: values[item.name]
        for item in fields(kind)
        if item.name in values or (item.default is MISSING and item.default_factory is MISSING)
    }
    return kind(**given | others)


_LOG = logging.getLogger("opchain.epochs")

EPOCHS_KEPT = 100
"""As many as Spark keeps by default (`spark.sql.streaming.numRecentProgressUpdates`)."""

EpochListener = Callable[["EpochProgress"], object]
"""Called on the driver at the end of each epoch. The next epoch waits for it. Its errors are logged."""


class EpochHistory:
    """The epochs of one run. It is thread-safe.

    Args:
        job: The job.
        listeners: Called after each epoch, in this order.

    Attributes:
        count: The number of epochs of this run that have ended.
    """

    def __init__(self, job: JobProgram, listeners: Iterable[EpochListener] = ()) -> None:
        self._job = job
        self._listeners = list(listeners)
        self._lock = threading.Lock()
        self._recent: deque[EpochProgress] = deque(maxlen=EPOCHS_KEPT)
        self._totals = RunTotals()
        self._of_last_epoch: JobMetrics | None = None
        self._record_warnings = RecordWarnings(job)
        self.count = 0

    @property
    def recent(self) -> list[EpochProgress]:
        """The last 100 epochs of this run, the latest at the end."""
        with self._lock:
            return list(self._recent)

    @property
    def last(self) -> EpochProgress | None:
        """The last epoch of this run; None before the first has ended."""
        with self._lock:
            return self._recent[-1] if self._recent else None

    @property
    def last_metrics(self) -> JobMetrics | None:
        """The metrics of the last epoch."""
        with self._lock:
            return self._of_last_epoch

    def totals(self) -> JobMetrics:
        """The metrics of all epochs of this run."""
        with self._lock:
            tasks = dict(self._totals.tasks)
        return merge_task_metrics(self._job, tasks) if tasks else JobMetrics()

    def totals_with(self, running: Mapping[int, TaskMetrics]) -> JobMetrics:
        """The metrics of all epochs of this run, and of the current one. Its counts are by task number."""
        with self._lock:
            tasks = dict(self._totals.tasks)
        now = {task: added(tasks.get(task), counts) for task, counts in running.items()}
        return metrics_so_far(self._job, tasks | now)

    def listen(self, listener: EpochListener) -> None:
        """Adds a listener, which is called after each later epoch."""
        with self._lock:
            self._listeners.append(listener)

    def add(self, progress: EpochProgress, outcome: JobOutcome) -> None:
        """Adds a finished epoch, and calls the listeners."""
        tasks = {task: report.metrics for task, report in outcome.reports.items()}
        with self._lock:
            self._recent.append(progress)
            self.count += 1
            self._totals.add(tasks)
            self._of_last_epoch = outcome.metrics
            listeners = list(self._listeners)
        operators = outcome.metrics.operators
        if any(each.late_records_dropped or each.warning for each in operators):
            self._record_warnings.look_at(self.totals())
        for listener in listeners:
            _notify(listener, progress)


def _notify(listener: EpochListener, progress: EpochProgress) -> None:
    try:
        listener(progress)
    except Exception:  # noqa: BLE001 - watching must not end a job that may have run for weeks
        _LOG.exception("a listener failed on epoch %d of '%s'", progress.epoch, progress.job)
