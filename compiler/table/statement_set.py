"""INSERT INTO: how the rows of a query fit into a table, and statements that run as one job."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from opchain.compiler.dsl.argument_checks import at_call, checked, refused
from opchain.compiler.table import sql
from opchain.compiler.table.calculation import projected
from opchain.compiler.table.connectors import write_table
from opchain.compiler.table.data_types import ArrayType, DataType, MapType, RowType
from opchain.compiler.table.explain import ExplainDetail, plan_text
from opchain.compiler.table.expressions import Column, Compiler, Typed, cast, parsed
from opchain.compiler.table.sql import plain_path
from opchain.compiler.table.table import Table, TablePipeline
from opchain.compiler.table.table_descriptor import Schema, TableDescriptor
from opchain.compiler.table.table_result import TableResult
from opchain.runtime.errors import GraphError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opchain.compiler.table.stream_table_environment import StreamTableEnvironment

_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE")
_TEXTS = ("CHAR", "VARCHAR", "STRING")


class _Insert(NamedTuple):
    path: str
    columns: Sequence[str]
    """The columns of the table that the query gives; empty for all."""
    table: Table
    partition: Mapping[str, Typed] = MappingProxyType({})
    """The partition columns with one value for all rows."""


class StatementSet:
    """INSERT INTO statements that become one job. A table that they share is read once. Flink: StatementSet."""

    def __init__(self, tables: StreamTableEnvironment) -> None:
        self._tables = tables
        self._inserts: list[_Insert] = []

    def add_insert_sql(self, stmt: str) -> StatementSet:
        """Adds an INSERT INTO."""
        text = checked(stmt, str, "add_insert_sql", "the statement")
        statement = self._tables.statement_of(text)
        if not isinstance(statement, sql.Insert):
            raise GraphError(f"{at_call('add_insert_sql')} takes INSERT INTO")
        self.add_parsed(statement)
        return self

    def add_insert(
        self,
        target_path_or_descriptor: str | TableDescriptor,
        table: Table,
        overwrite: bool = False,
    ) -> StatementSet:
        """Adds the rows of a table."""
        if overwrite:
            raise refused("add_insert", "sinks append; delete old files before the job")
        target = target_path_or_descriptor
        if isinstance(target, TableDescriptor):
            if target.schema is None:
                columns = tuple((each.name, each.data_type) for each in table.columns)
                target = replace(target, schema=Schema(columns))
            described = self._tables.from_descriptor(target)
            self._tables.create_temporary_table(described.path, target)
            target = described.path
        self._inserts.append(_Insert(plain_path(target), (), table))
        return self

    def add(self, table_pipeline: TablePipeline) -> StatementSet:
        """Adds the INSERT INTO of `Table.insert_into`."""
        each = checked(table_pipeline, TablePipeline, "add", "the pipeline")
        return self.add_insert(each.target, each.table, each.overwrite)

    def add_parsed(self, statement: sql.Insert) -> None:
        """Adds a parsed INSERT INTO."""
        table = self._tables.planner.table_of(statement.query)
        where = f"INSERT INTO {statement.path} PARTITION"
        partition = {
            name: Compiler({}, (), where).compile(parsed(text, where))
            for name, text in statement.partition
        }
        self._inserts.append(_Insert(statement.path, statement.columns, table, partition))

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plan of the inserts, as `StreamTableEnvironment.explain_sql`.

        Raises:
            GraphError: There are none.
        """
        self._check_inserts("explain")
        environment = self._tables.stream_environment
        earlier = environment.get_transformations()
        try:
            self._write()
        finally:
            program = environment.detached_part(earlier)
        return plan_text(program, extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Prints the plan of the inserts."""
        print(self.explain(*extra_details))  # noqa: T201 - as the name says

    def _check_inserts(self, call: str) -> None:
        if not self._inserts:
            raise GraphError(f"{at_call(call)}: the statement set is empty; add_insert_sql() first")

    def _write(self) -> None:
        with self._tables.shared_sources():
            for each in self._inserts:
                _write(self._tables, each)

    def attach_as_datastream(self) -> None:
        """Makes the inserts part of the program, which `env.execute()` runs."""
        self._write()
        self._inserts = []

    def execute(self) -> TableResult:
        """Runs the inserts as one job.

        Raises:
            GraphError: There are none.
        """
        self._check_inserts("execute")
        name = "insert-into_" + ",".join(
            f"default_catalog.default_database.{each.path}" for each in self._inserts
        )
        environment = self._tables.stream_environment
        earlier = environment.get_transformations()
        self.attach_as_datastream()
        return TableResult(client=environment.execute_part(earlier, name))


def _write(tables: StreamTableEnvironment, insert: _Insert) -> None:
    """Adds the operators of an INSERT INTO.

    Raises:
        GraphError: The columns of the query do not fit.
        UnsupportedFeatureError: The table has a metadata column that would be written.
    """
    where = f"INSERT INTO {insert.path}"
    descriptor = tables.from_path(insert.path).descriptor
    if descriptor is None or descriptor.schema is None:
        raise GraphError(f"{where}: '{insert.path}' is a view; insert into a table")
    written = [each.name for each in descriptor.schema.metadata if not each.is_virtual]
    if written:
        raise UnsupportedFeatureError(
            f"{where}: the metadata column '{written[0]}' can't be written; declare it VIRTUAL, or use a KafkaSink with "
            "a record serializer"
        )
    for name in insert.partition:
        if name not in descriptor.partition_keys:
            raise GraphError(
                f"{where} PARTITION ({name} = ...): the table is not PARTITIONED BY '{name}'; select the column instead"
            )
    wanted = [Column(*each) for each in descriptor.schema.columns]
    values = _values(insert, wanted, where)
    stream = tables.to_data_stream(insert.table)
    write_table(projected(stream, insert.table.columns, wanted, values), descriptor, insert.path)


def _values(insert: _Insert, wanted: Sequence[Column], where: str) -> list[Typed]:
    """The value of each column of the table. It is NULL if the query does not give it.

    Raises:
        GraphError: The columns of the query do not fit.
    """
    given = insert.table.columns
    names = list(insert.columns) or [
        each.name for each in wanted if each.name not in insert.partition
    ]
    if len(names) != len(given):
        raise GraphError(
            f"{where}: the query has {len(given)} columns ({', '.join(each.name for each in given)}), and the table "
            f"expects {len(names)} ({', '.join(names)})"
        )
    values = {
        name: Typed(f"row[{place}]", each.data_type)
        for place, (name, each) in enumerate(zip(names, given, strict=True))
    } | dict(insert.partition)
    fitting = []
    for name, data_type in wanted:
        value = values.pop(name, Typed("None", data_type))
        if not _fits(value.data_type, data_type):
            raise GraphError(
                f"{where}: column '{name}' is {data_type}, and the query gives {value.data_type}; write "
                f"CAST(... AS {data_type.nullable()})"
            )
        fitted = cast(value, data_type)
        if value.data_type.is_nullable and not data_type.is_nullable:
            fitted = Typed(f"not_null({fitted.text}, {name!r})", data_type)
        fitting.append(fitted)
    if values:
        raise GraphError(f"{where}: there is no column '{min(values)}' to write")
    return fitting


def _fits(given: DataType, wanted: DataType) -> bool:
    """Whether Flink writes a value without CAST."""
    if isinstance(given, RowType) and isinstance(wanted, RowType):
        pairs = zip(given.fields, wanted.fields, strict=False)
        return len(given.fields) == len(wanted.fields) and all(
            _fits(old.data_type, new.data_type) for old, new in pairs
        )
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        return _fits(given.element_type, wanted.element_type)
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        return _fits(given.key_type, wanted.key_type) and _fits(given.value_type, wanted.value_type)
    if given.name == wanted.name or (given.name in _TEXTS and wanted.name in _TEXTS):
        return True
    if given.name in _NUMBERS and wanted.name in _NUMBERS:
        is_wider = _NUMBERS.index(given.name) <= _NUMBERS.index(wanted.name)
        return is_wider or wanted.name == "DECIMAL"
    return wanted.name in _WRITTEN_FROM.get(given.name, ())


_WRITTEN_FROM = {
    "TIMESTAMP": ("TIMESTAMP_LTZ", "DATE", "TIME"),
    "TIMESTAMP_LTZ": ("TIMESTAMP",),
}
"""The types of columns that take values of a time type without CAST."""
