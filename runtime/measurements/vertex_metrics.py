"""One vertex, over all its subtasks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from opchain.runtime.measurements.operator_metrics import OperatorMetrics, rate, skew
from opchain.runtime.metrics import metric_group as names
from opchain.runtime.metrics.histogram import HistogramValue

if TYPE_CHECKING:
    from opchain.runtime.measurements.hot_keys import HotKeys
    from opchain.runtime.measurements.task_metrics import TaskMetrics

_COUNTS = {
    names.NUM_RECORDS_IN: "records_in",
    names.NUM_RECORDS_OUT: "records_out",
    names.NUM_BYTES_IN: "bytes_in",
    names.NUM_BYTES_OUT: "bytes_out",
    names.NUM_BUFFERS_IN: "buffers_in",
    names.NUM_BUFFERS_OUT: "buffers_out",
}
_SECOND_MS = 1000


@dataclass(frozen=True)
class VertexMetrics:
    """What the tasks of a vertex counted; `subtasks` has the numbers of each.

    `hot_keys` has the hottest keys of its input, None if no records come by key. Counts are those of the sending tasks.
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
        """Records that came from other vertices; what the source read where there is one."""
        return self._sum("records_in")

    @property
    def records_out(self) -> int:
        """Records that went to other vertices; one that is broadcast counts once."""
        return self._sum("records_out")

    @property
    def bytes_in(self) -> int:
        """Bytes of the buffers that came."""
        return self._sum("bytes_in")

    @property
    def bytes_out(self) -> int:
        """Bytes of the buffers that went out."""
        return self._sum("bytes_out")

    @property
    def busy_time_ms_per_second(self) -> float:
        """Milliseconds in a second of its tasks that they worked; NaN where that is unknown."""
        if not all(task.knows_busy_time for task in self.subtasks):
            return math.nan
        return self._share("busy_ns")

    @property
    def idle_time_ms_per_second(self) -> float:
        """Milliseconds in a second of its tasks that they waited for input."""
        return self._share("idle_ns")

    @property
    def back_pressured_time_ms_per_second(self) -> float:
        """Milliseconds in a second of its tasks that they waited until buffers were taken."""
        return self._share("back_pressured_ns")

    @property
    def skew(self) -> float:
        """The share of the busiest subtask by records in, as a multiple of an even share."""
        return skew([task.records_in for task in self.subtasks])

    @property
    def mail_latency_ms(self) -> HistogramValue:
        """How long the latest mails waited until they ran."""
        return reduce(HistogramValue.merged, (task.mail_latency_ms for task in self.subtasks))

    @property
    def mails(self) -> int:
        """How many mails ran: timers, answers from outside, checkpoints."""
        return self._sum("mails")

    @property
    def longest_mail_queue(self) -> int:
        """The most mails that waited at once in a subtask."""
        return max((task.longest_mail_queue for task in self.subtasks), default=0)

    def values(self) -> dict[str, Any]:
        """Everything by Flink's name; rates are averages over the whole run."""
        seconds = tuple(task.seconds for task in self.subtasks)
        values: dict[str, Any] = {}
        for name, attribute in _COUNTS.items():
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
        """Weighted by time: a task that ran twice as long counts twice."""
        elapsed_ns = self._sum("elapsed_ns")
        return _SECOND_MS * self._sum(attribute) / elapsed_ns if elapsed_ns else 0.0
