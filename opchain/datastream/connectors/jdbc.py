"""PostgreSQL. PyFlink: pyflink.datastream.connectors.jdbc."""

from opchain.reexports import reexports
from opchain.runtime.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
from opchain.runtime.connectors.jdbc.sink import JdbcSink

__all__ = ["JdbcConnectionOptions", "JdbcExecutionOptions", "JdbcSink"]

__getattr__ = reexports(__name__)
