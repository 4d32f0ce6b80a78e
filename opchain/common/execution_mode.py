"""A module of PyFlink 1. PyFlink: pyflink.common.execution_mode."""

from opchain.reexports import reexports

__getattr__ = reexports(__name__)
