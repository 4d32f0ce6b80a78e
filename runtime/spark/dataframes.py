"""The DataFrames of a job: sources whose rows Spark reads, and Arrow sinks, whose batches Spark writes.

Spark's JVM converts rows to Arrow batches and back. So a batch passes through only one Python process, that of the task.
`mapInArrow` would add a process, and put the frames of a stage into a column of bytes, 10,000 at a time. It also needs
pandas.

Each subtask of a source reads a contiguous run of the DataFrame's partitions. Spark's `coalesce` would combine partitions
of the same machine, so the same DataFrame might be divided differently in each run.

Frames for Arrow sinks stay on the executors, in memory and on disk, until all tasks have succeeded. Then Spark's own
writers write the batches of each sink. If an executor is lost before that, its tasks run again. Sinks with their own
committers commit after the Arrow sinks.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from opchain.runtime.columnar.spark_types import SparkType
from opchain.runtime.columnar.type_mapping import columns_of
from opchain.runtime.connectors.arrow_sink import ArrowSink, WrittenSink
from opchain.runtime.connectors.collection import contiguous_parts
from opchain.runtime.connectors.dataframe_source import SparkRowSource
from opchain.runtime.errors import GraphError, TaskFailedError, UnsupportedFeatureError, add_note
from opchain.runtime.program.operator_specs import SinkWriterSpec, SourceSpec
from opchain.runtime.program.vertex_program import (
    ARROW_SINK,
    JobProgram,
    OperatorProgram,
    VertexProgram,
)
from opchain.runtime.spark.exchange import collected, from_frame, written_raw

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark import RDD, SparkContext
    from pyspark.sql import DataFrame, SparkSession

    from opchain.runtime.records.elements import Buffer
    from opchain.runtime.spark.stage_tasks import ShippedVertex


@dataclass(frozen=True, slots=True)
class ArrowSinkEnd:
    """An Arrow sink of a job: its vertex and operator, and the schema of its records as JSON text."""

    vertex: VertexProgram
    operator: OperatorProgram
    sink: ArrowSink
    schema: str

    @property
    def record_type(self) -> SparkType:
        """The schema of the records."""
        return SparkType.parse(self.schema)


class DataFrameEnds:
    """The DataFrames that a job reads, by vertex, and its Arrow sinks.

    Raises:
        GraphError: The schema of a sink is unknown or invalid.
        Exception: Spark cannot load the DataFrame of a source.
    """

    def __init__(self, job: JobProgram, session: SparkSession) -> None:
        self._job = job
        self._session = session
        self._read = {
            vertex.vertex_id: _dataframe(vertex.operators[0], source, session)
            for vertex in job.vertices
            if (source := row_source(vertex)) is not None
        }
        self.sinks = [
            ArrowSinkEnd(vertex, operator, sink, schema_of_sink(operator, sink, session))
            for vertex, operator, sink in arrow_sinks(job)
        ]

    def with_schemas(self, vertex: ShippedVertex) -> ShippedVertex:
        """The vertex with the schemas that its tasks need."""
        sinks = [end for end in self.sinks if vertex.first_task in end.vertex.tasks]
        schemas = {end.operator.index: end.schema for end in sinks}
        dataframe = self._read.get(self._job.vertex_of(vertex.first_task)[0].vertex_id)
        if dataframe is None:
            return replace(vertex, sink_schemas=schemas)
        return replace(
            vertex,
            sink_schemas=schemas,
            feed_schema=dataframe.schema.json(),
            has_large_types=has_large_types(
                dataframe.sparkSession
            ),  # which may not be the active session
        )

    def first_input(self) -> RDD[bytes]:
        """The input of the first stage, one partition per slot. Partitions are empty for slots that read no DataFrame."""
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
        """The vertex of a slot, if it reads a DataFrame; such a vertex has its own slots."""
        vertex_id = self._job.vertex_of(slot[0])[0].vertex_id
        return vertex_id if vertex_id in self._read else None


def row_source(vertex: VertexProgram) -> SparkRowSource | None:
    """The source of a vertex, if it reads a DataFrame."""
    spec = vertex.operators[0].spec
    if isinstance(spec, SourceSpec) and isinstance(spec.source, SparkRowSource):
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
def noting_dataframe_errors(operator: OperatorProgram) -> Iterator[None]:
    """Errors in the block get a note that names the source whose DataFrame failed."""
    try:
        yield
    except Exception as error:
        add_note(error, f"while making the DataFrame of {operator.label}")
        raise


def _dataframe(
    operator: OperatorProgram, source: SparkRowSource, session: SparkSession
) -> DataFrame:
    with noting_dataframe_errors(operator):
        dataframe: DataFrame = source.dataframe(session)
        SparkType.read(dataframe.schema.jsonValue())  # raises if records cannot hold a column
    if dataframe.isStreaming:
        raise UnsupportedFeatureError(
            f"{operator.label} reads {dataframe!r}, a streaming "
            f"DataFrame, but this job supports only bounded DataFrames"
        )
    return dataframe


def schema_of_sink(operator: OperatorProgram, sink: ArrowSink, session: SparkSession) -> str:
    """The schema of a sink's records, as JSON text.

    Raises:
        GraphError: The schema is unknown or invalid.
    """
    where = operator.label
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


def arrow_partitions(dataframe: DataFrame, parallelism: int) -> list[RDD[bytes]]:
    """The DataFrame's record batches, as RDDs with `parallelism` partitions in total.

    An adaptive plan runs its shuffles now, as with `dataframe.rdd`.
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
        # In Scala a set is a function that says whether it contains an element.
        chosen = jvm.PythonUtils.toSeq(list(part)).toSet()
        runs.append(_of_bytes(pruning.create(batches, chosen).toJavaRDD().coalesce(1), context))
    return runs


def arrow_batches(dataframe: DataFrame) -> RDD[bytes]:
    """The DataFrame's record batches, partition by partition."""
    batches: Any = dataframe._jdf.toArrowBatchRdd()  # noqa: SLF001 - as above
    return _of_bytes(batches.toJavaRDD(), dataframe.sparkSession.sparkContext)


def empty_partitions(context: SparkContext, size: int) -> RDD[bytes]:
    """An RDD with `size` empty partitions."""
    # The JVM takes a millisecond to find java.util.ArrayList by name. py4j converts a list without that.
    return _of_bytes(context._jsc.parallelize([], size), context)  # noqa: SLF001


def joined(context: SparkContext, parts: list[RDD[bytes]]) -> RDD[bytes]:
    """An RDD of the partitions of all RDDs, in order."""
    return parts[0] if len(parts) == 1 else context.union(parts)


def dataframe_of(batches: RDD[bytes], columns: SparkType, session: SparkSession) -> DataFrame:
    """The DataFrame of an RDD of record batches. It is lazy."""
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
    """A schema as JSON text. Spark reads DDL text.

    Raises:
        GraphError: The text is not DDL.
    """
    if not isinstance(schema, str):
        return json.dumps(schema)
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql.types import DataType  # noqa: PLC0415

    del session  # fromDDL needs the JVM, which runs if there is a session
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


def batches_of_frames(buffers: Iterable[Buffer | bytes]) -> Iterator[bytes]:
    """The batches of the only sink. Reports are dropped, since nothing reads them."""
    for item in buffers:
        if not isinstance(item, bytes) and item.target == ARROW_SINK:
            yield item.payload


class FramesForDriver:
    """Drops the batches of sinks, which the driver does not read."""

    def __call__(self, frames: Iterable[bytes]) -> Iterator[bytes]:
        """The frames that the driver reads."""
        return (frame for frame in frames if from_frame(frame).target != ARROW_SINK)


class BatchesOfSink:
    """The batches of one sink: operator `operator` of the tasks `tasks`."""

    def __init__(self, tasks: range, operator: int) -> None:
        self.tasks = tasks
        self.operator = operator

    def __call__(self, frames: Iterable[bytes]) -> Iterator[bytes]:
        """The bytes of the batches."""
        for frame in frames:
            target, operator, task, _, batch, _ = from_frame(frame)
            if target == ARROW_SINK and operator == self.operator and task in self.tasks:
                yield bytes(batch)


@contextmanager
def persisted(last_stage: RDD[bytes]) -> Iterator[RDD[bytes]]:
    """The frames of a job's last stage; within the block they are computed once."""
    from pyspark import RDD, StorageLevel  # noqa: PLC0415 - the module is loaded on executors
    from pyspark.serializers import NoOpSerializer  # noqa: PLC0415

    frames: RDD[bytes] = RDD(last_stage._jrdd, last_stage.ctx, NoOpSerializer())  # noqa: SLF001
    frames.setName(last_stage.name() or "frames").persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield frames
    finally:
        frames.unpersist()


def frames_for_driver(frames: RDD[bytes]) -> Iterator[bytes]:
    """Runs the job; the frames that the driver reads."""
    return collected(written_raw(frames.mapPartitions(FramesForDriver())))


def write_dataframes(
    frames: RDD[bytes], ends: Sequence[ArrowSinkEnd], session: SparkSession
) -> None:
    """Writes each sink's records.

    Raises:
        TaskFailedError: Spark's writer has failed. The message names the sinks that were written before.
    """
    jvm: Any = session.sparkContext._jvm  # noqa: SLF001
    # Spark looks for Python Data Sources in the active session of the thread, and this thread may have none.
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)  # noqa: SLF001
    written: list[str] = []
    for end in ends:
        name = end.operator.label
        batches = written_raw(
            frames.mapPartitions(BatchesOfSink(end.vertex.tasks, end.operator.index))
        )
        assert isinstance(end.sink, WrittenSink), f"{name} is not a sink of the job"
        try:
            end.sink.write(dataframe_of(batches, columns_of(end.record_type), session))
        except Exception as error:
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise TaskFailedError(
                f"{name} could not be written, although all tasks succeeded: {reason[0]}; "
                f"written before: "
                f"{', '.join(written) or 'nothing'}"
            ) from error
        written.append(name)
