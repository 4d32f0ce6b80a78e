from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opchain.runtime.metrics.histogram import Histogram
from opchain.runtime.metrics.run_totals import RunTotals, over_span
from opchain.runtime.metrics.task_metrics import OperatorCounts, TaskMetrics

if TYPE_CHECKING:
    from typing import Any

OPERATOR = OperatorCounts(3, 2, (100,), 99, {"seen": 5})
EPOCH = TaskMetrics(
    subtask=1,
    attempt=0,
    records_in=3,
    records_out=2,
    bytes_in=30,
    bytes_out=20,
    buffers_in=2,
    buffers_out=1,
    elapsed_ns=1000,
    idle_ns=400,
    back_pressured_ns=100,
    knows_busy_time=True,
    mails=7,
    mail_latency_ms=Histogram().snapshot(),
    operators=(OPERATOR,),
)


def of(counts: int, watermark: int) -> TaskMetrics:
    """An epoch with so many times the numbers of EPOCH."""
    sums = ("records", "bytes", "buffers")
    fields: dict[str, Any] = {
        f"{name}_{way}": counts * getattr(EPOCH, f"{name}_{way}")
        for name in sums
        for way in ("in", "out")
    }
    fields |= {
        name: counts * getattr(EPOCH, name)
        for name in ("elapsed_ns", "idle_ns", "back_pressured_ns", "mails")
    }
    operator = OperatorCounts(3 * counts, 2 * counts, (watermark + 1,), watermark, {"seen": 5})
    return replace(EPOCH, operators=(operator,), **fields)


def test_time_between_epochs_is_idle() -> None:
    spread = over_span(EPOCH, 5_000)
    assert (spread.elapsed_ns, spread.idle_ns) == (5_000, 4_400)
    assert spread.busy_ns == EPOCH.busy_ns
    assert over_span(EPOCH, 10) == EPOCH  # clocks of two processes


def test_counts_and_times_add_up_and_watermarks_are_the_latest() -> None:
    totals = RunTotals()
    totals.add({0: of(1, 99), 1: of(5, 10)})
    assert totals.tasks == {0: EPOCH, 1: of(5, 10)}
    totals.add({0: of(3, 200), 1: of(2, 11)})
    assert totals.tasks == {0: of(4, 200), 1: of(7, 11)}
