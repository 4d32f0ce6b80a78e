"""The report of a task to the driver: its counts, sent with its output.

Every task ends with one TaskReport. It is sent like any buffer, to the receiver DRIVER. So Spark's retries also decide
which attempt's report the driver gets. No accumulators are used, and nothing is counted twice.

Acknowledgements (committables and the report) are kept apart from records (of collecting and printing sinks). The
driver reads acknowledgements at once, and records when the program asks for them.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from opchain.runtime.measurements.task_metrics import OperatorCounts, TaskMetrics
from opchain.runtime.metrics.histogram import Histogram
from opchain.runtime.operators.source import LegacySourceOperator, SourceOperator
from opchain.runtime.program.vertex_program import DRIVER
from opchain.runtime.records.elements import Buffer
from opchain.runtime.records.record_pickle import dump_records, unpicklable_record
from opchain.runtime.records.wire import PayloadKind, frame, unframe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.runtime.mailbox.mailbox_processor import MailboxStatistics
    from opchain.runtime.operators.operator import StreamOperator, TaskInfo
    from opchain.runtime.task.input.input_gate import InputGate
    from opchain.runtime.task.operator_chain import OperatorChain
    from opchain.runtime.task.output.record_writer import RecordWriter


def measure_task(
    task: TaskInfo,
    chain: OperatorChain,
    chained_sources: Sequence[SourceOperator],
    gate: InputGate | None,
    writers: Sequence[RecordWriter],
    mailbox: MailboxStatistics,
    *,
    counts_only: bool = False,
) -> TaskMetrics:
    """The metrics of a task; `gate` is None for a source.

    With `counts_only`, no metric and no accumulator of a user's function is read, so any thread may call this.

    The input of a vertex consists of the records of its gate and of its sources. Its output consists of the records for
    exchanges. A record that is broadcast counts once, and its bytes count once for each receiver.

    Raises:
        TypeError: An accumulator cannot be pickled.
    """
    latency_ms = Histogram()
    for latency_ns in mailbox.latencies_ns:
        latency_ms.update(latency_ns / 1e6)
    read = chain.head.records_in if gate is None else gate.records_in
    return TaskMetrics(
        subtask=task.subtask,
        attempt=task.attempt,
        records_in=read + sum(source.records_in for source in chained_sources),
        records_out=sum(writer.records_out for writer in writers),
        bytes_in=0 if gate is None else gate.bytes_in,
        bytes_out=sum(writer.bytes_out for writer in writers),
        buffers_in=0 if gate is None else gate.buffers_in,
        buffers_out=sum(writer.buffers_out for writer in writers),
        elapsed_ns=mailbox.busy_ns + mailbox.idle_ns + mailbox.back_pressured_ns,
        idle_ns=mailbox.idle_ns,
        back_pressured_ns=mailbox.back_pressured_ns,
        knows_busy_time=not isinstance(chain.head, LegacySourceOperator),
        mails=mailbox.mails_processed,
        mail_latency_ms=latency_ms.snapshot(),
        longest_mail_queue=mailbox.longest_queue,
        hot_keys=tuple(
            hot
            for writer in writers
            if (hot := writer.hot_keys(is_final=not counts_only)) is not None
        ),
        operators=tuple(
            _counts(chain, operator) if counts_only else _measure_operator(chain, operator)
            for operator in (*chain.operators, *chained_sources)
        ),
    )


def _counts(chain: OperatorChain, operator: StreamOperator) -> OperatorCounts:
    return OperatorCounts(
        records_in=operator.records_in,
        records_out=operator.records_out,
        input_watermarks=_input_watermarks(chain, operator),
        output_watermark=operator.output.current_watermark,
        output_is_idle=operator.output.is_idle,
        split_watermarks=operator.aligned_splits() if isinstance(operator, SourceOperator) else {},
        warning=operator.warning,
    )


def _measure_operator(chain: OperatorChain, operator: StreamOperator) -> OperatorCounts:
    context = operator.context.runtime_context
    return replace(
        _counts(chain, operator),
        registered=context.get_metrics_group().snapshot(),
        latencies={
            source: histogram.snapshot() for source, histogram in operator.latencies.items()
        },
        accumulators={
            name: _pickled(operator, name, accumulator)
            for name, accumulator in context.get_accumulators().items()
        },
    )


def _input_watermarks(chain: OperatorChain, operator: StreamOperator) -> tuple[int, ...]:
    """The watermarks of the inputs. For a chained operator this is the watermark that the operator upstream emitted."""
    if isinstance(operator, SourceOperator):
        return ()
    if operator.program.parent >= 0:
        return (chain.outputs[operator.program.parent].current_watermark,)
    return tuple(chain.input_watermarks)


def _pickled(operator: StreamOperator, name: str, accumulator: Any) -> bytes:
    try:
        return dump_records(accumulator)
    except Exception as error:
        program = operator.program
        raise TypeError(
            f"{program.label}: the accumulator '{name}', a "
            f"{type(accumulator).__name__}, cannot be pickled ({type(error).__name__}: {error}), "
            f"so it cannot be sent to the driver; keep plain values in it"
        ) from error


ITEMS_PER_BUFFER = 1024

RECORD_KINDS = frozenset({"collect", "print"})
"""The kinds of items whose value is a list of records. Items of one kind and target are sent together."""

RecordKey = tuple[str, Any]
"""The kind and the target of records: a sink's uid, or whether lines go to stderr."""


@dataclass(frozen=True, slots=True)
class TaskReport:
    """The last item of a task: its metrics. `attempt` counts Spark's retries in a bounded job, from 0."""

    task: int
    attempt_id: str
    metrics: TaskMetrics
    attempt: int = 0


class DriverChannel:
    """Sends items from a task to the driver; the report is the last one.

    `take_collected` gets the records of collecting sinks at once. Without it they are sent, too.
    """

    def __init__(
        self,
        task: int,
        emit: Callable[[Buffer], None],
        take_collected: Callable[[str, list[Any]], None] | None = None,
    ) -> None:
        self._task = task
        self._emit = emit
        self._take_collected = take_collected
        self._sequence = 0
        self._items: list[Any] = []
        self._records: dict[RecordKey, list[Any]] = {}

    def begin_epoch(self) -> None:
        """Restarts the numbering of buffers."""
        self._sequence = 0

    def send(self, item: tuple[str, Any, Any]) -> None:
        """Sends (kind, where, value): a committable, a state handle, a list of collected records.

        Raises:
            UnpicklableRecordError: A record cannot be pickled, perhaps one of an earlier call.
        """
        kind, where, value = item
        if kind == "collect" and self._take_collected is not None:
            # Through bytes, so that the program and the job share no object.
            self._take_collected(where, pickle.loads(_dumped(value)))
        elif kind in RECORD_KINDS:
            records = self._records.setdefault((kind, where), [])
            records += value
            if len(records) >= ITEMS_PER_BUFFER:
                self._send_records(kind, where)
        else:
            self._items.append(item)
            if len(self._items) >= ITEMS_PER_BUFFER:
                self._send_items()

    def flush(self) -> None:
        """Sends all waiting items."""
        for kind, where in list(self._records):
            self._send_records(kind, where)
        if self._items:
            self._send_items()

    def finish(self, report: TaskReport) -> None:
        """Sends the report, the last item."""
        self._items.append(report)
        self.flush()

    def _send_records(self, kind: str, where: Any) -> None:
        body = _dumped(self._records.pop((kind, where)))
        self._send(PayloadKind.RECORDS, pickle.dumps((kind, where), protocol=5) + body)

    def _send_items(self) -> None:
        self._send(PayloadKind.REPORT, dump_records(self._items))
        self._items = []

    def _send(self, kind: PayloadKind, body: bytes) -> None:
        self._emit(Buffer(DRIVER, 0, self._task, self._sequence, frame(kind, body)))
        self._sequence += 1


def _dumped(records: list[Any]) -> bytes:
    try:
        return dump_records(records)
    except MemoryError:
        raise
    except Exception as error:
        unpicklable = unpicklable_record(records)
        if unpicklable is None:
            raise
        raise unpicklable from error


def read_items(buffer: Buffer) -> list[Any]:
    """The acknowledgements in a buffer. The report is the last item of the last buffer."""
    items: list[Any] = pickle.loads(unframe(PayloadKind.REPORT, buffer.payload))
    return items


def record_key(buffer: Buffer) -> RecordKey:
    """The kind and target of the records in a buffer, which are not read."""
    kind, where = pickle.loads(unframe(PayloadKind.RECORDS, buffer.payload))
    return kind, where


def read_records(buffer: Buffer) -> list[Any]:
    """The records in a buffer."""
    file = io.BytesIO(unframe(PayloadKind.RECORDS, buffer.payload))
    pickle.load(file)
    records: list[Any] = pickle.load(file)
    return records
