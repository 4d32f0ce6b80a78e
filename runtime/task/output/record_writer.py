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
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import InternalError, UnpicklableRecordError
from opchain.runtime.program.vertex_program import OperatorProgram, OutputProgram, Shipping
from opchain.runtime.records.columns import Columns, Layout
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
"""Size of a buffer that an output with few channels aims at; up to twice that where batches are large."""

OUTPUT_BYTES = 8 * 1024 * 1024
"""The most that all channels of an output may collect: with many channels, buffers are smaller."""

SMALLEST_BUFFER_BYTES = 16 * 1024
MOST_RECORDS = 8_192
"""With twice as many, pickle's table of what it has seen outgrows the cache: up to 20 % slower."""

MOST_ELEMENTS = 4_096

_FIRST_RECORDS = 64
_PROBE_EVERY = 1024
_PROBE_FACTOR = 4


class _Lane:
    """What waits for one channel; for all channels where the output is a broadcast.

    The records behind the last element of `sealed` are in the bucket with this `number`. `order` is the
    order of the buffer that is being filled. `markers`, with the numbers of their targets, go behind it, in
    buffers of their own.
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
    """Writes what one subtask sends to the readers of one data set. Records are routed, encoded and counted once.

    Args:
        output: The data set.
        subtask: The subtask that writes.
        parallelism: The number of subtasks of its vertex.
        emit: Takes the finished buffers, in order for each channel.
        operator: The operator whose records these are; it shows in errors, and its id seeds the choices of
            rebalance and shuffle.
        buffer_bytes: The size that buffers aim at. It is met by learning how long the records of this
            edge are, so buffers with records of very different lengths miss it.
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
        self._columns = self._buckets(1)
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
        # No lane can be full before that many records have come: until then nobody looks.
        self._room = self._most_records
        self._until_probe = 0

    def write_batch(
        self,
        values: Sequence[Any],
        timestamps: Sequence[int | None] | None = None,
        keys: Sequence[Any] | None = None,
    ) -> None:
        """Takes records, in a list or by fields; the lists are not kept.

        `timestamps` is used where the edge carries them, None standing for a record without; `keys` is
        needed where the output has a key selector.

        Raises:
            KeyTypeError: For a key that no key group can be found for.
            PartitionError: For a custom partitioner's wrong answer.
            UnpicklableRecordError: For a record that can't be sent, maybe one of an earlier batch.
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
        self.records_out += count
        self._room -= count
        self._until_probe -= count
        if self._until_probe <= 0:
            self._probe(values[-1])
        if self._flushes_always:
            self.flush()
        elif self._room <= 0:
            for lane in self._lanes:
                while (waiting := self._records(lane)) >= self._most_records:
                    # A rest that is smaller than a buffer goes along: see _split.
                    is_last = waiting < 2 * self._most_records
                    self._cut(lane, waiting if is_last else self._most_records)
            self._look_for_room()

    def hot_keys(self, *, is_final: bool) -> HotKeys | None:
        """The hottest keys that were sent; None where records are not sent by key.

        Args:
            is_final: Counts the last keys, too; only the task's own thread may ask so.
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
        """Sends to every channel whether event time continues without it."""
        self._append_to_all(WatermarkStatus.IDLE if is_idle else WatermarkStatus.ACTIVE)

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        """Sends a marker to one channel, drawn as Flink draws it, but the same in every attempt."""
        number = int(self._draw() * self._consumers)
        if self._output.shipping is Shipping.BROADCAST:
            self._lanes[0].markers.append((number, marker))
        else:
            self._lanes[number].markers.append((0, marker))
        if self._flushes_always:
            self.flush()

    def begin_epoch(self, checkpoint_id: int) -> None:
        """Starts every channel again, with choices that depend on nothing before."""
        self.records_out = self.bytes_out = self.buffers_out = 0
        self._seed(f"{self._operator.operator_id} {checkpoint_id}")
        for lane in self._lanes:
            lane.sequences = [0] * len(lane.targets)
            lane.order = self.watermark

    def emit_barrier(self, barrier: CheckpointBarrier) -> None:
        """Sends a barrier to every channel, and everything before it with it."""
        self._flush_markers()
        self._append_to_all(barrier)
        self.flush()

    def end_of_input(self) -> None:
        """Ends every channel; nothing can be written afterwards."""
        self._flush_markers()
        self._append_to_all(EndOfInput())
        self.flush()
        self._has_ended = True

    def flush(self) -> None:
        """Sends all that waits."""
        for lane in self._lanes:
            self._cut(lane)
        self._room = self._most_records

    def _flush_markers(self) -> None:
        """Sends what waits if there is a marker in it, which goes before what ends the channel."""
        if any(lane.markers for lane in self._lanes):
            self.flush()

    def _buckets(self, columns: int) -> list[list[list[Any]]]:
        """For each column a list for each lane."""
        return [[[] for _ in self._lanes] for _ in range(columns)]

    def _columns_of(self, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """What is put into buckets; where records were of another form before, they become batches of their own."""
        layout: Layout | None = values.layout if isinstance(values, Columns) else None
        columns: Sequence[Sequence[Any]] = (
            values.lists if isinstance(values, Columns) else (values,)
        )
        if layout != self._layout:
            for lane in self._lanes:
                self._seal(lane)
            self._layout = layout
            self._columns = self._buckets(len(columns))
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
        """Puts an element that is not a batch behind the records that came before it."""
        self._seal(lane)
        lane.sealed.append(element)

    def _take(self, lane: _Lane, count: int) -> RecordBatch:
        """Removes the first records that wait."""
        number = lane.number
        lists = [_taken(buckets, number, count) for buckets in self._columns]
        timestamps = _taken(self._timestamps, number, count) or None
        if self._layout is None:
            return RecordBatch(lists[0], timestamps)
        return RecordBatch(Columns(lists, self._layout), timestamps)

    def _records(self, lane: _Lane) -> int:
        return lane.sealed_records + len(self._columns[0][lane.number])

    def _look_for_room(self) -> None:
        self._room = self._most_records - max(map(self._records, self._lanes))

    def _cut(self, lane: _Lane, most: int | None = None) -> None:
        """Makes a buffer of the first records of a lane, or all, and the elements among them."""
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
        """Looks out for records that are much longer than those before, before too many wait.

        What waits then is cut small to its end: some of it may be long, and nobody knows what.
        """
        self._until_probe = _PROBE_EVERY
        length = len(self._encoded([RecordBatch([value])]))
        fitting = max(1, _PROBE_FACTOR * self._buffer_bytes // length)
        if fitting < self._most_records:
            for lane in self._lanes:
                while self._records(lane) >= fitting:
                    self._cut(lane, fitting)
            self._most_records = fitting
            self._look_for_room()

    def _encoded(self, elements: list[StreamElement]) -> bytes:
        try:
            return encode(elements)
        except UnpicklableRecordError as error:
            raise UnpicklableRecordError(error.record, error.reason, self._where()) from error

    def _where(self) -> str:
        operator = self._operator
        return f"'{operator.name}' ({operator.call_site}), sending {self._output.label}"


def _taken(buckets: list[list[Any]], number: int, count: int) -> list[Any]:
    """Removes the first entries of a bucket."""
    taken, buckets[number] = _split(buckets[number], count)
    return taken


def _split(entries: list[Any], count: int) -> tuple[list[Any], list[Any]]:
    """The first entries and the rest; the longer one is the list itself.

    A copy touches each entry, which by then has left the processor's cache: copying all that is sent
    made writing a tenth slower.
    """
    if 2 * count < len(entries):
        first = entries[:count]
        del entries[:count]
        return first, entries
    rest = entries[count:]
    del entries[count:]
    return entries, rest
