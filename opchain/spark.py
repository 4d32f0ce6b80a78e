"""opchain together with Spark's own data.

DataFrames are read by `env.from_dataframe()` and given by `stream.to_dataframe()`; here are any of Spark's
formats as sources and sinks of streams, and sources of opchain as formats for plain Spark:

>>> from opchain.spark import SparkSource
>>> SparkSource("parquet", path="clicks.parquet")
SparkSource(parquet)

    opchain.spark.register(spark)
    spark.read.format("opchain-sequence").options(start=1, end=100).load()
    spark.read.format("opchain-datagen").schema("id int, word string").options(**{"number-of-rows": 100}).load()

A source without end is a subclass of UnboundedSource, which says its position, so that epochs can be read again.
What the epochs of an unbounded job did is told by EpochProgress, to listeners, by the job client, and in a log.

Every name is loaded when it is first asked for; pyspark is not loaded before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from opchain.runtime.connectors.unbounded_source import UnboundedSource
    from opchain.runtime.epochs.epoch_progress import EpochProgress, read_progress_log
    from opchain.runtime.spark.data_source import register_source
    from opchain.runtime.spark.formats import SparkSink, SparkSource

__all__ = [
    "EpochProgress",
    "SparkSink",
    "SparkSource",
    "UnboundedSource",
    "read_progress_log",
    "register",
    "register_source",
]

_MODULES = {
    "EpochProgress": "opchain.runtime.epochs.epoch_progress",
    "SparkSink": "opchain.runtime.spark.formats",
    "SparkSource": "opchain.runtime.spark.formats",
    "UnboundedSource": "opchain.runtime.connectors.unbounded_source",
    "read_progress_log": "opchain.runtime.epochs.epoch_progress",
    "register_source": "opchain.runtime.spark.data_source",
}


def register(session: SparkSession) -> None:
    """Lets plain Spark read `opchain-sequence` and `opchain-datagen`.

    Both take the option `partitions`, by default the session's parallelism. A sequence has the options `start`
    and `end`, both included. A data generator makes up the columns of the schema that is asked for; it has
    `number-of-rows` and, for a column, `fields.NAME.kind`, `.min`, `.max`, `.length`, `.null-rate`, `.start`,
    `.end`. The same rows come in every run, whatever the number of partitions.
    """
    from opchain.compiler.table.datagen import NAME, datagen_of  # noqa: PLC0415
    from opchain.runtime.spark.data_source import (  # noqa: PLC0415
        register_format,
        register_sequence,
    )

    register_sequence(session)
    register_format(session, NAME, datagen_of, None)


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
