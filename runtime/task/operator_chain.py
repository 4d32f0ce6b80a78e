"""The operators of one subtask, connected as a tree.

Operators are created from the tail to the head. Each has an output that calls everything downstream of it. If the vertex
has generated code, its functions replace these calls: `process_batch` of the head, and `collect` of each operator that
emits outside record processing. Watermarks, statuses, markers and the life cycle always go through the operator
objects.

Flink: `OperatorChain`.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import add_note
from opchain.runtime.operators.map_batches import MapBatchesOperator
from opchain.runtime.operators.operator import Output, StreamOperator
from opchain.runtime.operators.pending_batch import BatchTarget, CombiningBatch, PendingBatch
from opchain.runtime.operators.registry import create_operator
from opchain.runtime.operators.sinks import CollectSinkOperator, SinkWriterOperator
from opchain.runtime.records.columns import Columns
from opchain.runtime.records.elements import MAX_WATERMARK, MIN_WATERMARK
from opchain.runtime.records.record_copy import (
    EMITS_STATE,
    PASSES_REFERENCES,
    emits_shared,
    own_copy,
)
from opchain.runtime.state.keys.key_identity import key_identity
from opchain.runtime.task.generated_code import bind_generated_code
from opchain.runtime.types.coders import record_converter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import GeneratorType

    from opchain.runtime.operators.operator import Collect, OperatorContext
    from opchain.runtime.program.vertex_program import OperatorProgram, OutputProgram, VertexProgram
    from opchain.runtime.task.output.record_writer import RecordWriter


class OperatorChain:
    """The chain of one subtask; `head` takes the input.

    `writers` has one exchange writer per output of the program. `make_context(program)` creates the services of an
    operator.
    """

    def __init__(
        self,
        program: VertexProgram,
        writers: Sequence[RecordWriter],
        make_context: Callable[[OperatorProgram], OperatorContext],
    ) -> None:
        self.program = program
        self.outputs = [Output() for _ in program.operators]
        operators: list[StreamOperator | None] = [None] * len(program.operators)
        for spec in reversed(program.operators):
            operators[spec.index] = create_operator(
                spec, make_context(spec), self.outputs[spec.index], is_batch=program.is_batch
            )
        self.operators: list[StreamOperator] = [op for op in operators if op is not None]
        self.head = self.operators[0]
        self.input_watermarks = [MIN_WATERMARK] * max(1, len(self.head.program.keys))
        self.writers = list(writers)
        self.pending: list[PendingBatch] = [
            _pending(output, writer)
            for output, writer in zip(program.outputs, writers, strict=True)
        ]
        self.sink_pending: dict[int, PendingBatch] = {
            index: PendingBatch(
                operator, carries_timestamps=operator.program.timestamps, select_key=None
            )
            for index, operator in enumerate(self.operators)
            if isinstance(operator, (CollectSinkOperator, SinkWriterOperator))
        }
        self._gathering = [
            operator.pending
            for operator in self.operators
            if isinstance(operator, MapBatchesOperator)
        ]
        for operator in self.operators:
            if isinstance(operator, MapBatchesOperator):
                self.sink_pending[operator.program.index] = operator.pending
        for index in range(len(self.operators)):
            self._wire(index)
        self.batch_functions: dict[int, Callable[..., None]] = {}
        # In batch mode: generators over the batches of several inputs. `send` gets the number of records of a turn.
        self.turn_functions: dict[int, Callable[..., GeneratorType[None, int, None]]] = {}
        # In batch mode: whether the records of a batch need no sorting; None if they always need it.
        self.takes_any_order: Callable[[Any], bool] | None = None
        if program.source is not None:
            bind_generated_code(self)

    def open(self) -> None:
        """Opens the operators from tail to head, so that no operator emits into one that is not open."""
        for operator in reversed(self.operators):
            operator.open()

    def finish(self, drain: Callable[[], None]) -> None:
        """Finishes the operators, head first, because each may emit to operators downstream.

        First `end_input` is called. The operator's timers still fire, so it may wait for running calls. Then its timers
        are stopped, `drain` runs the mail of timers that have fired, and `finish` is called. Flink:
        `StreamOperatorWrapper.finish`.
        """
        for operator in self.operators:
            if operator is not self.head:  # the task calls end_input of the head
                operator.end_input(0)
            operator.context.quiesce()
            drain()
            operator.finish()
            self.flush()
        self.end_output()

    def end_output(self) -> None:
        """Sends everything that was emitted, including results of mail after the operators have finished."""
        self.flush()
        for pending in self.pending:
            pending.finish()

    def prepare_snapshot(self, checkpoint_id: int) -> None:
        """Makes every operator emit results that are not part of a checkpoint, from head to tail."""
        for operator in self.operators:
            operator.prepare_snapshot(checkpoint_id)
            self.flush()

    def close(self) -> None:
        """Closes all operators, even if closing one fails; raises the first failure.

        As in Flink, operators that were never opened, because opening another one failed, are closed as well.
        """
        failure: BaseException | None = None
        for operator in self.operators:
            try:
                try:
                    operator.close()
                finally:
                    if operator.context.keyed is not None:
                        operator.context.keyed.state.close()
            except BaseException as error:  # noqa: BLE001, PERF203 - the others must be closed too
                if failure is None:
                    failure = error
                else:
                    name = operator.program.name
                    add_note(
                        failure, f"closing '{name}' failed too: {type(error).__name__}: {error}"
                    )
        if failure is not None:
            raise failure

    def flush(self) -> None:
        """Sends what the operators emitted: after each batch, and before a watermark."""
        # Head first: flushed records may be collected again downstream.
        for pending in self._gathering:
            pending.flush()
        for pending in self.pending:
            pending.flush()
        for pending in self.sink_pending.values():
            pending.flush()

    def process_batch(
        self, number: int, values: Sequence[Any], timestamps: Sequence[int | None] | None
    ) -> None:
        """Takes a batch of input `number`, through generated code if there is any."""
        self.process_part(number, values, timestamps)
        self.on_batch_end()

    def process_part(
        self, number: int, values: Sequence[Any], timestamps: Sequence[int | None] | None
    ) -> None:
        """Takes a part of a batch. `end_part` follows each part except the last one, which `on_batch_end` follows."""
        function = self.batch_functions.get(number)
        if values.__class__ is Columns and values.are_folded:
            self.head.process_folded(values, timestamps)  # type: ignore[attr-defined]
        elif function is None:
            self.head.records_in += len(values)
            self.head.process_batch(number, values, timestamps)
        else:
            function(*self._arguments(values, timestamps))

    def _arguments(
        self, values: Sequence[Any], timestamps: Sequence[int | None] | None
    ) -> tuple[Iterable[Any], ...]:
        if not self.head.program.timestamps:
            return (values,)
        return values, repeat(None) if timestamps is None else timestamps

    def process_turns(
        self,
        turns: Iterable[tuple[int, int]],
        batches: Mapping[int, tuple[Sequence[Any], Sequence[int | None] | None]],
    ) -> bool:
        """Takes batches of several inputs in turns. A turn is an input, and the number of its records that come next.

        Returns False, without any effect, if generated code cannot process them now.
        """
        if not batches.keys() <= self.turn_functions.keys():
            return False
        running = {
            number: self.turn_functions[number](*self._arguments(*batch))
            for number, batch in batches.items()
        }
        for each in running.values():
            next(each)
        if any(each.gi_yieldfrom is not None for each in running.values()):
            for each in running.values():
                each.close()
            return False
        for number, count in turns:
            running[number].send(count)
        for each in running.values():
            each.send(0)
        self.on_batch_end()
        return True

    def end_part(self) -> None:
        """Keeps the order of records if the next part takes another path through generated code."""
        for pending in self.pending:
            pending.end_part()

    def process_watermark(self, number: int, watermark: int) -> None:
        """Takes the watermark of input `number`."""
        self.input_watermarks[number] = watermark
        self.flush()
        if len(self.head.program.keys) > 1:
            self.head.process_watermark_of(number, watermark)
        else:
            self.head.process_watermark(watermark)
        self.flush()

    def process_status(self, number: int, *, is_idle: bool) -> None:
        """Takes the idleness of input `number`."""
        self.flush()
        self.head.process_status_of(number, is_idle=is_idle)

    def close_input(self, number: int) -> None:
        """Takes the end of the records of input `number` in an epoch."""
        if len(self.head.program.keys) > 1:
            self.flush()
            self.head.close_input(number)
            self.flush()

    def end_input(self, number: int) -> None:
        """Takes the end of input `number`."""
        self.head.end_input(number)
        self.flush()

    def on_batch_end(self) -> None:
        """Sends the batch, and lets operators emit periodic watermarks."""
        self.flush()
        for operator in self.operators:
            operator.on_batch_end()

    def _wire(self, index: int) -> None:
        """Connects an operator's output, in Flink's order: exchanges first, then chained operators."""
        output = self.outputs[index]
        for tag_id, record_type in self.program.operators[index].side_types:
            convert = record_converter(record_type)
            if convert is not None:
                output.side_converters[tag_id] = convert
        copies = not self.program.object_reuse
        # The last reader gets the record itself. If it keeps records, and other code may refer to them, it gets a copy.
        keeps = copies and emits_shared(self.program.operators, index)
        readers: dict[str | None, list[Collect]] = {}
        for number, written in enumerate(self.program.outputs):
            if written.operator == index:
                pending, writer = self.pending[number], self.writers[number]
                readers.setdefault(written.tag, []).append(_reader(pending.append, keeps=keeps))
                output.watermark_receivers.append(_after_records(pending, writer.emit_watermark))
                output.idle_receivers.append(_after_flush(pending, writer.emit_status))
                output.marker_receivers.append(_after_flush(pending, writer.emit_latency_marker))
        for child in self.program.operators:
            if child.parent == index:
                operator = self.operators[child.index]
                by_reference = child.spec.kind in PASSES_REFERENCES
                take = _reader(_counted_input(operator), keeps=keeps and not by_reference)
                readers.setdefault(child.tag, []).append(take)
                output.watermark_receivers.append(operator.process_watermark)
                output.idle_receivers.append(operator.process_status)
                output.marker_receivers.append(operator.process_latency_marker)
        operator = self.operators[index]
        output.collect = _collect(
            operator, readers.pop(None, []), copies=copies, convert=operator.as_declared
        )
        for tag, collects in readers.items():
            assert tag is not None
            output.sides[tag] = _collect(operator, collects, copies=copies)


def _pending(output: OutputProgram, writer: BatchTarget) -> PendingBatch:
    select_key = None if output.key is None else output.key.selector
    if output.combine is not None:
        assert select_key is not None
        reduce = getattr(output.combine, "reduce", output.combine)
        return CombiningBatch(
            writer,
            carries_timestamps=output.carries_timestamps,
            select_key=select_key,
            reduce=reduce,
            first=getattr(output.combine, "first", None),
            identity=key_identity(None if output.key is None else output.key.hasher),
        )
    return PendingBatch(
        writer,
        carries_timestamps=output.carries_timestamps,
        select_key=select_key,
        carries_key=output.carries_key,
    )


def _after_records(pending: PendingBatch, send: Callable[[int], None]) -> Callable[[int], None]:
    """Flushes pending records before each watermark. The last watermark also waits for records that are being combined."""

    def receive(watermark: int) -> None:
        if watermark == MAX_WATERMARK:
            pending.finish()
        else:
            pending.flush()
        send(watermark)

    return receive


def _after_flush(pending: PendingBatch, send: Callable[[Any], None]) -> Callable[[Any], None]:
    def receive(element: Any) -> None:
        pending.flush()
        send(element)

    return receive


def _counted_input(operator: StreamOperator) -> Collect:
    process = operator.process_element

    def take(value: Any, timestamp: int | None) -> None:
        operator.records_in += 1
        process(value, timestamp)

    return take


def _reader(take: Collect, *, keeps: bool) -> Collect:
    """The reader. If it `keeps` records, and other code may refer to them, it gets copies."""
    if not keeps:
        return take

    def keep(value: Any, timestamp: int | None) -> None:
        take(own_copy(value), timestamp)

    return keep


def _collect(
    operator: StreamOperator,
    readers: list[Collect],
    *,
    copies: bool,
    convert: Callable[[Any], Any] | None = None,
) -> Collect:
    """Emits to all readers. As with Flink's copying output, each reader except the last one gets a copy."""
    copies_own = copies and operator.program.spec.kind in EMITS_STATE

    def collect(value: Any, timestamp: int | None) -> None:
        operator.records_out += 1
        if copies_own:
            value = own_copy(value)
        if convert is not None:
            value = convert(value)
        for reader in readers[:-1]:
            reader(own_copy(value) if copies else value, timestamp)
        if readers:
            readers[-1](value, timestamp)

    return collect
