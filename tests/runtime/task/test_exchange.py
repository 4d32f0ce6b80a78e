"""RecordWriter and InputGate together: written elements are read completely, in order, and in one way only."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.runtime.errors import LostBufferError
from opchain.runtime.program.operator_specs import OperatorSpec
from opchain.runtime.program.vertex_program import (
    InputProgram,
    KeyProgram,
    OperatorProgram,
    OutputProgram,
    Shipping,
)
from opchain.runtime.records.buffer_store import BufferStore
from opchain.runtime.records.elements import (
    EndOfInput,
    RecordBatch,
    Watermark,
    WatermarkStatus,
)
from opchain.runtime.task.input.input_gate import InputGate
from opchain.runtime.task.output.record_writer import RecordWriter

if TYPE_CHECKING:
    from opchain.runtime.records.elements import Buffer

OPERATOR = OperatorProgram(0, "source", "cbc357ccb763df28", "job.py:1", OperatorSpec(), -1)


@dataclass
class Edge:
    """An edge, and the batches of keys, watermarks and statuses of each producer."""

    shipping: Shipping
    consumers: int
    carries_timestamps: bool
    buffer_bytes: int
    sent: list[list[list[int] | Watermark | WatermarkStatus]]
    buffers: list[Buffer] = field(default_factory=list)

    def __post_init__(self) -> None:
        for subtask, script in enumerate(self.sent):
            self._write(subtask, script)

    def _write(self, subtask: int, script: list) -> None:
        output = OutputProgram(
            operator=0,
            tag=None,
            shipping=self.shipping,
            first_target=0,
            target_parallelism=self.consumers,
            target_max_parallelism=128,
            channel_base=0,
            label="source -> sink",
            key=KeyProgram(None, "key", "job.py:2"),
            custom_partitioner=lambda key, count: key % count,
            carries_timestamps=self.carries_timestamps,
        )
        writer = RecordWriter(
            output,
            subtask,
            len(self.sent),
            self.buffers.append,
            operator=OPERATOR,
            buffer_bytes=self.buffer_bytes,
        )
        number = 0
        for item in script:
            if isinstance(item, Watermark):
                writer.emit_watermark(item.timestamp)
            elif isinstance(item, WatermarkStatus):
                writer.emit_status(item is WatermarkStatus.IDLE)
            else:
                records = [(subtask, number + place, key) for place, key in enumerate(item)]
                number += len(item)
                writer.write_batch(records, [place for _, place, _ in records], item)
        writer.end_of_input()

    def read(self, buffers: list[Buffer], consumer: int, memory_limit: int) -> list:
        """The elements that a consumer reads if buffers arrive in this order."""
        pointwise = self.shipping in (Shipping.FORWARD, Shipping.RESCALE)
        program = InputProgram(
            0, 0, len(self.sent), pointwise, self.carries_timestamps, "source -> sink"
        )
        with BufferStore(memory_limit) as store:
            for buffer in buffers:
                if buffer.target == consumer:
                    store.add(buffer)
            return list(InputGate([program], consumer, self.consumers, store))


WATERMARKS = st.builds(Watermark, st.integers(0, 20))
ITEMS = st.lists(st.integers(0, 1000), max_size=40) | WATERMARKS | st.sampled_from(WatermarkStatus)
SCRIPTS = st.lists(st.lists(ITEMS, max_size=8), min_size=1, max_size=3)


@st.composite
def edges(draw: st.DrawFn) -> Edge:
    shipping = draw(st.sampled_from(Shipping))
    sent = draw(SCRIPTS)
    consumers = len(sent) if shipping is Shipping.FORWARD else draw(st.integers(1, 3))
    return Edge(shipping, consumers, draw(st.booleans()), draw(st.sampled_from([1, 300])), sent)


def flat(elements: list) -> list:
    """Records one by one with their timestamps, since batches are not guaranteed."""
    return [
        pair
        for element in elements
        for pair in (
            zip(element.values, element.timestamps or [None] * len(element.values), strict=True)
            if isinstance(element, RecordBatch)
            else [element]
        )
    ]


@settings(deadline=None)
@given(edges(), st.randoms(), st.sampled_from([0, 500, 1 << 20]))
def test_every_channel_is_read_in_the_order_in_which_it_was_written(
    edge: Edge, rng: Any, memory_limit: int
) -> None:
    buffers = list(edge.buffers)
    rng.shuffle(buffers)
    arrived: dict[int, list] = {}
    for consumer in range(edge.consumers):
        items = edge.read(buffers, consumer, memory_limit)
        assert [item.element for item in items if item.element == EndOfInput()] == [EndOfInput()]
        for producer in range(len(edge.sent)):
            arrived[producer, consumer] = flat(
                [i.element for i in items if i.channel == producer and i.element != EndOfInput()]
            )
    for producer, script in enumerate(edge.sent):
        # Between two marks, the sent and the received records are the same.
        number = 0
        expected: list[list] = [[]]
        for item in script:
            if isinstance(item, list):
                for key in item:
                    timestamp = number if edge.carries_timestamps else None
                    expected[-1].append(((producer, number, key), timestamp))
                    number += 1
            else:
                expected += [[item], []]
        reached = [
            consumer
            for consumer in range(edge.consumers)
            if any(b.channel == producer and b.target == consumer for b in edge.buffers)
        ]
        spans = [cut_at_marks(arrived[producer, consumer]) for consumer in reached]
        for position, span in enumerate(expected):
            got = [channel[position] for channel in spans]
            if (span and not isinstance(span[0], tuple)) or edge.shipping is Shipping.BROADCAST:
                assert got == [span] * len(reached)
            else:
                assert all(part == sorted(part, key=lambda pair: pair[0][1]) for part in got)
                assert sorted(chain(*got), key=lambda pair: pair[0][1]) == span
        if edge.shipping is Shipping.KEY_GROUP:
            keys = [
                {pair[0][2] for pair in arrived[producer, consumer] if isinstance(pair, tuple)}
                for consumer in reached
            ]
            assert sum(map(len, keys)) == len(set().union(*keys))


def cut_at_marks(elements: list) -> list[list]:
    spans: list[list] = [[]]
    for element in elements:
        if isinstance(element, tuple):
            spans[-1].append(element)
        else:
            spans += [[element], []]
    return spans


@settings(deadline=None)
@given(edges(), st.randoms(), st.sampled_from([0, 500]))
def test_the_order_of_arrival_does_not_affect_the_elements(
    edge: Edge, rng: Any, memory_limit: int
) -> None:
    shuffled = list(edge.buffers)
    rng.shuffle(shuffled)
    for consumer in range(edge.consumers):
        expected = edge.read(edge.buffers, consumer, 1 << 20)
        assert edge.read(shuffled, consumer, memory_limit) == expected


@settings(deadline=None)
@given(edges())
def test_writing_again_produces_the_same_bytes(edge: Edge) -> None:
    again = Edge(
        edge.shipping, edge.consumers, edge.carries_timestamps, edge.buffer_bytes, edge.sent
    )
    assert again.buffers == edge.buffers


@settings(deadline=None)
@given(edges())
def test_the_order_of_buffers_never_decreases_within_a_channel(edge: Edge) -> None:
    def place(buffer: Buffer) -> tuple[int, int, int]:
        return buffer.target, buffer.channel, buffer.sequence

    by_channel = groupby(sorted(edge.buffers, key=place), key=lambda buffer: place(buffer)[:2])
    for _, group in by_channel:
        buffers = list(group)
        assert [buffer.sequence for buffer in buffers] == list(range(len(buffers)))
        orders = [buffer.order for buffer in buffers]
        assert orders == sorted(orders)


@settings(deadline=None)
@given(edges(), st.data())
def test_a_lost_or_repeated_buffer_is_always_detected(edge: Edge, data: st.DataObject) -> None:
    victim = data.draw(st.integers(0, len(edge.buffers) - 1))
    consumer = edge.buffers[victim].target
    lost = edge.buffers[:victim] + edge.buffers[victim + 1 :]
    with pytest.raises(LostBufferError):
        edge.read(lost, consumer, 1 << 20)
    with pytest.raises(LostBufferError):
        edge.read([*edge.buffers, edge.buffers[victim]], consumer, 1 << 20)
