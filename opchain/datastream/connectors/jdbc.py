"""Sinks for PostgreSQL and MySQL. PyFlink: pyflink.datastream.connectors.jdbc."""

from opchain.reexports import reexports
from opchain.runtime.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
from opchain.runtime.connectors.jdbc.sink import JdbcSink
from opchain.runtime.connectors.jdbc.source import JdbcSource, JdbcSourceBuilder

__all__ = [
    "JdbcConnectionOptions",
    "JdbcExecutionOptions",
    "JdbcSink",
    "JdbcSource",
    "JdbcSourceBuilder",
]

__getattr__ = reexports(__name__)
