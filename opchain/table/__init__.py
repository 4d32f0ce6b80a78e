"""Tables as a front door to connectors. PyFlink: pyflink.table, of which there is no more than this.

Every name is loaded when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opchain.compiler.table.data_types import DataTypes
    from opchain.compiler.table.settings import EnvironmentSettings, TableConfig
    from opchain.compiler.table.stream_table_environment import (
        StatementSet,
        StreamTableEnvironment,
        TableEnvironment,
    )
    from opchain.compiler.table.table import Table, TableResult
    from opchain.compiler.table.table_descriptor import Schema, TableDescriptor
    from opchain.runtime.types.row import Row, RowKind

__all__ = [
    "DataTypes",
    "EnvironmentSettings",
    "Row",
    "RowKind",
    "Schema",
    "StatementSet",
    "StreamTableEnvironment",
    "Table",
    "TableConfig",
    "TableDescriptor",
    "TableEnvironment",
    "TableResult",
]

_MODULE_OF = {
    "DataTypes": "opchain.compiler.table.data_types",
    "EnvironmentSettings": "opchain.compiler.table.settings",
    "Row": "opchain.runtime.types.row",
    "RowKind": "opchain.runtime.types.row",
    "Schema": "opchain.compiler.table.table_descriptor",
    "StatementSet": "opchain.compiler.table.stream_table_environment",
    "StreamTableEnvironment": "opchain.compiler.table.stream_table_environment",
    "Table": "opchain.compiler.table.table",
    "TableConfig": "opchain.compiler.table.settings",
    "TableDescriptor": "opchain.compiler.table.table_descriptor",
    "TableEnvironment": "opchain.compiler.table.stream_table_environment",
    "TableResult": "opchain.compiler.table.table",
}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        from opchain.reexports import reexports  # noqa: PLC0415 - mostly unused

        return reexports(__name__)(name)
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
