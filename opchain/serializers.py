"""PyFlink: pyflink.serializers."""

from opchain.reexports import reexports

__getattr__ = reexports(__name__)
