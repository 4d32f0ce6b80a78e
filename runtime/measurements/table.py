"""The table of a job's vertices and operators: plain text, or whatever rich makes of it."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

from opchain.runtime.metrics.metric_types import plain_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from opchain.runtime.measurements.job_metrics import JobMetrics
    from opchain.runtime.measurements.operator_metrics import OperatorMetrics
    from opchain.runtime.measurements.vertex_metrics import VertexMetrics

COLUMNS = (
    "vertex, operator",
    "tasks",
    "records in",
    "records out",
    "bytes in",
    "bytes out",
    "busy",
    "skew",
)
LATE = "dropped late"
"""A column that is there if an operator has dropped records as late."""

_LONGEST_NAME = 60
_WIDE = 10_000
_KIB = 1024
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")

# Lines of a table in ASCII: a rule below the header, nothing else.
_ASCII_BOX = "    \n    \n -- \n    \n    \n    \n    \n    \n"


def plain_table(metrics: JobMetrics) -> str:
    """The table without colour, its lines in ASCII; below it what functions registered."""
    from rich.box import Box  # noqa: PLC0415 - the driver's, and only when it shows something
    from rich.console import Console  # noqa: PLC0415

    console = Console(file=io.StringIO(), width=_WIDE, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(_table(metrics, Box(_ASCII_BOX, ascii=True)))
    lines = captured.get().splitlines()
    return "\n".join(line.rstrip() for line in (*lines, *registered_lines(metrics)) if line.strip())


def rich_table(metrics: JobMetrics) -> Any:
    """The table for a terminal; below it what functions registered."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - as above
    from rich.console import Group  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    return Group(_table(metrics, SIMPLE_HEAD), *map(Text, registered_lines(metrics)))


def registered_lines(metrics: JobMetrics) -> Iterator[str]:
    """A line for each metric that an operator or its function registered."""
    for operator in metrics.operators:
        for name, value in operator.registered.items():
            yield f" {operator.name}: {name} = {_shown(plain_value(value))}"


def rows(metrics: JobMetrics) -> Iterator[tuple[str, ...]]:
    """The cells: a row for each vertex, and below it one for each of its operators if it has several."""
    for vertex in metrics.vertices:
        yield _vertex_row(vertex)
        if len(vertex.operators) > 1:
            yield from (_operator_row(operator) for operator in vertex.operators)


def _table(metrics: JobMetrics, box: Any) -> Table:
    from rich.table import Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415

    body = list(rows(metrics))
    titles: tuple[str, ...] = COLUMNS
    if any(operator.late_records_dropped for operator in metrics.operators):
        titles = (*COLUMNS, LATE)
        late = _late_cells(metrics)
        body = [(*cells, number) for cells, number in zip(body, late, strict=True)]
    table = Table(box=box, pad_edge=False, header_style="bold")
    # On a narrow terminal names are cut, never numbers.
    table.add_column(titles[0])
    for number, title in enumerate(titles[1:], 1):
        widest = max(map(len, (title, *(cells[number] for cells in body))))
        table.add_column(title, justify="right", no_wrap=True, min_width=widest)
    for cells in body:
        is_vertex = not cells[0].startswith(" ")
        name = Text(cells[0], no_wrap=True, overflow="ellipsis")
        table.add_row(name, *map(Text, cells[1:]), style=None if is_vertex else "dim")
    return table


def _late_cells(metrics: JobMetrics) -> Iterator[str]:
    """How many records were dropped as late, for each row; nothing where none were."""
    for vertex in metrics.vertices:
        counts = [operator.late_records_dropped for operator in vertex.operators]
        for count in (sum(counts), *(counts if len(counts) > 1 else ())):
            yield _number(count) if count else ""


def _vertex_row(vertex: VertexMetrics) -> tuple[str, ...]:
    return (
        _cut(vertex.name),
        str(vertex.parallelism),
        _number(vertex.records_in),
        _number(vertex.records_out),
        size_text(vertex.bytes_in),
        size_text(vertex.bytes_out),
        _busy(vertex.busy_time_ms_per_second),
        f"{vertex.skew:.2f}",
    )


def _operator_row(operator: OperatorMetrics) -> tuple[str, ...]:
    return (
        "  " + _cut(operator.name),
        "",
        _number(operator.records_in),
        _number(operator.records_out),
        "",
        "",
        "",
        f"{operator.skew:.2f}",
    )


def _cut(name: str) -> str:
    line = " ".join(name.split())
    return line if len(line) <= _LONGEST_NAME else f"{line[: _LONGEST_NAME - 3]}..."


def _number(count: int) -> str:
    return f"{count:,}"


def size_text(size_bytes: int) -> str:
    """Bytes in the largest unit that leaves a digit in front, such as 1.5 KiB."""
    size, unit = float(size_bytes), 0
    while size >= _KIB and unit + 1 < len(_UNITS):
        size, unit = size / _KIB, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{size_bytes} B"


def _busy(ms_per_second: float) -> str:
    """In percent; a source on a thread of its own does not know."""
    return "?" if math.isnan(ms_per_second) else f"{ms_per_second / 10:.0f} %"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(part)}" for name, part in value.items())
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if type(value) is int else str(value)
