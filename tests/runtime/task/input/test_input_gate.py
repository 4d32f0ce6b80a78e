from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opchain.runtime.errors import InternalError, LostBufferError, WireFormatError
from opchain.runtime.program.vertex_program import InputProgram
from opchain.runtime.records.elements import (
    Buffer,
    EndOfInput,
    RecordBatch,
    Watermark,
    reading_order,
)
from opchain.runtime.records.wire import encode
from opchain.runtime.task.input.input_gate import InputElement, InputGate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

END = EndOfInput()


def edge(number: int, base: int, producers: int, label: str, **more: bool) -> InputProgram:
    return InputProgram(number, base, producers, more.get("is_pointwise", False), True, label)


WORDS = edge(0, 0, 2, "words -> count")


def buffer(channel: int, sequence: int, *elements: object, order: int = 0) -> Buffer:
    return Buffer(9, order, channel, sequence, encode(elements))


def gate(buffers: Iterable[Buffer], *edges: InputProgram) -> InputGate:
    return InputGate(edges or (WORDS,), 1, 4, iter(buffers))


def test_elements_have_input_and_channel_and_each_input_ends_once() -> None:
    buffers = [
        buffer(0, 0, RecordBatch([1, 2]), Watermark(5), RecordBatch([3]), END),
        buffer(1, 0, RecordBatch([4])),
        buffer(1, 1, END),
        buffer(2, 0, RecordBatch([5]), END),
    ]
    reading = gate(buffers, WORDS, edge(1, 2, 1, "rules -> count"))
    assert list(reading) == [
        InputElement(0, 0, RecordBatch([1, 2])),
        InputElement(0, 0, Watermark(5)),
        InputElement(0, 1, RecordBatch([4])),
        InputElement(1, 2, RecordBatch([5])),
        InputElement(1, 2, END),
        InputElement(0, 0, RecordBatch([3])),
        InputElement(0, 0, END),
    ]
    assert (reading.records_in, reading.buffers_in) == (5, 4)
    assert reading.bytes_in == sum(len(item.payload) for item in buffers)


def test_the_order_of_elements_does_not_depend_on_their_buffers() -> None:
    channels = (
        [RecordBatch([1]), Watermark(5), RecordBatch([2]), Watermark(9), RecordBatch([3]), END],
        [RecordBatch([4]), Watermark(3), Watermark(6), RecordBatch([5]), Watermark(6), END],
    )

    def read(size: int) -> list[InputElement]:
        buffers = []
        for channel, elements in enumerate(channels):
            order = 0
            for sequence, first in enumerate(range(0, len(elements), size)):
                part = elements[first : first + size]
                buffers.append(buffer(channel, sequence, *part, order=order))
                order = max([order, *(e.timestamp for e in part if isinstance(e, Watermark))])
        return list(gate(sorted(buffers, key=reading_order)))

    assert [item.element.values for item in read(1) if isinstance(item.element, RecordBatch)] == [
        [1],
        [4],
        [2],
        [5],
        [3],
    ]
    assert all(read(size) == read(1) for size in (2, 3, 6))


def test_the_edges_of_a_union_end_together() -> None:
    reading = gate([buffer(0, 0, END), buffer(1, 0, END)], edge(0, 0, 1, "a"), edge(0, 1, 1, "b"))
    assert list(reading) == [InputElement(0, 1, END)]


def test_a_pointwise_edge_has_the_channels_of_its_subtask_only() -> None:
    # Subtask 1 of 4 reads producer 0 of 2.
    pointwise = edge(0, 0, 2, "rescale", is_pointwise=True)
    assert list(gate([buffer(0, 0, END)], pointwise)) == [InputElement(0, 0, END)]


def test_a_vertex_without_inputs_reads_no_elements() -> None:
    assert list(InputGate((), 0, 1, iter(()))) == []


def test_only_one_buffer_is_decoded_at_a_time() -> None:
    taken = []

    def buffers() -> Iterator[Buffer]:
        for item in (buffer(0, 0, RecordBatch([1]), END), buffer(1, 0, RecordBatch([2]), END)):
            taken.append(item.channel)
            yield item

    elements = iter(gate(buffers()))
    assert taken == []
    next(elements)
    assert taken == [0]
    next(elements)
    assert taken == [0, 1]


FAULTS = {
    "nothing came": ([], "channel 0 stops after 0 buffers without its end of input; so do 1 other"),
    "a channel is missing": (
        [buffer(0, 0, END)],
        "channel 1 stops after 0 buffers without its end of input;",
    ),
    "the end is missing": (
        [buffer(0, 0, END), buffer(1, 0, RecordBatch([1])), buffer(1, 1, RecordBatch([2]))],
        "channel 1 stops after 2 buffers without its end of input",
    ),
    "the first is missing": (
        [buffer(0, 1, END)],
        "channel 0 brings buffer 1, expected buffer 0: 1 missing",
    ),
    "a gap": (
        [buffer(0, 0), buffer(0, 3, END)],
        "channel 0 brings buffer 3, expected buffer 1: 2 missing",
    ),
    "the same twice": (
        [buffer(0, 0), buffer(0, 0), buffer(0, 1, END)],
        "channel 0 brings buffer 0 twice, expected buffer 1",
    ),
    "other bytes under one number": (
        [buffer(0, 0), buffer(0, 0, RecordBatch([1]))],
        "channel 0 brings buffer 0 twice",
    ),
    "behind the end": (
        [buffer(0, 0, END), buffer(0, 1, END)],
        "channel 0 brings buffer 1 after its end of input",
    ),
    "the end twice": (
        [buffer(0, 0, END), buffer(0, 0, END)],
        "channel 0 brings buffer 0 after its end of input",
    ),
    "elements behind the end": (
        [buffer(0, 0, END, RecordBatch([1]))],
        "channel 0 continues after its end of input",
    ),
    "another task's": ([buffer(7, 0, END)], "channel 7, which it does not have (expected: 0, 1)"),
}


@pytest.mark.parametrize(("buffers", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_missing_or_repeated_buffers_are_an_error(buffers: list[Buffer], message: str) -> None:
    with pytest.raises(LostBufferError) as caught:
        list(gate(buffers))
    assert message in str(caught.value)
    assert "subtask 2 of 4" in str(caught.value)


def test_the_error_names_the_edge() -> None:
    edges = (WORDS, edge(1, 2, 1, "rules -> count"))
    with pytest.raises(LostBufferError, match="edge 'rules -> count', subtask 2 of 4: channel 2"):
        list(gate([buffer(0, 0, END), buffer(1, 0, END)], *edges))


def test_the_error_about_damage_names_the_buffer() -> None:
    damaged = buffer(1, 0, END)._replace(payload=b"OPCH")
    with pytest.raises(WireFormatError) as caught:
        list(gate([buffer(0, 0, END), damaged]))
    place = "edge 'words -> count', subtask 2 of 4, channel 1, buffer 0: expected a payload of at"
    assert str(caught.value).startswith(place)


@pytest.mark.parametrize(
    "buffers",
    [
        [buffer(1, 0, END), buffer(0, 0, END)],
        [buffer(1, 0, END, order=5), buffer(1, 1, END, order=4)],
    ],
)
def test_unsorted_buffers_are_an_internal_error(buffers: list[Buffer]) -> None:
    with pytest.raises(InternalError, match="expected them in ascending order"):
        list(gate(buffers))
