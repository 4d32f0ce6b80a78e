"""StreamTableEnvironment: tables of connectors, and SQL with scalar expressions and windows.

A statement compiles to calls of the DataStream API: a table is a source, a view is a map and a filter, GROUP BY over
windows is a window operator, INSERT INTO is a sink. Other queries over bounded tables run in Spark SQL.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from itertools import count
from typing import TYPE_CHECKING, Any

from opchain.compiler.dsl.argument_checks import at_call, checked, refused, refuses, removed
from opchain.compiler.dsl.captured_functions import NotCapturable
from opchain.compiler.dsl.data_stream import DataStream
from opchain.compiler.dsl.environment import StreamExecutionEnvironment
from opchain.compiler.graph.transformation import user_call_site
from opchain.compiler.settings.settings_reader import read_settings
from opchain.compiler.table import sql
from opchain.compiler.table.calculation import projected
from opchain.compiler.table.connectors import KNOWN, table_source, unknown_connector
from opchain.compiler.table.connectors.row_types import row_type, wire_values
from opchain.compiler.table.data_types import DataType, DataTypes
from opchain.compiler.table.explain import plan_text, shown
from opchain.compiler.table.expressions import Column, Typed, by_position, cast
from opchain.compiler.table.like import described_like
from opchain.compiler.table.planner import Planner
from opchain.compiler.table.queries import expanded, projection
from opchain.compiler.table.schema_resolver import (
    SOURCE_WATERMARK,
    columns_of_elements,
    columns_of_stream,
    named_by,
    resolved_columns,
    rows_of_stream,
    rowtime_column,
    values_of_element,
    watermark_strategy,
)
from opchain.compiler.table.settings import RUNTIME_MODE, EnvironmentSettings, TableConfig
from opchain.compiler.table.sql import plain_path
from opchain.compiler.table.statement_set import StatementSet
from opchain.compiler.table.table import Table
from opchain.compiler.table.table_descriptor import Schema, TableDescriptor
from opchain.compiler.table.table_result import TableResult, without_names
from opchain.compiler.table.user_functions import (
    BUILT_IN_FUNCTIONS,
    UserDefinedScalarFunctionWrapper,
)
from opchain.runtime.configuration.configuration import Configuration
from opchain.runtime.errors import GraphError, short_repr
from opchain.runtime.functions.sql import WithTimestamp
from opchain.runtime.time import Duration
from opchain.runtime.types.row import Row
from opchain.runtime.watermarks.strategy import WatermarkStrategy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opchain.compiler.table.explain import ExplainDetail
    from opchain.runtime.types.type_information import TypeInformation


class TableEnvironment(NotCapturable):
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
        self._functions: dict[str, UserDefinedScalarFunctionWrapper] = {}
        self._system_functions: dict[str, UserDefinedScalarFunctionWrapper] = {}
        self.numbers = count(1)
        self.planner = Planner(self)
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
        name = f"UnnamedTable${next(self.numbers)}"
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
            meant = f"did you mean '{close[0]}'? There" if close else "there"
            raise GraphError(
                f"there is no table '{path}' ({user_call_site()}); {meant} are: {known}"
            )
        return table

    def from_descriptor(self, descriptor: TableDescriptor) -> Table:
        """A table without a name."""
        call = "from_descriptor"
        checked(descriptor, TableDescriptor, call, "the descriptor")
        path = f"*anonymous_{descriptor.connector}${next(self.numbers)}*"
        return self._described(path, descriptor, call)

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
        rows = [values_of_element(each, schema) for each in elements]
        columns = columns_of_elements(rows, schema, call)
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
        """A stream as a table: a column for each field of its declared type, or as a Schema or expressions say.

        A stream without a declared type has one column of type RAW. Expressions name fields, such as `col("f0")` or
        `col("f0").alias("a")`, or give all fields new names in order. `col("t").rowtime` is the timestamp of a record.

        Raises:
            GraphError: The stream has no such field, or the type of a field is unknown.
        """
        call = "from_data_stream"
        checked(data_stream, DataStream, call, "the stream")
        schema, expressions = None, fields_or_schema
        if len(expressions) == 1 and isinstance(expressions[0], Schema):
            schema, expressions = expressions[0], ()
        fields, is_atomic = columns_of_stream(data_stream, schema, call)
        stream = rows_of_stream(data_stream, fields, is_atomic=is_atomic)
        name = data_stream.transformation.name
        if expressions:
            columns, values = named_by(expressions, fields, at_call(call))
            if any(each.text == f"row[{len(fields)}]" for each in values):
                time = Column("rowtime", DataTypes.TIMESTAMP(3))
                stream = stream.process(WithTimestamp("TIMESTAMP"), row_type((*fields, time)))
            stream = projected(stream, fields, columns, values)
            return Table(name, None, columns, lambda: stream, self)
        if schema is None:
            return Table(name, None, fields, lambda: stream, self)
        order = schema.order or tuple(each for each, _ in schema.columns)
        if not schema.columns:
            order = (*(each.name for each in fields), *order)
        if schema.metadata:
            fields = (*fields, rowtime_column(schema, f"{at_call(call)}, the schema of '{name}'"))
            stream = stream.process(WithTimestamp(fields[-1].data_type.name), row_type(fields))
        columns, texts = resolved_columns(
            replace(schema, order=order), by_position(fields), f"the schema of '{name}'"
        )
        stream = projected(stream, fields, columns, [texts[each.name] for each in columns])
        has_own = schema.time is None or schema.time.expression.upper() == SOURCE_WATERMARK
        strategy = None if has_own else watermark_strategy(schema, by_position(columns), name)
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

    # Functions

    @property
    def functions(self) -> dict[str, UserDefinedScalarFunctionWrapper]:
        """The functions that queries call by name. Only a system function replaces a function of SQL."""
        own = {
            name: function
            for name, function in self._functions.items()
            if name.upper() not in BUILT_IN_FUNCTIONS
        }
        return {**own, **self._system_functions}

    def create_temporary_function(self, path: str, function: Any) -> None:
        """Registers a function that `udf` returned, under a name that SQL and `call` use.

        A system function or a function of SQL with this name is called instead.

        Raises:
            GraphError: There is a function of this name.
        """
        self._register(self._functions, "create_temporary_function", path, function)

    def create_temporary_system_function(self, name: str, function: Any) -> None:
        """Registers a function that `udf` returned. It replaces a function of SQL with its name.

        Raises:
            GraphError: There is a system function of this name.
        """
        self._register(self._system_functions, "create_temporary_system_function", name, function)

    @staticmethod
    def _register(
        functions: dict[str, UserDefinedScalarFunctionWrapper], call: str, path: str, function: Any
    ) -> None:
        name = plain_path(checked(path, str, call, "the function's name")).lower()
        if not isinstance(function, UserDefinedScalarFunctionWrapper):
            raise TypeError(
                f"{at_call(call)} got {short_repr(function)}; it takes udf(..., result_type=...). Table functions and "
                "aggregate functions are not supported"
            )
        if name in functions:
            raise GraphError(
                f"{at_call(call)}: there is a function '{path}' already; drop it first"
            )
        functions[name] = function

    def drop_temporary_function(self, path: str) -> bool:
        """Drops a function; False if it does not exist."""
        return self._functions.pop(plain_path(path).lower(), None) is not None

    def drop_temporary_system_function(self, name: str) -> bool:
        """Drops a system function; False if it does not exist."""
        return self._system_functions.pop(name.lower(), None) is not None

    def list_user_defined_functions(self) -> list[str]:
        """The names of the functions, in order."""
        return sorted([*self._functions, *self._system_functions])

    def statement_of(self, text: str) -> Any:
        """A parsed statement, which may call the functions."""
        return sql.statement_of(text, frozenset(map(str.upper, self.functions)))

    # SQL

    def execute_sql(self, stmt: str) -> TableResult:
        """Runs a statement: CREATE, DROP, INSERT INTO, SELECT, SET, SHOW TABLES or DESCRIBE.

        INSERT INTO and SELECT start a job. Needs sqlglot: `pip install 'opchain[sql]'`.

        Raises:
            GraphError: The statement is wrong.
            UnsupportedFeatureError: It needs more than scalar expressions, WHERE and windows of an unbounded table.
        """
        statement = self.statement_of(checked(stmt, str, "execute_sql", "the statement"))
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
            return self.result_of(self.planner.table_of(statement.query))
        elif isinstance(statement, sql.Use):
            pass
        elif isinstance(statement, sql.Set):
            self._environment.get_configuration().set_string(statement.key, statement.value)
        else:
            return shown(self, statement)
        return TableResult()

    def sql_query(self, query: str) -> Table:
        """The result of a query, as a table.

        Raises:
            GraphError: The query is wrong.
            UnsupportedFeatureError: It needs more than scalar expressions, WHERE and windows of an unbounded table.
        """
        statement = self.statement_of(checked(query, str, "sql_query", "the query"))
        if not isinstance(statement, sql.Select):
            raise GraphError(
                f"{at_call('sql_query')} takes a SELECT; use execute_sql() for other statements"
            )
        return self.planner.table_of(statement.query)

    def explain_sql(self, stmt: str, *extra_details: ExplainDetail) -> str:
        """The plan of a query or of INSERT INTO, as `opchain plan` prints it. Flink prints Calcite's plan.

        With `ExplainDetail.JSON_EXECUTION_PLAN`, the plan as JSON follows.

        Raises:
            GraphError: It is another statement.
        """
        statement = self.statement_of(checked(stmt, str, "explain_sql", "the statement"))
        return self.plan_of_statement(statement, extra_details, "explain_sql")

    def plan_of_statement(self, statement: Any, details: Sequence[ExplainDetail], call: str) -> str:
        """The plan of a parsed statement.

        Raises:
            GraphError: It is neither a SELECT nor an INSERT INTO.
        """
        if isinstance(statement, sql.Insert):
            statements = StatementSet(self)
            statements.add_parsed(statement)
            return statements.explain(*details)
        if not isinstance(statement, sql.Select):
            raise GraphError(f"{at_call(call)} explains a SELECT or an INSERT INTO")
        return self.plan_of(self.planner.table_of(statement.query), details)

    def plan_of(self, table: Table, details: Sequence[ExplainDetail]) -> str:
        """The plan of a query."""
        earlier = self._environment.get_transformations()
        end = self.to_data_stream(table).transformation
        return plan_text(self._environment.detached_part(earlier, end), details)

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
        earlier = self._environment.get_transformations()
        stream = self.to_data_stream(table)
        rows = stream.collect_async().converted_by(without_names)
        client = self._environment.execute_part(earlier, "collect")
        mode = self._environment.get_configuration().get_string(RUNTIME_MODE, "STREAMING")
        return TableResult(table.columns, rows, client, shows_kinds=mode.upper() != "BATCH")

    def _create_view(self, statement: sql.CreateView) -> None:
        table = self.planner.table_of(statement.query)
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
        physical = [name for name, _ in schema.columns]
        for key in descriptor.partition_keys:
            if key not in physical:
                raise GraphError(
                    f"{at_call(call)}: the table '{path}' is PARTITIONED BY '{key}', which is none of its physical "
                    f"columns: {', '.join(physical)}"
                )
        values = wire_values(descriptor)
        first = len(schema.columns)
        values |= {
            each.name: Typed(f"row[{first + place}]", each.data_type)
            for place, each in enumerate(schema.metadata)
        }
        columns, texts = resolved_columns(schema, values, f"table '{path}'")
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
        strategy = (
            watermark_strategy(descriptor.schema, values, path) or WatermarkStrategy.no_watermarks()
        )
        timeout_ms = read_settings(self._environment.get_configuration()).table_idle_timeout_ms
        if timeout_ms:
            strategy = strategy.with_idleness(Duration.of_millis(timeout_ms))
        of = Types.ROW_NAMED(source.names, source.types) if source.gives_rows else None
        stream: DataStream[Any] = self._environment.from_source(source.source, strategy, path, of)
        given = [Column(name, values[name].data_type) for name in source.names]
        stream = projected(stream, given, columns, [values[each.name] for each in columns])
        if self._sources is not None:
            self._sources[path] = stream
        return stream

    @contextmanager
    def shared_sources(self) -> Iterator[None]:
        """Within it, a table has one source, however often it is read."""
        self._sources = {}
        try:
            yield
        finally:
            self._sources = None

    @property
    def stream_environment(self) -> StreamExecutionEnvironment:
        """The environment of the streams."""
        return self._environment


for _name in (
    *("create_catalog", "register_catalog", "get_catalog"),
    *("load_module", "unload_module", "use_modules"),
    *("drop_function", "create_java_function", "create_java_temporary_function"),
    "create_java_temporary_system_function",
    *(
        "compile_plan_sql",
        "load_plan",
        "execute_plan",
    ),
    "from_changelog_stream",
    *("list_functions", "list_modules", "list_full_modules"),
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
_CREATE_FUNCTION = "call create_temporary_function() with a udf(...)"
for _name, _instead in {
    "connect": _CREATE_TABLE,
    "execute": "leave it out; execute_sql() and Table.execute_insert() run a job, env.execute() runs the streams",
    "insert_into": "call Table.execute_insert()",
    "register_function": _CREATE_FUNCTION,
    "register_java_function": _CREATE_FUNCTION,
    "register_table": "call create_temporary_view()",
    "register_table_sink": _CREATE_TABLE,
    "register_table_source": _CREATE_TABLE,
    "scan": "call from_path()",
    "sql_update": "call execute_sql()",
}.items():
    setattr(
        StreamTableEnvironment, _name, refuses(f"StreamTableEnvironment.{_name}", _instead, removed)
    )
