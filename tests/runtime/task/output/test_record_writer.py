from __future__ import annotations

import threading
from array import array
from collections import defaultdict
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.errors import InternalError, UnpicklableRecordError
from opchain.runtime.program.operator_specs import OperatorSpec
from opchain.runtime.program.vertex_program import (
    KeyProgram,
    OperatorProgram,
    OutputProgram,
    Shipping,
)
from opchain.runtime.records.columns import Columns
from opchain.runtime.records.elements import (
    MIN_WATERMARK,
    CheckpointBarrier,
    EndOfInput,
    LatencyMarker,
    RecordBatch,
    Watermark,
    WatermarkStatus,
)
from opchain.runtime.records.wire import decode
from opchain.runtime.task.output.record_writer import (
    BUFFER_BYTES,
    MOST_ELEMENTS,
    MOST_RECORDS,
    RecordWriter,
)

if TYPE_CHECKING:
    from opchain.runtime.records.elements import Buffer

OPERATOR = OperatorProgram(0, "parse", "cbc357ccb763df28", "clicks.py:14", OperatorSpec(), -1)
END = EndOfInput()


class Sent:
    """A writer, and the buffers that it has sent."""

    def __init__(
        self,
        shipping: Shipping,
        consumers: int = 3,
        *,
        subtask: int = 0,
        parallelism: int = 1,
        buffer_bytes: int = BUFFER_BYTES,
        **more: Any,
    ) -> None:
        output = OutputProgram(
            operator=0,
            tag=None,
            shipping=shipping,
            first_target=10,
            target_parallelism=consumers,
            target_max_parallelism=128,
            channel_base=4,
            label="parse -> count",
            **more,
        )
        self.buffers: list[Buffer] = []
        self.writer = RecordWriter(
            output,
            subtask,
            parallelism,
            self.buffers.append,
            operator=OPERATOR,
            buffer_bytes=buffer_bytes,
        )

    def elements(self) -> dict[int, list]:
        """The elements that each target receives."""
        elements = defaultdict(list)
        for buffer in self.buffers:
            elements[buffer.target] += decode(buffer.payload)
        return dict(elements)

    def lengths(self) -> list[int]:
        return [
            sum(len(e.values) for e in decode(buffer.payload) if isinstance(e, RecordBatch))
            for buffer in self.buffers
        ]


def test_watermarks_keep_their_place_between_records() -> None:
    sent = Sent(Shipping.FORWARD, 1)
    writer = sent.writer
    writer.write_batch([1, 2], [10, 20])
    writer.emit_watermark(20)
    writer.emit_watermark(21)
    writer.emit_status(is_idle=True)
    writer.emit_status(is_idle=False)
    writer.write_batch([3], [30])
    writer.write_batch([4], None)
    assert sent.buffers == []
    writer.end_of_input()
    (buffer,) = sent.buffers
    assert buffer[:4] == (10, MIN_WATERMARK, 4, 0)
    assert decode(buffer.payload) == [
        RecordBatch([1, 2], [10, 20]),
        Watermark(20),
        Watermark(21),
        WatermarkStatus.IDLE,
        WatermarkStatus.ACTIVE,
        RecordBatch([3, 4], [30, None]),
        END,
    ]
    assert (writer.records_out, writer.buffers_out) == (4, 1)
    assert writer.bytes_out == len(buffer.payload)


def test_the_writer_copies_the_lists_of_its_caller() -> None:
    sent = Sent(Shipping.FORWARD, 1)
    values, timestamps = [1], [10]
    for _ in range(2):
        sent.writer.write_batch(values, timestamps)
        values.clear()
        timestamps.clear()
    sent.writer.end_of_input()
    assert sent.elements() == {10: [RecordBatch([1], [10]), END]}


def test_timestamps_are_not_sent_if_no_operator_reads_them() -> None:
    sent = Sent(Shipping.REBALANCE, 1, carries_timestamps=False)
    sent.writer.write_batch([1, 2], [10, 20])
    sent.writer.end_of_input()
    assert sent.elements() == {10: [RecordBatch([1, 2]), END]}


def test_watermarks_barriers_and_the_end_are_sent_to_every_channel() -> None:
    sent = Sent(Shipping.GLOBAL, 3)
    sent.writer.write_batch([1])
    sent.writer.emit_watermark(7)
    sent.writer.emit_barrier(CheckpointBarrier(1, 99))
    sent.writer.end_of_input()
    common = [Watermark(7), CheckpointBarrier(1, 99), END]
    assert sent.elements() == {10: [RecordBatch([1], None), *common], 11: common, 12: common}
    # A barrier is sent with the records before it: one buffer for each channel, then the end.
    assert [(b.target, b.sequence) for b in sent.buffers] == [
        *[(10, 0), (11, 0), (12, 0)],
        *[(10, 1), (11, 1), (12, 1)],
    ]


def test_the_order_of_a_buffer_is_the_watermark_at_its_start() -> None:
    sent = Sent(Shipping.FORWARD, 1)
    writer = sent.writer
    writer.write_batch([1])
    writer.emit_watermark(5)
    writer.flush()
    writer.write_batch([2])
    writer.emit_watermark(9)
    writer.flush()
    writer.emit_watermark(3)  # smaller: it is sent, but does not decrease the order
    writer.flush()
    writer.end_of_input()
    assert [buffer.order for buffer in sent.buffers] == [MIN_WATERMARK, 5, 9, 9]
    assert [buffer.sequence for buffer in sent.buffers] == [0, 1, 2, 3]


def test_flushing_an_empty_writer_sends_no_buffer() -> None:
    sent = Sent(Shipping.REBALANCE, 3)
    sent.writer.write_batch([])
    sent.writer.flush()
    assert sent.buffers == []
    sent.writer.write_batch([1])
    sent.writer.flush()
    assert len(sent.buffers) == 1


def test_broadcast_records_are_pickled_once_and_shared() -> None:
    sent = Sent(Shipping.BROADCAST, 3)
    sent.writer.write_batch([1, 2], [10, 20])
    sent.writer.emit_watermark(20)
    sent.writer.end_of_input()
    elements = [RecordBatch([1, 2], [10, 20]), Watermark(20), END]
    assert sent.elements() == {10: elements, 11: elements, 12: elements}
    assert len({id(buffer.payload) for buffer in sent.buffers}) == 1
    assert sent.writer.records_out == 2
    assert sent.writer.buffers_out == 3
    assert sent.writer.bytes_out == 3 * len(sent.buffers[0].payload)


@pytest.mark.parametrize("shipping", [Shipping.BROADCAST, Shipping.REBALANCE, Shipping.FORWARD])
def test_a_latency_marker_is_sent_to_one_channel(shipping: Shipping) -> None:
    consumers = 1 if shipping is Shipping.FORWARD else 3
    sent = Sent(shipping, consumers)
    markers = [LatencyMarker(number, "source", 0) for number in range(30)]
    for number, marker in enumerate(markers):
        sent.writer.write_batch([number])
        sent.writer.emit_latency_marker(marker)
    sent.writer.end_of_input()
    arrived = {
        target: [e for e in elements if isinstance(e, LatencyMarker)]
        for target, elements in sent.elements().items()
    }
    assert sorted(chain(*arrived.values()), key=lambda m: m.marked_time_ms) == markers
    assert all(arrived.values())
    for target, elements in sent.elements().items():
        assert elements[-1] == END
        sequences = [buffer.sequence for buffer in sent.buffers if buffer.target == target]
        assert sequences == list(range(len(sequences)))
        if shipping is not Shipping.REBALANCE:
            # In the channel of all records, a marker is somewhere after the record before it.
            values = [v for e in elements if isinstance(e, RecordBatch) for v in e.values]
            assert values == list(range(30))
            seen = 0
            for element in elements:
                if isinstance(element, RecordBatch):
                    seen += len(element.values)
                elif isinstance(element, LatencyMarker):
                    assert seen > element.marked_time_ms


@pytest.mark.parametrize("shipping", [Shipping.BROADCAST, Shipping.REBALANCE, Shipping.FORWARD])
def test_latency_markers_do_not_change_the_batches(shipping: Shipping) -> None:
    def batches(every: int) -> dict[int, list[Any]]:
        sent = Sent(shipping, 1 if shipping is Shipping.FORWARD else 3)
        for number in range(40_000):
            sent.writer.write_batch([number])
            if number % every == every - 1:
                sent.writer.emit_latency_marker(LatencyMarker(number, "source", 0))
            if number % 7_000 == 6_999:
                sent.writer.emit_watermark(number)
        sent.writer.emit_barrier(CheckpointBarrier(1, 0))
        sent.writer.end_of_input()
        for elements in sent.elements().values():
            assert elements[-2:] == [CheckpointBarrier(1, 0), END]
        return {
            target: [item for item in elements if not isinstance(item, LatencyMarker)]
            for target, elements in sent.elements().items()
        }

    assert batches(every=11) == batches(every=100_000)


def test_pointwise_edges_write_only_to_their_range_of_consumers() -> None:
    sent = Sent(Shipping.RESCALE, 4, subtask=1, parallelism=2)
    sent.writer.write_batch(list(range(4)))
    sent.writer.end_of_input()
    assert sorted(sent.elements()) == [12, 13]
    assert {buffer.channel for buffer in sent.buffers} == {5}


def test_the_key_chooses_the_channel() -> None:
    key = KeyProgram(None, "per_user", "clicks.py:15")
    sent = Sent(Shipping.KEY_GROUP, 4, key=key)
    sent.writer.write_batch(["a", "b", "c"], [1, 2, 3], ["hello", 42, (1, None)])
    sent.writer.end_of_input()
    assert sent.elements() == {
        10: [RecordBatch(["b"], [2]), END],
        11: [RecordBatch(["a"], [1]), END],
        12: [END],
        13: [RecordBatch(["c"], [3]), END],
    }


@pytest.mark.parametrize("batch", [1, 100, 4096, 100_000])
def test_buffers_reach_their_target_size(batch: int) -> None:
    sent = Sent(Shipping.REBALANCE, 2, buffer_bytes=10_000)
    records = [f"record {number:010}" for number in range(100_000)]
    for start in range(0, len(records), batch):
        sent.writer.write_batch(records[start : start + batch])
    sent.writer.end_of_input()
    sizes = [len(buffer.payload) for buffer in sent.buffers]
    assert max(sizes) < 2 * 12_000
    # All except the first buffer, which measures the records, and the last one of each channel.
    assert min(sizes[4:-2]) > 8_000


def test_buffers_of_small_records_are_limited_by_number() -> None:
    sent = Sent(Shipping.FORWARD, 1)
    for _ in range(20):
        sent.writer.write_batch([0] * 10_000)
    sent.writer.end_of_input()
    assert MOST_RECORDS <= max(sent.lengths()) < 2 * MOST_RECORDS
    assert sum(sent.lengths()) == 200_000


def test_buffers_are_smaller_with_many_channels() -> None:
    few, many = Sent(Shipping.REBALANCE, 2), Sent(Shipping.REBALANCE, 200)
    for sent in (few, many):
        for _ in range(40):
            sent.writer.write_batch([f"{number:01000}" for number in range(4096)])
        sent.writer.end_of_input()
    assert max(len(buffer.payload) for buffer in few.buffers) > BUFFER_BYTES * 0.9
    assert max(len(buffer.payload) for buffer in many.buffers if buffer.sequence) < 2 * 42_000


def test_records_that_become_a_thousand_times_larger_do_not_accumulate() -> None:
    sent = Sent(Shipping.REBALANCE, 4, buffer_bytes=20_000)
    for _ in range(10):
        sent.writer.write_batch(list(range(4096)))
    large = 20
    for number in range(large):
        # Like a source whose records have become large: few records fill a batch.
        sent.writer.write_batch([bytes([number]) * 20_000 for _ in range(1024)])
        waiting = sum(len(values) for values in sent.writer._columns[0])
        if number:
            assert waiting < 40
    sent.writer.end_of_input()
    assert max(len(buffer.payload) for buffer in sent.buffers) < 10 * 20_000
    assert sum(sent.lengths()) == 10 * 4096 + large * 1024


def test_one_huge_record_is_sent_with_few_others() -> None:
    sent = Sent(Shipping.FORWARD, 1, buffer_bytes=20_000)
    sent.writer.write_batch([bytes(5_000_000)])
    sent.writer.write_batch([1, 2, 3])
    sent.writer.end_of_input()
    assert sum(sent.lengths()) == 4
    assert len(sent.buffers[0].payload) < 5_010_000


def test_a_buffer_of_watermarks_only_is_sent_when_it_is_full() -> None:
    sent = Sent(Shipping.REBALANCE, 2)
    for timestamp in range(3 * MOST_ELEMENTS):
        sent.writer.emit_watermark(timestamp)
    assert [buffer.sequence for buffer in sent.buffers] == [0, 0, 1, 1, 2, 2]
    assert [buffer.order for buffer in sent.buffers] == [
        *[MIN_WATERMARK] * 2,
        *[MOST_ELEMENTS - 1] * 2,
        *[2 * MOST_ELEMENTS - 1] * 2,
    ]


def test_a_buffer_timeout_of_0_sends_after_every_call() -> None:
    sent = Sent(Shipping.FORWARD, 1, buffer_timeout_ms=0)
    sent.writer.write_batch([1])
    sent.writer.emit_watermark(3)
    sent.writer.emit_latency_marker(LatencyMarker(0, "source", 0))
    sent.writer.write_batch([2, 3])
    assert sent.lengths() == [1, 0, 0, 2]
    assert [buffer.order for buffer in sent.buffers] == [MIN_WATERMARK, MIN_WATERMARK, 3, 3]


def test_a_positive_buffer_timeout_changes_nothing_in_a_bounded_job() -> None:
    plain, timed = Sent(Shipping.REBALANCE), Sent(Shipping.REBALANCE, buffer_timeout_ms=1)
    for sent in (plain, timed):
        for start in range(0, 100_000, 1000):
            sent.writer.write_batch(list(range(start, start + 1000)))
        sent.writer.end_of_input()
    assert plain.buffers == timed.buffers


def test_the_error_about_an_unpicklable_record_names_operator_and_edge() -> None:
    sent = Sent(Shipping.FORWARD, 1)
    lock = threading.Lock()
    sent.writer.write_batch([*range(10), lock, 11])
    with pytest.raises(UnpicklableRecordError) as caught:
        sent.writer.flush()
    assert str(caught.value).startswith(
        "'parse' (clicks.py:14), sending to parse -> count: the record <unlocked _thread.lock object> cannot be pickled"
    )


def test_writing_after_the_end_is_an_error() -> None:
    sent = Sent(Shipping.FORWARD, 1)
    sent.writer.end_of_input()
    with pytest.raises(InternalError, match="1 records were written after the end of input"):
        sent.writer.write_batch([1])


KEY_GROUP = Shipping.KEY_GROUP


@pytest.mark.parametrize(
    "shipping", [Shipping.REBALANCE, Shipping.BROADCAST, Shipping.SHUFFLE, KEY_GROUP]
)
@pytest.mark.parametrize("kind", [list, partial(array, "q")])
def test_records_stored_by_field_are_routed_like_tuples(shipping: Shipping, kind: Any) -> None:
    def arrived(by_fields: bool) -> dict[int, list[Any]]:
        key = KeyProgram(itemgetter(0), "number", "clicks.py:14") if shipping is KEY_GROUP else None
        sent = Sent(shipping, 3, buffer_bytes=2_000, key=key)
        for first in range(0, 3_000, 500):
            numbers = list(range(first, first + 500))
            tuples = [(number, "even", -number) for number in numbers]
            # One batch between the others is stored as lists.
            of_kind = list if first == 1_000 else kind
            columns = [of_kind(numbers), of_kind([-number for number in numbers])]
            by_field = Columns(columns, ((), ("even",), ()))
            keys = columns[0] if by_fields else numbers
            sent.writer.write_batch(by_field if by_fields else tuples, [7] * 500, keys)
            sent.writer.emit_watermark(first)
        sent.writer.end_of_input()
        assert sent.writer.records_out == 3_000
        found: dict[int, list[Any]] = {}
        for target, elements in sent.elements().items():
            for element in elements:
                is_batch = isinstance(element, RecordBatch)
                found.setdefault(target, []).extend(
                    zip(element.values, element.timestamps, strict=True) if is_batch else [element]
                )
        return found

    assert arrived(by_fields=True) == arrived(by_fields=False)
