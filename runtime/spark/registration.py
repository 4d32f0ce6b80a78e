"""Makes sources of opchain known to plain Spark."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from opchain.runtime.connectors.collection import NumberSequenceSource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from opchain.runtime.columnar.spark_types import SparkType
    from opchain.runtime.functions.source import Source

SEQUENCE = "opchain-sequence"


def register_source(session: SparkSession, name: str, source: Source[Any], schema: Any) -> None:
    """Lets `spark.read.format(name).load()` read a source.

    The session's executors get opchain and the modules beside the program, if they have not got them.

    Args:
        session: A classic session.
        name: The format's name.
        source: A bounded one; it is pickled with the format.
        schema: The columns of its records, as a StructType or DDL text.
    """
    ddl = schema if isinstance(schema, str) else schema.toDDL()
    register_format(session, name, partial(_given, source), ddl)


def register_sequence(session: SparkSession) -> None:
    """Lets `opchain-sequence` be read: the numbers from the option `start` to the option `end`."""
    register_format(session, SEQUENCE, _sequence, "value bigint")


def register_format(session: SparkSession, name: str, make: Any, schema: str | None) -> None:
    """Registers a format whose source `make(options, columns)` gives; see `data_source`."""
    from opchain.runtime.spark.data_source import data_source  # noqa: PLC0415 - it needs pyspark
    from opchain.runtime.spark.worker_path import provide_modules  # noqa: PLC0415 - likewise

    provide_modules(session.sparkContext, None)
    partitions = session.sparkContext.defaultParallelism
    session.dataSource.register(data_source(name, make, schema, partitions))


def _given(source: Source[Any], options: Mapping[str, str], columns: SparkType) -> Source[Any]:
    if options:
        raise ValueError(
            f"{source!r} has no options, got {', '.join(sorted(options))}: {columns.sql}"
        )
    return source


def _sequence(options: Mapping[str, str], columns: SparkType) -> NumberSequenceSource:
    del columns
    missing = sorted({"start", "end"} - set(options))
    unknown = sorted(set(options) - {"start", "end"})
    if missing or unknown:
        raise ValueError(
            f"the format '{SEQUENCE}' takes the options 'start' and 'end', and 'partitions'; "
            f"missing: {', '.join(missing) or 'none'}, unknown: {', '.join(unknown) or 'none'}"
        )
    return NumberSequenceSource(int(options["start"]), int(options["end"]))
