"""StatementSet. Using any other name raises an error. PyFlink: pyflink.table.statement_set."""

from opchain.compiler.table.statement_set import StatementSet
from opchain.reexports import reexports

__all__ = ["StatementSet"]

__getattr__ = reexports(__name__)
