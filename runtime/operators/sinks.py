"""Sinks at the end of a chain: SinkV2 writers and committers, and legacy sink functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.connectors.arrow_sink import ArrowSink
from opchain.runtime.functions.source_sink_functions import SinkFunction
from opchain.runtime.operators.operator import (
    OperatorContext,
    Output,
    StreamOperator,
    UserFunctionOperator,
)
from opchain.runtime.operators.process import OperatorClocks
from opchain.runtime.program.operator_specs import TwoPhaseSinkSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.runtime.functions.sink import SinkWriter
    from opchain.runtime.program.operator_specs import CollectSinkSpec, SinkWriterSpec
    from opchain.runtime.program.vertex_program import OperatorProgram


class SinkWriterOperator(StreamOperator):
    """Writes records, and emits committables to the next operator, the committer.

    Arrow sinks and two-phase SinkFunctions have no committer, and send committables directly to the driver. Flink:
    `SinkWriterOperator`; `StreamSink` of a `TwoPhaseCommitSinkFunction`.
    """

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        spec: SinkWriterSpec | TwoPhaseSinkSpec = program.spec  # type: ignore[assignment]
        self.sink = spec.sink
        self.writer: SinkWriter[Any] | None = None

    def open(self) -> None:
        """Creates the writer."""
        where = self.program.label
        if self.context.make_writer is not None:
            self.writer = self.context.make_writer(where)
        elif isinstance(self.sink, ArrowSink):
            schema = self.context.schema
            assert schema is not None, f"the schema of {where} is unresolved"
            assert self.context.send_batch is not None, f"{where} has no receiver of batches"
            self.writer = self.sink.arrow_writer(schema, where, self.context.send_batch)
        else:
            self.writer = self.sink.create_writer(self.context.runtime_context)

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Writes one record."""
        assert self.writer is not None
        self.writer.write(value, timestamp)

    def write_batch(
        self,
        values: Sequence[Any],
        timestamps: Sequence[int | None] | None,
        keys: Sequence[Any] | None = None,
    ) -> None:
        """Writes a batch; `keys` is None, since only exchanges get keys."""
        assert self.writer is not None
        assert keys is None
        self.writer.write_batch(values, timestamps)

    def finish(self) -> None:
        """Flushes, and emits the committables. In an unbounded job the checkpoint does this."""
        if not self.context.runs_in_epochs:
            self._pre_commit(None)

    def prepare_snapshot(self, checkpoint_id: int) -> None:
        """Emits the committables of an epoch. The checkpoint contains them, and its completion commits them."""
        self._pre_commit(checkpoint_id)

    def _pre_commit(self, checkpoint_id: int | None) -> None:
        assert self.writer is not None
        self.writer.flush(end_of_input=checkpoint_id is None)
        for committable in self.writer.prepare_commit_of(checkpoint_id):
            self._send_committable(committable)

    def _send_committable(self, committable: Any) -> None:
        if isinstance(self.sink, ArrowSink) or isinstance(self.program.spec, TwoPhaseSinkSpec):
            self.context.send_to_driver(("commit", self.program.index, committable))
        else:
            self.output.collect(committable, None)

    def close(self) -> None:
        """Closes the writer."""
        if self.writer is not None:
            self.writer.close()


class SinkCommitterOperator(StreamOperator):
    """Sends committables to the driver, which commits them when the whole job has succeeded.

    Flink: `CommitterOperator`, which commits in the task. On Spark a task may run twice; the driver
    sees the results of exactly one attempt.
    """

    def process_element(self, value: Any, timestamp: int | None) -> None:  # noqa: ARG002 - the contract
        """Acknowledges one committable."""
        self.context.send_to_driver(("commit", self.program.index, value))


class CollectSinkOperator(StreamOperator):
    """Sends records to the program with the task's report, each exactly once, and drops records beyond the limit.

    Flink: `CollectSinkOperator`, from which a client reads them over a socket.
    """

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        spec: CollectSinkSpec = program.spec  # type: ignore[assignment]
        self._left = spec.limit

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Sends one record."""
        self.write_batch([value], [timestamp])

    def write_batch(
        self,
        values: Sequence[Any],
        timestamps: Sequence[int | None] | None,
        keys: Sequence[Any] | None = None,
    ) -> None:
        """Sends a batch, without timestamps and keys."""
        del timestamps, keys
        if self._left is not None:
            values = values[: self._left]
            self._left -= len(values)
            if not values:
                return
        self.context.send_to_driver(("collect", self.program.uid, list(values)))


class SinkContext(OperatorClocks, SinkFunction.Context):
    """The context of a legacy sink. There is one object per operator, so it is valid during a call only."""

    _timestamp: int | None = None

    def timestamp(self) -> int | None:
        """The record's event time in milliseconds; None if it has none."""
        return self._timestamp


class LegacySinkOperator(UserFunctionOperator):
    """Calls a SinkFunction with each record. Flink: `StreamSink`."""

    method = "invoke"

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.function_context = SinkContext(self)

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Calls the function."""
        self.function_context._timestamp = timestamp  # noqa: SLF001 - the operator owns its context
        self.call(value, self.function_context)

    def finish(self) -> None:
        """Calls the function's `finish`, which flushes."""
        finished = getattr(self.function, "finish", None)
        if finished is not None:
            finished()
