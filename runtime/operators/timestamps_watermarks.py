"""Event time: where records get timestamps, and where watermarks come from.

Flink: `TimestampsAndWatermarksOperator`. Watermarks from upstream end here, all but the last, which
says that the input has ended. Periodic watermarks are asked for after each batch: in Flink the clock
decides when, and with it what is late; here the same input gives the same watermarks.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from opchain.runtime.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from opchain.runtime.operators.operator import StreamOperator
from opchain.runtime.watermark_generators import (
    NoWatermarksGenerator,
    WatermarkGeneratorContext,
    WatermarkOutput,
)
from opchain.runtime.watermark_strategy import FunctionTimestampAssigner

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.operators.context import OperatorContext
    from opchain.runtime.operators.operator import Output
    from opchain.runtime.task.vertex_program import OperatorProgram
    from opchain.runtime.watermark_generators import WatermarkGenerator
    from opchain.runtime.watermark_strategy import WatermarkStrategy


class WatermarkEmitter(WatermarkOutput):
    """Lets watermarks through that are ahead of the last one, and remembers idleness."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._watermark = MIN_LONG_VALUE
        self._is_idle = False

    def emit_watermark(self, timestamp: int) -> None:
        """Emits it if it is ahead; the output is active then."""
        if timestamp > self._watermark:
            self._watermark = timestamp
            self.mark_active()
            self._output.emit_watermark(timestamp)

    def mark_idle(self) -> None:
        """Tells downstream not to wait."""
        if not self._is_idle:
            self._is_idle = True
            self._output.emit_status(is_idle=True)

    def mark_active(self) -> None:
        """Takes that back."""
        if self._is_idle:
            self._is_idle = False
            self._output.emit_status(is_idle=False)


class EventTimeAssigner:
    """A WatermarkStrategy at work for one subtask."""

    def __init__(
        self, strategy: WatermarkStrategy[Any], output: Output, *, emits_progress: bool
    ) -> None:
        assigner = strategy.create_timestamp_assigner()
        self.time_of: Callable[[Any, int], int] = (
            assigner.function
            if isinstance(assigner, FunctionTimestampAssigner)
            else assigner.extract_timestamp
        )
        self.emitter = WatermarkEmitter(output)
        self.generator: WatermarkGenerator[Any] = (
            strategy.create_watermark_generator(WatermarkGeneratorContext(time.monotonic_ns))
            if emits_progress
            else NoWatermarksGenerator()
        )


class TimestampsWatermarksOperator(StreamOperator):
    """Assigns timestamps, and emits watermarks as the strategy says.

    In batch mode records get timestamps, and the only watermark is the last one.
    """

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.strategy: WatermarkStrategy[Any] | None = self._strategy_of(program)
        self.event_time: EventTimeAssigner | None = None
        self.is_periodic = context.task.vertex.auto_watermark_interval_ms > 0

    def _strategy_of(self, program: OperatorProgram) -> WatermarkStrategy[Any] | None:
        strategy: WatermarkStrategy[Any] = program.spec.strategy  # type: ignore[attr-defined]
        return strategy

    @property
    def time_of(self) -> Callable[[Any, int], int]:
        """The function that gives a record its timestamp."""
        assert self.event_time is not None
        return self.event_time.time_of

    def open(self) -> None:
        """Makes the assigner and the generator."""
        if self.strategy is not None:
            self.event_time = EventTimeAssigner(
                self.strategy,
                self.output,
                emits_progress=not self.context.task.vertex.is_batch,
            )

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Emits the record with its new timestamp, and then perhaps a watermark."""
        event_time = self.event_time
        if event_time is None:
            self.output.collect(value, timestamp)
            return
        timestamp = event_time.time_of(value, MIN_LONG_VALUE if timestamp is None else timestamp)
        self.output.collect(value, timestamp)
        event_time.generator.on_event(value, timestamp, event_time.emitter)

    def saw(self, greatest_timestamp: int) -> None:
        """Takes note of a batch by its greatest timestamp: what generated code calls.

        Enough for the generators that keep nothing else; the others run record by record.
        """
        if self.event_time is not None and greatest_timestamp > MIN_LONG_VALUE:
            self.event_time.generator.on_event(None, greatest_timestamp, self.event_time.emitter)

    def process_watermark(self, watermark: int) -> None:
        """Lets only the last watermark through."""
        if self.event_time is None or watermark == MAX_LONG_VALUE:
            super().process_watermark(watermark)

    def process_status(self, is_idle: bool) -> None:
        """Idleness is decided here anew."""
        if self.event_time is None:
            super().process_status(is_idle)

    def on_batch_end(self) -> None:
        """Asks for a periodic watermark."""
        if self.event_time is not None and self.is_periodic:
            self.event_time.generator.on_periodic_emit(self.event_time.emitter)

    def finish(self) -> None:
        """Asks for a last periodic watermark."""
        if self.event_time is not None:
            self.event_time.generator.on_periodic_emit(self.event_time.emitter)
