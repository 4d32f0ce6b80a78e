"""The metrics of one subtask, as sent to the driver: small, picklable, plain values.

Times are nanoseconds, and counts are totals. The driver merges the subtasks and computes rates.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opchain.runtime.measurements.hot_keys import HotKeys
    from opchain.runtime.metrics.histogram import HistogramValue


@dataclass(frozen=True, slots=True)
class OperatorCounts:
    """The metrics of one operator of one subtask.

    `input_watermarks` has an entry per input; it is empty for a source. `registered` has the metrics of the operator's
    group by name. `latencies` has the milliseconds of latency markers, by the operator id of their source.
    `accumulators` has pickles by name. `split_watermarks` has the watermarks of an aligned source, by the names of its
    splits. `warning` is what the driver warns of, after the operator's name.
    """

    records_in: int
    records_out: int
    input_watermarks: tuple[int, ...]
    output_watermark: int
    registered: dict[str, Any] = field(default_factory=dict)
    latencies: dict[str, HistogramValue] = field(default_factory=dict)
    accumulators: dict[str, bytes] = field(default_factory=dict)
    output_is_idle: bool = False
    split_watermarks: dict[str, int] = field(default_factory=dict)
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class TaskMetrics:
    """The metrics of one subtask.

    `idle_ns` is the time waiting for input, `back_pressured_ns` the time waiting until buffers were taken, `elapsed_ns`
    the whole time. A task whose source has its own thread cannot distinguish idle from busy time (`knows_busy_time`;
    Flink reports NaN). `mail_latency_ms` is that of the latest mails. `longest_mail_queue` is the maximum number of
    waiting mails. `hot_keys` has an entry for each output by key.
    """

    subtask: int
    attempt: int
    records_in: int
    records_out: int
    bytes_in: int
    bytes_out: int
    buffers_in: int
    buffers_out: int
    elapsed_ns: int
    idle_ns: int
    back_pressured_ns: int
    knows_busy_time: bool
    mails: int
    mail_latency_ms: HistogramValue
    operators: tuple[OperatorCounts, ...]
    longest_mail_queue: int = 0
    hot_keys: tuple[HotKeys, ...] = ()

    def counts_only(self) -> TaskMetrics:
        """The same without registered metrics: small, and only plain numbers."""
        operators = tuple(
            replace(counts, registered={}, latencies={}, accumulators={})
            for counts in self.operators
        )
        return replace(self, operators=operators)

    @property
    def busy_ns(self) -> int:
        """All time that was neither idle nor back-pressured."""
        return self.elapsed_ns - self.idle_ns - self.back_pressured_ns

    @property
    def seconds(self) -> float:
        """The run time of the task in seconds."""
        return self.elapsed_ns / 1e9
