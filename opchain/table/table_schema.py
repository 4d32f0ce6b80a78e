"""TableSchema. PyFlink: pyflink.table.table_schema."""

from opchain.compiler.table.table_descriptor import TableSchema
from opchain.reexports import reexports

__all__ = ["TableSchema"]

__getattr__ = reexports(__name__)
