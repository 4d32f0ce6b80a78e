"""EXPLAIN, SHOW and DESCRIBE: the plan of a statement as text, and what the environment knows as rows."""

from __future__ import annotations

import enum
import json
from typing import TYPE_CHECKING

from opchain.compiler.table import sql
from opchain.compiler.table.data_types import data_type_of
from opchain.compiler.table.expressions import BOOLEAN, Column
from opchain.compiler.table.schema_resolver import watermark_of
from opchain.compiler.table.table_result import TableResult
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opchain.compiler.graph.plan import Program
    from opchain.compiler.table.stream_table_environment import StreamTableEnvironment


class ExplainDetail(enum.Enum):
    """What a plan shows besides the operators. Only JSON_EXECUTION_PLAN has an effect. Flink: ExplainDetail."""

    ESTIMATED_COST = 0
    CHANGELOG_MODE = 1
    JSON_EXECUTION_PLAN = 2
    PLAN_ADVICE = 3


def plan_text(program: Program, details: Sequence[ExplainDetail]) -> str:
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


def shown(tables: StreamTableEnvironment, statement: sql.Show | sql.Explain) -> TableResult:
    """The result of EXPLAIN, SHOW or DESCRIBE."""
    if isinstance(statement, sql.Explain):
        details = [ExplainDetail[each] for each in statement.details]
        plan = tables.plan_of_statement(statement.statement, details, "execute_sql")
        return _texts("result", [plan])
    if statement.what == "COLUMNS":
        return _columns(tables, statement.path)
    if statement.what == "CREATE VIEW":
        return _texts("result", [_create_view(tables, statement.path)])
    if statement.what == "CREATE TABLE":
        return _texts("result", [_create_table(tables, statement.path)])
    title, values = {
        "TABLES": ("table name", tables.list_tables),
        "VIEWS": ("view name", tables.list_views),
        "CATALOGS": ("catalog name", tables.list_catalogs),
        "DATABASES": ("database name", tables.list_databases),
        "CURRENT CATALOG": ("current catalog name", tables.list_catalogs),
        "CURRENT DATABASE": ("current database name", tables.list_databases),
    }[statement.what]
    return _texts(title, values())


def _texts(title: str, texts: Iterable[str]) -> TableResult:
    """A column of texts."""
    return TableResult((Column(title, data_type_of("STRING")),), [Row(each) for each in texts])


def _create_view(tables: StreamTableEnvironment, path: str) -> str:
    view = tables.from_path(path)
    if view.definition is None:
        what = "a table" if view.descriptor is not None else "not created by a statement"
        raise UnsupportedFeatureError(
            f"SHOW CREATE VIEW: '{path}' is {what}; DESCRIBE shows its columns"
        )
    return view.definition


def _create_table(tables: StreamTableEnvironment, path: str) -> str:
    descriptor = tables.from_path(path).descriptor
    if descriptor is None or descriptor.schema is None:
        raise UnsupportedFeatureError(
            f"SHOW CREATE TABLE: '{path}' is a view; use SHOW CREATE VIEW"
        )
    return sql.create_table_text(path, descriptor)


def _columns(tables: StreamTableEnvironment, path: str) -> TableResult:
    """The columns of a table, for DESCRIBE."""
    table = tables.from_path(path)
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
    columns = [
        Column(name, BOOLEAN if name == "null" else data_type_of("STRING")) for name in names
    ]
    return TableResult(tuple(columns), rows)
