"""A table: columns, and the stream of its rows."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from opchain.compiler.dsl.argument_checks import at_call, refuses
from opchain.compiler.table.connectors import row_type
from opchain.compiler.table.data_types import ArrayType, MapType, RowType
from opchain.compiler.table.expressions import by_position
from opchain.compiler.table.queries import projection
from opchain.compiler.table.table_descriptor import Schema, TableSchema
from opchain.runtime.errors import GraphError, imported
from opchain.runtime.types.printed_form import java_text_of
from opchain.runtime.types.row import Row, RowKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from typing_extensions import Self

    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.table.data_types import DataType
    from opchain.compiler.table.expressions import Column
    from opchain.compiler.table.stream_table_environment import StreamTableEnvironment
    from opchain.compiler.table.table_descriptor import TableDescriptor
    from opchain.runtime.job.client import JobClient


@dataclass(frozen=True)
class Table:
    """A described table, a view or a query. `StreamTableEnvironment.to_data_stream` returns the stream of its rows.

    Attributes:
        path: Its name.
        descriptor: The descriptor of a described table; None for views and queries.
        columns: All columns.
        stream: Creates the stream of the rows.
        definition: The statement CREATE VIEW of a view; None if it was not created by a statement.
    """

    path: str
    descriptor: TableDescriptor | None
    columns: tuple[Column, ...]
    stream: Callable[[], DataStream[Any]] = field(compare=False, repr=False)
    environment: StreamTableEnvironment | None = field(default=None, compare=False, repr=False)
    definition: str | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        """A name of the table for SQL: `f"SELECT a FROM {table}"`."""
        assert self.environment is not None
        return self.environment.name_of(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """An AttributeError, which says what to do if PyFlink has a column here: `table.price > 10`."""
            missing = f"a Table has no attribute {name!r}"
            if name.startswith("_") or name not in by_position(self.columns):
                raise AttributeError(missing)
            raise AttributeError(
                f"{missing}: expressions of columns are not supported; write the query as SQL with sql_query()"
            )

    def get_schema(self) -> TableSchema:
        """The names and types of the columns."""
        return schema_of(self.columns)

    def alias(self, field: str, *fields: str) -> Table:
        """The same rows with new names of the first columns. The other columns keep their names.

        Raises:
            GraphError: There are more names than columns, or two columns would have one name.
        """
        given = (field, *fields)
        if len(given) > len(self.columns):
            raise GraphError(
                f"{at_call('Table.alias')} got {len(given)} names, and the table has {len(self.columns)} columns"
            )
        names = (*given, *(each.name for each in self.columns[len(given) :]))
        if len(set(names)) < len(names):
            raise GraphError(
                f"{at_call('Table.alias')}: two columns would have one name: {', '.join(names)}"
            )
        columns = tuple(
            each._replace(name=name) for name, each in zip(names, self.columns, strict=True)
        )
        row = projection(columns, list(by_position(columns).values()))
        return replace(
            self,
            path="",
            descriptor=None,
            definition=None,
            columns=columns,
            stream=lambda: self.stream().map(row, row_type(columns)),
        )

    def print_schema(self) -> None:
        """Prints the columns and their types."""
        found = None if self.descriptor is None else self.descriptor.schema
        print(Schema(tuple(self.columns)) if found is None else found)  # noqa: T201 - as the name says

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame, when all have come.

        Raises:
            MissingLibraryError: pandas is not installed.
        """
        pandas = imported("pandas", "pandas", "to_pandas()")
        with self.execute().collect() as rows:
            return pandas.DataFrame(list(map(list, rows)), columns=self.get_schema().field_names)

    def execute(self) -> TableResult:
        """Runs the query; the result has its rows."""
        assert self.environment is not None
        return self.environment.result_of(self)

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plan of the query, as `StreamTableEnvironment.explain_sql`."""
        assert self.environment is not None
        return self.environment.plan_of(self, extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Prints the plan of the query."""
        print(self.explain(*extra_details))  # noqa: T201 - as the name says

    def execute_insert(
        self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False
    ) -> TableResult:
        """Writes the rows to a table, as a job."""
        return self.insert_into(table_path_or_descriptor, overwrite).execute()

    def insert_into(
        self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False
    ) -> TablePipeline:
        """An INSERT INTO of the rows, which `execute()` or a statement set runs."""
        return TablePipeline(table_path_or_descriptor, self, overwrite)


@dataclass(frozen=True)
class TablePipeline:
    """A table, and the table that its rows are written to. Flink: TablePipeline."""

    target: str | TableDescriptor
    table: Table
    overwrite: bool = False

    def execute(self) -> TableResult:
        """Writes the rows, as a job."""
        assert self.table.environment is not None
        return self.table.environment.create_statement_set().add(self).execute()

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plan of the INSERT INTO, as `StreamTableEnvironment.explain_sql`."""
        assert self.table.environment is not None
        return self.table.environment.create_statement_set().add(self).explain(*extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Prints the plan of the INSERT INTO."""
        print(self.explain(*extra_details))  # noqa: T201 - as the name says


def schema_of(columns: tuple[Column, ...]) -> TableSchema:
    """Columns as a TableSchema."""
    return TableSchema([each.name for each in columns], [each.data_type for each in columns])


class ResultKind(enum.Enum):
    """Whether a statement gives rows, or only succeeds. Flink: ResultKind."""

    SUCCESS = 0
    SUCCESS_WITH_CONTENT = 1


class ExplainDetail(enum.Enum):
    """What a plan shows besides the operators. Only JSON_EXECUTION_PLAN has an effect. Flink: ExplainDetail."""

    ESTIMATED_COST = 0
    CHANGELOG_MODE = 1
    JSON_EXECUTION_PLAN = 2
    PLAN_ADVICE = 3


@dataclass(frozen=True)
class ChangelogMode:
    """The kinds of changes that a stream may have. Tables only append, so all modes mean the same here."""

    kinds: tuple[RowKind, ...]

    @staticmethod
    def insert_only() -> ChangelogMode:
        """Only inserts."""
        return ChangelogMode((RowKind.INSERT,))

    @staticmethod
    def upsert(key_only_deletes: bool = True) -> ChangelogMode:  # noqa: ARG004 - PyFlink's name
        """Inserts, updates without the row before, and deletes."""
        return ChangelogMode((RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE))

    @staticmethod
    def all() -> ChangelogMode:
        """Every kind."""
        return ChangelogMode(tuple(RowKind))


class TableResult:
    """The result of a statement. Flink: TableResult."""

    def __init__(
        self,
        columns: tuple[Column, ...] = (),
        rows: Iterator[Any] | list[Row] | None = None,
        client: JobClient | None = None,
        *,
        shows_kinds: bool = True,
    ) -> None:
        self.columns = columns
        self._shows_kinds = shows_kinds
        self._rows = _Rows(rows) if isinstance(rows, list) else rows
        self._client = client

    def get_job_client(self) -> JobClient | None:
        """The job's client; None for a statement without a job."""
        return self._client

    def get_table_schema(self) -> TableSchema:
        """The names and types of the columns."""
        return schema_of(self.columns)

    def get_result_kind(self) -> ResultKind:
        """Whether the result has rows: those of a query, or the number of rows of an INSERT."""
        has_rows = bool(self.columns) or self._client is not None
        return ResultKind.SUCCESS_WITH_CONTENT if has_rows else ResultKind.SUCCESS

    def wait(self, timeout_ms: int | None = None) -> None:
        """Waits for the end of the job, up to a timeout in milliseconds."""
        if self._client is not None:
            timeout = None if timeout_ms is None else timeout_ms / 1000
            self._client.get_job_execution_result().result(timeout)

    def collect(self) -> Any:
        """The rows, as they come; close the iterator to end the job. An INSERT gives -1, an unknown number of rows."""
        if self._rows is None:
            return _Rows(() if self._client is None else [Row(-1)])
        return self._rows

    def print(self) -> None:
        """Prints the rows in a frame when all have come, or "OK" for a statement without rows, as Flink does.

        Flink prints -1, an unknown number of rows, for an INSERT.
        """
        if not self.columns:
            self.wait()
            print("OK" if self._client is None else -1)  # noqa: T201 - as the name says
            return
        types = [data_type for _, data_type in self.columns]
        null = (
            "" if self._client is None else _NULL
        )  # Flink prints no NULL in the result of DESCRIBE
        lines = [
            [
                null if value is None else cell_text(of, value)
                for of, value in zip(types, row, strict=True)
            ]
            for row in self.collect()
        ]
        if not lines:
            print("Empty set")  # noqa: T201
            return
        lines.insert(0, [each.name for each in self.columns])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        if self._client is not None:
            # Flink prints the rows of a query as they come, so widths are those of the types.
            widths = [_OP_WIDTH, *(max(_width(of), len(name)) for name, of in self.columns)]
            kinds = ["op", *["+I"] * (len(lines) - 1)]
            lines = [[row_kind, *line] for row_kind, line in zip(kinds, lines, strict=True)]
            if not self._shows_kinds:
                widths, lines = widths[1:], [line[1:] for line in lines]
        for text in _frame(lines, widths):
            print(text)  # noqa: T201
        print(f"{len(lines) - 1} row{'' if len(lines) == 2 else 's'} in set")  # noqa: T201, PLR2004


class _Rows:
    """Rows that are known without a job."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._rows = iter(rows)

    def __iter__(self) -> _Rows:
        return self

    def __next__(self) -> Row:
        return next(self._rows)

    next = __next__

    def close(self) -> None:
        """Gives no more rows."""
        self._rows = iter(())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_NULL = "<NULL>"
_OP_WIDTH = 2
_WIDEST = 30
_WIDTHS = {"BOOLEAN": 5, "TINYINT": 4, "SMALLINT": 6, "INT": 11, "BIGINT": 20, "DATE": 10}
"""Flink: TableauStyle.columnWidthsByType."""


def _width(data_type: DataType) -> int:
    width = _WIDTHS.get(data_type.name, _WIDEST)
    if data_type.name == "DECIMAL":
        width = data_type.parameters[0] + 2
    elif data_type.name == "TIME" or data_type.name.startswith("TIMESTAMP"):
        digits = data_type.parameters[0]
        width = (8 if data_type.name == "TIME" else 19) + (digits + 1 if digits else 0)
    return max(width, len(_NULL)) if data_type.is_nullable else width


def cell_text(data_type: DataType, value: Any) -> str:
    """The text of a value in a frame: what Flink's CAST(value AS STRING) gives.

    >>> from opchain.compiler.table.data_types import data_type_of
    >>> cell_text(data_type_of("ROW<a BOOLEAN, b ARRAY<INT>>"), (True, [1, None]))
    '(TRUE, [1, NULL])'
    """
    if value is None:
        text = "NULL"
    elif isinstance(data_type, ArrayType):
        text = f"[{', '.join(cell_text(data_type.element_type, item) for item in value)}]"
    elif isinstance(data_type, MapType):
        key, of_value = data_type.key_type, data_type.value_type
        items = (f"{cell_text(key, k)}={cell_text(of_value, v)}" for k, v in value.items())
        text = f"{{{', '.join(items)}}}"
    elif isinstance(data_type, RowType):
        fields = zip(data_type.fields, value, strict=False)
        text = f"({', '.join(cell_text(field.data_type, item) for field, item in fields)})"
    elif data_type.name == "BOOLEAN":
        text = str(value).upper()
    elif data_type.name.startswith("TIMESTAMP"):
        digits = data_type.parameters[0]
        fraction = f".{value.microsecond:06d}000"[: digits + 1] if digits else ""
        text = f"{value:%Y-%m-%d %H:%M:%S}{fraction}"
    else:
        text = java_text_of(data_type.type_information())(value)
    return text


def without_names(value: Any) -> Any:
    """A value with rows that have no names, as TableResult.collect gives them in PyFlink."""
    if isinstance(value, Row):
        return Row.of_kind(value.get_row_kind(), *map(without_names, value))
    if isinstance(value, list):
        return list(map(without_names, value))
    if isinstance(value, dict):
        return {key: without_names(item) for key, item in value.items()}
    return value


def _frame(lines: list[list[str]], widths: list[int]) -> Iterator[str]:
    lines = [
        [
            text if len(text) <= width else f"{text[: width - 3]}..."
            for text, width in zip(line, widths, strict=True)
        ]
        for line in lines
    ]
    rule = "+".join(["", *("-" * (width + 2) for width in widths), ""])
    yield rule
    for number, line in enumerate(lines):
        cells = (f" {text:>{width}} " for text, width in zip(line, widths, strict=True))
        yield "|".join(["", *cells, ""])
        if not number:
            yield rule
    yield rule


for _name in (
    *("select", "filter", "where", "group_by", "distinct", "join", "left_outer_join"),
    *("right_outer_join", "full_outer_join", "join_lateral", "left_outer_join_lateral", "minus"),
    *("minus_all", "union", "union_all", "intersect", "intersect_all", "order_by", "offset"),
    *("fetch", "limit", "window", "over_window", "add_columns", "add_or_replace_columns"),
    *("rename_columns", "drop_columns", "map", "flat_map", "aggregate", "flat_aggregate"),
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
