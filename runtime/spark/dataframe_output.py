"""Streams as DataFrames.

The DataFrame of a bounded stream is lazy: each action on it runs the job. The DataFrame of an unbounded stream is a
streaming DataFrame, which reads the files that the job has committed.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from opchain.runtime.columnar.spark_types import SparkType
from opchain.runtime.columnar.type_mapping import columns_of
from opchain.runtime.errors import GraphError
from opchain.runtime.files.file_systems import SCHEME_END, file_system_of
from opchain.runtime.shipping.functions import ship_vertices
from opchain.runtime.spark.bounded_job import BoundedJob
from opchain.runtime.spark.dataframes import DataFrameEnds, dataframe_of, schema_text
from opchain.runtime.spark.session import active_or_new_session
from opchain.runtime.spark.stage_rdds import StageRdds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from opchain.runtime.job.dependencies import JobDependencies
    from opchain.runtime.program.vertex_program import JobProgram, SlotResources


def stream_dataframe(
    job: JobProgram,
    dependencies: JobDependencies,
    resources: Sequence[SlotResources | None] = (),
) -> DataFrame:
    """The DataFrame of a job whose one sink is a DataFrameSink.

    Raises:
        UnpicklableFunctionError: A function cannot be pickled.
        SparkUnavailableError: There is no Spark.
        GraphError: The columns of the records are unknown.
    """
    shipped = ship_vertices(job)
    session = active_or_new_session()
    ends = DataFrameEnds(job, session)
    (end,) = ends.sinks
    rdds = StageRdds(session.sparkContext, job, shipped, resources)
    # The broadcasts are not destroyed here: Spark drops them when the DataFrame is garbage-collected.
    batches = BoundedJob(session, job, shipped, dependencies, resources).last_stage(
        rdds, ends, gives_rows=True
    )
    return dataframe_of(batches, columns_of(end.record_type), session)


def empty_dataframe(schema: Any) -> DataFrame | None:
    """An empty DataFrame on the active session, for programs that are only planned; None without a session."""
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - it may be missing
        from pyspark.sql.types import StructType  # noqa: PLC0415
    except ImportError:
        return None
    session = SparkSession.getActiveSession()
    if session is None or schema is None:
        return None
    if isinstance(schema, str):
        return session.createDataFrame([], schema)
    return session.createDataFrame([], StructType.fromJson(json.loads(json.dumps(schema))))


_OF_PATTERNS = re.compile(r"[\\*?\[\]{}]")


def record_type_of(schema: Any) -> SparkType:
    """The record type of a schema: DDL text or Spark's JSON.

    Raises:
        GraphError: The text is not DDL.
        UnsupportedFeatureError: A column has a type that is not supported.
        SparkUnavailableError: Spark, which reads DDL, is missing or does not start.
    """
    return SparkType.parse(schema_text(schema, active_or_new_session()))


def committed_records(
    folder: str, record_type: SparkType, options: Mapping[str, Any] = {}
) -> DataFrame:
    """A streaming DataFrame of the present and future files in a folder.

    Args:
        folder: The folder of a ColumnFileSink; created if missing.
        record_type: Its record type.
        options: Options of Spark's file stream.

    Raises:
        GraphError: Spark would read the folder's name as a pattern.
    """
    from pyspark.sql.types import StructType  # noqa: PLC0415 - it may be missing

    found = _OF_PATTERNS.search(folder)
    if found is not None:  # with escapes, Spark 4.3 reads files twice
        raise GraphError(
            f"the files of a DataFrame cannot be in {folder}: Spark reads '{found[0]}' as part "
            f"of a pattern; use another path"
        )
    file_system_of(folder).make_folder(folder)
    session = active_or_new_session()
    schema = StructType.fromJson(columns_of(record_type).to_json())
    url = folder if SCHEME_END in folder else f"file://{folder}"
    return session.readStream.schema(schema).options(**options).parquet(url)
