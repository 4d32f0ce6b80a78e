"""TableResult. Using any other name raises an error. PyFlink: pyflink.table.table_result."""

from opchain.compiler.table.table_result import TableResult
from opchain.reexports import reexports

__all__ = ["TableResult"]

__getattr__ = reexports(__name__)
