"""The metrics of an operator and of a vertex over all subtasks, and how evenly subtasks share the work."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from opchain.runtime.metrics import metric_group as names
from opchain.runtime.metrics.histogram import HistogramValue
from opchain.runtime.metrics.metric_types import (
    DistributionValue,
    GaugeValue,
    MeterValue,
    plain_value,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.runtime.measurements.hot_keys import HotKeys
    from opchain.runtime.measurements.task_metrics import OperatorCounts, TaskMetrics


def skew(counts: Sequence[int]) -> float:
    """The greatest count, divided by the mean: 1.0 is even. With n subtasks, n means that one has everything.

    >>> skew([5, 5, 5, 5]), skew([0, 20, 0, 0]), skew([0, 0])
    (1.0, 4.0, 1.0)
    """
    total = sum(counts)
    return max(counts) * len(counts) / total if total > 0 else 1.0


@dataclass(frozen=True, slots=True)
class PerSubtask:
    """The values of subtasks, in their order, if they cannot be added up. Subtasks without a value are omitted."""

    values: tuple[Any, ...]

    def as_plain(self) -> list[Any]:
        """The values as a list."""
        return [plain_value(value) for value in self.values]


def merge_values(values: Sequence[Any]) -> Any:
    """Merges the snapshots of one metric over subtasks.

    Counts are added up; gauges are not merged. If the metric has different kinds in different subtasks, it is not
    merged either, because each function decides what it registers.
    """
    for kind in (DistributionValue, HistogramValue, MeterValue):
        if all(isinstance(value, kind) for value in values):
            return reduce(kind.merged, values)
    if all(type(value) is int for value in values):
        return sum(values)
    return PerSubtask(
        tuple(value.value if isinstance(value, GaugeValue) else value for value in values)
    )


@dataclass(frozen=True)
class OperatorMetrics:
    """The counts of an operator. `subtasks` has those of each subtask, and `seconds` its run time.

    `call_site` is the line of the program that made the operator.
    """

    name: str
    operator_id: str
    uid: str | None
    call_site: str
    subtasks: tuple[OperatorCounts, ...]
    seconds: tuple[float, ...]

    def __repr__(self) -> str:
        return f"<OperatorMetrics of '{self.name}': {self.records_in} in, {self.records_out} out>"

    @property
    def parallelism(self) -> int:
        """The number of subtasks."""
        return len(self.subtasks)

    @property
    def records_in(self) -> int:
        """Records of all inputs; of a source, the records that it read."""
        return sum(item.records_in for item in self.subtasks)

    @property
    def records_out(self) -> int:
        """Records that it emitted to its main output, and to side outputs that are read."""
        return sum(item.records_out for item in self.subtasks)

    @property
    def input_watermarks(self) -> tuple[int, ...]:
        """The least watermark of the subtasks, for each input; empty for a source."""
        return tuple(
            min(marks)
            for marks in zip(*(item.input_watermarks for item in self.subtasks))  # noqa: B905 - as many inputs in each
        )

    @property
    def output_watermark(self) -> int:
        """The least watermark that a subtask emitted."""
        return min(item.output_watermark for item in self.subtasks)

    @property
    def late_records_dropped(self) -> int:
        """Records that were dropped as late. Flink: numLateRecordsDropped."""
        return sum(item.registered.get(names.NUM_LATE_RECORDS_DROPPED, 0) for item in self.subtasks)

    @property
    def warning(self) -> str | None:
        """The warning of the first subtask that has one."""
        return next((item.warning for item in self.subtasks if item.warning), None)

    @property
    def skew(self) -> float:
        """The share of the busiest subtask by records in, as a multiple of an even share."""
        return skew([item.records_in for item in self.subtasks])

    @property
    def registered(self) -> dict[str, Any]:
        """The metrics that the operator and its function registered, by name below its group.

        A counter is an int, distributions, meters and histograms are their values over all subtasks,
        a gauge is PerSubtask.
        """
        found: dict[str, list[Any]] = {}
        for item in self.subtasks:
            for name, value in item.registered.items():
                found.setdefault(name, []).append(value)
        return {name: merge_values(values) for name, values in found.items()}

    @property
    def latencies(self) -> dict[str, HistogramValue]:
        """Milliseconds from each source to here, by the source's operator id; see `metrics.latency.interval`."""
        found: dict[str, list[HistogramValue]] = {}
        for item in self.subtasks:
            for source, latency in item.latencies.items():
                found.setdefault(source, []).append(latency)
        return {
            source: reduce(HistogramValue.merged, latencies) for source, latencies in found.items()
        }

    def values(self) -> dict[str, Any]:
        """Everything by Flink's name; rates are averages over the whole run."""
        values: dict[str, Any] = {}
        for name, counts in (
            (names.NUM_RECORDS_IN, [item.records_in for item in self.subtasks]),
            (names.NUM_RECORDS_OUT, [item.records_out for item in self.subtasks]),
        ):
            values[name] = sum(counts)
            values[name + names.PER_SECOND] = rate(counts, self.seconds)
        marks = self.input_watermarks
        if marks:
            values[names.CURRENT_INPUT_WATERMARK] = min(marks)
        if len(marks) > 1:
            values |= {names.input_watermark_name(n): mark for n, mark in enumerate(marks)}
        values[names.CURRENT_OUTPUT_WATERMARK] = self.output_watermark
        values |= {
            f"{names.LATENCY}.source_id.{source}": latency
            for source, latency in self.latencies.items()
        }
        return self.registered | values


def rate(counts: list[int], seconds: tuple[float, ...]) -> float:
    """Events per second of subtasks that run side by side."""
    return sum(count / span for count, span in zip(counts, seconds, strict=True) if span > 0)


TASK_COUNTS = {
    names.NUM_RECORDS_IN: "records_in",
    names.NUM_RECORDS_OUT: "records_out",
    names.NUM_BYTES_IN: "bytes_in",
    names.NUM_BYTES_OUT: "bytes_out",
    names.NUM_BUFFERS_IN: "buffers_in",
    names.NUM_BUFFERS_OUT: "buffers_out",
}
"""Flink's names of the counts of a task, and our attributes."""
_SECOND_MS = 1000


@dataclass(frozen=True)
class VertexMetrics:
    """The counts of a vertex. `subtasks` has those of each task.

    `hot_keys` has the hottest keys of its input, None if no input is partitioned by key. Counts are those of the sending tasks.
    """

    id: str
    name: str
    subtasks: tuple[TaskMetrics, ...]
    operators: tuple[OperatorMetrics, ...]
    hot_keys: HotKeys | None = None

    def __repr__(self) -> str:
        return f"<VertexMetrics of '{self.name}': {self.records_in} in, {self.records_out} out>"

    @property
    def parallelism(self) -> int:
        """The number of subtasks."""
        return len(self.subtasks)

    @property
    def records_in(self) -> int:
        """Records from other vertices, and records that a source has read."""
        return self._sum("records_in")

    @property
    def records_out(self) -> int:
        """Records sent to other vertices. A record that is broadcast counts once."""
        return self._sum("records_out")

    @property
    def bytes_in(self) -> int:
        """Bytes of the received buffers."""
        return self._sum("bytes_in")

    @property
    def bytes_out(self) -> int:
        """Bytes of the sent buffers."""
        return self._sum("bytes_out")

    @property
    def busy_time_ms_per_second(self) -> float:
        """Milliseconds per second that its tasks worked; NaN if unknown."""
        if not all(task.knows_busy_time for task in self.subtasks):
            return math.nan
        return self._share("busy_ns")

    @property
    def idle_time_ms_per_second(self) -> float:
        """Milliseconds per second that its tasks waited for input."""
        return self._share("idle_ns")

    @property
    def back_pressured_time_ms_per_second(self) -> float:
        """Milliseconds per second that its tasks were back-pressured."""
        return self._share("back_pressured_ns")

    @property
    def skew(self) -> float:
        """The share of the busiest subtask by records in, as a multiple of an even share."""
        return skew([task.records_in for task in self.subtasks])

    @property
    def mail_latency_ms(self) -> HistogramValue:
        """The waiting times of the latest mails."""
        return reduce(HistogramValue.merged, (task.mail_latency_ms for task in self.subtasks))

    @property
    def mails(self) -> int:
        """The number of mails that ran: timers, asynchronous results, checkpoints."""
        return self._sum("mails")

    @property
    def longest_mail_queue(self) -> int:
        """The maximum number of mails that waited at once in a subtask."""
        return max((task.longest_mail_queue for task in self.subtasks), default=0)

    def values(self) -> dict[str, Any]:
        """Everything by Flink's name; rates are averages over the whole run."""
        seconds = tuple(task.seconds for task in self.subtasks)
        values: dict[str, Any] = {}
        for name, attribute in TASK_COUNTS.items():
            counts = [getattr(task, attribute) for task in self.subtasks]
            values[name] = sum(counts)
            values[name + names.PER_SECOND] = rate(counts, seconds)
        return values | {
            names.BUSY_TIME: self.busy_time_ms_per_second,
            names.IDLE_TIME: self.idle_time_ms_per_second,
            names.BACK_PRESSURED_TIME: self.back_pressured_time_ms_per_second,
            names.MAILBOX_MAILS: rate([task.mails for task in self.subtasks], seconds),
            names.MAILBOX_LATENCY: self.mail_latency_ms,
            names.MAILBOX_QUEUE: self.longest_mail_queue,
        }

    def _sum(self, attribute: str) -> int:
        return sum(getattr(task, attribute) for task in self.subtasks)

    def _share(self, attribute: str) -> float:
        """The mean, weighted by time: a task that ran twice as long counts twice."""
        elapsed_ns = self._sum("elapsed_ns")
        return _SECOND_MS * self._sum(attribute) / elapsed_ns if elapsed_ns else 0.0
