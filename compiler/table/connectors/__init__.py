"""The connectors of tables: a described table as a source of rows, and as a sink of rows."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from opchain.compiler.graph.transformation import user_call_site
from opchain.compiler.table.connectors.datagen import read_datagen
from opchain.compiler.table.connectors.filesystem import read_files, write_files
from opchain.compiler.table.connectors.jdbc import read_jdbc, write_jdbc
from opchain.compiler.table.connectors.kafka import read_kafka, write_kafka
from opchain.compiler.table.connectors.options import Options, TableSource
from opchain.compiler.table.connectors.printed import write_printed
from opchain.runtime.errors import GraphError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.table.table_descriptor import TableDescriptor


def table_source(descriptor: TableDescriptor, path: str) -> TableSource:
    """The source of a table.

    Raises:
        GraphError: An option is missing, unknown or wrong.
        UnsupportedFeatureError: No table of this connector can be read.
    """
    make = _SOURCES.get(descriptor.connector)
    if make is None:
        raise unknown_connector(descriptor.connector, _SOURCES, "read")
    if descriptor.schema is not None and descriptor.schema.metadata and make is not read_kafka:
        raise UnsupportedFeatureError(
            f"table '{path}': the connector '{descriptor.connector}' has no metadata columns here, but "
            f"'{descriptor.schema.metadata[0].name}' is one; remove it. Tables of 'kafka' may have them"
        )
    return make(Options(descriptor, path))


def write_table(stream: DataStream[Any], descriptor: TableDescriptor, path: str) -> None:
    """Writes a stream of rows of a table's physical columns to the table.

    Raises:
        GraphError: An option is missing, unknown or wrong.
        UnsupportedFeatureError: No table of this connector can be written.
    """
    write = _SINKS.get(descriptor.connector)
    if write is None:
        raise unknown_connector(descriptor.connector, _SINKS, "written")
    if descriptor.partition_keys and descriptor.connector in _UNPARTITIONED:
        raise GraphError(
            f"INSERT INTO {path}: the table is PARTITIONED BY ({', '.join(descriptor.partition_keys)}), and the connector "
            f"'{descriptor.connector}' has no partitions; remove PARTITIONED BY"
        )
    options = Options(descriptor, path)
    parallelism = options.number("sink.parallelism")
    end = write(stream, options)
    end.name(path)
    if parallelism is not None:
        end.set_parallelism(parallelism)


def unknown_connector(connector: str, known: Any, what: str) -> Exception:
    """The error for an unknown connector, with the reason if it is known."""
    close = get_close_matches(connector, known, n=1)
    reason = _REFUSED.get(connector, f"no table of the connector '{connector}' can be {what}")
    meant = f"; did you mean '{close[0]}'?" if close else ""
    supported = meant or f"; supported connectors: {', '.join(map(repr, known))}"
    return UnsupportedFeatureError(
        f"the connector '{connector}' ({user_call_site()}): {reason}{supported}"
    )


def _write_nothing(stream: DataStream[Any], options: Options) -> Any:
    from opchain.runtime.connectors.simple_sinks import DiscardingSink  # noqa: PLC0415 - few tables need it

    options.finish()
    return stream.sink_to(DiscardingSink())


_SOURCES: dict[str, Callable[[Options], TableSource]] = {
    "datagen": read_datagen,
    "filesystem": read_files,
    "jdbc": read_jdbc,
    "kafka": read_kafka,
}
_SINKS: dict[str, Callable[[DataStream[Any], Options], Any]] = {
    "filesystem": write_files,
    "kafka": write_kafka,
    "jdbc": write_jdbc,
    "print": write_printed,
    "blackhole": _write_nothing,
}
_UNPARTITIONED = ("kafka", "jdbc")
_REFUSED = {
    "upsert-kafka": "it reads and writes changes of tables, and tables here only append; use 'kafka'",
    "elasticsearch-7": "use ElasticsearchSink of the DataStream API",
    "elasticsearch-8": "use ElasticsearchSink of the DataStream API",
    "opensearch": "use ElasticsearchSink of the DataStream API",
    "hbase-2.2": "there is no client for Python that is maintained",
    "kinesis": "write a source with the DataStream API, or read the stream with Spark and from_dataframe()",
}

KNOWN = frozenset({*_SOURCES, *_SINKS})
"""Connectors that tables may have."""
