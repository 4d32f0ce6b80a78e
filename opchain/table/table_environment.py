"""TableEnvironment and StreamTableEnvironment. Using any other name raises an error. PyFlink: pyflink.table.table_environment."""

from opchain.compiler.table.stream_table_environment import (
    StreamTableEnvironment,
    TableEnvironment,
)
from opchain.reexports import reexports

__all__ = ["StreamTableEnvironment", "TableEnvironment"]

__getattr__ = reexports(__name__)
