"""Unsupported names: using one raises an error. PyFlink: pyflink.datastream.formats.orc."""

from opchain.reexports import reexports

__getattr__ = reexports(__name__)
