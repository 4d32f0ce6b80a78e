"""TableDescriptor and FormatDescriptor. PyFlink: pyflink.table.table_descriptor."""

from opchain.compiler.table.table_descriptor import FormatDescriptor, TableDescriptor
from opchain.reexports import reexports

__all__ = ["FormatDescriptor", "TableDescriptor"]

__getattr__ = reexports(__name__)
