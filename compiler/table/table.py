"""A table: columns, and the stream of its rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opchain.compiler.dsl.argument_checks import refuses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.table.expressions import Column
    from opchain.compiler.table.stream_table_environment import StreamTableEnvironment
    from opchain.compiler.table.table_descriptor import Schema, TableDescriptor
    from opchain.runtime.job.client import JobClient


@dataclass(frozen=True)
class Table:
    """A described table, a view or a query; `StreamTableEnvironment.to_data_stream` makes a stream of it.

    Attributes:
        path: Its name.
        descriptor: How it was described; None for views and queries.
        columns: All columns.
    """

    path: str
    descriptor: TableDescriptor | None
    columns: tuple[Column, ...] = ()
    stream: Callable[[], DataStream[Any]] | None = field(default=None, compare=False, repr=False)
    environment: StreamTableEnvironment | None = field(default=None, compare=False, repr=False)

    def get_schema(self) -> Schema | None:
        """The columns."""
        if self.descriptor is not None:
            return self.descriptor.schema
        from opchain.compiler.table.table_descriptor import Schema  # noqa: PLC0415 - mostly unused

        return Schema(tuple(self.columns))

    def print_schema(self) -> None:
        """Prints the columns and their types."""
        print(self.get_schema())  # noqa: T201 - as the name says

    def execute(self) -> TableResult:
        """Runs the query; the result has its rows."""
        assert self.environment is not None
        return self.environment.result_of(self)

    def execute_insert(self, table_path_or_descriptor: str | TableDescriptor) -> TableResult:
        """Writes the rows into a table, as a job of its own."""
        assert self.environment is not None
        statements = self.environment.create_statement_set()
        statements.add_insert(table_path_or_descriptor, self)
        return statements.execute()


class TableResult:
    """What a statement gives. Flink: TableResult."""

    def __init__(
        self,
        columns: tuple[Column, ...] = (),
        rows: Iterator[Any] | None = None,
        client: JobClient | None = None,
    ) -> None:
        self.columns = columns
        self._rows = rows
        self._client = client

    def get_job_client(self) -> JobClient | None:
        """The job's client; None for a statement without a job."""
        return self._client

    def wait(self, timeout_ms: int | None = None) -> None:
        """Waits for the end of the job, up to a timeout in milliseconds."""
        if self._client is not None:
            timeout = None if timeout_ms is None else timeout_ms / 1000
            self._client.get_job_execution_result().result(timeout)

    def collect(self) -> Any:
        """The rows, as they come; close the iterator to end the job."""
        return iter(()) if self._rows is None else self._rows

    def print(self) -> None:
        """Prints the rows in a frame, when there are no more."""
        from opchain.compiler.table.connectors import printers  # noqa: PLC0415 - mostly unused

        texts = [[each.name for each in self.columns]]
        found = printers(self.columns)
        for row in self.collect():
            cells = zip(found, row, strict=True)
            texts.append(["<NULL>" if value is None else text(value) for text, value in cells])
        for line in _frame([["op", *texts[0]], *(["+I", *each] for each in texts[1:])]):
            print(line)  # noqa: T201 - as the name says
        print(f"{len(texts) - 1} row{'' if len(texts) == 2 else 's'} in set")  # noqa: T201, PLR2004


def _frame(lines: list[list[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = "+".join(["", *("-" * (width + 2) for width in widths), ""])
    yield rule
    for number, line in enumerate(lines):
        cells = (f" {text:>{width}} " for text, width in zip(line, widths, strict=True))
        yield "|".join(["", *cells, ""])
        if not number:
            yield rule
    yield rule


for _name in (
    *("select", "alias", "filter", "where", "group_by", "distinct", "join", "left_outer_join"),
    *("right_outer_join", "full_outer_join", "join_lateral", "left_outer_join_lateral", "minus"),
    *("minus_all", "union", "union_all", "intersect", "intersect_all", "order_by", "offset"),
    *("fetch", "limit", "window", "over_window", "add_columns", "add_or_replace_columns"),
    *("rename_columns", "drop_columns", "map", "flat_map", "aggregate", "flat_aggregate"),
    *("to_pandas", "explain", "print_explain", "insert_into"),
    *("get_resolved_schema", "to_changelog", "from_changelog"),
):
    setattr(
        Table,
        _name,
        refuses(
            f"Table.{_name}",
            "write the query as SQL with sql_query(), or convert it with to_data_stream()",
        ),
    )
