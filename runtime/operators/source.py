"""Sources at the head of a chain: operators that read splits, and operators of legacy source functions.

A subtask always reads next from the split with the lowest watermark. So splits advance together in event time, and
windows close while the source is read. Only the records decide the order, so the same input is always read in the same
order. Flink reads the splits of a FileSource one after the other, in an order that depends on timing. There, records of
the second split may be late after those of the first.
"""

from __future__ import annotations

import heapq
from itertools import groupby
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from opchain.runtime.connectors.dataframe_source import SparkRowSource
from opchain.runtime.functions.source import Source, SourceReaderContext
from opchain.runtime.operators.timestamps_watermarks import TimestampsWatermarksOperator
from opchain.runtime.records.elements import LatencyMarker, NothingYet, RecordBatch
from opchain.runtime.time import MAX_LONG_VALUE
from opchain.runtime.watermarks.splits import AlignmentGroup, CombinedWatermarks, SplitWatermarks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from opchain.runtime.metrics.metric_group import MetricGroup
    from opchain.runtime.operators.operator import OperatorContext, Output
    from opchain.runtime.program.vertex_program import OperatorProgram
    from opchain.runtime.types.output_tag import OutputTag
    from opchain.runtime.watermarks.generators import WatermarkGenerator
    from opchain.runtime.watermarks.strategy import WatermarkStrategy

NOTHING_YET_S = 0.01
"""How long to wait before a source that returned an empty batch is read again."""

MOST_OPEN = 32
"""How many splits are open at once, if the source can reopen them. Each open file has a block of 512 KB in memory."""


class SplitReader:
    """The open splits of one subtask.

    Args:
        source: Reads a split.
        splits: The splits, each with its watermarks.
        batch_size: How many records a batch has.
        enter: Called before a split's turn.
        leave: Called when all records of a split have been read.
        is_endless: Whether the splits are unbounded. Then they are read in turn, whatever their watermarks.
        limit: The greatest watermark at which a split may continue; None if the source waits for no others.
        pause: Waits for a short time, if all splits must wait.
    """

    def __init__(
        self,
        source: Source[Any],
        splits: Sequence[tuple[Any, SplitWatermarks]],
        batch_size: int,
        *,
        enter: Callable[[SplitWatermarks], None],
        leave: Callable[[SplitWatermarks], None],
        is_endless: bool = False,
        limit: Callable[[], int] | None = None,
        pause: Callable[[], None] | None = None,
    ) -> None:
        self._source = source
        self._splits = splits
        self._batch_size = batch_size
        self._enter = enter
        self._leave = leave
        self._is_endless = is_endless
        self._limit = limit
        self._pause = pause
        self._open: dict[int, Iterator[Any]] = {}
        self._records_read = [0] * len(splits)

    def batches(self) -> Iterator[Any]:
        """The batches of all splits. Each must be processed before the next one is requested."""
        waiting = [(split.watermark, number) for number, (_, split) in enumerate(self._splits)]
        # Splits without records, and splits that are ahead. If there are no others, the task waits for the first of them.
        waits_s: dict[int, float] = {}
        heapq.heapify(waiting)
        turn = passed_over = 0
        try:
            while waiting:
                _, number = heapq.heappop(waiting)
                split = self._splits[number][1]
                if self._limit is not None and split.watermark > self._limit():
                    waits_s[number] = NOTHING_YET_S
                    passed_over += 1
                    # The split with the lowest watermark is ahead, so all others are too.
                    if not self._is_endless or passed_over > len(waiting):
                        passed_over = 0
                        waits_s.clear()
                        if self._pause is not None:
                            self._pause()
                        yield []  # so that the task runs its mail
                else:
                    passed_over = 0
                    self._enter(split)
                    batch = next(self._reader(number), None)
                    if batch is None:
                        del self._open[number]
                        waits_s.pop(number, None)
                        self._leave(split)
                        continue
                    length = len(_values(batch))
                    self._records_read[number] += length
                    if length or not self._is_endless:
                        waits_s.clear()
                        yield batch
                    else:
                        waits_s[number] = getattr(batch, "wait_s", NOTHING_YET_S)
                if len(waits_s) > len(waiting):
                    yield NothingYet(min(waits_s.values()))
                    waits_s.clear()
                turn += 1
                # An unbounded split may have no records for long, so the others must not wait for it.
                heapq.heappush(waiting, (turn if self._is_endless else split.watermark, number))
        finally:
            for reader in self._open.values():
                _close(reader)

    def _reader(self, number: int) -> Iterator[Any]:
        reader = self._open.get(number)
        if reader is None:
            if len(self._open) >= MOST_OPEN:
                self._close_furthest_ahead()
            split, read = self._splits[number][0], self._records_read[number]
            if read:
                split = self._source.split_after(split, read)
            reader = self._source.read(split, self._batch_size)
            if self._limit is not None:
                reader = _in_slices(reader, self._splits[number][1], self._limit)
            self._open[number] = reader
        return reader

    def _close_furthest_ahead(self) -> None:
        """Closes the split with the highest watermark, if the source can reopen it."""
        number = max(self._open, key=lambda each: (self._splits[each][1].watermark, each))
        split = self._splits[number][0]
        if self._source.split_after(split, self._records_read[number]) is not None:
            _close(self._open.pop(number))


def _in_slices(
    batches: Iterator[Any], split: SplitWatermarks, limit: Callable[[], int]
) -> Iterator[Any]:
    """The batches of a split in slices that should take its watermark at most halfway to the limit.

    The first slice has one record. Each following slice has as many as the last one's progress in event time suggests,
    and at most twice as many as the last one. A single record may still pass the limit, as in Flink.
    """
    size, before = 1, split.watermark
    try:
        for batch in batches:
            start, length = 0, len(_values(batch))
            if not length:
                yield batch
            while start < length:
                yield _slice(batch, start, start + size)
                start += size
                progress, before = split.watermark - before, split.watermark
                most = size * ((limit() - before) // 2) // progress if progress else 2 * size
                size = max(1, min(2 * size, most))
    finally:
        _close(batches)


def _values(batch: Any) -> Any:
    return batch.values if batch.__class__ is RecordBatch else batch


def _slice(batch: Any, start: int, end: int) -> Any:
    if batch.__class__ is not RecordBatch:
        return batch[start:end]
    timestamps = batch.timestamps
    return RecordBatch(batch.values[start:end], timestamps and timestamps[start:end])


def _close(reader: Iterator[Any]) -> None:
    close = getattr(reader, "close", None)
    if close is not None:
        close()


_LONGEST_PAUSE_S = 0.05
"""How long a source waits for slower sources before its task runs its mail."""


class SourceOperator(TimestampsWatermarksOperator):
    """Reads this subtask's splits, batch by batch, under the source's watermark strategy.

    Each split has its own watermark generator, and the source's watermark is the minimum over its active splits (see
    Source). A source without splits, such as a DataFrame, has one generator per subtask.

    Flink: `SourceOperator`.

    Attributes:
        hand_over: Emits the records of an incomplete batch, so that no marker overtakes them.
        splits: The active splits.
    """

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.hand_over: Callable[[], None] | None = None
        self.splits = CombinedWatermarks(self.emitter, self.new_generator)
        self._paused_ns = 0
        # The generators of all subtasks' splits, after a rescale. The subtask takes those of its splits later.
        self._restored_splits: dict[str, tuple[str, int, bool, bytes]] = {}

    def _strategy_of(self, program: OperatorProgram) -> WatermarkStrategy[Any] | None:
        strategy: WatermarkStrategy[Any] | None = getattr(program.spec, "watermark_strategy", None)
        return strategy

    @property
    def source(self) -> Source[Any]:
        """The connector."""
        spec = self.program.spec
        source: Source[Any] = getattr(spec, "source", None) or spec.function  # type: ignore[attr-defined]
        return source

    def open(self) -> None:
        """Creates the assigner and the generator, opens the source, and starts latency markers if they are enabled."""
        super().open()
        self.source.open(_ReaderContext(self))
        self.send_latency_markers()

    def send_latency_markers(self) -> None:
        """Sends a marker now and every `metrics.latency.interval`.

        After a pause, such as the time between two epochs, the task sends one marker, not one per interval.
        Flink: `LatencyMarkerEmitter`, at a fixed rate.
        """
        interval_ms = self.context.task.vertex.latency_interval_ms
        if interval_ms > 0:
            self.context.mailbox.execute(self._send_latency_marker, "latency marker")
            self.context.marker_time.schedule_with_fixed_delay(
                self._send_latency_marker, interval_ms, interval_ms
            )

    def _send_latency_marker(self, _at_ms: int = 0) -> None:
        if self.hand_over is not None:
            self.hand_over()
        now_ms = self.context.marker_time.current_processing_time()
        marker = LatencyMarker(now_ms, self.program.operator_id, self.context.task.subtask)
        self.output.emit_latency_marker(marker)

    @property
    def has_split_watermarks(self) -> bool:
        """Whether the source has a watermark strategy, so that each split needs a generator."""
        strategy = self.strategy
        return (
            strategy is not None
            and not self.context.task.vertex.is_batch
            and strategy.makes_watermarks
        )

    def batches(self) -> Iterator[Sequence[Any]]:
        """The records of this subtask's splits."""
        task, source = self.context.task, self.source
        batch_size = task.vertex.batch_size
        if isinstance(source, SparkRowSource):
            assert self.context.feed is not None, "the engine feeds DataFrames"
            yield from source.read(self.context.feed, batch_size)
            return
        splits = source.splits(task.vertex.parallelism)[task.subtask]
        names = [
            source.split_name(split) or f"split {number}" for number, split in enumerate(splits)
        ]
        named = zip(splits, names, strict=True)
        last = max(map(source.split_stage, splits), default=0)
        for stage, found in groupby(named, lambda each: source.split_stage(each[0])):
            round_ = list(found)
            # In a chain of sources, only the last one may be unbounded.
            is_endless = not source.is_bounded and stage == last
            if self.has_split_watermarks or (is_endless and len(round_) > 1):
                splits_now, names_now = zip(*round_, strict=True)
                yield from self._by_turns(splits_now, names_now, ends=True, is_endless=is_endless)
            else:
                for split, _ in round_:
                    yield from source.read(split, batch_size)
        if self.has_split_watermarks:
            self._report_watermark(MAX_LONG_VALUE)

    def delivered_batches(self, deliveries: Iterable[bytes]) -> Iterator[Sequence[Any]]:
        """The records of the splits that the driver has sent to this subtask for an epoch."""
        source = self.source
        found: dict[str, Any] = {}
        for delivery in deliveries:
            splits = source.delivered_splits(delivery) if self.has_split_watermarks else None
            if splits is None:
                yield from source.read_delivery(delivery, self.context.task.vertex.batch_size)
            else:
                found.update(splits)
        # Another subtask reads a split that is missing among others.
        has_moved = found and not source.splits_end
        for split in self.splits:
            if split.name not in found:
                (self._release if has_moved else self.splits.close)(split)
        for name in found:
            self.splits.open(self._register(name))
        yield from self._by_turns(list(found.values()), list(found), ends=source.splits_end)

    def _by_turns(
        self, splits: Sequence[Any], names: Sequence[str], *, ends: bool, is_endless: bool = False
    ) -> Iterator[Sequence[Any]]:
        """The records of splits, each with its own generator. `ends` says whether the splits end with these records."""
        # All splits hold the watermark back before the first one is read.
        watermarks = [self._register(name) for name in names]
        reader = SplitReader(
            self.source,
            list(zip(splits, watermarks, strict=True)),
            self.context.task.vertex.batch_size,
            enter=self._enter,
            leave=self._release if ends else self.splits.close,
            is_endless=is_endless,
            limit=None if self._alignment is None else self._greatest_watermark,
            pause=self._pause,
        )
        yield from reader.batches()

    def _register(self, name: str) -> SplitWatermarks:
        split = self.splits.register(name)
        restored = self._restored_splits.pop(name, None)
        if restored is not None:
            _, split.watermark, split.is_idle, generator = restored
            split.generator = self.restored_generator(generator)
        return split

    def _enter(self, split: SplitWatermarks) -> None:
        self.generator, self.generated = split.generator, split

    def _release(self, split: SplitWatermarks) -> None:
        self.splits.release(split)
        if not len(self.splits):
            # Without splits this generator decides when the source is idle.
            self.generator, self.generated = self.new_generator(), self.emitter

    def begin_epoch(self) -> None:
        """Opens all splits, because the epoch may have records of them."""
        super().begin_epoch()
        for split in self.splits:
            self.splits.open(split)

    def on_batch_end(self) -> None:
        """Asks for a periodic watermark, and reports to the alignment group."""
        super().on_batch_end()
        self._report_watermark()

    def ask_generators(self) -> None:
        """Asks the generators of all splits."""
        if self.generated is self.emitter:
            super().ask_generators()
        for split in self.splits:
            split.generator.on_periodic_emit(split)
        self._report_watermark()

    @property
    def _alignment(self) -> tuple[AlignmentGroup, int] | None:
        """The alignment group of the source, and its maximum drift in milliseconds."""
        strategy, groups = self.strategy, self.context.alignment
        if groups is None or strategy is None or strategy.alignment is None:
            return None
        if not strategy.makes_watermarks:
            return None  # its last watermark would hold the others back forever
        parameters = strategy.alignment
        drift_ms = parameters.max_allowed_watermark_drift.to_millis()
        return groups[parameters.watermark_group], drift_ms

    def aligned_splits(self) -> dict[str, int]:
        """The watermark of each split, by name; empty if the source is in no alignment group."""
        if self.strategy is None or self.strategy.alignment is None:
            return {}
        return {split.name: split.watermark for split in self.splits}

    def _report_watermark(self, watermark: int | None = None) -> None:
        alignment = self._alignment
        if alignment is not None:
            emitted, is_idle = self.emitter.emitted
            if watermark is None:
                watermark = MAX_LONG_VALUE if is_idle else emitted
            alignment[0].report((self.context.task.task, self.program.index), watermark)

    def _greatest_watermark(self) -> int:
        """The greatest watermark at which a split may continue."""
        assert self._alignment is not None
        group, drift_ms = self._alignment
        return group.limit(drift_ms)

    def _pause(self) -> None:
        """Waits for slower sources. This does not count as idleness, so the clock of idleness stops."""
        assert self._alignment is not None
        group, drift_ms = self._alignment
        began_ns = perf_counter_ns()
        group.wait(min(split.watermark for split in self.splits), drift_ms, _LONGEST_PAUSE_S)
        self._paused_ns += perf_counter_ns() - began_ns

    def _clock_ns(self) -> int:
        return super()._clock_ns() - self._paused_ns

    def active_generators(self) -> list[WatermarkGenerator[Any]]:
        """The watermark generators of the splits; without splits, the one of the subtask."""
        own = [self.generator] if self.generated is self.emitter else []
        return own + [split.generator for split in self.splits]

    def snapshot_event_time(self) -> Any:
        """The last watermark, and the generators of the subtask and of its splits.

        Raises:
            StateError: A generator cannot be pickled.
        """
        has_own = self.generated is self.emitter
        return (
            self.emitter.emitted,
            self.pickled_generator(self.generator) if has_own else None,
            [
                (
                    split.name,
                    split.watermark,
                    split.is_idle,
                    self.pickled_generator(split.generator),
                )
                for split in self.splits
            ],
        )

    def restore_event_time(self, snapshot: Any) -> None:
        """Continues with restored generators."""
        emitted, generator, splits = snapshot
        self.emitter.emitted = emitted
        if generator is not None:
            self.generator = self.restored_generator(generator)
        for split in self.splits:
            self.splits.release(split)
        self._restored_splits = {split[0]: split for split in splits}
        for name in list(self._restored_splits):
            self._enter(self._register(name))
        self.await_idleness()

    def rescale_event_time(self, snapshots: Sequence[Any]) -> None:
        """Continues from the lowest watermark of the subtasks. Each split continues from its own generator."""
        super().rescale_event_time([(emitted, b"") for emitted, _, _ in snapshots])
        self._restored_splits = {split[0]: split for _, _, splits in snapshots for split in splits}

    def close(self) -> None:
        """Closes the source."""
        super().close()
        self.source.close()


class _ReaderContext(SourceReaderContext):
    """The context of a source: what its operator offers."""

    def __init__(self, operator: SourceOperator) -> None:
        self._operator = operator

    def metric_group(self) -> MetricGroup:
        """The operator's metric group."""
        group: MetricGroup = self._operator.context.metrics
        return group

    def emit_to(self, tag: OutputTag[Any], value: Any) -> None:
        """Emits a record without a timestamp. It is dropped if the side output is not read."""
        self._operator.output.collect_to(tag.tag_id, value, None)

    def warn(self, text: str) -> None:
        """Keeps the first text for the driver."""
        self._operator.warning = self._operator.warning or text


class LegacySourceOperator(SourceOperator):
    """Runs a SourceFunction in its own thread. Flink: `StreamSource`."""

    @property
    def function(self) -> Any:
        """The user's SourceFunction."""
        return self.program.spec.function  # type: ignore[attr-defined]

    def open(self) -> None:
        """Opens the function."""
        self.function.open(self.context.runtime_context)
        self.send_latency_markers()

    def run(self, context: Any) -> None:
        """Runs the function, in its own thread."""
        self.function.run(context)

    def close(self) -> None:
        """Closes the function."""
        self.function.close()
