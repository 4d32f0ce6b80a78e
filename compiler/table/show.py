"""The results of SHOW, DESCRIBE and EXPLAIN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.compiler.table import sql
from opchain.compiler.table.data_types import data_type_of
from opchain.compiler.table.explain import ExplainDetail
from opchain.compiler.table.expressions import BOOLEAN, Column
from opchain.compiler.table.schema_resolver import watermark_of
from opchain.compiler.table.table_result import TableResult
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from opchain.compiler.table.stream_table_environment import StreamTableEnvironment


def shown(tables: StreamTableEnvironment, statement: sql.Show | sql.Explain) -> TableResult:
    """The result of SHOW, DESCRIBE or EXPLAIN."""
    text = data_type_of("STRING")
    if isinstance(statement, sql.Explain):
        details = [ExplainDetail[each] for each in statement.details]
        plan = tables.plan_of_statement(statement.statement, details, "execute_sql")
        return TableResult((Column("result", text),), [Row(plan)])
    if statement.what == "CREATE VIEW":
        view = tables.from_path(statement.path)
        if view.definition is None:
            what = "a table" if view.descriptor is not None else "not created by a statement"
            raise UnsupportedFeatureError(
                f"SHOW CREATE VIEW: '{statement.path}' is {what}; DESCRIBE shows its columns"
            )
        return TableResult((Column("result", text),), [Row(view.definition)])
    if statement.what == "CREATE TABLE":
        descriptor = tables.from_path(statement.path).descriptor
        if descriptor is None or descriptor.schema is None:
            raise UnsupportedFeatureError(
                f"SHOW CREATE TABLE: '{statement.path}' is a view; use SHOW CREATE VIEW"
            )
        shown = sql.create_table_text(statement.path, descriptor)
        return TableResult((Column("result", text),), [Row(shown)])
    if statement.what != "COLUMNS":
        title, values = {
            "TABLES": ("table name", tables.list_tables),
            "VIEWS": ("view name", tables.list_views),
            "CATALOGS": ("catalog name", tables.list_catalogs),
            "DATABASES": ("database name", tables.list_databases),
            "CURRENT CATALOG": ("current catalog name", tables.list_catalogs),
            "CURRENT DATABASE": ("current database name", tables.list_databases),
        }[statement.what]
        return TableResult((Column(title, text),), [Row(each) for each in values()])
    table = tables.from_path(statement.path)
    schema = None if table.descriptor is None else table.descriptor.schema
    keys = () if schema is None else schema.keys
    computed = {} if schema is None else dict(schema.computed)
    rows = [
        Row(
            *(name, str(data_type.nullable()), data_type.is_nullable and name not in keys),
            f"PRI({', '.join(keys)})" if name in keys else None,
            f"AS {computed[name]}" if name in computed else None,
            watermark_of(schema, name),
        )
        for name, data_type in table.columns
    ]
    names = ("name", "type", "null", "key", "extras", "watermark")
    columns = [Column(name, BOOLEAN if name == "null" else text) for name in names]
    return TableResult(tuple(columns), rows)
