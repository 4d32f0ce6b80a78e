"""Where streams end: sinks, printing, and collecting into the program itself."""

from __future__ import annotations

from itertools import islice
from typing import overload

from opchain.compiler.dsl.argument_checks import at_call, checked, checked_function
from opchain.compiler.dsl.collected import CloseableIterator
from opchain.compiler.dsl.data_stream_sink import DataStreamSink
from opchain.compiler.dsl.declared_types import declared_type
from opchain.compiler.dsl.stream import Stream
from opchain.compiler.graph.call_site import user_call_site
from opchain.compiler.graph.transformation import SinkTransformation
from opchain.runtime.connectors.print_sink import PrintSinkFunction
from opchain.runtime.connectors.sink import Sink
from opchain.runtime.functions.source_sink_functions import SinkFunction
from opchain.runtime.operators.specs import CollectSinkSpec, LegacySinkSpec, SinkSpec
from opchain.runtime.type_variables import T


class SinkOperations(Stream[T]):
    """The methods that end a stream."""

    def add_sink(self, sink_func: SinkFunction[T]) -> DataStreamSink[T]:
        """Ends the stream in a SinkFunction."""
        checked_function(sink_func, SinkFunction, "add_sink")
        return self._legacy_sink(LegacySinkSpec(sink_func))

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
