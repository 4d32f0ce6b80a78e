from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from example_metrics import TASK

from opchain.runtime.measurements.hot_keys import HotKeys
from opchain.runtime.measurements.job_metrics import RunTotals, over_span
from opchain.runtime.measurements.task_metrics import OperatorCounts

if TYPE_CHECKING:
    from typing import Any

    from opchain.runtime.measurements.task_metrics import TaskMetrics


def of(counts: int, watermark: int) -> TaskMetrics:
    """An epoch with multiples of the metrics of TASK."""
    sums = ("records", "bytes", "buffers")
    fields: dict[str, Any] = {
        f"{name}_{way}": counts * getattr(TASK, f"{name}_{way}")
        for name in sums
        for way in ("in", "out")
    }
    fields |= {
        name: counts * getattr(TASK, name)
        for name in ("elapsed_ns", "idle_ns", "back_pressured_ns", "mails")
    }
    operator = OperatorCounts(3 * counts, 2 * counts, (watermark + 1,), watermark, {"seen": 5})
    ((text, group, _),) = TASK.hot_keys[0].keys
    hot = HotKeys(4, 2 * counts, ((text, group, 2 * counts),), ((group, 2 * counts),))
    return replace(TASK, operators=(operator,), hot_keys=(hot,), **fields)


def test_time_between_epochs_is_idle() -> None:
    spread = over_span(TASK, 5_000)
    assert (spread.elapsed_ns, spread.idle_ns) == (5_000, 4_400)
    assert spread.busy_ns == TASK.busy_ns
    assert over_span(TASK, 10) == TASK  # the clocks of two processes differ


def test_counts_and_times_are_added_and_the_latest_watermarks_kept() -> None:
    totals = RunTotals()
    totals.add({0: of(1, 99), 1: of(5, 10)})
    assert totals.tasks == {0: TASK, 1: of(5, 10)}
    totals.add({0: of(3, 200), 1: of(2, 11)})
    assert totals.tasks == {0: of(4, 200), 1: of(7, 11)}
