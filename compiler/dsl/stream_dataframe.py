"""A stream as a DataFrame of Spark: the part of the program that leads to it becomes the DataFrame's plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from opchain.compiler.dsl import interception
from opchain.compiler.dsl.argument_checks import at_call
from opchain.compiler.dsl.declared_types import declared_type
from opchain.compiler.dsl.streaming_dataframe import never_ends, streaming_dataframe
from opchain.compiler.graph.call_site import user_call_site
from opchain.compiler.graph.transformation import SinkTransformation
from opchain.runtime.connectors.relayed_sink import DataFrameSink
from opchain.runtime.errors import GraphError, UnsupportedFeatureError
from opchain.runtime.operators.specs import SinkSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opchain.compiler.dsl.stream import Stream


def dataframe_of_stream(
    stream: Stream[Any],
    schema: Any,
    path: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """The DataFrame; see `DataStream.to_dataframe`."""
    environment, source = stream.get_execution_environment(), stream.transformation
    call = "to_dataframe"
    if schema is not None and not isinstance(schema, str) and not hasattr(schema, "jsonValue"):
        raise TypeError(
            f"{at_call(call)} got the schema {schema!r}; it takes a type of pyspark.sql.types, or DDL text "
            "such as 'word string, count bigint'"
        )
    sink = DataFrameSink(schema)
    record_type = declared_type(source)
    if schema is None:
        if record_type is None:
            raise GraphError(
                f"{at_call(call)}: '{source.name}' ({source.call_site}) says nothing of its records: give a "
                "schema, or declare the type, as in map(f, output_type=Types.ROW_NAMED(...))"
            )
        try:
            sink = sink.for_type(record_type)
        except GraphError as error:
            raise GraphError(f"{at_call(call)}: {error}") from error
    if never_ends(source):
        return streaming_dataframe(stream, sink, path, options or {})
    if path is not None or options is not None:
        raise GraphError(
            f"{at_call(call)}: '{source.name}' ({source.call_site}) ends, and its DataFrame needs no files: "
            "leave path and options away"
        )
    end = SinkTransformation(
        environment.next_transformation_id(),
        "DataFrame",
        source,
        spec=SinkSpec(sink),
        parallelism=source.parallelism,
        key_by=stream.state_key,
        call_site=user_call_site(),
    )
    program = environment.detached_program(end)
    if interception.job_intercepted(program, call):
        return _planned(sink)
    from opchain.compiler.dataframe_execution import dataframe  # noqa: PLC0415 - drawing runs nothing

    return dataframe(program)


def _planned(sink: DataFrameSink) -> Any:
    from opchain.runtime.spark.dataframe_output import empty_dataframe  # noqa: PLC0415 - as needed

    given = sink.schema if isinstance(sink.schema, str) else sink.schema_json
    empty = empty_dataframe(given)
    return PlannedDataFrame() if empty is None else empty


class PlannedDataFrame:
    """What `to_dataframe` gives while a program is planned in a process that has no Spark."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnsupportedFeatureError(
            f"DataFrame.{name} ({user_call_site()}): the program is being planned, and there is no Spark to ask"
        )
