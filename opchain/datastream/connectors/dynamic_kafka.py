"""Names that opchain refuses where they are used. PyFlink: pyflink.datastream.connectors.dynamic_kafka."""

from opchain.reexports import reexports

__getattr__ = reexports(__name__)
