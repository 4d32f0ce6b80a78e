"""Schema. Using any other name raises an error. PyFlink: pyflink.table.schema."""

from opchain.compiler.table.table_descriptor import Schema
from opchain.reexports import reexports

__all__ = ["Schema"]

__getattr__ = reexports(__name__)
