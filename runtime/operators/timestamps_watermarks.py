"""Assigns timestamps to records, and generates watermarks.

Flink: `TimestampsAndWatermarksOperator`. Watermarks from upstream are dropped, except the last one, which marks the
end of the input. Flink asks generators for periodic watermarks by the clock, so the clock decides which records are
late. Here generators are asked after each batch, so the same input always gives the same watermarks.

The clock that generators see depends on the job:

- Bounded job: the clock stands still, so an idle timeout never expires. A generator can still mark its output idle.
- Unbounded job on Spark: the clock shows the time of the epoch, and a due timeout begins an epoch.
- Unbounded job in process: the clock is the machine's. Generators are also asked at the auto watermark interval.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import StateError, short_repr
from opchain.runtime.functions.callables import name_of
from opchain.runtime.operators.operator import OperatorContext, Output, StreamOperator
from opchain.runtime.records.record_pickle import dump_records
from opchain.runtime.time import MAX_LONG_VALUE, MIN_LONG_VALUE, whole_millis
from opchain.runtime.watermarks.generators import (
    NoWatermarksGenerator,
    WatermarkGenerator,
    WatermarkGeneratorContext,
    WatermarkOutput,
    WatermarksWithIdleness,
)
from opchain.runtime.watermarks.strategy import FunctionTimestampAssigner, WatermarkStrategy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.runtime.mailbox.processing_time_service import TimerHandle
    from opchain.runtime.program.vertex_program import OperatorProgram


class WatermarkEmitter(WatermarkOutput):
    """Emits watermarks that are greater than the last one, and changes of idleness."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._watermark = MIN_LONG_VALUE
        self._is_idle = False

    def emit_watermark(self, timestamp: int) -> None:
        """Emits the watermark if it is greater than the last one, and marks the output active."""
        if timestamp > self._watermark:
            self._watermark = timestamp
            self.mark_active()
            self._output.emit_watermark(timestamp)

    @property
    def emitted(self) -> tuple[int, bool]:
        """The last watermark, and whether the output is idle. Setting it emits nothing."""
        return self._watermark, self._is_idle

    @emitted.setter
    def emitted(self, emitted: tuple[int, bool]) -> None:
        self._watermark, self._is_idle = emitted

    def mark_idle(self) -> None:
        """Emits the status idle, so that downstream does not wait."""
        if not self._is_idle:
            self._is_idle = True
            self._output.emit_status(is_idle=True)

    def mark_active(self) -> None:
        """Emits the status active."""
        if self._is_idle:
            self._is_idle = False
            self._output.emit_status(is_idle=False)


class TimestampsWatermarksOperator(StreamOperator):
    """Assigns timestamps, and emits the watermarks of the strategy.

    `time_of(value, timestamp)` returns the timestamp of a record; it gets -2**63 for a record without one. It is None
    if records keep their timestamps. In batch mode the only watermark is the last one.
    """

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.strategy: WatermarkStrategy[Any] | None = self._strategy_of(program)
        self.time_of = None if self.strategy is None else _assigning(self.strategy)
        self.emitter = WatermarkEmitter(output)
        self.generator: WatermarkGenerator[Any] = NoWatermarksGenerator()
        # The output of the generator. A source with a generator per split replaces it.
        self.generated: WatermarkOutput = self.emitter
        self.is_periodic = context.task.vertex.auto_watermark_interval_ms > 0
        self._idle_check: TimerHandle | None = None

    def _strategy_of(self, program: OperatorProgram) -> WatermarkStrategy[Any] | None:
        strategy: WatermarkStrategy[Any] = program.spec.strategy  # type: ignore[attr-defined]
        return strategy

    def open(self) -> None:
        """Creates the generator."""
        self.generator = self.new_generator()
        interval_ms = self.context.task.vertex.auto_watermark_interval_ms
        if self.context.input_clock_ns is not None and self.strategy is not None and interval_ms:
            # Without records there are no batches, so a timer checks whether the input is idle.
            self.context.processing_time.schedule_at_fixed_rate(
                lambda _: self.ask_generators(), interval_ms, interval_ms
            )

    def new_generator(self) -> WatermarkGenerator[Any]:
        """A generator of the strategy. In batch mode, or without a strategy, it emits nothing."""
        if self.strategy is None or self.context.task.vertex.is_batch:
            return NoWatermarksGenerator()
        context = WatermarkGeneratorContext(self._clock_ns, self.context.metrics)
        return self.strategy.create_watermark_generator(context)

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Emits the record with its new timestamp, and then a watermark if the generator emits one."""
        if self.time_of is not None:
            timestamp = self.time_of(value, MIN_LONG_VALUE if timestamp is None else timestamp)
            if timestamp.__class__ is not int:
                timestamp = self.as_timestamp(timestamp, value)
        self.output.collect(value, timestamp)
        self.generator.on_event(
            value, MIN_LONG_VALUE if timestamp is None else timestamp, self.generated
        )

    def as_timestamp(self, assigned: Any, value: Any) -> int:
        """The timestamp of an assigner as an int.

        Raises:
            TypeError: The assigner did not return a number.
        """
        millis = whole_millis(assigned)
        if millis is None:
            strategy = self.strategy
            assert strategy is not None
            raise TypeError(
                f"the timestamp assigner {_name_of(strategy)} returned {short_repr(assigned)} for the record "
                f"{short_repr(value)}; a timestamp is an int: milliseconds since the epoch"
            )
        return millis

    def saw(self, greatest_timestamp: int) -> None:
        """Passes the greatest timestamp of a batch to the generator. Generated code calls it.

        This is enough for generators that only keep the greatest timestamp. Others are called for each record.
        """
        if greatest_timestamp > MIN_LONG_VALUE:
            self.generator.on_event(None, greatest_timestamp, self.generated)

    def process_watermark(self, watermark: int) -> None:
        """Emits the last watermark, at the end of the input, and marks the output active. Drops all others."""
        if self.strategy is None:
            super().process_watermark(watermark)
        elif watermark == MAX_LONG_VALUE:
            self.current_watermark = watermark
            self.emitter.emit_watermark(watermark)

    def process_status(self, is_idle: bool) -> None:
        """Drops the status, because this operator decides about idleness."""
        if self.strategy is None:
            super().process_status(is_idle)

    def on_batch_end(self) -> None:
        """Asks for a periodic watermark."""
        if self.is_periodic:
            self.generator.on_periodic_emit(self.generated)

    def ask_generators(self) -> None:
        """Asks for a periodic watermark without a batch, because the output may have become idle."""
        self.generator.on_periodic_emit(self.generated)

    def prepare_snapshot(self, checkpoint_id: int) -> None:  # noqa: ARG002 - the contract
        """Registers a timer, so that an epoch begins when the input may have become idle."""
        if self.strategy is not None and self.strategy.idle_timeout is not None:
            # The generator last saw activity at the end of the last batch. The timeout begins now.
            self.ask_generators()
            self.await_idleness()

    def await_idleness(self) -> None:
        """Sets a timer for the first generator that may become idle, in place of the last one."""
        if self._idle_check is not None:
            self._idle_check.cancel()
            self._idle_check = None
        times = [
            at_ns
            for generator in self.active_generators()
            if isinstance(generator, WatermarksWithIdleness)
            and (at_ns := generator.idle_at_ns()) is not None
        ]
        if times:
            at_ms = min(times) // 1_000_000 + 1
            clock = self.context.processing_time
            self._idle_check = clock.register_timer(at_ms, self._check_idleness)

    def _check_idleness(self, _at_ms: int) -> None:
        self._idle_check = None
        self.ask_generators()

    def active_generators(self) -> list[WatermarkGenerator[Any]]:
        """All generators that may emit."""
        return [self.generator]

    def snapshot_event_time(self) -> tuple[tuple[int, bool], bytes]:
        """The last watermark, and the generator.

        Raises:
            StateError: The generator cannot be pickled.
        """
        return self.emitter.emitted, self.pickled_generator(self.generator)

    def restore_event_time(self, snapshot: tuple[tuple[int, bool], bytes]) -> None:
        """Restores the generator, and the timer that `prepare_snapshot` has registered."""
        self.emitter.emitted, generator = snapshot
        self.generator = self.restored_generator(generator)
        self.await_idleness()

    def pickled_generator(self, generator: WatermarkGenerator[Any]) -> bytes:
        """The bytes of a generator, for a checkpoint.

        Raises:
            StateError: The generator cannot be pickled.
        """
        try:
            return dump_records(generator)
        except Exception as error:
            raise StateError(
                f"{self.program.label}: its watermark generator, a "
                f"{type(generator).__name__}, can't be pickled ({type(error).__name__}: "
                f"{error}), so it cannot be stored in a checkpoint; keep plain values in it"
            ) from error

    def restored_generator(self, pickled: bytes) -> WatermarkGenerator[Any]:
        """A generator from a checkpoint. It gets this operator's clock."""
        generator: WatermarkGenerator[Any] = pickle.loads(pickled)
        if isinstance(generator, WatermarksWithIdleness):
            generator.use_clock(self._clock_ns)
        return generator

    def rescale_event_time(self, snapshots: Sequence[tuple[tuple[int, bool], bytes]]) -> None:
        """Continues from the lowest watermark of the subtasks, with a new generator."""
        if snapshots:
            self.emitter.emitted = min(emitted for (emitted, _), _ in snapshots), False

    def _clock_ns(self) -> int:
        """The machine's time, or the time of the epoch, in nanoseconds; always 0 in a bounded job."""
        context = self.context
        if context.input_clock_ns is not None:
            return context.input_clock_ns()
        if not context.runs_in_epochs:
            return 0
        return context.processing_time.current_processing_time() * 1_000_000

    def finish(self) -> None:
        """Asks the generator for a last watermark. The watermark of the end of input was sent, so nothing is emitted."""
        self.generator.on_periodic_emit(self.generated)


def _name_of(strategy: WatermarkStrategy[Any]) -> str:
    assigner: Any = strategy.timestamp_assigner
    if isinstance(assigner, FunctionTimestampAssigner):
        assigner = assigner.function
    return f"'{name_of(assigner)}'"


def _assigning(strategy: WatermarkStrategy[Any]) -> Callable[[Any, int], int] | None:
    assigner = strategy.timestamp_assigner
    if isinstance(assigner, FunctionTimestampAssigner):
        return assigner.function
    return None if assigner is None else assigner.extract_timestamp
