"""An epoch of an unbounded job as people read it: a table for a terminal, a line for a log."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from opchain.runtime.epochs.epoch_progress import WAITING
from opchain.runtime.measurements.table import size_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from opchain.runtime.epochs.epoch_progress import EpochProgress, VertexProgress, WatermarkMs
    from opchain.runtime.measurements.job_metrics import JobMetrics

COLUMNS = ("vertex, operator", "tasks", "in", "in so far", "out", "busy", "watermark", "state")

_NONE_YET = "-"
_EARLIEST_DATE_MS, _LATEST_DATE_MS = 10**11, 10**13
_MINUTE_MS, _HOUR_MS, _DAY_MS = 60_000, 3_600_000, 86_400_000
_LONGEST_LAG_MS = 1000 * _DAY_MS


def epoch_line(epoch: EpochProgress) -> str:
    """One line with what matters most."""
    return f"epoch {epoch.epoch} of '{epoch.job}': {'; '.join(_facts(epoch))}"


def epoch_table(epoch: EpochProgress, totals: JobMetrics) -> Table:
    """The operators in the last epoch.

    Args:
        epoch: The epoch.
        totals: What the operators have counted in the run so far.
    """
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - loaded when there is something to show
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    body = list(_rows(epoch, totals))
    title = Text(f"{epoch.job}  epoch {epoch.epoch}", style="bold")
    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        header_style="bold",
        title=title,
        title_justify="left",
        caption=Text("; ".join(_facts(epoch))),
        caption_justify="left",
    )
    # On a narrow terminal names are cut, never numbers.
    table.add_column(COLUMNS[0])
    for number, name in enumerate(COLUMNS[1:], 1):
        widest = max(map(len, (name, *(cells[number] for cells in body))))
        table.add_column(name, justify="right", no_wrap=True, min_width=widest)
    for cells in body:
        name_cell = Text(cells[0], no_wrap=True, overflow="ellipsis")
        style = "dim" if cells[0].startswith(" ") else None
        table.add_row(name_cell, *map(Text, cells[1:]), style=style)
    return table


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
        # Event time that is not a time of day is behind nothing.
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
    """As the plan page has it: what looks like a time of our days is shown as one."""
    if watermark is None:
        return _NONE_YET
    if not isinstance(watermark, int):
        return watermark
    if _EARLIEST_DATE_MS < watermark < _LATEST_DATE_MS:
        return f"{datetime.fromtimestamp(watermark / 1000, timezone.utc):%Y-%m-%d %H:%M:%S}"
    return f"{watermark:,} ms"


def _duration(milliseconds: float) -> str:
    """About how long.

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
    return " ".join(name.split())
