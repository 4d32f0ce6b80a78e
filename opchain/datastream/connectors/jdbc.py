"""PostgreSQL. PyFlink: pyflink.datastream.connectors.jdbc."""

from opchain.runtime.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
from opchain.runtime.connectors.jdbc.sink import JdbcSink

__all__ = ["JdbcConnectionOptions", "JdbcExecutionOptions", "JdbcSink"]
