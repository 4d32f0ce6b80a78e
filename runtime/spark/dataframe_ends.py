"""The ends of a job that are DataFrames: sources that Spark feeds, sinks whose batches it takes."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from opchain.runtime.columnar.spark_types import SparkType
from opchain.runtime.connectors.arrow_sink import ArrowSink
from opchain.runtime.connectors.fed_source import FedSource
from opchain.runtime.errors import GraphError, UnsupportedFeatureError, add_note
from opchain.runtime.program.operator_specs import SinkWriterSpec, SourceSpec
from opchain.runtime.spark.dataframes import (
    arrow_partitions,
    empty_partitions,
    has_large_types,
    joined,
    schema_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

    from opchain.runtime.program.vertex_program import JobProgram, OperatorProgram, VertexProgram
    from opchain.runtime.spark.stage_tasks import ShippedVertex


@dataclass(frozen=True, slots=True)
class ArrowSinkEnd:
    """An Arrow sink of a job: what runs it, and the schema of its records as JSON text."""

    vertex: VertexProgram
    operator: OperatorProgram
    sink: ArrowSink
    schema: str

    @property
    def tasks(self) -> range:
        """The tasks that write to it."""
        return range(self.vertex.first_task, self.vertex.first_task + self.vertex.parallelism)

    @property
    def record_type(self) -> SparkType:
        """What its records are to fit."""
        return SparkType.parse(self.schema)


class DataFrameEnds:
    """The DataFrames that a job reads, by vertex, and the sinks that become some.

    Raises:
        GraphError: The schema of a sink is unknown, or is none.
        Exception: What Spark says of a source's format.
    """

    def __init__(self, job: JobProgram, session: SparkSession) -> None:
        self._job = job
        self._session = session
        self._read = {
            vertex.vertex_id: _dataframe(vertex.operators[0], source, session)
            for vertex in job.vertices
            if (source := fed_source(vertex)) is not None
        }
        self.sinks = [
            ArrowSinkEnd(vertex, operator, sink, schema_of_sink(operator, sink, session))
            for vertex, operator, sink in arrow_sinks(job)
        ]

    def with_schemas(self, vertex: ShippedVertex) -> ShippedVertex:
        """The vertex with the schemas that its tasks must know."""
        sinks = [end for end in self.sinks if vertex.first_task in end.tasks]
        schemas = {end.operator.index: end.schema for end in sinks}
        dataframe = self._read.get(self._job.vertex_of(vertex.first_task)[0].vertex_id)
        if dataframe is None:
            return replace(vertex, sink_schemas=schemas)
        return replace(
            vertex,
            sink_schemas=schemas,
            feed_schema=dataframe.schema.json(),
            has_large_types=has_large_types(dataframe.sparkSession),  # maybe not the active one
        )

    def first_input(self) -> RDD[bytes]:
        """What the first stage reads, a partition for each of its slots; nothing where it is not fed."""
        context = self._session.sparkContext
        parts = []
        for vertex_id, slots in groupby(self._job.stages[0].slots, self._fed_by):
            size = len(list(slots))
            if vertex_id is None:
                parts.append(empty_partitions(context, size))
            else:
                parts += arrow_partitions(self._read[vertex_id], size)
        return joined(context, parts)

    def _fed_by(self, slot: tuple[int, ...]) -> str | None:
        """The vertex that has a slot for itself, because Spark feeds it."""
        vertex_id = self._job.vertex_of(slot[0])[0].vertex_id
        return vertex_id if vertex_id in self._read else None


def fed_source(vertex: VertexProgram) -> FedSource | None:
    """The source of a vertex, if Spark feeds it."""
    spec = vertex.operators[0].spec
    if isinstance(spec, SourceSpec) and isinstance(spec.source, FedSource):
        return spec.source
    return None


def arrow_sinks(job: JobProgram) -> list[tuple[VertexProgram, OperatorProgram, ArrowSink]]:
    """The sinks of a job whose batches Spark takes."""
    return [
        (vertex, operator, operator.spec.sink)
        for vertex in job.vertices
        for operator in vertex.operators
        if isinstance(operator.spec, SinkWriterSpec) and isinstance(operator.spec.sink, ArrowSink)
    ]


@contextmanager
def making_dataframe_of(operator: OperatorProgram) -> Iterator[None]:
    """Within the block errors are noted as those of a source's DataFrame."""
    try:
        yield
    except Exception as error:
        add_note(error, f"while making the DataFrame of '{operator.name}' ({operator.call_site})")
        raise


def _dataframe(operator: OperatorProgram, source: FedSource, session: SparkSession) -> DataFrame:
    with making_dataframe_of(operator):
        dataframe: DataFrame = source.dataframe(session)
        SparkType.read(dataframe.schema.jsonValue())  # raises where records cannot hold a column
    if dataframe.isStreaming:
        raise UnsupportedFeatureError(
            f"'{operator.name}' ({operator.call_site}) reads {dataframe!r}, a streaming "
            f"DataFrame, but this job supports only bounded DataFrames"
        )
    return dataframe


def schema_of_sink(operator: OperatorProgram, sink: ArrowSink, session: SparkSession) -> str:
    """The schema of a sink's records, as JSON text.

    Raises:
        GraphError: It is unknown, or none.
    """
    where = f"'{operator.name}' ({operator.call_site})"
    known = sink.schema if isinstance(sink.schema, str) else sink.schema_json
    if known is None:
        raise GraphError(
            f"{where} does not know the columns of its records: declare the type of the stream, "
            f"or pass a schema to the sink"
        )
    try:
        text = schema_text(known, session)
        SparkType.parse(text)
    except GraphError as error:
        add_note(error, f"while reading the schema of {where}")
        raise
    return text
