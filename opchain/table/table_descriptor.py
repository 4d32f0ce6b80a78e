"""TableDescriptor. Using any other name raises an error. PyFlink: pyflink.table.table_descriptor."""

from opchain.compiler.table.table_descriptor import TableDescriptor
from opchain.reexports import reexports

__all__ = ["TableDescriptor"]

__getattr__ = reexports(__name__)
