"""Names that opchain refuses where they are used. PyFlink: pyflink.datastream.connectors.kinesis."""

from opchain.reexports import reexports

__getattr__ = reexports(__name__)
