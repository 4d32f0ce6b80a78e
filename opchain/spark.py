"""opchain together with Spark's data and data sources.

`env.from_dataframe()` reads DataFrames, and `stream.to_dataframe()` returns them. This module has SparkSource and
SparkSink, which read and write streams in any of Spark's formats. `register` makes sources of opchain available as
formats of plain Spark:

>>> from opchain.spark import SparkSource
>>> SparkSource("parquet", path="clicks.parquet")
SparkSource(parquet)

    opchain.spark.register(spark)
    spark.read.format("opchain-sequence").options(start=1, end=100).load()
    spark.read.format("opchain-datagen").schema("id int, word string").options(**{"number-of-rows": 100}).load()

For an unbounded source, subclass UnboundedSource: it returns its position, so that epochs can be read again. An
EpochProgress describes one epoch of an unbounded job. Listeners and the job client get it, and a log file records it.

A name is imported when it is first used, and pyspark only when it is needed.
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
    """Registers the formats `opchain-sequence` and `opchain-datagen` for plain Spark.

    Both have the option `partitions`; its default is the session's parallelism. A sequence has the options `start` and
    `end`, both included. A data generator fills the columns of the requested schema. Its options are `number-of-rows`
    and, per column, `fields.NAME.kind`, `.min`, `.max`, `.length`, `.null-rate`, `.start`, `.end`. It generates the
    same rows in every run, for any number of partitions.
    """
    from opchain.compiler.table.connectors.datagen import NAME, datagen_of  # noqa: PLC0415
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
