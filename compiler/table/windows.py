"""Windows of queries: TUMBLE, HOP, CUMULATE and SESSION, and the row that an aggregation gives for each of them.

SQL's table functions, its older group windows and the Table API all become `Windows`. A grouped query over windows is a
keyed stream with a window, so it also runs over unbounded tables.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from opchain.compiler.table.connectors.row_types import row_type
from opchain.compiler.table.data_types import DataTypes
from opchain.compiler.table.expressions import (
    Column,
    Compiler,
    EventTimeColumn,
    ProcessingTimeColumn,
    WindowEndColumn,
    WindowStartColumn,
    WindowTimeColumn,
    sqlglot,
)
from opchain.compiler.table.settings import RUNTIME_MODE
from opchain.compiler.table.window_syntax import WINDOWS
from opchain.runtime.errors import GraphError
from opchain.runtime.functions.sql import EventTime, RowExpression
from opchain.runtime.functions.sql_windows import (
    AggregatedRow,
    RowsOfAll,
    RowsOfWindow,
    RowsWithWindows,
    only_field,
)
from opchain.runtime.watermarks.strategy import WatermarkStrategy
from opchain.runtime.windows.assigners import MergingWindowAssigner
from opchain.runtime.windows.table_windows import (
    CumulativeEventTimeWindows,
    CumulativeProcessingTimeWindows,
)
from opchain.runtime.windows.time_windows import (
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.table.aggregates import Aggregates
    from opchain.compiler.table.table import Table
    from opchain.runtime.windows.assigners import WindowAssigner

START, END, TIME = "window$start", "window$end", "window$time"
"""The columns of a window in the rows of an aggregation."""
PROPERTIES = {"START": START, "END": END, "ROWTIME": TIME, "PROCTIME": TIME}
"""The column that has each of the times of a window."""
_ASSIGNERS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "TUMBLE": (TumblingEventTimeWindows.of, TumblingProcessingTimeWindows.of),
    "HOP": (SlidingEventTimeWindows.of, SlidingProcessingTimeWindows.of),
    "CUMULATE": (CumulativeEventTimeWindows.of, CumulativeProcessingTimeWindows.of),
    "SESSION": (EventTimeSessionWindows.with_gap, ProcessingTimeSessionWindows.with_gap),
}


@dataclass(frozen=True)
class Windows:
    """The windows of a query.

    Attributes:
        assigner: Assigns rows to windows.
        time: The column whose time decides. Windows have a time of its type.
        partition: The columns by which sessions are separate.
        assigns_time: Whether the rows have no event time yet, because the job runs in batch mode.
    """

    assigner: WindowAssigner[Any, Any]
    time: Column
    partition: tuple[str, ...] = ()
    assigns_time: bool = False

    def timed(self, table: Table) -> Table:
        """The table whose rows have the time of the column as their event time."""
        if not self.assigns_time:
            return table
        place = [each.name for each in table.columns].index(self.time.name)
        assigner: Any = EventTime(f"row[{place}]", self.time.name)
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        timed = strategy.with_timestamp_assigner(assigner)
        rows = table.rows
        return derived(table, table.columns, lambda: rows().assign_timestamps_and_watermarks(timed))

    def columns(self, names: Sequence[str]) -> tuple[Column, ...]:
        """The columns of the windows: start, end and time."""
        of = DataTypes.TIMESTAMP(3, nullable=False)
        in_event_time = self.assigner.is_event_time()
        kinds: tuple[type[Column], ...] = (Column, Column, ProcessingTimeColumn)
        if in_event_time:
            kinds = WindowStartColumn, WindowEndColumn, WindowTimeColumn
        types = of, of, DataTypes.TIMESTAMP_LTZ(3, nullable=False) if self.in_utc else of
        return tuple(kind(name, of) for kind, name, of in zip(kinds, names, types, strict=True))

    @property
    def in_utc(self) -> bool:
        """Whether the time of a window is a TIMESTAMP_LTZ."""
        return self.time.data_type.name == "TIMESTAMP_LTZ"


def windows_of(
    kind: str,
    spans: Mapping[str, Any],
    time: Any,
    table: Table,
    where: str,
    partition: Sequence[Any] = (),
) -> Windows:
    """The windows TUMBLE, HOP, CUMULATE or SESSION over a time column of a table.

    Args:
        kind: Which of these.
        spans: The trees of the intervals by name: SIZE, SLIDE, STEP, GAP and OFFSET.
        time: The tree of the time column.
        table: The table.
        where: The part of the program, for errors.
        partition: The columns by which sessions are separate.

    Raises:
        GraphError: The column has no event time or processing time, or the intervals make no sense.
    """
    assert table.environment is not None
    columns = {each.name: each for each in table.columns}
    column = columns.get(time.name) if isinstance(time, sqlglot().exp.Column) else None
    if column is None:
        raise GraphError(
            f"{where}: {kind} needs a time column, and got {time.sql(dialect='flink')}; the columns are "
            f"{', '.join(columns)}"
        )
    configuration = table.environment.stream_environment.get_configuration()
    is_batch = configuration.get_string(RUNTIME_MODE, "STREAMING").upper() == "BATCH"
    has_time = isinstance(column, (EventTimeColumn, ProcessingTimeColumn))
    if not has_time and not (is_batch and column.data_type.name.startswith("TIMESTAMP")):
        raise GraphError(
            f"{where}: {kind} needs a column of event time or processing time, and '{column.name}' is "
            f"{column.data_type}; declare WATERMARK FOR {column.name} AS ..., or a column AS PROCTIME()"
        )
    millis = {name: _milliseconds(tree, f"{where}: {kind}") for name, tree in spans.items()}
    missing = [each for each in WINDOWS[kind] if each != "OFFSET" and each not in millis]
    if missing or not set(millis) <= set(WINDOWS[kind]):
        raise GraphError(
            f"{where}: {kind} takes the intervals {', '.join(WINDOWS[kind])}, and got {', '.join(millis) or 'none'}"
        )
    offset = [millis["OFFSET"]] if "OFFSET" in millis else []
    sizes = [millis[each] for each in reversed(WINDOWS[kind]) if each != "OFFSET"]
    make = _ASSIGNERS[kind][isinstance(column, ProcessingTimeColumn)]
    try:
        assigner = make(*sizes, *offset)
    except ValueError as error:
        raise GraphError(f"{where}: {kind}: {error}") from None
    names = tuple(each.name for each in partition)
    return Windows(assigner, column, names, assigns_time=not has_time)


def _milliseconds(tree: Any, where: str) -> int:
    """The milliseconds of an interval."""
    text = Compiler({}, (), where).compile(tree).text
    found = RowExpression(text, tree.sql(dialect="flink"))(())
    if not isinstance(found, timedelta):
        raise GraphError(
            f"{where} takes intervals of days or shorter units, such as INTERVAL '1' MINUTE, and got "
            f"{tree.sql(dialect='flink')}"
        )
    return found // timedelta(milliseconds=1)


def derived(below: Table, columns: tuple[Column, ...], stream: Any, made_by: Any = None) -> Table:
    """A table with other columns and rows."""
    return replace(
        below, descriptor=None, columns=columns, stream=stream, definition=None, made_by=made_by
    )


def aggregated(rows: Table, windows: Windows, keys: int, aggregates: Aggregates) -> Table:
    """A row for each window and key: the keys, the results of the aggregates, and the columns of the window.

    Args:
        rows: Rows that begin with the keys, and have the arguments of the aggregates.
        windows: The windows.
        keys: The number of keys.
        aggregates: The aggregates.
    """
    results, function = aggregates.compiled(rows.columns)
    of_window = windows.columns([START, END, TIME])
    own = [Column(*each) for each in rows.columns[:keys]]
    columns = (*own, *results, *of_window)
    of, names = row_type(columns), [each.name for each in columns]

    def stream() -> DataStream[Any]:
        if not keys:
            alone = RowsOfAll(names, in_utc=windows.in_utc)
            return (
                rows.rows().window_all(windows.assigner).aggregate(function, alone, output_type=of)
            )
        key: Any = itemgetter(*range(keys)) if keys > 1 else only_field
        row = AggregatedRow(names, in_utc=windows.in_utc)
        return (
            rows.rows()
            .key_by(key)
            .window(windows.assigner)
            .aggregate(function, row, output_type=of)
        )

    return derived(rows, columns, stream)


@dataclass(frozen=True)
class WindowedRows:
    """The rows of a table with the windows that they are in: the result of a window's table function."""

    below: Table
    windows: Windows

    def can_group_by(self, keys: Sequence[Any]) -> bool:
        """Whether the windows can be aggregated directly. Sessions must have a partition for each group."""
        return not self._is_session or set(self.windows.partition) == {each.name for each in keys}

    @property
    def _is_session(self) -> bool:
        return isinstance(self.windows.assigner, MergingWindowAssigner)

    def table(self) -> Table:
        """The rows, each with the start, end and time of its windows."""
        below, windows = self.below, self.windows
        names = [each.name for each in below.columns]
        is_session = self._is_session
        in_utc = windows.in_utc
        start, end, time = windows.columns(["window_start", "window_end", "window_time"])
        if is_session:  # rows are emitted at the end of the session
            own = tuple(Column(*each) for each in below.columns)
        else:
            own, time = below.columns, Column(*time)
        columns = (*own, start, end, time)
        places = [names.index(each) for each in windows.partition]
        of, labels = row_type(columns), [each.name for each in columns]

        def stream() -> DataStream[Any]:
            rows = below.rows()
            if not is_session:
                place = names.index(windows.time.name)
                return rows.flat_map(
                    RowsWithWindows(labels, windows.assigner, place, in_utc=in_utc), of
                )
            if not places:
                alone = rows.window_all(windows.assigner)
                return alone.apply(RowsOfAll(labels, in_utc=in_utc), of)
            keyed = rows.key_by(RowExpression(f"({''.join(f'row[{n}], ' for n in places)})", "key"))
            return keyed.window(windows.assigner).apply(RowsOfWindow(labels, in_utc=in_utc), of)

        return derived(below, columns, stream, made_by=self)
