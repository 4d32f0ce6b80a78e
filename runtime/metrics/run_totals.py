"""What the tasks of an unbounded job have counted over all epochs of this run so far."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opchain.runtime.metrics.task_metrics import OperatorCounts, TaskMetrics


def added(before: TaskMetrics | None, epoch: TaskMetrics) -> TaskMetrics:
    """A task's metrics with those of one more epoch: counts and times add up, all else is the latest."""
    if before is None:
        return epoch
    return replace(
        epoch,
        records_in=before.records_in + epoch.records_in,
        records_out=before.records_out + epoch.records_out,
        bytes_in=before.bytes_in + epoch.bytes_in,
        bytes_out=before.bytes_out + epoch.bytes_out,
        buffers_in=before.buffers_in + epoch.buffers_in,
        buffers_out=before.buffers_out + epoch.buffers_out,
        elapsed_ns=before.elapsed_ns + epoch.elapsed_ns,
        idle_ns=before.idle_ns + epoch.idle_ns,
        back_pressured_ns=before.back_pressured_ns + epoch.back_pressured_ns,
        mails=before.mails + epoch.mails,
        operators=tuple(map(_operator_added, before.operators, epoch.operators)),
    )


def _operator_added(before: OperatorCounts, epoch: OperatorCounts) -> OperatorCounts:
    return replace(
        epoch,
        records_in=before.records_in + epoch.records_in,
        records_out=before.records_out + epoch.records_out,
    )


def over_span(metrics: TaskMetrics, span_ns: int) -> TaskMetrics:
    """A task's metrics of an epoch, with the time between epochs counted as idle.

    Args:
        metrics: Of the epoch, whose times are those of its turns.
        span_ns: From the end of the epoch before to the end of this one.
    """
    waited_ns = max(0, span_ns - metrics.elapsed_ns)
    return replace(
        metrics, elapsed_ns=metrics.elapsed_ns + waited_ns, idle_ns=metrics.idle_ns + waited_ns
    )


class RunTotals:
    """The totals of one run, by task number."""

    def __init__(self) -> None:
        self.tasks: dict[int, TaskMetrics] = {}

    def add(self, tasks: Mapping[int, TaskMetrics]) -> None:
        """Takes in an epoch."""
        self.tasks = {task: added(self.tasks.get(task), metrics) for task, metrics in tasks.items()}
