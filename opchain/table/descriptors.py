"""Unsupported names of the Table API: using one raises an error. PyFlink: pyflink.table.descriptors."""

from opchain.reexports import reexports

__getattr__ = reexports(__name__)
