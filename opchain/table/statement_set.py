"""StatementSet. Using any other name raises an error. PyFlink: pyflink.table.statement_set."""

from opchain.compiler.table.stream_table_environment import StatementSet
from opchain.reexports import reexports

__all__ = ["StatementSet"]

__getattr__ = reexports(__name__)
