"""The result of a statement: its rows, and how they are printed."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from opchain.compiler.table.data_types import ArrayType, MapType, RowType
from opchain.compiler.table.table_descriptor import TableSchema
from opchain.runtime.types.printed_form import java_text_of
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing_extensions import Self

    from opchain.compiler.table.data_types import DataType
    from opchain.compiler.table.expressions import Column
    from opchain.runtime.job.client import JobClient


class ResultKind(enum.Enum):
    """Whether a statement gives rows, or only succeeds. Flink: ResultKind."""

    SUCCESS = 0
    SUCCESS_WITH_CONTENT = 1


def schema_of(columns: tuple[Column, ...]) -> TableSchema:
    """Columns as a TableSchema."""
    return TableSchema([each.name for each in columns], [each.data_type for each in columns])


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
        """Whether the result has rows. A query has its rows, and an INSERT one row: the number of rows that it wrote."""
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
            # Flink prints the rows of a query as they come, so only their types can decide the widths.
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
    elif data_type.name == "BYTES":
        text = f"x'{bytes(value).hex()}'"
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
