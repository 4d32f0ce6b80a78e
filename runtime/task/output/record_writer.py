"""Writes one data set: collects records by channel, and cuts them into buffers.

The records decide where a buffer is cut, and the clock never does. A positive buffer timeout has no effect in a bounded
job: it would make the cuts differ between attempts, and with them the order in which a receiver reads. A timeout of 0
cuts after each write.

Watermarks and statuses are written between the records, and never begin a buffer. None is dropped, so a receiver sees
those that it would see in Flink. A latency marker depends on the machine's clock. It gets a buffer of its own and does
not split a batch, so batches are the same in every attempt.

Flink: `RecordWriter` and `BufferBuilder`.
"""

from __future__ import annotations

import random
from array import array
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import InternalError, UnpicklableRecordError
from opchain.runtime.program.vertex_program import OperatorProgram, OutputProgram, Shipping
from opchain.runtime.records.columns import Column, Columns, Layout, record_count
from opchain.runtime.records.elements import (
    MIN_WATERMARK,
    Buffer,
    CheckpointBarrier,
    EndOfInput,
    LatencyMarker,
    RecordBatch,
    StreamElement,
    Watermark,
    WatermarkStatus,
)
from opchain.runtime.records.wire import encode
from opchain.runtime.task.output.channel_selector import (
    KeyGroups,
    channels_of,
    create_channel_selector,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.runtime.measurements.hot_keys import HotKeys

BUFFER_BYTES = 128 * 1024
"""The intended size of a buffer, if there are few channels. With large batches, buffers are up to twice as large."""

OUTPUT_BYTES = 8 * 1024 * 1024
"""The most bytes that all channels of an output collect. So with many channels, buffers are smaller."""

SMALLEST_BUFFER_BYTES = 16 * 1024
MOST_RECORDS = 8_192
"""The most records in a buffer. With twice as many, pickle's memo does not fit into the cache: up to 20 % slower."""

MOST_ELEMENTS = 4_096

_FIRST_RECORDS = 64
_PROBE_EVERY = 1024
_PROBE_FACTOR = 4


class _Lane:
    """The records and elements that wait for one channel; for all channels if the output is a broadcast.

    `sealed` has elements and the records before them. Later records are in the bucket with this `number`. `order` is
    the order of the current buffer. `markers`, with the numbers of their targets, follow it in their own buffers.
    """

    __slots__ = ("markers", "number", "order", "sealed", "sealed_records", "sequences", "targets")

    def __init__(self, number: int, targets: range) -> None:
        self.number = number
        self.targets = targets
        self.sequences = [0] * len(targets)
        self.order = MIN_WATERMARK
        self.sealed: list[StreamElement] = []
        self.markers: list[tuple[int, LatencyMarker]] = []
        self.sealed_records = 0


class RecordWriter:
    """Writes the output of one subtask for the readers of one data set. Records are routed, encoded and counted once.

    Args:
        output: The data set.
        subtask: The subtask that writes.
        parallelism: The number of subtasks of its vertex.
        emit: Takes the finished buffers, in order for each channel.
        operator: The operator that emits the records. Errors name it, and its id seeds the choices of rebalance and
            shuffle.
        buffer_bytes: The intended size of buffers. It is estimated from earlier records of this edge, so buffers with
            records of very different sizes may be larger or smaller.
    """

    def __init__(
        self,
        output: OutputProgram,
        subtask: int,
        parallelism: int,
        emit: Callable[[Buffer], None],
        *,
        operator: OperatorProgram,
        buffer_bytes: int = BUFFER_BYTES,
    ) -> None:
        self.records_out = 0
        self.bytes_out = 0
        self.buffers_out = 0
        self._output = output
        self._emit = emit
        self._operator = operator
        self._channel = output.channel_base + subtask
        self._others = tuple(
            (first - output.first_target, base + subtask) for first, base in output.others
        )
        consumers = channels_of(output, subtask, parallelism)
        targets = range(output.first_target + consumers.start, output.first_target + consumers.stop)
        self._lanes = (
            [_Lane(0, targets)]
            if output.shipping is Shipping.BROADCAST
            else [_Lane(number, range(target, target + 1)) for number, target in enumerate(targets)]
        )
        self._layout: Layout | None = None
        self._kinds: list[type] = [list]
        self._columns = self._buckets()
        self._timestamps: list[list[int | None]] = [[] for _ in self._lanes]
        self._subtask = subtask
        self._consumers = len(targets)
        self._seed(operator.operator_id)
        self._flushes_always = output.buffer_timeout_ms == 0
        self.watermark = MIN_WATERMARK
        self._has_ended = False
        share = max(SMALLEST_BUFFER_BYTES, OUTPUT_BYTES // len(self._lanes))
        self._buffer_bytes = min(buffer_bytes, share)
        self._most_records = _FIRST_RECORDS
        # No lane can be full before this number of records, so lanes are not checked until then.
        self._room = self._most_records
        self._until_probe = 0

    def write_batch(
        self,
        values: Sequence[Any],
        timestamps: Sequence[int | None] | None = None,
        keys: Sequence[Any] | None = None,
    ) -> None:
        """Takes records, in a list or by fields. The lists are not kept.

        `timestamps` is used if the edge carries timestamps. An entry is None for a record without one. `keys` is needed
        if the output has a key selector.

        Raises:
            KeyTypeError: A key has no key group.
            PartitionError: A custom partitioner returned an invalid channel.
            UnpicklableRecordError: A record cannot be pickled. It may belong to an earlier batch.
        """
        count = len(values)
        if self._has_ended:
            raise InternalError(
                f"{self._where()}: {count} records were written after the end of input"
            )
        if not count:
            return
        assignment = self._selector.assign(values, keys)
        for column, buckets in zip(self._columns_of(values), self._columns, strict=True):
            assignment.scatter(column, buckets)
        if self._output.carries_timestamps:
            column = [None] * count if timestamps is None else timestamps
            assignment.scatter(column, self._timestamps)
        self.records_out += record_count(values)
        self._room -= count
        self._until_probe -= count
        if self._until_probe <= 0:
            self._probe(values[-1])
        if self._flushes_always:
            self.flush()
        elif self._room <= 0:
            for lane in self._lanes:
                while (waiting := self._records(lane)) >= self._most_records:
                    # A remainder that is smaller than a buffer is added to the last buffer: see _split.
                    is_last = waiting < 2 * self._most_records
                    self._cut(lane, waiting if is_last else self._most_records)
            self._update_room()

    def hot_keys(self, *, is_final: bool) -> HotKeys | None:
        """The most frequent keys that were sent; None if records are not sent by key.

        Args:
            is_final: Whether the last keys are counted too. Only the task's own thread may pass True.
        """
        if not isinstance(self._selector, KeyGroups):
            return None
        sample = self._selector.sample
        if is_final:
            sample.fold()
        return sample.hottest(self._output.first_target)

    def emit_watermark(self, timestamp: int) -> None:
        """Sends a watermark to every channel."""
        self.watermark = max(self.watermark, timestamp)
        self._append_to_all(Watermark(timestamp))

    def emit_status(self, is_idle: bool) -> None:
        """Sends the status, idle or active, to every channel."""
        self._append_to_all(WatermarkStatus.IDLE if is_idle else WatermarkStatus.ACTIVE)

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        """Sends a marker to one random channel, as Flink does. The channel is the same in every attempt."""
        number = int(self._draw() * self._consumers)
        if self._output.shipping is Shipping.BROADCAST:
            self._lanes[0].markers.append((number, marker))
        else:
            self._lanes[number].markers.append((0, marker))
        if self._flushes_always:
            self.flush()

    def begin_epoch(self, checkpoint_id: int) -> None:
        """Restarts every channel. Choices do not depend on earlier epochs."""
        self.records_out = self.bytes_out = self.buffers_out = 0
        self._seed(f"{self._operator.operator_id} {checkpoint_id}")
        for lane in self._lanes:
            lane.sequences = [0] * len(lane.targets)
            lane.order = self.watermark

    def emit_barrier(self, barrier: CheckpointBarrier) -> None:
        """Sends a barrier to every channel, after all waiting records."""
        self._flush_markers()
        self._append_to_all(barrier)
        self.flush()

    def end_of_input(self) -> None:
        """Ends every channel. Nothing can be written afterwards."""
        self._flush_markers()
        self._append_to_all(EndOfInput())
        self.flush()
        self._has_ended = True

    def flush(self) -> None:
        """Sends all waiting records and elements."""
        for lane in self._lanes:
            self._cut(lane)
        self._room = self._most_records

    def _flush_markers(self) -> None:
        """Sends everything that waits if it includes a marker, because markers are sent before the end of a channel."""
        if any(lane.markers for lane in self._lanes):
            self.flush()

    def _buckets(self) -> list[list[Column]]:
        """The buckets: for each column, a list or an array for each lane."""
        return [[array("q") if kind is array else [] for _ in self._lanes] for kind in self._kinds]

    def _columns_of(self, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """The columns to put into buckets. Earlier records of another form become separate batches."""
        layout: Layout | None = values.layout if isinstance(values, Columns) else None
        columns: Sequence[Sequence[Any]] = (
            values.lists if isinstance(values, Columns) else (values,)
        )
        kinds: list[type] = [array if isinstance(column, array) else list for column in columns]
        if layout != self._layout or kinds != self._kinds:
            for lane in self._lanes:
                self._seal(lane)
            self._layout, self._kinds = layout, kinds
            self._columns = self._buckets()
        return columns

    def _seal(self, lane: _Lane) -> None:
        count = len(self._columns[0][lane.number])
        if count:
            lane.sealed.append(self._take(lane, count))
            lane.sealed_records += count

    def _seed(self, seed: str) -> None:
        self._selector = create_channel_selector(self._output, self._consumers, seed, self._subtask)
        self._draw = random.Random(f"latency {seed} {self._subtask}").random  # noqa: S311

    def _append_to_all(self, element: StreamElement) -> None:
        for lane in self._lanes:
            self._append(lane, element)
            if len(lane.sealed) >= MOST_ELEMENTS:
                self._cut(lane)
        if self._flushes_always:
            self.flush()

    def _append(self, lane: _Lane, element: StreamElement) -> None:
        """Adds an element that is not a batch, after the waiting records."""
        self._seal(lane)
        lane.sealed.append(element)

    def _take(self, lane: _Lane, count: int) -> RecordBatch:
        """Removes and returns the first waiting records."""
        number = lane.number
        lists = [_taken(buckets, number, count) for buckets in self._columns]
        timestamps = _taken(self._timestamps, number, count) or None
        if self._layout is None:
            return RecordBatch(lists[0], timestamps)
        return RecordBatch(Columns(lists, self._layout), timestamps)

    def _records(self, lane: _Lane) -> int:
        return lane.sealed_records + len(self._columns[0][lane.number])

    def _update_room(self) -> None:
        self._room = self._most_records - max(map(self._records, self._lanes))

    def _cut(self, lane: _Lane, most: int | None = None) -> None:
        """Sends a buffer with the first records of a lane, or all of them, and the elements between them."""
        records = lane.sealed_records
        waiting = len(self._columns[0][lane.number])
        count = waiting if most is None else min(most - records, waiting)
        if count > 0:
            lane.sealed.append(self._take(lane, count))
            records += count
        payload = b""
        if lane.sealed:
            payload = self._encoded(lane.sealed)
            for number in range(len(lane.targets)):
                self._send(lane, number, payload)
            lane.sealed = []
            lane.sealed_records = 0
        if lane.markers and count == waiting:
            for number, marker in lane.markers:
                self._send(lane, number, self._encoded([marker]))
            lane.markers.clear()
        if payload:
            lane.order = self.watermark
        if records:
            fitting = self._buffer_bytes * records // len(payload)
            self._most_records = max(1, min(fitting, MOST_RECORDS))

    def _send(self, lane: _Lane, number: int, payload: bytes) -> None:
        sequence = lane.sequences[number]
        lane.sequences[number] = sequence + 1
        self.bytes_out += len(payload)
        self.buffers_out += 1
        target = lane.targets[number]
        others = tuple((target + distance, channel) for distance, channel in self._others)
        self._emit(Buffer(target, lane.order, self._channel, sequence, payload, others))

    def _probe(self, value: Any) -> None:
        """Checks for records that are much longer than earlier ones, before too many wait.

        Then all waiting records are sent in small buffers, because any of them may be long.
        """
        self._until_probe = _PROBE_EVERY
        length = len(self._encoded([RecordBatch([value])]))
        fitting = max(1, _PROBE_FACTOR * self._buffer_bytes // length)
        if fitting < self._most_records:
            for lane in self._lanes:
                while self._records(lane) >= fitting:
                    self._cut(lane, fitting)
            self._most_records = fitting
            self._update_room()

    def _encoded(self, elements: list[StreamElement]) -> bytes:
        try:
            return encode(elements)
        except UnpicklableRecordError as error:
            raise UnpicklableRecordError(error.record, error.reason, self._where()) from error

    def _where(self) -> str:
        operator = self._operator
        return f"{operator.label}, sending to {self._output.label}"


def _taken(buckets: list[Any], number: int, count: int) -> Any:
    """Removes and returns the first entries of a bucket."""
    taken, buckets[number] = _split(buckets[number], count)
    return taken


def _split(entries: Column, count: int) -> tuple[Column, Column]:
    """The first entries and the rest. The longer of the two is the list itself.

    A copy reads each entry, which is no longer in the processor's cache by then. Copying all sent records made writing
    10 % slower.
    """
    if 2 * count < len(entries):
        first = entries[:count]
        del entries[:count]
        return first, entries
    rest = entries[count:]
    del entries[count:]
    return entries, rest
