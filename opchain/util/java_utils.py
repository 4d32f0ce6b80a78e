"""PyFlink: pyflink.util.java_utils."""

from opchain.reexports import reexports

__getattr__ = reexports(__name__)
