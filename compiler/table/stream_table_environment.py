"""StreamTableEnvironment: tables of connectors, and SQL with columns and scalar expressions.

A statement compiles to calls of the DataStream API: a table is a source, a view is a map and a filter, INSERT INTO is a
sink. Other queries over bounded tables run in Spark SQL.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from opchain.compiler.dsl.argument_checks import at_call, checked, refused, refuses, removed
from opchain.compiler.dsl.data_stream import DataStream
from opchain.compiler.dsl.environment import StreamExecutionEnvironment
from opchain.compiler.dsl.stream_dataframe import PlannedDataFrame, never_ends
from opchain.compiler.graph.transformation import user_call_site
from opchain.compiler.settings.settings_reader import read_settings
from opchain.compiler.table import sql
from opchain.compiler.table.connectors import (
    KNOWN,
    row_type,
    table_source,
    unknown_connector,
    wire_value,
    write_table,
)
from opchain.compiler.table.data_types import (
    ArrayType,
    DataType,
    DataTypes,
    MapType,
    RowType,
    data_type_of,
    names_of_fields,
    spark_schema,
    spark_types,
    type_of_spark,
    type_of_stream,
    type_of_value,
)
from opchain.compiler.table.expressions import (
    BOOLEAN,
    Column,
    Compiler,
    Typed,
    by_position,
    cast,
    common_type,
    fitted,
    parsed,
    sqlglot,
)
from opchain.compiler.table.like import described_like
from opchain.compiler.table.queries import (
    expanded,
    is_scalar,
    path_of,
    projection,
    renamed,
    selected,
    source_of,
    unbounded_part,
    values_of,
    without_ctes,
)
from opchain.compiler.table.settings import RUNTIME_MODE, EnvironmentSettings, TableConfig
from opchain.compiler.table.spark_sql import for_spark
from opchain.compiler.table.sql import plain_path
from opchain.compiler.table.table import (
    ExplainDetail,
    Table,
    TablePipeline,
    TableResult,
    without_names,
)
from opchain.compiler.table.table_descriptor import Schema, TableDescriptor
from opchain.runtime.configuration.configuration import Configuration
from opchain.runtime.errors import GraphError, UnsupportedFeatureError, short_repr
from opchain.runtime.functions.sql import EventTime, RowExpression, RowPredicate, WithTimestamp
from opchain.runtime.time import Duration
from opchain.runtime.types.row import Row
from opchain.runtime.watermarks.strategy import WatermarkStrategy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from opchain.compiler.graph.plan import Program
    from opchain.runtime.types.type_information import TypeInformation

_SOURCE_WATERMARK = "SOURCE_WATERMARK()"
_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE")
_TEXTS = ("CHAR", "VARCHAR", "STRING")


class TableEnvironment:
    """An environment for tables. Flink: TableEnvironment."""

    @staticmethod
    def create(environment_settings: EnvironmentSettings | Configuration) -> StreamTableEnvironment:
        """Creates a table environment with a new stream environment and these settings."""
        settings: Any = environment_settings
        if isinstance(settings, Configuration):
            settings = EnvironmentSettings(settings)
        checked(settings, EnvironmentSettings, "TableEnvironment.create", "the settings")
        return StreamTableEnvironment.create(environment_settings=settings)


class StreamTableEnvironment(TableEnvironment):
    """An environment for tables and streams. Flink: StreamTableEnvironment."""

    def __init__(self, stream_execution_environment: StreamExecutionEnvironment) -> None:
        self._environment = stream_execution_environment
        self._tables: dict[str, Table] = {}
        self._anonymous = 0
        self._sources: dict[str, DataStream[Any]] | None = None

    @staticmethod
    def create(  # type: ignore[override]  # as in PyFlink
        stream_execution_environment: StreamExecutionEnvironment | None = None,
        environment_settings: EnvironmentSettings | None = None,
    ) -> StreamTableEnvironment:
        """Creates a table environment for a stream environment. Default: a new stream environment.

        The settings are added to those of the stream environment.
        """
        call = "StreamTableEnvironment.create"
        if stream_execution_environment is None:
            stream_execution_environment = StreamExecutionEnvironment.get_execution_environment()
        environment = checked(
            stream_execution_environment, StreamExecutionEnvironment, call, "the environment"
        )
        if environment_settings is not None:
            checked(environment_settings, EnvironmentSettings, call, "the settings")
            environment.get_configuration().add_all(environment_settings.get_configuration())
        return StreamTableEnvironment(environment)

    # Tables and views

    def create_temporary_table(
        self,
        path: str,
        descriptor: TableDescriptor,
        ignoreIfExists: bool = False,  # noqa: N803 - PyFlink's name
    ) -> None:
        """Registers a described table under a name.

        Raises:
            GraphError: There is a table of this name, or it has no columns.
            UnsupportedFeatureError: There is no such connector.
        """
        call = "create_temporary_table"
        path = plain_path(checked(path, str, call, "the table's name"))
        checked(descriptor, TableDescriptor, call, "the descriptor")
        if not (ignoreIfExists and path in self._tables):
            self._add(self._described(path, descriptor, call), call)

    create_table = create_temporary_table

    def create_temporary_view(
        self, view_path: str, table_or_data_stream: Table | DataStream[Any], *fields_or_schema: Any
    ) -> None:
        """Registers a query or a stream under a name. A schema declares the columns of a stream.

        Raises:
            GraphError: There is a table of this name, or the columns of the stream are unknown.
        """
        call = "create_temporary_view"
        found: Any = table_or_data_stream
        if isinstance(found, DataStream):
            found = self.from_data_stream(found, *fields_or_schema)
        checked(found, Table, call, "the view")
        self._add(Table(plain_path(view_path), None, found.columns, found.stream, self), call)

    def create_view(self, view_path: str, table: Table, ignore_if_exists: bool = False) -> bool:
        """Registers a query under a name; False if there is a table of this name, which is then kept.

        Raises:
            GraphError: There is a table of this name, and it is not ignored.
        """
        if ignore_if_exists and plain_path(view_path) in self._tables:
            return False
        self.create_temporary_view(view_path, table)
        return True

    def drop_temporary_table(self, table_path: str) -> bool:
        """Drops a table; False if it does not exist."""
        return self._tables.pop(plain_path(table_path), None) is not None

    def drop_temporary_view(self, view_path: str) -> bool:
        """Drops a view; False if it does not exist."""
        return self.drop_temporary_table(view_path)

    def drop_table(self, table_path: str, ignore_if_not_exists: bool = True) -> bool:
        """Drops a table; False if it does not exist.

        Raises:
            GraphError: It does not exist, and this is not ignored.
        """
        if not ignore_if_not_exists:
            self.from_path(table_path)
        return self.drop_temporary_table(table_path)

    def drop_view(self, view_path: str, ignore_if_not_exists: bool = True) -> bool:
        """Drops a view; False if it does not exist.

        Raises:
            GraphError: It does not exist, and this is not ignored.
        """
        return self.drop_table(view_path, ignore_if_not_exists)

    def name_of(self, table: Table) -> str:
        """The name of a table in SQL. A table without a name gets one."""
        if self._tables.get(table.path) is table:
            return f"`{table.path}`"
        self._anonymous += 1
        name = f"UnnamedTable${self._anonymous}"
        self._tables[name] = table
        return f"`{name}`"

    def list_temporary_tables(self) -> list[str]:
        """The names of the tables, in order."""
        return sorted(self._tables)

    list_tables = list_temporary_tables

    def list_temporary_views(self) -> list[str]:
        """The names of the views, in order."""
        return sorted(path for path, table in self._tables.items() if table.descriptor is None)

    list_views = list_temporary_views

    def from_path(self, path: str) -> Table:
        """A table by its name.

        Raises:
            GraphError: There is no table of this name.
        """
        table = self._tables.get(plain_path(path))
        if table is None:
            known = ", ".join(map(repr, sorted(self._tables))) or "none"
            close = get_close_matches(path, sorted(self._tables), n=1)
            meant = f"; did you mean '{close[0]}'?" if close else ""
            raise GraphError(
                f"there is no table '{path}' ({user_call_site()}){meant}; there are: {known}"
            )
        return table

    def from_descriptor(self, descriptor: TableDescriptor) -> Table:
        """A table without a name."""
        call = "from_descriptor"
        checked(descriptor, TableDescriptor, call, "the descriptor")
        self._anonymous += 1
        return self._described(
            f"*anonymous_{descriptor.connector}${self._anonymous}*", descriptor, call
        )

    def from_elements(
        self,
        elements: Iterable[Any],
        schema: Any = None,
        verify_schema: bool = True,  # noqa: ARG002 - values are checked in any case
    ) -> Table:
        """A table of these rows.

        Args:
            elements: Tuples, lists, Rows or dicts with a value for each column, or single values.
            schema: The names of the columns, or DataTypes.ROW([...]) with their types. By default, names are _1, _2, ...
                and types are those of the values.
            verify_schema: Has no effect: values are always checked.

        Raises:
            GraphError: There are no rows and no types, or a row has another number of values than the first.
            TypeError: A value has no type of a column.
        """
        call = "from_elements"
        elements = list(elements)
        if schema is None and elements and isinstance(elements[0], dict):
            schema = sorted(elements[0])
        rows = [_fields_of_element(each, schema) for each in elements]
        columns = _columns_of_elements(rows, schema, call)
        for row in rows:
            if len(row) != len(columns):
                raise GraphError(
                    f"{at_call(call)}: {short_repr(row)} has {len(row)} values, and the table has {len(columns)} columns"
                )
        names = [each.name for each in columns]
        records = []
        for values in rows:
            record = Row(*values)
            record.set_field_names(names)
            records.append(record)
        stream = self._environment.from_collection(records, row_type(columns))
        return Table("elements", None, columns, lambda: stream, self)

    def from_pandas(self, pdf: Any, schema: Any = None, splits_num: int = 1) -> Table:  # noqa: ARG002 - a collection
        """A table of the rows of a pandas DataFrame.

        A schema is as in `from_elements`, or a list of the types of the columns. `splits_num` has no effect.
        """
        names = list(map(str, pdf.columns)) if schema is None else schema
        if isinstance(names, (list, tuple)) and any(isinstance(each, DataType) for each in names):
            fields = zip(map(str, pdf.columns), names, strict=True)
            names = DataTypes.ROW([DataTypes.FIELD(name, of) for name, of in fields])
        columns = [pdf[name].astype(object).where(pdf[name].notna(), None) for name in pdf.columns]
        return self.from_elements(list(zip(*columns, strict=True)), names)

    def from_data_stream(self, data_stream: DataStream[Any], *fields_or_schema: Any) -> Table:
        """A stream as a table: a column for each field of its declared type, or as a Schema says.

        Raises:
            GraphError: The stream has no declared type, and there is no schema.
        """
        from opchain.runtime.types.record_types import RowTypeInfo  # noqa: PLC0415 - mostly unused

        call = "from_data_stream"
        checked(data_stream, DataStream, call, "the stream")
        schema = fields_or_schema[0] if fields_or_schema else None
        if schema is not None and (len(fields_or_schema) > 1 or not isinstance(schema, Schema)):
            raise refused(call, "pass a Schema instead of expressions")
        fields, is_atomic = _fields_of(data_stream, schema, call)
        stream = data_stream
        if not isinstance(stream.get_type(), RowTypeInfo):
            whole = [Typed("row", fields[0].data_type)]
            values = whole if is_atomic else list(by_position(fields).values())
            stream = stream.map(projection(fields, values), row_type(fields))
        name = data_stream.transformation.name
        if schema is None:
            return Table(name, None, fields, lambda: stream, self)
        order = schema.order or tuple(each for each, _ in schema.columns)
        if not schema.columns:
            order = (*(each.name for each in fields), *order)
        if schema.metadata:
            fields = (*fields, _time_column(schema, f"{at_call(call)}, the schema of '{name}'"))
            stream = stream.process(WithTimestamp(fields[-1].data_type.name), row_type(fields))
        columns, texts = _declared(
            replace(schema, order=order), by_position(fields), f"the schema of '{name}'"
        )
        if columns != fields:
            row = projection(columns, [texts[each.name] for each in columns])
            stream = stream.map(row, row_type(columns))
        has_own = schema.time is None or schema.time.expression.upper() == _SOURCE_WATERMARK
        strategy = None if has_own else _strategy(schema, by_position(columns), name)
        if strategy is not None:
            stream = stream.assign_timestamps_and_watermarks(strategy)
        return Table(name, None, columns, lambda: stream, self)

    def to_data_stream(self, table: Table, target_data_type: Any = None) -> DataStream[Row]:
        """The table's rows, as Row objects with the columns' names.

        Raises:
            ValueError: The connector's options make no sense.
        """
        call = "to_data_stream"
        checked(table, Table, call, "the table")
        if target_data_type is not None:
            raise refused(call, "CAST the columns in the query")
        assert table.stream is not None
        try:
            return table.stream()
        except ValueError as error:
            raise ValueError(f"{at_call(call)}, table '{table.path}': {error}") from None

    def to_changelog_stream(
        self, table: Table, target_schema: Schema | None = None, changelog_mode: Any = None
    ) -> DataStream[Row]:
        """The table's rows; each is an insert, because tables only append.

        Args:
            table: The table.
            target_schema: The columns by name, each with the type that values are cast to.
            changelog_mode: Has no effect: inserts are part of every mode.
        """
        del changelog_mode
        if target_schema is None:
            return self.to_data_stream(table)
        checked(target_schema, Schema, "to_changelog_stream", "the schema")
        columns = tuple(Column(*each) for each in target_schema.columns)
        given = by_position(table.columns)
        missing = [each.name for each in columns if each.name not in given]
        if missing or not columns:
            found = f"the column '{missing[0]}'" if missing else "no columns"
            raise GraphError(
                f"{at_call('to_changelog_stream')}: the schema has {found}; name columns of the table, which are "
                f"{', '.join(given)}"
            )
        row = projection(columns, [cast(given[name], data_type) for name, data_type in columns])
        return self.to_data_stream(table).map(row, row_type(columns))

    def to_append_stream(self, table: Table, type_info: TypeInformation[Any]) -> DataStream[Any]:
        """The table's rows as records of a type of rows or tuples.

        Raises:
            GraphError: The type is another one, or has another number of fields than the table.
        """
        from opchain.runtime.types.record_types import RowTypeInfo  # noqa: PLC0415 - mostly unused

        call = "to_append_stream"
        stream = self.to_data_stream(table)
        fields = getattr(type_info, "field_types", ())
        if len(fields) != len(table.columns):
            raise GraphError(
                f"{at_call(call)}: the type is {type_info}, and the table has {len(table.columns)} columns; pass "
                "Types.ROW([...]) or Types.TUPLE([...]) with a type for each column"
            )
        if not isinstance(type_info, RowTypeInfo):
            return stream.map(tuple, type_info)
        columns = [
            each._replace(name=name)
            for name, each in zip(type_info.get_field_names(), table.columns, strict=True)
        ]
        row = projection(columns, list(by_position(columns).values()))
        return stream.map(row, type_info)

    def to_retract_stream(
        self, table: Table, type_info: TypeInformation[Any]
    ) -> DataStream[tuple[bool, Any]]:
        """Pairs of True and a record of `to_append_stream`: no row is ever taken back."""
        from opchain.runtime.types.types import Types  # noqa: PLC0415 - mostly unused

        stream = self.to_append_stream(table, type_info)
        return stream.map(lambda row: (True, row), Types.TUPLE([Types.BOOLEAN(), type_info]))

    # SQL

    def execute_sql(self, stmt: str) -> TableResult:
        """Runs a statement: CREATE, DROP, INSERT INTO, SELECT, SET, SHOW TABLES or DESCRIBE.

        INSERT INTO and SELECT start a job. Needs sqlglot: `pip install 'opchain[sql]'`.

        Raises:
            GraphError: The statement is wrong.
            UnsupportedFeatureError: It needs more than columns, scalar expressions and WHERE of an unbounded table.
        """
        statement = sql.statement_of(checked(stmt, str, "execute_sql", "the statement"))
        if isinstance(statement, sql.CreateTable):
            self._create(statement)
        elif isinstance(statement, sql.CreateView):
            if not (statement.if_not_exists and statement.path in self._tables):
                self._create_view(statement)
        elif isinstance(statement, sql.Drop):
            if not self.drop_temporary_table(statement.path) and not statement.if_exists:
                raise GraphError(f"{at_call('execute_sql')}: there is no table '{statement.path}'")
        elif isinstance(statement, sql.Insert):
            statements = StatementSet(self)
            statements.add_parsed(statement)
            return statements.execute()
        elif isinstance(statement, sql.Select):
            return self.result_of(self.table_of(statement.query))
        elif isinstance(statement, sql.Use):
            pass
        elif isinstance(statement, sql.Set):
            self._environment.get_configuration().set_string(statement.key, statement.value)
        else:
            return self._shown(statement)
        return TableResult()

    def sql_query(self, query: str) -> Table:
        """The result of a query, as a table.

        Raises:
            GraphError: The query is wrong.
            UnsupportedFeatureError: It needs more than columns, scalar expressions and WHERE of an unbounded table.
        """
        statement = sql.statement_of(checked(query, str, "sql_query", "the query"))
        if not isinstance(statement, sql.Select):
            raise GraphError(
                f"{at_call('sql_query')} takes a SELECT; use execute_sql() for other statements"
            )
        return self.table_of(statement.query)

    def explain_sql(self, stmt: str, *extra_details: ExplainDetail) -> str:
        """The plan of a query or of INSERT INTO, as `opchain plan` prints it. Flink prints Calcite's plan.

        With `ExplainDetail.JSON_EXECUTION_PLAN`, the plan as JSON follows.

        Raises:
            GraphError: It is another statement.
        """
        statement = sql.statement_of(checked(stmt, str, "explain_sql", "the statement"))
        return self._plan_of_statement(statement, extra_details, "explain_sql")

    def _plan_of_statement(
        self, statement: Any, details: Sequence[ExplainDetail], call: str
    ) -> str:
        if isinstance(statement, sql.Insert):
            statements = StatementSet(self)
            statements.add_parsed(statement)
            return statements.explain(*details)
        if not isinstance(statement, sql.Select):
            raise GraphError(f"{at_call(call)} explains a SELECT or an INSERT INTO")
        return self.plan_of(self.table_of(statement.query), details)

    def plan_of(self, table: Table, details: Sequence[ExplainDetail]) -> str:
        """The plan of a query."""
        first = len(self._environment.get_transformations())
        end = self.to_data_stream(table).transformation
        return _plan(self._environment.detached_part(first, end), details)

    def plan_of_inserts(
        self,
        inserts: Sequence[tuple[str, Sequence[str], Table]],
        details: Sequence[ExplainDetail],
    ) -> str:
        """The plan of INSERT INTO statements as one job."""
        first = len(self._environment.get_transformations())
        try:
            self.write_all(inserts)
        finally:
            program = self._environment.detached_part(first)
        return _plan(program, details)

    def create_statement_set(self) -> StatementSet:
        """A set of INSERT INTO statements that become one job."""
        return StatementSet(self)

    def get_config(self) -> TableConfig:
        """The settings, which are those of the stream environment."""
        return TableConfig(self._environment.get_configuration())

    def get_current_catalog(self) -> str:
        """The only catalog: default_catalog."""
        return "default_catalog"

    def get_current_database(self) -> str:
        """The only database: default_database."""
        return "default_database"

    def list_catalogs(self) -> list[str]:
        """The only catalog: default_catalog."""
        return [self.get_current_catalog()]

    def list_databases(self) -> list[str]:
        """The only database: default_database."""
        return [self.get_current_database()]

    def use_catalog(self, catalog_name: str) -> None:
        """Accepts default_catalog.

        Raises:
            UnsupportedFeatureError: It is another name.
        """
        if catalog_name != self.get_current_catalog():
            raise refused("use_catalog", "there are no catalogs; omit the call")

    def use_database(self, database_name: str) -> None:
        """Accepts default_database.

        Raises:
            UnsupportedFeatureError: It is another name.
        """
        if database_name != self.get_current_database():
            raise refused("use_database", "there are no catalogs; omit the call")

    def add_python_file(self, file_path: str) -> None:
        """Sends a Python file, a package or an archive to the executors, where it can be imported."""
        self._environment.add_python_file(file_path)

    def set_python_requirements(
        self, requirements_file_path: str, requirements_cache_dir: str | None = None
    ) -> None:
        """The packages that functions need, as `StreamExecutionEnvironment.set_python_requirements`."""
        self._environment.set_python_requirements(requirements_file_path, requirements_cache_dir)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Sends an archive to the executors, as `StreamExecutionEnvironment.add_python_archive`."""
        self._environment.add_python_archive(archive_path, target_dir)

    def result_of(self, table: Table) -> TableResult:
        """Runs a query as a job."""
        first = len(self._environment.get_transformations())
        stream = self.to_data_stream(table)
        rows = stream.collect_async().converted_by(without_names)
        client = self._environment.execute_part(first, "collect")
        mode = self._environment.get_configuration().get_string(RUNTIME_MODE, "STREAMING")
        return TableResult(table.columns, rows, client, shows_kinds=mode.upper() != "BATCH")

    def _shown(self, statement: sql.Show | sql.Explain) -> TableResult:
        text = data_type_of("STRING")
        if isinstance(statement, sql.Explain):
            details = [ExplainDetail[each] for each in statement.details]
            plan = self._plan_of_statement(statement.statement, details, "execute_sql")
            return TableResult((Column("result", text),), [Row(plan)])
        if statement.what == "CREATE VIEW":
            view = self.from_path(statement.path)
            if view.definition is None:
                what = "a table" if view.descriptor is not None else "not created by a statement"
                raise UnsupportedFeatureError(
                    f"SHOW CREATE VIEW: '{statement.path}' is {what}; DESCRIBE shows its columns"
                )
            return TableResult((Column("result", text),), [Row(view.definition)])
        if statement.what == "CREATE TABLE":
            descriptor = self.from_path(statement.path).descriptor
            if descriptor is None or descriptor.schema is None:
                raise UnsupportedFeatureError(
                    f"SHOW CREATE TABLE: '{statement.path}' is a view; use SHOW CREATE VIEW"
                )
            shown = sql.create_table_text(statement.path, descriptor)
            return TableResult((Column("result", text),), [Row(shown)])
        if statement.what != "COLUMNS":
            title, values = {
                "TABLES": ("table name", self.list_tables),
                "VIEWS": ("view name", self.list_views),
                "CATALOGS": ("catalog name", self.list_catalogs),
                "DATABASES": ("database name", self.list_databases),
                "CURRENT CATALOG": ("current catalog name", self.list_catalogs),
                "CURRENT DATABASE": ("current database name", self.list_databases),
            }[statement.what]
            return TableResult((Column(title, text),), [Row(each) for each in values()])
        table = self.from_path(statement.path)
        schema = None if table.descriptor is None else table.descriptor.schema
        keys = () if schema is None else schema.keys
        computed = {} if schema is None else dict(schema.computed)
        rows = [
            Row(
                *(name, str(data_type.nullable()), data_type.is_nullable and name not in keys),
                f"PRI({', '.join(keys)})" if name in keys else None,
                f"AS {computed[name]}" if name in computed else None,
                _watermark_of(schema, name),
            )
            for name, data_type in table.columns
        ]
        names = ("name", "type", "null", "key", "extras", "watermark")
        columns = [Column(name, BOOLEAN if name == "null" else text) for name in names]
        return TableResult(tuple(columns), rows)

    def _create_view(self, statement: sql.CreateView) -> None:
        table = self.table_of(statement.query)
        if statement.columns:
            table = table.alias(*statement.columns)
        names = [each.name for each in table.columns]
        query = expanded(
            statement.query, lambda path: [each.name for each in self.from_path(path).columns]
        )
        definition = sql.create_view_text(statement, names, query)
        self._add(replace(table, path=statement.path, definition=definition), "execute_sql")

    def _create(self, statement: sql.CreateTable) -> None:
        descriptor = statement.descriptor
        if statement.like is not None:
            other = self.from_path(statement.like.path).descriptor
            if other is None or other.schema is None:
                raise GraphError(
                    f"table '{statement.path}': '{statement.like.path}' is a view; LIKE takes a table"
                )
            descriptor = described_like(statement.path, descriptor, statement.like, other)
        if not (statement.if_not_exists and statement.path in self._tables):
            self._add(self._described(statement.path, descriptor, "execute_sql"), "execute_sql")

    def _add(self, table: Table, call: str) -> None:
        if table.path in self._tables:
            raise GraphError(f"{at_call(call)}: there is a table '{table.path}' already")
        self._tables[table.path] = table

    def _described(self, path: str, descriptor: TableDescriptor, call: str) -> Table:
        if descriptor.connector not in KNOWN:
            raise unknown_connector(descriptor.connector, sorted(KNOWN), "read or written")
        schema = descriptor.schema
        if schema is None or not (schema.columns or schema.metadata):
            raise GraphError(
                f"{at_call(call)}: the table '{path}' has no columns; give it a schema"
            )
        values = {
            name: wire_value(place, name, data_type, descriptor)
            for place, (name, data_type) in enumerate(schema.columns)
        }
        first = len(schema.columns)
        values |= {
            each.name: Typed(f"row[{first + place}]", each.data_type)
            for place, each in enumerate(schema.metadata)
        }
        columns, texts = _declared(schema, values, f"table '{path}'")
        return Table(
            path, descriptor, columns, lambda: self._read(path, descriptor, columns, texts), self
        )

    def _read(
        self,
        path: str,
        descriptor: TableDescriptor,
        columns: tuple[Column, ...],
        values: dict[str, Typed],
    ) -> DataStream[Row]:
        from opchain.runtime.types.types import Types  # noqa: PLC0415 - loaded when a stream is made

        if self._sources is not None and path in self._sources:
            return self._sources[path]
        assert descriptor.schema is not None
        source = table_source(descriptor, path)
        strategy = _strategy(descriptor.schema, values, path) or WatermarkStrategy.no_watermarks()
        timeout_ms = read_settings(self._environment.get_configuration()).table_idle_timeout_ms
        if timeout_ms:
            strategy = strategy.with_idleness(Duration.of_millis(timeout_ms))
        of = Types.ROW_NAMED(source.names, source.types) if source.gives_rows else None
        stream: DataStream[Any] = self._environment.from_source(source.source, strategy, path, of)
        plain = [f"row[{place}]" for place in range(len(columns))]
        if [values[each.name].text for each in columns] != plain:
            stream = stream.map(
                projection(columns, [values[each.name] for each in columns]), row_type(columns)
            )
        if self._sources is not None:
            self._sources[path] = stream
        return stream

    # Queries

    def table_of(self, tree: Any) -> Table:
        """The result of a parsed query."""
        tables = self._tables_of(tree)
        found = self._by_streams(without_ctes(tree))
        if found is None:
            return self._by_spark(tree, tables)
        self._anonymous += 1
        return replace(found, path=f"query${self._anonymous}")

    def _by_streams(self, tree: Any) -> Table | None:
        """The result of a query that streams can compute; None if it needs Spark SQL."""
        kind = type(tree).__name__
        if kind == "Subquery" and tree.this is not None:
            return self._by_streams(tree.this)
        if kind == "Values":
            return self._constant(values_of(tree))
        if kind == "Union" and not tree.args.get("distinct") and not tree.args.get("order"):
            left, right = self._by_streams(tree.left), self._by_streams(tree.right)
            return None if left is None or right is None else self._union(left, right)
        return self._select(tree) if is_scalar(tree) else None

    def _select(self, tree: Any) -> Table | None:
        """The result of a scalar SELECT; None if the query in FROM needs Spark SQL."""
        source = source_of(tree)
        if source is None:
            return self._constant([selected(tree, (), ())])
        is_table = type(source).__name__ == "Table"
        below = self.from_path(path_of(source)) if is_table else self._by_streams(source)
        if below is None:
            return None
        below = replace(below, columns=renamed(source, below.columns))
        names = [source.alias_or_name]
        values = selected(tree, below.columns, names)
        columns = tuple(Column(name, typed.data_type) for name, typed in values)

        def stream() -> DataStream[Any]:
            rows = self.to_data_stream(below) if is_table else below.stream()
            where = tree.args.get("where")
            if where is not None:
                test = Compiler(by_position(below.columns), names, "WHERE").compile(where.this)
                shown = where.this.sql(dialect="flink")
                rows = rows.filter(RowPredicate(test.text, shown)).name(f"where {shown}")
            if [(name, typed.text) for name, typed in values] != [
                (each.name, f"row[{place}]") for place, each in enumerate(below.columns)
            ]:
                rows = rows.map(
                    projection(columns, [typed for _, typed in values]), row_type(columns)
                ).name(f"select {', '.join(each.name for each in columns)}")
            return rows

        return Table("", None, columns, stream, self)

    def _union(self, left: Table, right: Table) -> Table:
        """The result of UNION ALL. Its columns have types that the values of both queries fit into.

        Raises:
            GraphError: The queries have other numbers of columns, or other kinds of types.
        """
        where = f"{at_call('sql_query')}: UNION ALL"
        if len(left.columns) != len(right.columns):
            raise GraphError(
                f"{where} of {len(left.columns)} and {len(right.columns)} columns; select as many in both queries"
            )
        columns = tuple(
            Column(one.name, _type_of_column([one.data_type, other.data_type], where, one.name))
            for one, other in zip(left.columns, right.columns, strict=True)
        )

        def stream() -> DataStream[Any]:
            one, other = (_with_types(table, columns) for table in (left, right))
            return one.union(other)

        return Table("", None, columns, stream, self)

    def _constant(self, rows: Sequence[Sequence[tuple[str, Typed]]]) -> Table:
        """The result of VALUES, or of a SELECT without FROM."""
        where = f"{at_call('sql_query')}: VALUES"
        if len({len(row) for row in rows}) > 1:
            raise GraphError(f"{where} has rows of {len(rows[0])} and of other numbers of columns")
        columns = tuple(
            Column(name, _type_of_values([typed for _, typed in entries], where, name))
            for entries in zip(*rows, strict=True)
            for name in [entries[0][0]]
        )
        records = [
            projection(columns, _cast_to(columns, [typed for _, typed in row]), "VALUES")(())
            for row in rows
        ]
        return Table(
            "",
            None,
            columns,
            lambda: self._environment.from_collection(records, row_type(columns)).name("VALUES"),
            self,
        )

    def _by_spark(self, tree: Any, tables: Sequence[str]) -> Table:
        """A query over bounded tables, in Spark SQL."""
        streams = {path: self.to_data_stream(self.from_path(path)) for path in tables}
        part, instead = unbounded_part(tree)
        for path, stream in streams.items():
            if never_ends(stream.transformation):
                raise UnsupportedFeatureError(
                    f"{at_call('sql_query')}: {part} over the unbounded table '{path}' is not supported: results would "
                    f"change with each row. Convert the table with to_data_stream(), and use {instead} of the "
                    "DataStream API"
                )
        runs = f"{at_call('sql_query')}: {part} runs in Spark SQL"
        if read_settings(self._environment.get_configuration()).target == "local":
            raise UnsupportedFeatureError(
                f"{runs}, and this job runs in process (execution.target = local); run it on Spark, or use {instead} of "
                "the DataStream API"
            )
        renamed = tree.copy()
        frames = {
            path: stream.to_dataframe(spark_schema(self.from_path(path).columns))
            for path, stream in streams.items()
        }
        if any(isinstance(frame, PlannedDataFrame) for frame in frames.values()):
            raise UnsupportedFeatureError(
                f"{runs}, and no Spark session is running, because the program is only planned; run the program"
            )
        names = {}
        for path, frame in frames.items():
            self._anonymous += 1
            names[path] = f"opchain_{self._anonymous}"
            frame.createOrReplaceTempView(names[path])
        exp = sqlglot().exp
        for table in renamed.find_all(exp.Table):
            if path_of(table) in names:
                alias = table.alias_or_name
                table.set("this", parsed(names[path_of(table)], "a name").this)
                table.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
        if not frames:
            raise UnsupportedFeatureError(f"{at_call('sql_query')}: the query reads no table")
        session = next(iter(frames.values())).sparkSession
        schema = {names[path]: spark_types(self.from_path(path).columns) for path in frames}
        text = for_spark(renamed, schema, at_call("sql_query")).sql(dialect="spark")
        with _set(session, "spark.sql.timestampType", "TIMESTAMP_NTZ"):
            frame = session.sql(text)
        stream = self._environment.from_dataframe(frame, source_name="Spark SQL")
        columns = tuple(
            Column(each.name, type_of_spark(each.dataType.simpleString())) for each in frame.schema
        )
        return Table("Spark SQL", None, columns, lambda: stream, self)

    def _tables_of(self, tree: Any) -> list[str]:
        defined = {each.alias for each in tree.find_all(sqlglot().exp.CTE)}
        paths = [path_of(each) for each in tree.find_all(sqlglot().exp.Table)]
        found = list(dict.fromkeys(path for path in paths if path not in defined))
        for path in found:
            self.from_path(path)
        return found

    def write(self, path: str, columns: Sequence[str], table: Table) -> None:
        """Adds the operators of INSERT INTO.

        Raises:
            GraphError: The columns of the query do not fit.
        """
        sink = self.from_path(path)
        if sink.descriptor is None or sink.descriptor.schema is None:
            raise GraphError(f"INSERT INTO {path}: '{path}' is a view; insert into a table")
        wanted = [Column(*each) for each in sink.descriptor.schema.columns]
        written = [each.name for each in sink.descriptor.schema.metadata if not each.is_virtual]
        if written:
            raise UnsupportedFeatureError(
                f"INSERT INTO {path}: the metadata column '{written[0]}' can't be written; declare it VIRTUAL, or use "
                "a KafkaSink with a record serializer"
            )
        given = [Typed(f"row[{place}]", each.data_type) for place, each in enumerate(table.columns)]
        names = list(columns) or [each.name for each in wanted]
        if len(names) != len(table.columns):
            raise GraphError(
                f"INSERT INTO {path}: the query has {len(table.columns)} columns "
                f"({', '.join(each.name for each in table.columns)}), and the table expects {len(names)} "
                f"({', '.join(names)})"
            )
        values = dict(zip(names, given, strict=True))
        texts: dict[str, Typed] = {}
        for name, data_type in wanted:
            value = values.pop(name, Typed("None", data_type))
            if not _fits(value.data_type, data_type):
                raise GraphError(
                    f"INSERT INTO {path}: column '{name}' is {data_type}, and the query gives {value.data_type}; "
                    f"write CAST(... AS {data_type.nullable()})"
                )
            texts[name] = cast(value, data_type)
            if value.data_type.is_nullable and not data_type.is_nullable:
                texts[name] = Typed(f"not_null({texts[name].text}, {name!r})", data_type)
        if values:
            raise GraphError(f"INSERT INTO {path}: there is no column '{min(values)}' to write")
        stream = self.to_data_stream(table)
        if [each.text for each in texts.values()] != [
            f"row[{n}]" for n in range(len(table.columns))
        ] or [each.name for each in table.columns] != [each.name for each in wanted]:
            stream = stream.map(projection(wanted, list(texts.values())), row_type(wanted))
        write_table(stream, sink.descriptor, path)

    def write_all(self, inserts: Iterable[tuple[str, Sequence[str], Table]]) -> None:
        """Adds the operators of INSERT INTO statements, which share the sources of tables."""
        self._sources = {}
        try:
            for insert in inserts:
                self.write(*insert)
        finally:
            self._sources = None

    @property
    def stream_environment(self) -> StreamExecutionEnvironment:
        """The environment of the streams."""
        return self._environment


class StatementSet:
    """INSERT INTO statements that become one job. A table that they share is read once. Flink: StatementSet."""

    def __init__(self, tables: StreamTableEnvironment) -> None:
        self._tables = tables
        self._inserts: list[tuple[str, Sequence[str], Table]] = []

    def add_insert_sql(self, stmt: str) -> StatementSet:
        """Adds an INSERT INTO."""
        statement = sql.statement_of(checked(stmt, str, "add_insert_sql", "the statement"))
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
        self._inserts.append((plain_path(target), (), table))
        return self

    def add(self, table_pipeline: TablePipeline) -> StatementSet:
        """Adds the INSERT INTO of `Table.insert_into`."""
        each = checked(table_pipeline, TablePipeline, "add", "the pipeline")
        return self.add_insert(each.target, each.table, each.overwrite)

    def add_parsed(self, statement: sql.Insert) -> None:
        """Adds a parsed INSERT INTO."""
        self._inserts.append(
            (statement.path, statement.columns, self._tables.table_of(statement.query))
        )

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plan of the inserts, as `StreamTableEnvironment.explain_sql`.

        Raises:
            GraphError: There are none.
        """
        self._check_inserts("explain")
        return self._tables.plan_of_inserts(self._inserts, extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Prints the plan of the inserts."""
        print(self.explain(*extra_details))  # noqa: T201 - as the name says

    def _check_inserts(self, call: str) -> None:
        if not self._inserts:
            raise GraphError(f"{at_call(call)}: the statement set is empty; add_insert_sql() first")

    def attach_as_datastream(self) -> None:
        """Makes the inserts part of the program, which `env.execute()` runs."""
        self._tables.write_all(self._inserts)
        self._inserts = []

    def execute(self) -> TableResult:
        """Runs the inserts as one job.

        Raises:
            GraphError: There are none.
        """
        self._check_inserts("execute")
        name = "insert-into_" + ",".join(
            f"default_catalog.default_database.{path}" for path, _, _ in self._inserts
        )
        environment = self._tables.stream_environment
        first = len(environment.get_transformations())
        self.attach_as_datastream()
        return TableResult(client=environment.execute_part(first, name))


@contextmanager
def _set(session: SparkSession, key: str, value: str) -> Iterator[None]:
    """Sets a configuration of Spark for as long as a query is analysed."""
    before = session.conf.get(key)
    session.conf.set(key, value)
    try:
        yield
    finally:
        session.conf.set(key, before or "")


def _plan(program: Program, details: Sequence[ExplainDetail]) -> str:
    """A program as text, with Flink's headings."""
    from opchain.compiler.graph.plan import required  # noqa: PLC0415 - plans are seldom shown
    from opchain.compiler.passes.pipeline import compile_program  # noqa: PLC0415 - likewise
    from opchain.compiler.plan.explain import explain  # noqa: PLC0415 - likewise
    from opchain.compiler.plan.flink_json import streaming_plan  # noqa: PLC0415 - likewise

    text = f"== Optimized Execution Plan ==\n{explain(program, 'job-graph')}"
    if ExplainDetail.JSON_EXECUTION_PLAN not in details:
        return text
    graph = required(compile_program(program, "stream-graph").stream_graph)
    return f"{text}\n== Physical Execution Plan ==\n{json.dumps(streaming_plan(graph), indent=2)}\n"


def _watermark_of(schema: Schema | None, name: str) -> str | None:
    is_time = schema is not None and schema.time is not None and schema.time.column == name
    return schema.time.expression if is_time else None  # type: ignore[union-attr]  # checked before


def _time_column(schema: Schema, where: str) -> Column:
    """The metadata column of a stream: the timestamps of its records.

    Raises:
        GraphError: The column is another one.
    """
    first, *others = schema.metadata
    if others or first.key != "rowtime" or not first.data_type.name.startswith("TIMESTAMP"):
        raise GraphError(
            f"{where}: a stream only has the metadata column 'rowtime' of type TIMESTAMP_LTZ(3), the timestamps of its "
            f"records; '{(others or [first])[0].name}' is another one"
        )
    return Column(first.name, first.data_type)


def _declared(
    schema: Schema, values: dict[str, Typed], where: str
) -> tuple[tuple[Column, ...], dict[str, Typed]]:
    """All columns in order, and the expression of each."""
    values = dict(values)
    for name, expression in schema.computed:
        compiler = Compiler(values, (), f"{where}, column '{name}'")
        values[name] = compiler.compile(parsed(expression, f"{where}: the column '{name}'"))
    order = schema.order or tuple(values)
    return tuple(Column(name, values[name].data_type) for name in order), values


def _strategy(schema: Schema, values: dict[str, Typed], path: str) -> WatermarkStrategy[Any] | None:
    """WATERMARK FOR as a strategy of the source: each split has its own watermark.

    Raises:
        GraphError: The column is not a TIMESTAMP.
        UnsupportedFeatureError: The expression is not `column - INTERVAL ...`.
    """
    if schema.time is None:
        return None
    column, expression = schema.time
    value = values.get(column)
    if value is None or not value.data_type.name.startswith("TIMESTAMP"):
        found = "missing" if value is None else str(value.data_type)
        raise GraphError(
            f"table '{path}': WATERMARK FOR {column} needs a column of type TIMESTAMP(3) or TIMESTAMP_LTZ(3), and it is "
            f"{found}; compute one: ts AS TO_TIMESTAMP_LTZ(millis, 3)"
        )
    tree = parsed(expression, f"table '{path}': the watermark")
    delay_ms = 0
    if (
        type(tree).__name__ == "Sub"
        and type(tree.expression).__name__ == "Interval"
        and tree.this.name == column
    ):
        compiled = Compiler(values, (), f"table '{path}'").compile(tree.expression)
        delay_ms = RowExpression(f"{compiled.text}.total_seconds()", expression)(()) * 1000
    elif not (type(tree).__name__ == "Column" and tree.name == column):
        raise UnsupportedFeatureError(
            f"table '{path}': WATERMARK FOR {column} AS {expression} is not supported; write {column} - INTERVAL '5' "
            "SECOND, or use assign_timestamps_and_watermarks() with a generator of your own"
        )
    # Flink's watermark is the expression itself; a strategy's is one millisecond less.
    lateness = Duration.of_millis(max(0, int(delay_ms) - 1))
    assigner: Any = EventTime(value.text, column)
    return WatermarkStrategy.for_bounded_out_of_orderness(lateness).with_timestamp_assigner(
        assigner
    )


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
        return _NUMBERS.index(given.name) <= _NUMBERS.index(wanted.name)
    return given.name.startswith("TIMESTAMP") and wanted.name.startswith("TIMESTAMP")


def _fields_of(
    stream: DataStream[Any], schema: Schema | None, call: str
) -> tuple[tuple[Column, ...], bool]:
    """The fields of a stream's records as columns, and whether its records are single values.

    A field has the type that the schema declares, or else that of the stream.
    """
    from opchain.runtime.types.record_types import RowTypeInfo, TupleTypeInfo  # noqa: PLC0415 - likewise

    of = stream.get_type()
    declared = dict(() if schema is None else schema.columns)
    if isinstance(of, RowTypeInfo):
        names, types, is_atomic = list(of.field_names or ()), list(of.field_types), False
    elif isinstance(of, TupleTypeInfo):
        types, is_atomic = list(of.field_types), False
        names = [f"f{number}" for number in range(len(types))]
    else:
        names, types, is_atomic = list(declared)[:1] or ["f0"], [of], True
    unknown = [name for name in declared if name not in names]
    if unknown:
        hint = "; declare output_type=Types.ROW_NAMED([...], [...]) on the operator"
        raise GraphError(
            f"{at_call(call)}: '{stream.transformation.name}' ({stream.transformation.call_site}) has no field "
            f"'{unknown[0]}'; its fields are {', '.join(names)}{hint if is_atomic else ''}"
        )
    fields = []
    for name, field_type in zip(names, types, strict=True):
        found = declared.get(name) or type_of_stream(field_type)
        if found is None:
            raise GraphError(
                f"{at_call(call)}: the type of the column '{name}' of '{stream.transformation.name}' "
                f"({stream.transformation.call_site}) is unknown; declare output_type=Types.ROW_NAMED([...], [...]) on "
                "the operator, or pass a Schema"
            )
        fields.append(Column(name, found))
    return tuple(fields), is_atomic


def _fields_of_element(element: Any, schema: Any) -> tuple[Any, ...]:
    """The values of one row of `from_elements`."""
    if isinstance(element, dict):
        names = [each.name for each in schema.fields] if isinstance(schema, RowType) else schema
        return tuple(map(element.get, names))
    return tuple(element) if isinstance(element, (tuple, list, Row)) else (element,)


def _columns_of_elements(
    rows: Sequence[tuple[Any, ...]], schema: Any, call: str
) -> tuple[Column, ...]:
    if isinstance(schema, RowType):
        return tuple(Column(each.name, each.data_type) for each in schema.fields)
    if isinstance(schema, DataType):
        return (Column("f0", schema),)
    if not rows:
        raise GraphError(
            f"{at_call(call)}: there are no rows, so the types are unknown; pass DataTypes.ROW([...])"
        )
    names = list(schema or names_of_fields(rows[0]))
    columns = []
    for place, name in enumerate(names):
        values = [row[place] for row in rows if place < len(row) and row[place] is not None]
        if not values:
            raise GraphError(
                f"{at_call(call)}: column '{name}' has no values, so its type is unknown; pass DataTypes.ROW([...])"
            )
        columns.append(Column(name, type_of_value(values[0])))
    return tuple(columns)


def _type_of_values(values: Sequence[Typed], where: str, name: str) -> DataType:
    """The type of a column of VALUES, in which NULL has any type."""
    types = [each.data_type for each in values if each.text != "None"]
    of = _type_of_column(types or [values[0].data_type], where, name)
    return of if len(types) == len(values) else of.nullable()


def _type_of_column(types: Sequence[DataType], where: str, name: str) -> DataType:
    """The type of a column whose values have one of several types. It is nullable if one of them is."""
    of = common_type(types, f"{where}: column '{name}' is")
    return of.nullable() if any(each.is_nullable for each in types) else of.not_null()


def _cast_to(columns: Sequence[Column], values: Sequence[Typed]) -> list[Typed]:
    """The values of a row, in the types of the columns."""
    return [fitted(value, column.data_type) for value, column in zip(values, columns, strict=True)]


def _with_types(table: Table, columns: Sequence[Column]) -> DataStream[Any]:
    """The rows of a table in the types of other columns."""
    own = list(by_position(table.columns).values())
    values = _cast_to(columns, own)
    if [each.text for each in values] == [each.text for each in own]:
        return table.stream()
    return table.stream().map(projection(columns, values), row_type(columns)).name("cast")


for _name in (
    *("create_catalog", "register_catalog", "get_catalog"),
    *("load_module", "unload_module", "use_modules"),
    *("create_temporary_function", "create_temporary_system_function", "drop_function"),
    *("create_java_function", "create_java_temporary_function", "drop_temporary_function"),
    *("create_java_temporary_system_function", "drop_temporary_system_function"),
    *(
        "compile_plan_sql",
        "load_plan",
        "execute_plan",
    ),
    "from_changelog_stream",
    *("list_functions", "list_user_defined_functions", "list_modules", "list_full_modules"),
    *("create_model", "create_temporary_model", "drop_model", "drop_temporary_model"),
    *("list_models", "list_temporary_models", "list_materialized_tables"),
):
    setattr(
        StreamTableEnvironment,
        _name,
        refuses(
            f"StreamTableEnvironment.{_name}",
            "describe tables with CREATE TABLE, and compute with SQL's scalar functions or the DataStream API",
        ),
    )

_CREATE_TABLE = "describe the table with CREATE TABLE in execute_sql()"
_CALLED_IN_MAP = "call the function in a map() of the DataStream API"
for _name, _instead in {
    "connect": _CREATE_TABLE,
    "execute": "leave it out; execute_sql() and Table.execute_insert() run a job, env.execute() runs the streams",
    "insert_into": "call Table.execute_insert()",
    "register_function": _CALLED_IN_MAP,
    "register_java_function": _CALLED_IN_MAP,
    "register_table": "call create_temporary_view()",
    "register_table_sink": _CREATE_TABLE,
    "register_table_source": _CREATE_TABLE,
    "scan": "call from_path()",
    "sql_update": "call execute_sql()",
}.items():
    setattr(
        StreamTableEnvironment, _name, refuses(f"StreamTableEnvironment.{_name}", _instead, removed)
    )
