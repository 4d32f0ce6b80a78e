"""The numbers of a job as samples, by the names that Flink's reporters use.

    taskmanager_job_task_operator_numRecordsIn{operator_name="parse", subtask_index="0", ...} 1000

Scopes, names and labels are those of Flink's PrometheusReporter, so dashboards for Flink fit. Counts are those of this
run. A name that Flink lacks is marked in docs/reference/metrics.md.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.runtime.job.client import JobStatus
from opchain.runtime.measurements.vertex_metrics import TASK_COUNTS
from opchain.runtime.metrics import metric_group as names
from opchain.runtime.metrics.histogram import HistogramValue
from opchain.runtime.metrics.metric_types import DistributionValue, GaugeValue, MeterValue
from opchain.runtime.records.elements import MAX_WATERMARK, MIN_WATERMARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opchain.runtime.epochs.epoch_progress import EpochProgress
    from opchain.runtime.job.run import JobRun
    from opchain.runtime.measurements.task_metrics import OperatorCounts, TaskMetrics
    from opchain.runtime.measurements.vertex_metrics import OperatorMetrics, VertexMetrics
    from opchain.runtime.program.vertex_program import JobProgram

JOB, TASK, OPERATOR = "jobmanager_job", "taskmanager_job_task", "taskmanager_job_task_operator"
"""Flink's scopes."""

_STATES = (JobStatus.CREATED, JobStatus.RUNNING, JobStatus.RESTARTING, JobStatus.CANCELLING)
_QUANTILES = (0.5, 0.95, 0.99)
_SECOND_MS = 1000
_TASK_TIMES = {
    names.BUSY_TIME: "busy_ns",
    names.IDLE_TIME: "idle_ns",
    names.BACK_PRESSURED_TIME: "back_pressured_ns",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One number.

    Attributes:
        name: Scope and name, such as "jobmanager_job_numRestarts".
        labels: What it belongs to, by Flink's names of labels.
        value: The number; times in milliseconds.
    """

    name: str
    labels: dict[str, str]
    value: float


class JobSamples:
    """Gives the samples of one run, to any thread and at any time.

    Args:
        job: The job.
        run: Its run.
    """

    def __init__(self, job: JobProgram, run: JobRun) -> None:
        self._job = job
        self._run = run
        self._started_ms = _now_ms()
        self._labels = {"job_id": str(run.get_job_id()), "job_name": job.job_name}

    def now(self) -> list[Sample]:
        """All samples as of now."""
        history, progress = self._run.history, self._run.progress
        found = list(self._of_job())
        running = {} if progress is None else progress.running_tasks()
        total = self._run.current_metrics(self._job, running)
        recent = (None if history is None else history.last_metrics) or total
        shares = {vertex.id: vertex for vertex in recent.vertices}
        for vertex in total.vertices:
            found += self._of_vertex(vertex, shares.get(vertex.id, vertex))
        if history is not None and history.last is not None:
            found += self._of_sources(history.last)
        return found

    def _of_job(self) -> Iterator[Sample]:
        run, labels = self._run, self._labels
        status = run.last_status or run.get_job_status().result()
        for state in _STATES:
            yield Sample(f"{JOB}_{state.name.lower()}State", labels, float(status is state))
        yield Sample(f"{JOB}_uptime", labels, _now_ms() - self._started_ms)
        if run.restarts is not None:
            yield Sample(f"{JOB}_numRestarts", labels, run.restarts.count)
        history = run.history
        last = None if history is None else history.last
        if history is None or last is None:
            return
        completed_ms = last.timestamp_ms + last.duration_ms
        slowest_ms = max((vertex.snapshot_ms for vertex in last.vertices), default=0.0)
        numbers: dict[str, float] = {
            "numberOfCompletedCheckpoints": history.count,
            "lastCompletedCheckpointId": last.epoch,
            "lastCheckpointDuration": slowest_ms + last.durations_ms.get("checkpoint", 0.0),
            "lastCheckpointSize": last.written_bytes,
            "lastCheckpointFullSize": last.state_bytes,
            "lastCheckpointAge": max(0.0, _now_ms() - completed_ms),
            "epochRecordsPerSecond": last.records_per_second,
        }
        for name, value in numbers.items():
            yield Sample(f"{JOB}_{name}", labels, value)
        for phase, spent_ms in last.durations_ms.items():
            yield Sample(f"{JOB}_epochDuration", labels | {"phase": phase}, spent_ms)

    def _of_vertex(self, vertex: VertexMetrics, recent: VertexMetrics) -> Iterator[Sample]:
        labels = self._labels | {"task_id": vertex.id, "task_name": vertex.name}
        lately = {task.subtask: task for task in recent.subtasks}
        for number, task in enumerate(vertex.subtasks):
            own = labels | {"subtask_index": str(task.subtask)}
            yield from _of_task(own, task, lately.get(task.subtask, task))
            for operator in vertex.operators:
                yield from _of_operator(own, operator, operator.subtasks[number], task)

    def _of_sources(self, epoch: EpochProgress) -> Iterator[Sample]:
        """Flink: the standard metrics of sources (FLIP-33), and those of KafkaSource."""
        for vertex in epoch.vertices:
            for operator in vertex.operators:
                labels = self._labels | {
                    "task_id": vertex.id,
                    "task_name": vertex.name,
                    "operator_id": operator.id,
                    "operator_name": operator.name,
                }
                if operator.id in self._sources and isinstance(operator.watermark, int):
                    lag_ms = _now_ms() - operator.watermark
                    yield Sample(f"{OPERATOR}_watermarkLag", labels, lag_ms)
                if operator.splits:
                    yield Sample(f"{OPERATOR}_pendingRecords", labels, operator.lag)
                for split, numbers in operator.splits.items():
                    for name, flinks in _SPLIT_NUMBERS.items():
                        if name in numbers:
                            own = labels | {"partition": split}
                            yield Sample(f"{OPERATOR}_{flinks}", own, numbers[name])

    @property
    def _sources(self) -> set[str]:
        return {
            operator.operator_id
            for vertex in self._job.vertices
            for operator in vertex.all_operators
            if not operator.keys and operator.parent < 0 and not vertex.inputs
        }


_SPLIT_NUMBERS = {"next": "currentOffset", "lag": "pendingRecordsOfPartition"}


def _of_task(labels: dict[str, str], task: TaskMetrics, recent: TaskMetrics) -> Iterator[Sample]:
    for name, attribute in TASK_COUNTS.items():
        yield Sample(f"{TASK}_{name}", labels, getattr(task, attribute))
        if recent.seconds > 0:
            rate = getattr(recent, attribute) / recent.seconds
            yield Sample(f"{TASK}_{name}{names.PER_SECOND}", labels, rate)
    if recent.elapsed_ns > 0:
        for name, attribute in _TASK_TIMES.items():
            if recent.knows_busy_time or name != names.BUSY_TIME:
                share = _SECOND_MS * getattr(recent, attribute) / recent.elapsed_ns
                yield Sample(f"{TASK}_{name}", labels, share)
    yield Sample(f"{TASK}_{names.MAILBOX_QUEUE}", labels, recent.longest_mail_queue)


def _of_operator(
    labels: dict[str, str], operator: OperatorMetrics, counts: OperatorCounts, task: TaskMetrics
) -> Iterator[Sample]:
    own = labels | {"operator_id": operator.operator_id, "operator_name": operator.name}
    for name, count in (
        (names.NUM_RECORDS_IN, counts.records_in),
        (names.NUM_RECORDS_OUT, counts.records_out),
    ):
        yield Sample(f"{OPERATOR}_{name}", own, count)
        if task.seconds > 0:
            yield Sample(f"{OPERATOR}_{name}{names.PER_SECOND}", own, count / task.seconds)
    marks = {names.CURRENT_OUTPUT_WATERMARK: counts.output_watermark}
    if counts.input_watermarks:
        marks[names.CURRENT_INPUT_WATERMARK] = min(counts.input_watermarks)
    for name, mark in marks.items():
        if MIN_WATERMARK < mark < MAX_WATERMARK:
            yield Sample(f"{OPERATOR}_{name}", own, mark)
    for name, value in counts.registered.items():
        yield from _registered(f"{OPERATOR}_{name}", own, value)
    for source, latency in counts.latencies.items():
        yield from _registered(f"{OPERATOR}_{names.LATENCY}", own | {"source_id": source}, latency)


def _registered(name: str, labels: dict[str, str], value: Any) -> Iterator[Sample]:
    """The numbers of one registered metric; gauges whose value is a text have none."""
    if isinstance(value, GaugeValue):
        value = value.value
    if isinstance(value, HistogramValue):
        yield Sample(f"{name}_count", labels, value.count)
        for quantile in _QUANTILES:
            found = value.quantile(quantile)
            if found is not None:
                yield Sample(name, labels | {"quantile": str(quantile)}, found)
    elif isinstance(value, (DistributionValue, MeterValue)):
        for part, number in value.as_plain().items():
            if number is not None:
                yield Sample(f"{name}_{part}", labels, number)
    elif isinstance(value, (int, float)) and math.isfinite(value):
        yield Sample(name, labels, value)


def families(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    """The samples by name."""
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        found.setdefault(sample.name, []).append(sample)
    return found


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
