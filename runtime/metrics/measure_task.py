"""Reads off what a task has counted, once, when it has processed everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.metrics.histogram import Histogram
from opchain.runtime.metrics.task_metrics import OperatorCounts, TaskMetrics
from opchain.runtime.operators.source import LegacySourceOperator, SourceOperator
from opchain.runtime.task.record_pickle import dump_records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.runtime.operators.context import TaskInfo
    from opchain.runtime.operators.operator import StreamOperator
    from opchain.runtime.task.input_gate import InputGate
    from opchain.runtime.task.mailbox.mailbox_metrics import MailboxStatistics
    from opchain.runtime.task.operator_chain import OperatorChain
    from opchain.runtime.task.record_writer import RecordWriter


def measure_task(
    task: TaskInfo,
    chain: OperatorChain,
    chained_sources: Sequence[SourceOperator],
    gate: InputGate | None,
    writers: Sequence[RecordWriter],
    mailbox: MailboxStatistics,
) -> TaskMetrics:
    """The numbers of a task; `gate` is None for a source.

    What goes into a vertex is what its gate brings and its sources read, what comes out is what it
    hands to exchanges: a record that is broadcast counts once, its bytes once for each receiver.

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
        operators=tuple(
            _measure_operator(chain, operator) for operator in (*chain.operators, *chained_sources)
        ),
    )


def _measure_operator(chain: OperatorChain, operator: StreamOperator) -> OperatorCounts:
    context = operator.context.runtime_context
    return OperatorCounts(
        records_in=operator.records_in,
        records_out=operator.records_out,
        input_watermarks=_input_watermarks(chain, operator),
        output_watermark=operator.output.current_watermark,
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
    """What came in, which is what the operator in front let through."""
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
            f"'{program.name}' ({program.call_site}): the accumulator '{name}', a "
            f"{type(accumulator).__name__}, cannot be pickled ({type(error).__name__}: {error}), and "
            "so cannot travel to the driver; let it hold plain values"
        ) from error
