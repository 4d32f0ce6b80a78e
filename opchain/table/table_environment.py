"""TableEnvironment and StreamTableEnvironment; opchain refuses the other names where they are used. PyFlink: pyflink.table.table_environment."""

from opchain.compiler.table.stream_table_environment import (
    StreamTableEnvironment,
    TableEnvironment,
)
from opchain.reexports import reexports

__all__ = ["StreamTableEnvironment", "TableEnvironment"]

__getattr__ = reexports(__name__)
