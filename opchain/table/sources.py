"""Names of PyFlink 1: using one raises an error. PyFlink 1: pyflink.table.sources."""

from opchain.reexports import reexports

__getattr__ = reexports(__name__)
