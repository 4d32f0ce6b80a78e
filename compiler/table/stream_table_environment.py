"""StreamTableEnvironment: where described tables become streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.compiler.dsl.argument_checks import at_call, checked
from opchain.compiler.dsl.environment import StreamExecutionEnvironment
from opchain.compiler.table.datagen import datagen_source
from opchain.compiler.table.refusals import refused, refuses
from opchain.compiler.table.table import Table
from opchain.compiler.table.table_descriptor import TableDescriptor
from opchain.runtime.errors import GraphError
from opchain.runtime.watermarks.strategy import WatermarkStrategy

if TYPE_CHECKING:
    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.runtime.types.row import Row

_SOURCES = {"datagen": datagen_source}
"""The connectors of tables that can be read."""


class StreamTableEnvironment:
    """Tables beside the streams of an environment."""

    def __init__(self, stream_execution_environment: StreamExecutionEnvironment) -> None:
        self._environment = stream_execution_environment
        self._tables: dict[str, Table] = {}
        self._anonymous = 0

    @staticmethod
    def create(
        stream_execution_environment: StreamExecutionEnvironment | None = None,
        environment_settings: Any = None,
    ) -> StreamTableEnvironment:
        """Tables for the streams of an environment; of a new one where none is given.

        Raises:
            UnsupportedFeatureError: There are settings.
        """
        call = "StreamTableEnvironment.create"
        if environment_settings is not None:
            raise refused(
                call, "omit environment_settings, and configure the stream environment instead"
            )
        if stream_execution_environment is None:
            stream_execution_environment = StreamExecutionEnvironment.get_execution_environment()
        checked(stream_execution_environment, StreamExecutionEnvironment, call, "the environment")
        return StreamTableEnvironment(stream_execution_environment)

    def create_temporary_table(self, path: str, descriptor: TableDescriptor) -> None:
        """Keeps a described table under a name.

        Raises:
            GraphError: There is a table of this name, or it has no columns.
            UnsupportedFeatureError: No table of this connector can be read.
        """
        call = "create_temporary_table"
        checked(path, str, call, "the table's name")
        checked(descriptor, TableDescriptor, call, "the descriptor")
        if path in self._tables:
            raise GraphError(f"{at_call(call)}: there is a table '{path}' already")
        self._tables[path] = _checked_table(path, descriptor, call)

    def drop_temporary_table(self, table_path: str) -> bool:
        """Forgets a table; False where there is none."""
        return self._tables.pop(table_path, None) is not None

    def list_temporary_tables(self) -> list[str]:
        """The names of the tables, in order."""
        return sorted(self._tables)

    def from_path(self, path: str) -> Table:
        """A table by its name.

        Raises:
            GraphError: There is none of this name.
        """
        table = self._tables.get(path)
        if table is None:
            known = ", ".join(map(repr, sorted(self._tables))) or "none"
            raise GraphError(
                f"{at_call('from_path')}: there is no table '{path}'; there are: {known}"
            )
        return table

    def from_descriptor(self, descriptor: TableDescriptor) -> Table:
        """A table without a name."""
        call = "from_descriptor"
        checked(descriptor, TableDescriptor, call, "the descriptor")
        self._anonymous += 1
        return _checked_table(
            f"*anonymous_{descriptor.connector}${self._anonymous}*", descriptor, call
        )

    def to_data_stream(self, table: Table) -> DataStream[Row]:
        """The table's rows, as Row objects with the columns' names.

        Raises:
            ValueError: The connector's options make no sense.
        """
        from opchain.runtime.types.types import Types  # noqa: PLC0415 - loaded when a stream is made

        checked(table, Table, "to_data_stream", "the table")
        descriptor = table.descriptor
        assert descriptor.schema is not None
        names, types = zip(*descriptor.schema.columns, strict=True)
        try:
            source = _SOURCES[descriptor.connector](descriptor)
        except ValueError as error:
            raise ValueError(
                f"{at_call('to_data_stream')}, table '{table.path}': {error}"
            ) from None
        return self._environment.from_source(
            source,
            WatermarkStrategy.no_watermarks(),
            table.path,
            Types.ROW_NAMED(list(names), [each.type_information() for each in types]),
        )


for _name in (
    *("create_table", "create_view", "create_temporary_view", "create_catalog", "use_catalog"),
    *("register_catalog", "get_catalog", "use_database", "load_module", "unload_module"),
    *("create_temporary_function", "create_temporary_system_function", "drop_function"),
    *("create_java_function", "create_java_temporary_function", "drop_temporary_function"),
    *("create_java_temporary_system_function", "drop_temporary_system_function", "use_modules"),
    *("sql_query", "execute_sql", "explain_sql", "create_statement_set", "compile_plan_sql"),
    *("load_plan", "execute_plan", "from_elements", "from_pandas", "from_data_stream"),
    *("from_changelog_stream", "to_changelog_stream", "to_append_stream", "to_retract_stream"),
    *("get_config", "add_python_file", "set_python_requirements", "add_python_archive"),
    *("list_tables", "list_views", "list_catalogs", "list_databases", "list_functions"),
    *("drop_table", "drop_view", "drop_temporary_view", "create_model", "create_temporary_model"),
):
    setattr(
        StreamTableEnvironment,
        _name,
        refuses(
            f"StreamTableEnvironment.{_name}",
            "describe tables with a TableDescriptor, and compute with the DataStream API",
        ),
    )


def _checked_table(path: str, descriptor: TableDescriptor, call: str) -> Table:
    if descriptor.connector not in _SOURCES:
        readable = ", ".join(map(repr, _SOURCES))
        raise refused(
            call,
            f"no table of the connector '{descriptor.connector}' can be read; supported "
            f"connectors: {readable}; otherwise use a "
            "Source and from_source()",
        )
    if descriptor.schema is None or not descriptor.schema.columns:
        raise GraphError(f"{at_call(call)}: the table '{path}' has no columns; give it a schema")
    return Table(path, descriptor)
