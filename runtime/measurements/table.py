"""The table of a job's vertices and operators: as plain text, or drawn by rich."""

from __future__ import annotations

import html
import io
import math
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import one_line_name
from opchain.runtime.metrics.metric_types import plain_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import Console, ConsoleOptions
    from rich.table import Table

    from opchain.runtime.measurements.job_metrics import JobMetrics
    from opchain.runtime.measurements.vertex_metrics import OperatorMetrics, VertexMetrics

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
"""A column that is only shown if an operator has dropped late records."""

GIVEN_UP = ("bytes out", "bytes in", "tasks", "skew", "busy", "records out")
"""The columns that are removed on a narrow terminal, in this order."""

UNEVEN = 2.0
"""From this skew on, a subtask has twice its share."""

_LEAST_NAME = 24
_BETWEEN_COLUMNS = 3
_LONGEST_NAME = 60
_WIDE = 10_000
_KIB = 1024
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")

# Lines of a table in ASCII: a rule below the header, nothing else.
_ASCII_BOX = "    \n    \n -- \n    \n    \n    \n    \n    \n"


def plain_table(metrics: JobMetrics) -> str:
    """The table without colours and with ASCII lines, followed by the registered metrics."""
    from rich.box import Box  # noqa: PLC0415 - the driver's, and only when it shows something
    from rich.console import Console  # noqa: PLC0415

    console = Console(file=io.StringIO(), width=_WIDE, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(_table(metrics, Box(_ASCII_BOX, ascii=True)))
    lines = captured.get().splitlines()
    return "\n".join(line.rstrip() for line in (*lines, *registered_lines(metrics)) if line.strip())


def rich_table(metrics: JobMetrics) -> Any:
    """The table for a terminal, followed by the registered metrics."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - as above
    from rich.console import Group  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    return Group(_table(metrics, SIMPLE_HEAD), *map(Text, registered_lines(metrics)))


def registered_lines(metrics: JobMetrics) -> Iterator[str]:
    """A line for each metric that an operator or its function registered."""
    for operator in metrics.operators:
        for name, value in operator.registered.items():
            line = f" {operator.name}: {name} = {_shown(plain_value(value))}"
            yield one_line_name(line, _WIDE)


def html_table(metrics: JobMetrics) -> str:
    """The table for a notebook, followed by the registered metrics."""
    table = _table(metrics, None)
    head = "".join(f"<th>{html.escape(title)}</th>" for title in table.titles)
    body = "".join(f"<tr>{''.join(map(_html_cell, cells))}</tr>" for cells in table.body)
    lines = "".join(f"<div>{html.escape(line)}</div>" for line in registered_lines(metrics))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{lines}"


def _html_cell(text: str) -> str:
    if not text.startswith(" "):
        return f"<td>{html.escape(text)}</td>"
    return f'<td style="padding-left: 2em">{html.escape(text.strip())}</td>'


class FoldingTable:
    """A table that omits columns on a narrow terminal, so that names can be read.

    Args:
        titles: The titles of the columns. Names are in the first column.
        body: The cells. A name that begins with a space is an operator, below its vertex.
        given_up: The columns that may be omitted, the first one first.
        outliers: By column, the cells to highlight, with their colours.
        settings: For rich's Table.
    """

    def __init__(
        self,
        titles: Sequence[str],
        body: Sequence[Sequence[str]],
        given_up: Sequence[str],
        outliers: Mapping[str, Callable[[str], str | None]],
        **settings: Any,
    ) -> None:
        self.titles = titles
        self.body = body
        self._given_up = given_up
        self._outliers = outliers
        self._settings = settings

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        yield self._table(options.max_width)

    def columns(self, width: int) -> list[int]:
        """The numbers of the columns that fit beside the names."""
        widths = [
            max(map(len, (title, *(cells[number] for cells in self.body))))
            for number, title in enumerate(self.titles)
        ]
        name = min(_LEAST_NAME, widths[0])
        shown = list(range(len(self.titles)))
        for title in self._given_up:
            if name + sum(widths[number] + _BETWEEN_COLUMNS for number in shown[1:]) <= width:
                break
            if title in self.titles:
                shown.remove(self.titles.index(title))
        return shown

    def _table(self, width: int) -> Table:
        from rich.table import Table  # noqa: PLC0415 - as above
        from rich.text import Text  # noqa: PLC0415

        table = Table(pad_edge=False, header_style="bold", **self._settings)
        shown = self.columns(width)
        table.add_column(self.titles[0])
        for number in shown[1:]:
            title = self.titles[number]
            widest = max(map(len, (title, *(cells[number] for cells in self.body))))
            table.add_column(title, justify="right", no_wrap=True, min_width=widest)
        for cells in self.body:
            is_vertex = not cells[0].startswith(" ")
            name = Text(cells[0], no_wrap=True, overflow="ellipsis")
            others = (Text(cells[n], self._style(n, cells[n]) or "") for n in shown[1:])
            table.add_row(name, *others, style=None if is_vertex else "dim")
        return table

    def _style(self, number: int, cell: str) -> str | None:
        style = self._outliers.get(self.titles[number])
        return style(cell) if style is not None and cell else None


def rows(metrics: JobMetrics) -> Iterator[tuple[str, ...]]:
    """The cells: a row for each vertex, and below it one for each of its operators if it has several."""
    for vertex in metrics.vertices:
        yield _vertex_row(vertex)
        if len(vertex.operators) > 1:
            yield from (_operator_row(operator) for operator in vertex.operators)


def _table(metrics: JobMetrics, box: Any) -> FoldingTable:
    body = list(rows(metrics))
    titles: tuple[str, ...] = COLUMNS
    if any(operator.late_records_dropped for operator in metrics.operators):
        titles = (*COLUMNS, LATE)
        late = late_cells(metrics)
        body = [(*cells, number) for cells, number in zip(body, late, strict=True)]
    outliers = {
        LATE: lambda _: "red",
        "skew": lambda cell: "yellow" if float(cell) >= UNEVEN else None,
    }
    return FoldingTable(titles, body, GIVEN_UP, outliers, box=box)


def late_cells(metrics: JobMetrics) -> Iterator[str]:
    """The number of dropped late records for each row. Empty if there are none."""
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
    return one_line_name(" ".join(name.split()), _LONGEST_NAME)


def _number(count: int) -> str:
    return f"{count:,}"


def size_text(size_bytes: int) -> str:
    """A number of bytes in the largest unit in which it is at least 1, such as 1.5 KiB."""
    size, unit = float(size_bytes), 0
    while size >= _KIB and unit + 1 < len(_UNITS):
        size, unit = size / _KIB, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{size_bytes} B"


def _busy(ms_per_second: float) -> str:
    """The busy share in percent. It is unknown for a source in its own thread."""
    return "?" if math.isnan(ms_per_second) else f"{ms_per_second / 10:.0f} %"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(part)}" for name, part in value.items())
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if type(value) is int else str(value)
