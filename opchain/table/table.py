"""Table; opchain refuses the other names where they are used. PyFlink: pyflink.table.table."""

from opchain.compiler.table.table import Table
from opchain.reexports import reexports

__all__ = ["Table"]

__getattr__ = reexports(__name__)
