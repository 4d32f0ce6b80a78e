"""Where streams end: sinks, printing, and collecting into the program itself."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, overload

from opchain.compiler.dsl.argument_checks import at_call, checked, checked_function, declared_type
from opchain.compiler.dsl.collected import CloseableIterator
from opchain.compiler.dsl.data_stream_sink import DataStreamSink
from opchain.compiler.dsl.stream import Stream
from opchain.compiler.graph.call_site import user_call_site
from opchain.compiler.graph.transformation import SinkTransformation
from opchain.runtime.connectors.print_sink import PrintSinkFunction
from opchain.runtime.connectors.streaming_file_sink import StreamingFileSink
from opchain.runtime.functions.sink import Sink
from opchain.runtime.functions.source_sink_functions import SinkFunction, TwoPhaseSinkFunction
from opchain.runtime.program.operator_specs import (
    CollectSinkSpec,
    LegacySinkSpec,
    SinkSpec,
    TwoPhaseSinkSpec,
)
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from collections.abc import Mapping


class SinkOperations(Stream[T]):
    """The methods that end a stream."""

    def add_sink(self, sink_func: SinkFunction[T]) -> DataStreamSink[T]:
        """Ends the stream in a SinkFunction."""
        checked_function(sink_func, SinkFunction, "add_sink")
        if isinstance(sink_func, StreamingFileSink):
            return self.sink_to(sink_func.file_sink)
        is_two_phase = isinstance(sink_func, TwoPhaseSinkFunction)
        return self._legacy_sink((TwoPhaseSinkSpec if is_two_phase else LegacySinkSpec)(sink_func))

    def sink_to(self, sink: Sink[T]) -> DataStreamSink[T]:
        """Ends the stream in a Sink: a writer, and a committer where the sink has one."""
        checked_function(sink, Sink, "sink_to")
        record_type = declared_type(self.transformation)
        if record_type is not None:
            sink = sink.for_type(record_type)
        transformation = SinkTransformation(
            self._environment.next_transformation_id(),
            SinkSpec.default_name,
            self.transformation,
            spec=SinkSpec(sink),
            parallelism=self._environment.get_parallelism(),
            key_by=self.state_key,
            call_site=user_call_site(),
        )
        self._environment.add_operator(transformation)
        return DataStreamSink(self._environment, transformation)

    def print(self, sink_identifier: str | None = None) -> DataStreamSink[T]:
        """Prints each record on its executor's standard output.

        With several subtasks each line begins with the subtask's number, counted from 1: `3> text`;
        with an identifier `id:3> text`, or `id> text` from a single subtask.
        """
        return self._print(sink_identifier, "print", to_stderr=False).name("Print to Std. Out")

    def print_to_err(self, sink_identifier: str | None = None) -> DataStreamSink[T]:
        """Prints like `print`, to standard error."""
        return self._print(sink_identifier, "print_to_err", to_stderr=True).name(
            "Print to Std. Err"
        )

    @overload
    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: None = None
    ) -> CloseableIterator[T]: ...

    @overload
    def execute_and_collect(
        self, job_execution_name: str | None = None, *, limit: int
    ) -> list[T]: ...

    @overload
    def execute_and_collect(self, job_execution_name: str | None, limit: int) -> list[T]: ...

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator[T] | list[T]:
        """Runs the program and gives this stream's records: an iterator, or a list of `limit`.

        Close the iterator, or use it in a `with` statement: that ends the job. A keyed stream gives
        rows of key and record, as PyFlink's does.
        """
        if limit is not None and checked(limit, int, "execute_and_collect", "the limit") < 1:
            raise ValueError(
                f"{at_call('execute_and_collect')}: the limit is {limit}; it must be at least 1"
            )
        collected = self._collected().collect_async()
        name = "DataStream Collect" if job_execution_name is None else job_execution_name
        self._environment.execute_async(name)
        if limit is None:
            return collected
        with collected:
            return list(islice(collected, limit))

    def collect_async(self) -> CloseableIterator[T]:
        """Adds a sink whose records can be read from the iterator once the job runs.

        Flink: `DataStream.collectAsync`. The iterator waits for `env.execute_async()`.
        """
        sink = self._legacy_sink(CollectSinkSpec(), parallelism=1).transformation
        sink.uid = f"dataStreamCollect_{sink.id}"
        collected: CloseableIterator[T] = CloseableIterator(sink)
        self._environment.register_collect_iterator(collected)
        return collected

    def _collected(self) -> SinkOperations[T]:
        """The stream whose records `execute_and_collect` gives."""
        return self

    def to_dataframe(
        self,
        schema: Any = None,
        *,
        path: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Any:
        """This stream as a DataFrame of Spark.

        That of a bounded stream is lazy as any other. It is the part of the program that leads here, run as
        one Spark job by each action on it (so cache it before several). Sinks of the program are not part of
        it: `execute()` runs them, once, and what leads to the DataFrame alone is not a part of that.
        Accumulators, metrics and what operators print are lost, since no job of opchain's ends.

        That of an unbounded stream is a streaming one, to be read by any number of queries (`writeStream`),
        each record exactly once in each. The stream stays part of the program: the job of `execute()` commits
        its records to a folder of Parquet files, epoch by epoch, and the queries read these.
        So start queries, then the job; or let another program read the folder.

        Args:
            schema: A StructType, or DDL text; a single type for records that are not rows, which become the
                column `value`. None takes what the stream's declared type says.
            path: Of an unbounded stream: the folder, or its URL. None is a folder of the stream's uid below
                `execution.checkpointing.dir`; without checkpoints, one that goes with this process.
            options: Of an unbounded stream: those of Spark's file stream. Files stay, unless they say
                `cleanSource`; `maxFilesPerTrigger` says how much a micro-batch reads.

        Flink: `StreamTableEnvironment.fromDataStream`, and a table. Timestamps of records and watermarks
        end here; a field that holds the time goes along.

        Raises:
            GraphError: The columns are unknown; the stream is bounded and has a path; it is unbounded and
                has checkpoints, and neither a uid nor a path.
            UnsupportedFeatureError: The job is to run in this process.
        """
        from opchain.compiler.dsl.stream_dataframe import dataframe_of_stream  # noqa: PLC0415 - few use it

        return dataframe_of_stream(self, schema, path, options)

    def _print(
        self, sink_identifier: str | None, call: str, *, to_stderr: bool
    ) -> DataStreamSink[T]:
        if sink_identifier is not None:
            checked(sink_identifier, str, call, "the sink identifier")
        record_type = declared_type(self.transformation)
        function = PrintSinkFunction(sink_identifier, to_stderr, record_type)
        return self._legacy_sink(LegacySinkSpec(function))

    def _legacy_sink(
        self, spec: LegacySinkSpec, parallelism: int | None = None
    ) -> DataStreamSink[T]:
        return DataStreamSink(
            self._environment,
            self.transform(
                spec, parallelism=parallelism, parallelism_configured=parallelism is not None
            ).transformation,
        )
