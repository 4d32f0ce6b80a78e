"""A stream as a Spark DataFrame. An unbounded stream becomes a streaming DataFrame that reads committed files.

The job is a separate streaming query: its epochs end with its own checkpoints, and a Spark query has exactly one sink.
So the job and the queries that read its files need not run at the same time, or in the same program.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from typing import TYPE_CHECKING, Any, NoReturn

from opchain.compiler import interception
from opchain.compiler.dsl.argument_checks import at_call, checked, declared_type
from opchain.compiler.graph.transformation import (
    SinkTransformation,
    Transformation,
    upstream_of,
    user_call_site,
)
from opchain.runtime.columnar.spark_types import struct_type
from opchain.runtime.connectors.arrow_sink import ColumnFileSink, DataFrameSink
from opchain.runtime.errors import GraphError, UnsupportedFeatureError
from opchain.runtime.files.file_systems import joined, qualified_path
from opchain.runtime.program.operator_specs import SinkSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opchain.compiler.dsl.stream import Stream


FOLDER = "dataframes"
"""The folder of the files, in the checkpoint directory."""

_CALL = "to_dataframe"
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


def never_ends(end: Transformation) -> bool:
    """Whether an unbounded source is upstream of this transformation."""
    specs: list[Any] = [getattr(each, "spec", None) for each in upstream_of(end)]
    return any(getattr(spec, "kind", None) == "source" and not spec.is_bounded for spec in specs)


def dataframe_of_stream(
    stream: Stream[Any],
    schema: Any,
    path: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """Returns the DataFrame; see `DataStream.to_dataframe`."""
    environment, source = stream.get_execution_environment(), stream.transformation
    if schema is not None and not isinstance(schema, str) and not hasattr(schema, "jsonValue"):
        raise TypeError(
            f"{at_call(_CALL)} got the schema {schema!r}; it takes a type of pyspark.sql.types, or DDL text "
            "such as 'word string, count bigint'"
        )
    sink = DataFrameSink(schema)
    record_type = declared_type(source)
    if schema is None:
        if record_type is None:
            raise GraphError(
                f"{at_call(_CALL)}: {source.label} has no declared record "
                f"type: pass a schema, or declare the type, as in map(f, "
                f"output_type=Types.ROW_NAMED(...))"
            )
        try:
            sink = sink.for_type(record_type)
        except GraphError as error:
            raise GraphError(f"{at_call(_CALL)}: {error}") from error
    if never_ends(source):
        return _streaming_dataframe(stream, sink, path, options or {})
    if path is not None or options is not None:
        raise GraphError(
            f"{at_call(_CALL)}: {source.label} is bounded, so its DataFrame needs no files: remove path and options"
        )
    program = environment.detached_program(_end(stream, sink))
    if interception.job_intercepted(program, _CALL):
        return _planned(sink)
    from opchain.compiler.execution import dataframe  # noqa: PLC0415 - planning runs no job

    return dataframe(program)


def _streaming_dataframe(
    stream: Stream[Any], given: DataFrameSink, path: str | None, options: Mapping[str, Any]
) -> Any:
    """Adds the sink to the program and returns the DataFrame; see `DataStream.to_dataframe`."""
    environment, source = stream.get_execution_environment(), stream.transformation
    settings = environment.program().settings
    where = source.label
    if settings.target == "local":
        raise UnsupportedFeatureError(
            f"{at_call(_CALL)}: a DataFrame of {where} needs a job on Spark, but this job runs "
            f"in process (execution.target = local); set execution.target = spark"
        )
    folder = _folder(source, path, settings.checkpoint_dir)
    if folder and any(_writes_to(each, folder) for each in environment.get_transformations()):
        raise GraphError(
            f"{at_call(_CALL)}: another DataFrame of this program already writes its files to "
            f"{folder}: use that DataFrame twice, or pass another path"
        )
    known = given.schema if isinstance(given.schema, str) else given.schema_json
    if interception.is_capturing():
        # The sink writes no rows here, and only Spark can parse DDL text.
        record_type = struct_type([])
        dataframe: Any = PlannedStreamingDataFrame()
    else:
        from opchain.runtime.spark.dataframe_output import (  # noqa: PLC0415 - planning needs no Spark
            committed_records,
            record_type_of,
        )
        from opchain.runtime.spark.worker_path import temporary_folder  # noqa: PLC0415 - as above

        folder = folder or tempfile.mkdtemp(prefix="dataframe-", dir=temporary_folder())
        record_type = record_type_of(known)
        dataframe = committed_records(folder, record_type, options)
    sink = ColumnFileSink(folder, record_type, f"{_CALL}() of {where}")
    end = _end(stream, sink)
    if source.uid is not None:
        end.uid = f"{source.uid} to DataFrame"
    environment.add_operator(end)
    return dataframe


class PlannedStreamingDataFrame:
    """The result of `to_dataframe` while an unbounded program is planned.

    Every attribute and every call returns the object itself, so a program that starts queries first still reaches its
    job.
    """

    isStreaming = True  # noqa: N815 - Spark's name

    def __getattr__(self, name: str) -> PlannedStreamingDataFrame:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, name: Any) -> PlannedStreamingDataFrame:
        return self

    def __call__(self, *_: Any, **__: Any) -> PlannedStreamingDataFrame:
        """Returns the object itself."""
        return self


def _end(stream: Stream[Any], sink: ColumnFileSink | DataFrameSink) -> SinkTransformation:
    source = stream.transformation
    return SinkTransformation(
        stream.get_execution_environment().next_transformation_id(),
        "DataFrame",
        source,
        spec=SinkSpec(sink),
        parallelism=source.parallelism,
        key_by=stream.state_key,
        call_site=user_call_site(),
    )


def _folder(source: Transformation, path: str | None, checkpoints: str | None) -> str:
    """The folder of the files; empty for a temporary folder of this process."""
    if path is not None:
        return qualified_path(checked(path, str, _CALL, "the path"))
    if checkpoints is None:
        return ""
    if source.uid is None:
        raise GraphError(
            f"{at_call(_CALL)}: {source.label} has no uid; a job resumed "
            f"from a checkpoint needs it to find the DataFrame's files again: call uid(), or "
            f"pass a path"
        )
    return joined(qualified_path(checkpoints), FOLDER, _folder_name(source.uid))


def _folder_name(uid: str) -> str:
    if _PLAIN.fullmatch(uid):
        return uid
    return hashlib.sha256(uid.encode("utf-8", "surrogatepass")).hexdigest()


def _writes_to(transformation: Transformation, folder: str) -> bool:
    sink = getattr(getattr(transformation, "spec", None), "sink", None)
    return isinstance(sink, ColumnFileSink) and sink.base_path == folder


def _planned(sink: DataFrameSink) -> Any:
    from opchain.runtime.spark.dataframe_output import empty_dataframe  # noqa: PLC0415 - as needed

    given = sink.schema if isinstance(sink.schema, str) else sink.schema_json
    empty = empty_dataframe(given)
    return PlannedDataFrame() if empty is None else empty


class PlannedDataFrame:
    """The result of `to_dataframe` while a program is planned in a process without Spark."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnsupportedFeatureError(
            f"DataFrame.{name} ({user_call_site()}): the program is only being planned, and no "
            f"Spark session is running; call it after execute() or run the program"
        )
