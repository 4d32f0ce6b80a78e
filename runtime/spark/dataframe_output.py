"""A stream as a DataFrame: lazy as any of Spark, rebuilt by each action on it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from opchain.runtime.columnar.type_mapping import columns_of
from opchain.runtime.shipping.functions import ship_vertices
from opchain.runtime.spark.bounded_job import BoundedJob
from opchain.runtime.spark.dataframes import DataFrameEnds, dataframe_of
from opchain.runtime.spark.session import active_or_new_session
from opchain.runtime.spark.stage_line import StageLine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from opchain.runtime.job.dependencies import JobDependencies
    from opchain.runtime.job.slot_resources import SlotResources
    from opchain.runtime.program.vertex_program import JobProgram


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
    line = StageLine(session.sparkContext, job, shipped, resources)
    # What the line has broadcast is Spark's to drop, when nobody has the DataFrame any more.
    batches = BoundedJob(session, job, shipped, dependencies, resources).last_stage(
        line, ends, gives_rows=True
    )
    return dataframe_of(batches, columns_of(end.record_type), session)


def empty_dataframe(schema: Any) -> DataFrame | None:
    """A DataFrame without rows on the active session, if there is one: for programs that are planned."""
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
