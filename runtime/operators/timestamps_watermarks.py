"""Event time: where records get timestamps, and where watermarks come from.

Flink: `TimestampsAndWatermarksOperator`. Watermarks from upstream end here, all but the last, which
says that the input has ended. Periodic watermarks are asked for after each batch: in Flink the clock
decides when, and with it what is late; here the same input gives the same watermarks. For the same
reason the clock of generators stands still: an idle time-out never comes while a bounded input is
read, and nobody waits for it, because the input ends. A generator may mark its output idle by itself.
"""

from __future__ import annotations

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


class TimestampsWatermarksOperator(StreamOperator):
    """Assigns timestamps, and emits watermarks as the strategy says.

    `time_of(value, timestamp)` gives a record its timestamp, -2**63 standing for none; it is None where
    records keep those that they have. In batch mode records get timestamps, and the only watermark
    is the last one.
    """

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.strategy: WatermarkStrategy[Any] | None = self._strategy_of(program)
        self.time_of = None if self.strategy is None else _assigning(self.strategy)
        self.emitter = WatermarkEmitter(output)
        self.generator: WatermarkGenerator[Any] = NoWatermarksGenerator()
        self.is_periodic = context.task.vertex.auto_watermark_interval_ms > 0

    def _strategy_of(self, program: OperatorProgram) -> WatermarkStrategy[Any] | None:
        strategy: WatermarkStrategy[Any] = program.spec.strategy  # type: ignore[attr-defined]
        return strategy

    def open(self) -> None:
        """Makes the generator."""
        if self.strategy is not None and not self.context.task.vertex.is_batch:
            context = WatermarkGeneratorContext(_standing_clock, self.context.metrics)
            self.generator = self.strategy.create_watermark_generator(context)

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Emits the record with its new timestamp, and then perhaps a watermark."""
        if self.time_of is not None:
            timestamp = self.time_of(value, MIN_LONG_VALUE if timestamp is None else timestamp)
        self.output.collect(value, timestamp)
        self.generator.on_event(
            value, MIN_LONG_VALUE if timestamp is None else timestamp, self.emitter
        )

    def saw(self, greatest_timestamp: int) -> None:
        """Takes note of a batch by its greatest timestamp: what generated code calls.

        Enough for the generators that keep nothing else; the others run record by record.
        """
        if greatest_timestamp > MIN_LONG_VALUE:
            self.generator.on_event(None, greatest_timestamp, self.emitter)

    def process_watermark(self, watermark: int) -> None:
        """Lets only the last watermark through: the input has ended, and is idle no more."""
        if self.strategy is None:
            super().process_watermark(watermark)
        elif watermark == MAX_LONG_VALUE:
            self.current_watermark = watermark
            self.emitter.emit_watermark(watermark)

    def process_status(self, is_idle: bool) -> None:
        """Idleness is decided here anew."""
        if self.strategy is None:
            super().process_status(is_idle)

    def on_batch_end(self) -> None:
        """Asks for a periodic watermark."""
        if self.is_periodic:
            self.generator.on_periodic_emit(self.emitter)

    def finish(self) -> None:
        """Asks the generator a last time. Event time is over by then: nothing of it comes through."""
        self.generator.on_periodic_emit(self.emitter)


def _assigning(strategy: WatermarkStrategy[Any]) -> Callable[[Any, int], int] | None:
    assigner = strategy.timestamp_assigner
    if isinstance(assigner, FunctionTimestampAssigner):
        return assigner.function
    return None if assigner is None else assigner.extract_timestamp


def _standing_clock() -> int:
    """Nanoseconds of a clock that stands still."""
    return 0
