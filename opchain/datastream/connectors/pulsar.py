"""Names that opchain refuses where they are used. PyFlink: pyflink.datastream.connectors.pulsar."""

from opchain.reexports import reexports

__getattr__ = reexports(__name__)
