"""A module of PyFlink 1. PyFlink: pyflink.datastream.time_characteristic."""

from opchain.reexports import reexports

__getattr__ = reexports(__name__)
