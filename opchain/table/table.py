"""Table. Using any other name raises an error. PyFlink: pyflink.table.table."""

from opchain.compiler.table.table import Table
from opchain.reexports import reexports

__all__ = ["Table"]

__getattr__ = reexports(__name__)
