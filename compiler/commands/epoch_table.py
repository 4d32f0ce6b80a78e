"""An epoch of an unbounded job as text: a table for a terminal, a line for a log."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from opchain.runtime.epochs.epoch_progress import (
    WAITING,
    EpochProgress,
    VertexProgress,
    WatermarkMs,
)
from opchain.runtime.errors import one_line_name
from opchain.runtime.measurements.table import LATE, FoldingTable, late_cells, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opchain.runtime.measurements.job_metrics import JobMetrics
    from opchain.runtime.measurements.task_metrics import TaskMetrics

COLUMNS = ("vertex, operator", "tasks", "in", "in so far", "out", "busy", "watermark", "state")

_DROPPED_FIRST = ("in so far", "state", "tasks", "watermark", "out", "in")
"""The columns that a narrow terminal leaves out, in this order."""

_BUSY_PERCENT = 90
_NONE_YET = "-"
_EARLIEST_DATE_MS, _LATEST_DATE_MS = 10**11, 10**13
_MINUTE_MS, _HOUR_MS, _DAY_MS = 60_000, 3_600_000, 86_400_000
_LONGEST_LAG_MS = 1000 * _DAY_MS
_LONGEST_NAME = 10_000


def epoch_line(epoch: EpochProgress) -> str:
    """One line with the main numbers."""
    return f"epoch {epoch.epoch} of '{epoch.job}': {'; '.join(_facts(epoch))}"


def epoch_table(epoch: EpochProgress, totals: JobMetrics) -> FoldingTable:
    """A table of the operators.

    Args:
        epoch: The last epoch.
        totals: The counts of the operators in this run so far.
    """
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - loaded when there is something to show
    from rich.text import Text  # noqa: PLC0415

    body = list(_rows(epoch, totals))
    titles: tuple[str, ...] = COLUMNS
    if any(operator.late_records_dropped for operator in totals.operators):
        titles = (*COLUMNS, LATE)
        body = [(*cells, late) for cells, late in zip(body, late_cells(totals), strict=True)]
    return FoldingTable(
        titles,
        body,
        _DROPPED_FIRST,
        {LATE: lambda _: "red", "busy": lambda cell: "yellow" if _is_busy(cell) else None},
        box=SIMPLE_HEAD,
        title=Text(f"{_one_line(epoch.job)}  epoch {epoch.epoch}", style="bold"),
        title_justify="left",
        caption=Text("; ".join(_facts(epoch))),
        caption_justify="left",
    )


def running_line(tasks: Mapping[int, TaskMetrics]) -> str | None:
    """The progress of the current epoch; None before its tasks have reported."""
    sources = [task for task in tasks.values() if not task.operators[0].input_watermarks]
    if not sources:
        return None
    records = sum(task.records_in for task in sources)
    seconds = max(task.seconds for task in sources)
    per_second = f", {rate_text(records / seconds)}" if seconds else ""
    return f"the current epoch has read {records:,} records{per_second}"


def rate_text(per_second: float) -> str:
    """Records per second, with three or four digits.

    >>> [rate_text(rate) for rate in (0.42, 7, 812.6, 9_900, 12_345, 4_200_000)]
    ['0.4/s', '7/s', '813/s', '9,900/s', '12.3 k/s', '4.2 M/s']
    """
    for least, unit_size, unit in ((1e6, 1e6, " M"), (1e4, 1e3, " k")):
        if per_second >= least:
            return f"{per_second / unit_size:.1f}{unit}/s"
    return f"{per_second:.1f}/s" if 0 < per_second < 1 else f"{per_second:,.0f}/s"


def _is_busy(cell: str) -> bool:
    return cell.endswith("%") and int(cell[:-1]) >= _BUSY_PERCENT


def _facts(epoch: EpochProgress) -> Iterator[str]:
    spent = ", ".join(
        f"{name} {_duration(ms)}" for name, ms in epoch.durations_ms.items() if name != WAITING
    )
    yield (
        f"records: {epoch.records_in:,} in, {epoch.records_out:,} out, "
        f"{epoch.records_per_second:,.0f} a second"
    )
    yield f"{_duration(epoch.duration_ms)} ({spent})"
    yield f"waited {_duration(epoch.durations_ms.get(WAITING, 0.0))}"
    busiest = max(epoch.vertices, key=lambda vertex: vertex.busy or 0.0, default=None)
    if busiest is not None and busiest.busy is not None:
        yield (
            f"busiest '{_one_line(busiest.name)}': {busiest.busy:.0%} busy, {busiest.idle:.0%} idle, "
            f"{busiest.back_pressured:.0%} back-pressured"
        )
    slowest = max(
        epoch.vertices, key=lambda vertex: vertex.mail_latency_ms.get("p95", 0.0), default=None
    )
    if slowest is not None and slowest.mail_latency_ms:
        yield (
            f"mail waited up to {_duration(slowest.mail_latency_ms['max'])}, at most "
            f"{max(vertex.mail_queue for vertex in epoch.vertices)} at once"
        )
    yield f"state {size_text(epoch.state_bytes)}, {epoch.state_entries:,} held"
    if epoch.watermark is not None:
        lag = epoch.watermark_lag_ms
        # A lag of more than 1,000 days means that event time is not the time of a clock.
        behind = (
            f", {_duration(lag)} behind" if lag is not None and 0 <= lag < _LONGEST_LAG_MS else ""
        )
        yield f"watermark {_watermark(epoch.watermark)}{behind}"


def _rows(epoch: EpochProgress, totals: JobMetrics) -> Iterator[tuple[str, ...]]:
    for vertex, total in zip(epoch.vertices, totals.vertices, strict=True):
        yield _vertex_row(vertex, total.records_in)
        if len(vertex.operators) > 1:
            for operator, counted_so_far in zip(vertex.operators, total.operators, strict=True):
                yield (
                    f"  {_one_line(operator.name)}",
                    "",
                    f"{operator.records_in:,}",
                    f"{counted_so_far.records_in:,}",
                    f"{operator.records_out:,}",
                    "",
                    _watermark(operator.watermark),
                    f"{operator.state_entries:,} held" if operator.state_entries else "",
                )


def _vertex_row(vertex: VertexProgress, so_far: int) -> tuple[str, ...]:
    watermarks = {operator.watermark for operator in vertex.operators}
    return (
        _one_line(vertex.name),
        str(vertex.parallelism),
        f"{vertex.records_in:,}",
        f"{so_far:,}",
        f"{vertex.records_out:,}",
        "?" if vertex.busy is None else f"{vertex.busy:.0%}",
        _watermark(watermarks.pop()) if len(watermarks) == 1 else "",
        size_text(vertex.state_bytes) if vertex.state_bytes else "",
    )


def _watermark(watermark: WatermarkMs) -> str:
    """A watermark as on the plan page: as a date if it looks like a present-day timestamp."""
    if watermark is None:
        return _NONE_YET
    if not isinstance(watermark, int):
        return watermark
    if _EARLIEST_DATE_MS < watermark < _LATEST_DATE_MS:
        return f"{datetime.fromtimestamp(watermark / 1000, timezone.utc):%Y-%m-%d %H:%M:%S}"
    return f"{watermark:,} ms"


def _duration(milliseconds: float) -> str:
    """A rounded duration.

    >>> [_duration(ms) for ms in (0.4, 812.6, 1608.3, 75_000, 8_000_000, 200_000_000)]
    ['0 ms', '813 ms', '1.6 s', '1 min 15 s', '2 h 13 min', '2 d 7 h']
    """
    for limit_ms, text in (
        (1_000, f"{milliseconds:.0f} ms"),
        (_MINUTE_MS, f"{milliseconds / 1000:.1f} s"),
    ):
        if milliseconds < limit_ms:
            return text
    whole = int(milliseconds)
    for limit_ms, (large_ms, large), (small_ms, small) in (
        (_HOUR_MS, (_MINUTE_MS, "min"), (1000, "s")),
        (_DAY_MS, (_HOUR_MS, "h"), (_MINUTE_MS, "min")),
    ):
        if whole < limit_ms:
            return f"{whole // large_ms} {large} {whole % large_ms // small_ms} {small}"
    return f"{whole // _DAY_MS} d {whole % _DAY_MS // _HOUR_MS} h"


def _one_line(name: str) -> str:
    return one_line_name(" ".join(name.split()), _LONGEST_NAME)
