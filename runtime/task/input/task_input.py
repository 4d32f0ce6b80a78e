"""Where a task's records come from: an input gate, a source that is read, or a source that runs."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from opchain.runtime.errors import InternalError
from opchain.runtime.functions.source_sink_functions import SourceFunction
from opchain.runtime.mailbox.legacy_source_thread import LegacySourceThread
from opchain.runtime.mailbox.task_mailbox import MailboxClosedError
from opchain.runtime.records.elements import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    EndOfInput,
    LatencyMarker,
    RecordBatch,
    Watermark,
    WatermarkStatus,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from opchain.runtime.mailbox.default_action import Controller
    from opchain.runtime.mailbox.mailbox_processor import MailboxProcessor
    from opchain.runtime.mailbox.task_action_executor import SynchronizedTaskActionExecutor
    from opchain.runtime.mailbox.timer_service import TimerService
    from opchain.runtime.operators.source import LegacySourceOperator
    from opchain.runtime.task.input.input_gate import InputElement
    from opchain.runtime.task.input.watermark_valve import InputValves
    from opchain.runtime.task.operator_chain import OperatorChain


class TaskInput(Protocol):
    """One step of input at a time: the default action of the task's mailbox loop."""

    def process_next(self, controller: Controller) -> None:
        """Feeds the chain with one element; completes the loop when there are no more."""

    def close(self) -> None:
        """Releases what the input holds."""


class GateInput:
    """Reads the exchanges. Flink: `StreamOneInputProcessor`, `StreamTwoInputProcessor`."""

    def __init__(
        self, elements: Iterable[InputElement], valves: InputValves, chain: OperatorChain
    ) -> None:
        self._elements = iter(elements)
        self._valves = valves
        self._chain = chain

    def process_next(self, controller: Controller) -> None:
        """Feeds the next element; watermarks go through the valve of their input."""
        item = next(self._elements, None)
        if item is None:
            controller.all_actions_completed()
        else:
            self.feed(item)

    def feed(self, item: InputElement) -> None:
        """Feeds one element."""
        number, channel, element = item
        chain = self._chain
        if element.__class__ is RecordBatch:
            chain.process_batch(number, element.values, element.timestamps)
        else:
            self._process_event(number, channel, element)

    def _process_event(self, number: int, channel: int, element: Any) -> None:
        chain = self._chain
        if isinstance(element, (Watermark, WatermarkStatus)):
            for combined in self._valves.combine(number, channel, element):
                if isinstance(combined, Watermark):
                    chain.process_watermark(number, combined.timestamp)
                else:
                    chain.process_status(number, is_idle=combined is WatermarkStatus.IDLE)
        elif isinstance(element, EndOfInput):
            chain.end_input(number)
        elif isinstance(element, LatencyMarker):
            chain.head.process_latency_marker(element)
        else:
            raise InternalError(f"a bounded task got {element!r}")

    def close(self) -> None:
        """Nothing is held."""


class SourceInput:
    """Reads a source, batch by batch. Flink: `SourceOperatorStreamTask`.

    Args:
        batches: The records of a source's splits.
        chain: What is fed.
        ends: Whether event time is over when they are; asked then.
    """

    def __init__(
        self,
        batches: Iterator[Any],
        chain: OperatorChain,
        *,
        ends: Callable[[], bool] = lambda: True,
    ) -> None:
        self._batches = batches
        self._chain = chain
        self._ends = ends

    def process_next(self, controller: Controller) -> None:
        """Feeds the next batch; at the end the last watermark."""
        batch = next(self._batches, None)
        if batch is None:
            if self._ends():
                self._chain.process_watermark(0, MAX_WATERMARK)
            controller.all_actions_completed()
        elif batch.__class__ is RecordBatch:
            self._chain.process_batch(0, batch.values, batch.timestamps)
        else:
            self._chain.process_batch(0, batch, None)

    def close(self) -> None:
        """Ends the reader, which closes what it has open."""
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()


class _FunctionContext(SourceFunction.SourceContext[Any]):
    """What a SourceFunction's `run` gets: records gather to batches under the checkpoint lock."""

    def __init__(self, owner: LegacySourceInput, collect: Any, lock: Any) -> None:
        self._owner = owner
        self._collect = collect
        self._lock = lock

    def collect(self, element: Any) -> None:
        """Emits a record without a timestamp."""
        self._collect((element, None))

    def collect_with_timestamp(self, element: Any, timestamp: int) -> None:
        """Emits a record with its event time."""
        self._collect((element, timestamp))

    def emit_watermark(self, timestamp: int) -> None:
        """Emits what was collected, then the watermark."""
        self._collect(Watermark(timestamp))

    def mark_as_temporarily_idle(self) -> None:
        """Emits what was collected, then the idleness."""
        self._collect(WatermarkStatus.IDLE)

    def get_checkpoint_lock(self) -> Any:
        """The lock that the task's mail takes too."""
        return self._lock


class LegacySourceInput:
    """Runs a SourceFunction on a thread of its own. Flink: `SourceStreamTask`.

    Records gather to batches. In a live run they go on after `flush_after_ms`, by a timer whose call is mail; in
    a bounded job, where the clock decides nothing, when a batch is full. What fails downstream is raised in the function's `collect`. It fails the task also where the function
    catches it: part of a batch is lost by then.
    """

    def __init__(
        self,
        operator: LegacySourceOperator,
        chain: OperatorChain,
        processor: MailboxProcessor,
        action_executor: SynchronizedTaskActionExecutor,
        batch_size: int,
        timers: TimerService,
        flush_after_ms: int | None = None,
    ) -> None:
        self._chain = chain
        self._batch_size = batch_size
        self._values: list[Any] = []
        self._timestamps: list[int | None] = []
        self._has_output = processor.mailbox_executor()
        self._timers = timers
        self._flush_after_ms = flush_after_ms
        self._is_idle = False
        self._watermark = MIN_WATERMARK
        self._processor = processor
        operator.hand_over = self._hand_over

        def run(context: Any) -> None:
            source_context = _FunctionContext(self, context.collect, context.lock)
            operator.run(source_context)
            source_context.close()

        self._thread: LegacySourceThread[Any] = LegacySourceThread(
            operator.program.name,
            run,
            self._deliver,
            processor=processor,
            action_executor=action_executor,
            cancel=operator.function.cancel,
            on_finished=self._finish,
        )
        self.process_next = self._thread.default_action

    def _deliver(self, element: Any) -> None:
        """Takes a (record, timestamp) or an event, in the source's thread and under the lock."""
        try:
            self._take(element)
        except Exception as error:
            self._processor.report_error(error)
            raise

    def _take(self, element: Any) -> None:
        if element.__class__ is tuple:
            self._activate()
            self._values.append(element[0])
            self._timestamps.append(element[1])
            if len(self._values) >= self._batch_size or self._flush_after_ms == 0:
                self._hand_over()
                self._has_output.execute(_do_nothing, "yield what a legacy source filled")
            elif len(self._values) == 1 and self._flush_after_ms is not None:
                # The first of a batch: what comes until then goes along.
                at_ms = self._timers.current_processing_time() + self._flush_after_ms
                self._timers.call_at(at_ms, self._send_flush)
        elif element.__class__ is Watermark:
            self._emit_watermark(element.timestamp)
        elif not self._is_idle:
            self._hand_over()
            self._is_idle = True
            self._chain.head.process_status(is_idle=True)

    def _send_flush(self) -> None:
        """In the thread of the timers."""
        with suppress(MailboxClosedError):  # the task has ended
            self._has_output.execute(self._hand_over, "flush a legacy source")

    def _activate(self) -> None:
        if self._is_idle:
            self._is_idle = False
            self._chain.head.process_status(is_idle=False)

    def _emit_watermark(self, timestamp: int) -> None:
        self._activate()
        self._hand_over()
        # One that falls back is dropped here as it would be behind any exchange.
        if timestamp > self._watermark:
            self._watermark = timestamp
            self._chain.process_watermark(0, timestamp)

    def _hand_over(self) -> None:
        if self._values:
            values, timestamps = self._values, self._timestamps
            self._values, self._timestamps = [], []
            self._chain.process_batch(0, values, timestamps)

    def _finish(self) -> None:
        self._emit_watermark(MAX_WATERMARK)

    def close(self) -> None:
        """Cancels the source and waits for its thread."""
        self._thread.cancel()
        self._thread.join()


def _do_nothing() -> None:
    """Mail whose only use is that the loop takes a turn."""
