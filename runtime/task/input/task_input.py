"""The inputs of tasks: exchanges, or a source. SourceFunctions are in legacy_source.py."""

from __future__ import annotations

from abc import ABC, abstractmethod
from time import perf_counter
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import InternalError
from opchain.runtime.operators.source import NOTHING_YET_S
from opchain.runtime.records.columns import Columns
from opchain.runtime.records.elements import (
    MAX_WATERMARK,
    EndOfInput,
    LatencyMarker,
    NothingYet,
    RecordBatch,
    Watermark,
    WatermarkStatus,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from opchain.runtime.mailbox.mailbox_processor import Controller, MailboxProcessor, Suspension
    from opchain.runtime.mailbox.timer_service import TimerService
    from opchain.runtime.records.elements import CheckpointBarrier
    from opchain.runtime.task.input.input_gate import InputElement
    from opchain.runtime.task.input.watermark_valve import InputValves
    from opchain.runtime.task.operator_chain import OperatorChain


LONGEST_TURN_S = 0.02
"""The longest time that a turn should take, so that mail need not wait for a whole batch of slow calls."""

_FIRST_PART = 64
"""The number of records in the first turn, in which the time per record is unknown."""

_CUT = (list, Columns, range)
"""The classes of batches that can be divided into parts."""


class PartedBatches:
    """Passes batches to a chain in parts, one part per turn.

    A part has as many records as earlier parts processed in LONGEST_TURN_S. Unless functions are slow, this is the whole
    batch. `on_batch_end` is called only after the last part. So watermarks and buffers do not depend on the parts.
    """

    __slots__ = ("_at", "_chain", "_number", "_size", "_timestamps", "_values")

    def __init__(self, chain: OperatorChain) -> None:
        self._chain = chain
        self._size = _FIRST_PART
        self._number = self._at = 0
        self._values: Sequence[Any] | None = None
        self._timestamps: Sequence[int | None] | None = None

    @property
    def has_more(self) -> bool:
        """Whether a part of a batch is left."""
        return self._values is not None

    def feed(
        self, number: int, values: Sequence[Any], timestamps: Sequence[int | None] | None
    ) -> None:
        """Takes a batch, and processes its first part."""
        can_be_cut = values.__class__ in _CUT and (
            timestamps is None or timestamps.__class__ is list
        )
        if can_be_cut and len(values) > self._size:
            self._number, self._values, self._timestamps, self._at = number, values, timestamps, 0
            self.process_part()
            return
        began = perf_counter()
        self._chain.process_batch(number, values, timestamps)
        self._measure(len(values), perf_counter() - began)

    def process_part(self) -> None:
        """Processes the next part."""
        values, timestamps, start = self._values, self._timestamps, self._at
        assert values is not None
        end = min(start + self._size, len(values))
        part = None if timestamps is None else timestamps[start:end]
        began = perf_counter()
        self._chain.process_part(self._number, values[start:end], part)
        if end == len(values):
            self._values = self._timestamps = None
            self._chain.on_batch_end()
        else:
            self._at = end
            self._chain.end_part()
        self._measure(end - start, perf_counter() - began)

    def flush(self) -> None:
        """Sends the output of the parts so far. Called before mail, which may emit records too."""
        if self._values is not None:
            self._chain.flush()

    def _measure(self, count: int, took_s: float) -> None:
        if took_s > LONGEST_TURN_S:
            self._size = max(1, int(count * LONGEST_TURN_S / took_s))
        elif count >= self._size and 2 * took_s <= LONGEST_TURN_S:
            self._size *= 2


class TaskInput(ABC):
    """The default action of the task's mailbox loop: one step of input per call."""

    @abstractmethod
    def process_next(self, controller: Controller) -> None:
        """Passes one element to the chain. Ends the loop after the last one."""

    def before_mail(self) -> None:
        """Sends the output of a part of a batch, because mail may emit records too."""

    def close(self) -> None:
        """Releases the input."""


class Waiter:
    """Suspends the default action of a task for a while. The time counts as idle, and mail still runs.

    Args:
        processor: The task's mailbox loop, whose metrics count the time.
        timers: The machine's clock, whose thread resumes the action by mail.
    """

    def __init__(self, processor: MailboxProcessor, timers: TimerService) -> None:
        self._processor = processor
        self._timers = timers

    def wait(self, controller: Controller, batch: Any) -> Suspension:
        """Suspends the task for the time that an empty batch names."""
        wait_s: float = getattr(batch, "wait_s", NOTHING_YET_S)
        suspension = controller.suspend_default_action(self._processor.metrics.idle)
        at_ms = self._timers.current_processing_time() + int(wait_s * 1000)
        self._timers.call_at(at_ms, suspension.resume)
        return suspension


class GateInput(TaskInput):
    """Reads the exchanges. Flink: `StreamOneInputProcessor`, `StreamTwoInputProcessor`."""

    def __init__(
        self,
        elements: Iterable[InputElement],
        valves: InputValves,
        chain: OperatorChain,
        waiter: Waiter | None = None,
    ) -> None:
        self._elements = iter(elements)
        self._valves = valves
        self._chain = chain
        self._waiter = waiter
        self.parts = PartedBatches(chain)

    def process_next(self, controller: Controller) -> None:
        """Passes the next element, or the next part of a batch, to the chain. Watermarks go through their input's valve."""
        if self.parts.has_more:
            self.parts.process_part()
            return
        item = next(self._elements, None)
        if item is None:
            controller.all_actions_completed()
        elif item.element.__class__ is NothingYet:
            assert self._waiter is not None
            self._waiter.wait(controller, item.element)
        else:
            self.feed(item)

    def feed(self, item: InputElement) -> None:
        """Passes one element to the chain."""
        number, channel, element = item
        if element.__class__ is RecordBatch:
            self.parts.feed(number, element.values, element.timestamps)
        else:
            self._process_event(number, channel, element)

    def _process_event(self, number: int, channel: int, element: Any) -> None:
        chain = self._chain
        if isinstance(element, (Watermark, WatermarkStatus)):
            self._combine(number, channel, element)
        elif isinstance(element, EndOfInput):
            chain.end_input(number)
        elif isinstance(element, LatencyMarker):
            chain.head.process_latency_marker(element)
        else:
            raise InternalError(f"a bounded task got {element!r}")

    def _combine(
        self, number: int, channel: int, element: Watermark | WatermarkStatus | CheckpointBarrier
    ) -> None:
        """Passes an element through the valve of its input."""
        for combined in self._valves.combine(number, channel, element):
            if isinstance(combined, Watermark):
                self._chain.process_watermark(number, combined.timestamp)
            else:
                self._chain.process_status(number, is_idle=combined is WatermarkStatus.IDLE)

    def before_mail(self) -> None:
        """See TaskInput."""
        self.parts.flush()


class SourceInput(TaskInput):
    """Reads a source, batch by batch. Flink: `SourceOperatorStreamTask`.

    Args:
        batches: The records of a source's splits.
        chain: The operators.
        waiter: Waits after an empty batch.
        ends: Called at the end of the batches: whether event time ends too.
    """

    def __init__(
        self,
        batches: Iterator[Any],
        chain: OperatorChain,
        waiter: Waiter,
        *,
        ends: Callable[[], bool] = lambda: True,
    ) -> None:
        self._batches = batches
        self._chain = chain
        self._waiter = waiter
        self._ends = ends
        self._parts = PartedBatches(chain)

    def process_next(self, controller: Controller) -> None:
        """Passes the next batch, or the next part of one, to the chain. At the end, passes the last watermark."""
        if self._parts.has_more:
            self._parts.process_part()
            return
        batch = next(self._batches, None)
        if batch is None:
            if self._ends():
                self._chain.process_watermark(0, MAX_WATERMARK)
            controller.all_actions_completed()
            return
        values, timestamps = batch, None
        if batch.__class__ is RecordBatch:
            values, timestamps = batch.values, batch.timestamps
        if len(values):
            self._parts.feed(0, values, timestamps)
        else:
            self._chain.on_batch_end()
            self._waiter.wait(controller, batch)

    def before_mail(self) -> None:
        """See TaskInput."""
        self._parts.flush()

    def close(self) -> None:
        """Closes the reader and its open splits."""
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()
