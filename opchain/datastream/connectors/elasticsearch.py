"""Names that opchain refuses where they are used. PyFlink: pyflink.datastream.connectors.elasticsearch."""

from opchain.reexports import reexports

__getattr__ = reexports(__name__)
