"""Tables that become streams. PyFlink: pyflink.table, of which there is no more than this.

Every name is loaded when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opchain.compiler.table.data_types import DataTypes
    from opchain.compiler.table.schema import Schema
    from opchain.compiler.table.stream_table_environment import StreamTableEnvironment
    from opchain.compiler.table.table import Table
    from opchain.compiler.table.table_descriptor import TableDescriptor
    from opchain.runtime.types.row import Row, RowKind

__all__ = [
    "DataTypes",
    "Row",
    "RowKind",
    "Schema",
    "StreamTableEnvironment",
    "Table",
    "TableDescriptor",
]

_MODULE_OF = {
    "DataTypes": "opchain.compiler.table.data_types",
    "Row": "opchain.runtime.types.row",
    "RowKind": "opchain.runtime.types.row",
    "Schema": "opchain.compiler.table.schema",
    "StreamTableEnvironment": "opchain.compiler.table.stream_table_environment",
    "Table": "opchain.compiler.table.table",
    "TableDescriptor": "opchain.compiler.table.table_descriptor",
}

_MISSING = frozenset(
    {
        *("TableEnvironment", "StatementSet", "EnvironmentSettings", "TableConfig", "Expression"),
        *("GroupedTable", "GroupWindowedTable", "OverWindowedTable", "WindowGroupedTable"),
        *("ScalarFunction", "TableFunction", "AggregateFunction", "TableAggregateFunction"),
        *("AsyncScalarFunction", "FunctionContext", "DataView", "ListView", "MapView", "Module"),
        *("FormatDescriptor", "ModuleEntry", "SqlDialect", "UserDefinedType", "TableSchema"),
        *("TableResult", "ChangelogMode", "ExplainDetail", "ResultKind", "CompiledPlan"),
        *("PlanReference", "TablePipeline"),
    }
)


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is not None:
        return getattr(importlib.import_module(module), name)
    if name in _MISSING:
        from opchain.runtime.errors import UnsupportedFeatureError  # noqa: PLC0415 - mostly unused

        raise UnsupportedFeatureError(
            f"opchain.table has no {name}: the Table API is not supported, except for tables that become "
            "streams; compute with the DataStream API, or with Spark SQL"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
