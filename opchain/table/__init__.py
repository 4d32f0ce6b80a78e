"""The supported part of the Table API: tables that read from and write to connectors. PyFlink: pyflink.table.

A name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.reexports import reexports

if TYPE_CHECKING:
    from opchain.compiler.table.data_types import DataTypes
    from opchain.compiler.table.explain import ExplainDetail
    from opchain.compiler.table.group_windows import GroupWindowedTable, WindowGroupedTable
    from opchain.compiler.table.relations import GroupedTable
    from opchain.compiler.table.settings import EnvironmentSettings, TableConfig
    from opchain.compiler.table.statement_set import StatementSet
    from opchain.compiler.table.stream_table_environment import (
        StreamTableEnvironment,
        TableEnvironment,
    )
    from opchain.compiler.table.table import ChangelogMode, Table, TablePipeline
    from opchain.compiler.table.table_descriptor import (
        FormatDescriptor,
        Schema,
        TableDescriptor,
        TableSchema,
    )
    from opchain.compiler.table.table_result import ResultKind, TableResult
    from opchain.runtime.types.row import Row, RowKind

__all__ = [
    "ChangelogMode",
    "DataTypes",
    "EnvironmentSettings",
    "ExplainDetail",
    "FormatDescriptor",
    "GroupWindowedTable",
    "GroupedTable",
    "ResultKind",
    "Row",
    "RowKind",
    "Schema",
    "StatementSet",
    "StreamTableEnvironment",
    "Table",
    "TableConfig",
    "TableDescriptor",
    "TableEnvironment",
    "TablePipeline",
    "TableResult",
    "TableSchema",
    "WindowGroupedTable",
]

__getattr__ = reexports(__name__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
