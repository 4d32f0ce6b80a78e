"""The metrics of one subtask in the form in which the driver gets them: small, picklable, plain values.

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
    """One operator of one subtask.

    `input_watermarks` has an entry per input, none for a source. `registered` has the metrics of its
    group by name, `latencies` the milliseconds that markers took, by the operator id of their source,
    `accumulators` pickles by name, `split_watermarks` those of an aligned source, by the names of its splits.
    `text_result` shows a str that the function of a flat map returned.
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
    text_result: str | None = None


@dataclass(frozen=True, slots=True)
class TaskMetrics:
    """One subtask.

    `idle_ns` was spent waiting for input, `back_pressured_ns` waiting until buffers were taken,
    `elapsed_ns` is all its time. A task whose source runs on a thread of its own cannot tell idle from
    busy (`knows_busy_time`; Flink gives NaN for it). `mail_latency_ms` is that of the latest mails,
    `longest_mail_queue` how many waited at once at most. `hot_keys` has an entry for each output by key.
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
        """The same without what functions registered: small, and of plain numbers."""
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
        """How long the task ran."""
        return self.elapsed_ns / 1e9
