"""DataFrames as the input of a stage, and as what becomes of its output; Arrow on both ways.

Spark's JVM turns rows into Arrow's record batches and back by itself: what it serves R and its own tests.
A batch so passes one Python process, that of the task, where `mapInArrow` would be one more, would put the
frames of a stage into one column of bytes, 10,000 at a time, and needs pandas.

The partitions of a DataFrame go to the subtasks of its source in contiguous runs. Spark's `coalesce` would put
those together that are on one machine, so that the same DataFrame may be read differently tomorrow; here it
joins a run that was picked out before.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from opchain.runtime.connectors.collection import contiguous_parts

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext
    from pyspark.sql import DataFrame, SparkSession

    from opchain.runtime.columnar.spark_types import SparkType


def arrow_partitions(dataframe: DataFrame, parallelism: int) -> list[RDD[bytes]]:
    """The DataFrame's record batches, as RDDs of `parallelism` partitions together.

    An adaptive plan runs its shuffles now, as for `dataframe.rdd`.
    """
    context = dataframe.sparkSession.sparkContext
    batches: Any = dataframe._jdf.toArrowBatchRdd()  # noqa: SLF001 - Python has no such method
    partitions = int(batches.getNumPartitions())
    if partitions == parallelism:
        return [_of_bytes(batches.toJavaRDD(), context)]
    jvm: Any = context._jvm  # noqa: SLF001
    if partitions < parallelism:
        there = [] if partitions == 0 else [_of_bytes(batches.toJavaRDD(), context)]
        return [*there, empty_partitions(context, parallelism - partitions)]
    pruning = jvm.org.apache.spark.rdd.PartitionPruningRDD
    runs = []
    for part in contiguous_parts(partitions, parallelism):
        # A set of Scala is the function that says what is in it.
        chosen = jvm.PythonUtils.toSeq(list(part)).toSet()
        runs.append(_of_bytes(pruning.create(batches, chosen).toJavaRDD().coalesce(1), context))
    return runs


def arrow_batches(dataframe: DataFrame) -> RDD[bytes]:
    """The DataFrame's record batches, partition by partition."""
    batches: Any = dataframe._jdf.toArrowBatchRdd()  # noqa: SLF001 - as above
    return _of_bytes(batches.toJavaRDD(), dataframe.sparkSession.sparkContext)


def empty_partitions(context: SparkContext, size: int) -> RDD[bytes]:
    """An RDD of nothing in `size` partitions."""
    nothing = context._jvm.java.util.ArrayList()  # type: ignore[union-attr]  # noqa: SLF001
    return _of_bytes(context._jsc.parallelize(nothing, size), context)  # noqa: SLF001


def joined(context: SparkContext, parts: list[RDD[bytes]]) -> RDD[bytes]:
    """The partitions of all RDDs, one RDD after the other."""
    return parts[0] if len(parts) == 1 else context.union(parts)


def dataframe_of(batches: RDD[bytes], columns: SparkType, session: SparkSession) -> DataFrame:
    """The DataFrame of an RDD of record batches; nothing runs before it is used."""
    from pyspark.sql import DataFrame  # noqa: PLC0415 - the module is loaded on executors

    jvm: Any = session.sparkContext._jvm  # noqa: SLF001
    schema = jvm.org.apache.spark.sql.types.DataType.fromJson(json.dumps(columns.to_json()))
    made = jvm.org.apache.spark.sql.api.r.SQLUtils.toDataFrame(
        batches._jrdd,  # noqa: SLF001
        schema,
        session._jsparkSession,  # noqa: SLF001
    )
    return DataFrame(made, session)


def has_large_types(session: SparkSession) -> bool:
    """Whether Spark writes strings and bytes with 64-bit offsets: a setting of the session."""
    return str(session.conf.get("spark.sql.execution.arrow.useLargeVarTypes", "false")) == "true"


def schema_text(schema: Any, session: SparkSession) -> str:
    """A schema as JSON text; DDL text is read by Spark.

    Raises:
        GraphError: It is not DDL.
    """
    if not isinstance(schema, str):
        return json.dumps(schema)
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql.types import DataType  # noqa: PLC0415

    from opchain.runtime.errors import GraphError  # noqa: PLC0415

    del session  # fromDDL asks the JVM, which is there since the session is
    try:
        return str(DataType.fromDDL(schema).json())
    except PySparkException as error:
        raise GraphError(
            f"the schema {schema!r} is not DDL that Spark understands: {error}"
        ) from error


def _of_bytes(java_rdd: Any, context: SparkContext) -> RDD[bytes]:
    from pyspark import RDD  # noqa: PLC0415
    from pyspark.serializers import NoOpSerializer  # noqa: PLC0415

    return RDD(java_rdd, context, NoOpSerializer())
