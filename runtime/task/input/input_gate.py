"""The input of a task: the elements of its channels. Each channel is complete and in order, or an error is raised.

The exchange may lose, repeat or reorder buffers, because a sender is retried or speculated, or a stage runs again. A
lost buffer must never look like a shorter input. So a channel must begin with buffer 0, have no gap, and end with
`EndOfInput`. In an epoch of an unbounded job it ends with the barrier of the epoch's checkpoint.

Watermarks cut a channel into sections. The sections of all channels are read in the order of the watermarks before them.
So the order of elements does not depend on how many of them a sender puts into a buffer.

Flink: `InputGate`, with the channels of all in-edges.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from opchain.runtime.errors import (
    InternalError,
    LostBufferError,
    UnreadableRecordError,
    WireFormatError,
)
from opchain.runtime.records.columns import record_count
from opchain.runtime.records.elements import (
    Buffer,
    CheckpointBarrier,
    EndOfInput,
    RecordBatch,
    StreamElement,
    Watermark,
)
from opchain.runtime.records.wire import decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opchain.runtime.program.vertex_program import InputProgram


class InputElement(NamedTuple):
    """An element, its input, and the channel on which it arrived."""

    input_number: int
    channel: int
    element: StreamElement


class _Channel:
    __slots__ = ("has_ended", "input_number", "label", "sequence")

    def __init__(self, edge: InputProgram) -> None:
        self.input_number = edge.input_number
        self.label = edge.label
        self.sequence = 0
        self.has_ended = False


class InputGate:
    """Iterates over the elements of all channels, with at most one buffer of each channel in memory.

    An input yields one `EndOfInput`, after the last of its channels has ended. In an epoch each channel yields its
    barrier.

    Args:
        inputs: The in-edges.
        subtask: The subtask that reads.
        parallelism: The number of subtasks of the vertex.
        buffers: Ascending by (order, channel, sequence), so that the order of elements depends neither on the order of
            arrival nor on retries.
        checkpoint_id: The checkpoint whose barrier ends every channel; None if channels end with their input.
    """

    def __init__(
        self,
        inputs: Sequence[InputProgram],
        subtask: int,
        parallelism: int,
        buffers: Iterable[Buffer],
        checkpoint_id: int | None = None,
    ) -> None:
        self._checkpoint_id = checkpoint_id
        self.buffers_in = 0
        self.bytes_in = 0
        self.records_in = 0
        self._buffers = buffers
        self._place = f"subtask {subtask + 1} of {parallelism}"
        self._channels = {
            channel: _Channel(edge)
            for edge in inputs
            for channel in edge.channels_of(subtask, parallelism)
        }
        self._open_channels: dict[int, int] = {}
        for channel in self._channels.values():
            number = channel.input_number
            self._open_channels[number] = self._open_channels.get(number, 0) + 1

    def __iter__(self) -> Iterator[InputElement]:
        """Reads all elements. Can be called once.

        Raises:
            LostBufferError: If a channel has a gap, a repetition, or no end, or is unknown. The elements before it
                have been read by then, and their results must not be published.
            WireFormatError: If a buffer is damaged.
            UnreadableRecordError: If records cannot be unpickled here.
            InternalError: If the buffers are not in order.
        """
        last = None
        # Sections that come after the next buffer's first one, by (order, channel, sequence, place in their buffer).
        later: list[tuple[int, int, int, int, list[StreamElement]]] = []
        for buffer in self._buffers:
            key = order, channel, sequence = buffer[1:4]
            if last is not None and key < last:
                raise InternalError(
                    f"{self._place} got buffer (order, channel, sequence) {key} after {last}: "
                    "expected them in ascending order"
                )
            last = key
            while later and later[0] < key:
                _, number, _, _, section = heappop(later)
                yield from self._emit(number, section)
            for place, (reached, section) in enumerate(_sections(order, self._read(buffer))):
                if place:
                    heappush(later, (reached, channel, sequence, place, section))
                else:
                    yield from self._emit(channel, section)
        while later:
            _, number, _, _, section = heappop(later)
            yield from self._emit(number, section)
        self._check_ends()

    def read(self, buffer: Buffer) -> Iterator[InputElement]:
        """The elements of one buffer, which must be the next of its channel.

        Raises:
            LostBufferError: As `__iter__`, except for a missing end.
            WireFormatError: If the buffer is damaged.
            UnreadableRecordError: If records cannot be unpickled here.
        """
        return self._emit(buffer.channel, self._read(buffer))

    def _emit(self, number: int, elements: Iterable[StreamElement]) -> Iterator[InputElement]:
        channel = self._channels[number]
        for element in elements:
            if channel.has_ended:
                raise self._lost(number, "continues after its end of input")
            if isinstance(element, EndOfInput):
                channel.has_ended = True
                if not self._close_one(channel.input_number):
                    continue
            elif isinstance(element, CheckpointBarrier):
                if element.checkpoint_id != self._checkpoint_id:
                    raise self._lost(
                        number,
                        f"brings the barrier of checkpoint {element.checkpoint_id}, expected that of "
                        f"{self._checkpoint_id or 'none'}",
                    )
                channel.has_ended = True
                self._close_one(channel.input_number)
            elif isinstance(element, RecordBatch):
                self.records_in += record_count(element.values)
            yield InputElement(channel.input_number, number, element)

    @property
    def has_ended(self) -> bool:
        """Whether all channels have ended."""
        return not any(self._open_channels.values())

    def _read(self, buffer: Buffer) -> list[StreamElement]:
        """The elements of a buffer. Raises an error if the buffer is not the next one of its channel."""
        channel = self._channels.get(buffer.channel)
        if channel is None:
            expected = ", ".join(map(str, self._channels)) or "none"
            raise LostBufferError(
                f"{self._place} got a buffer of channel {buffer.channel}, which it does not have "
                f"(expected: {expected}); it was meant for another task"
            )
        if channel.has_ended:
            raise self._lost(
                buffer.channel, f"brings buffer {buffer.sequence} after its end of input"
            )
        if buffer.sequence < channel.sequence:
            raise self._lost(
                buffer.channel,
                f"brings buffer {buffer.sequence} twice, expected buffer {channel.sequence}",
            )
        if buffer.sequence > channel.sequence:
            raise self._lost(
                buffer.channel,
                f"brings buffer {buffer.sequence}, expected buffer {channel.sequence}: "
                f"{buffer.sequence - channel.sequence} missing",
            )
        channel.sequence += 1
        self.buffers_in += 1
        self.bytes_in += len(buffer.payload)
        try:
            return decode(buffer.payload)
        except (WireFormatError, UnreadableRecordError) as error:
            raise type(error)(
                f"edge '{channel.label}', {self._place}, channel {buffer.channel}, "
                f"buffer {buffer.sequence}: {error}"
            ) from error

    def _close_one(self, input_number: int) -> bool:
        """Counts the end of a channel. Returns whether it was the last channel of the input."""
        self._open_channels[input_number] -= 1
        return self._open_channels[input_number] == 0

    def _check_ends(self) -> None:
        missing = [number for number, channel in self._channels.items() if not channel.has_ended]
        if missing:
            number = missing[0]
            found = self._channels[number].sequence
            others = f"; so do {len(missing) - 1} other channels" if missing[1:] else ""
            raise self._lost(
                number, f"stops after {found} buffers without its end of input{others}"
            )

    def _lost(self, number: int, what: str) -> LostBufferError:
        return LostBufferError(
            f"edge '{self._channels[number].label}', {self._place}: channel {number} {what}; the "
            "input is incomplete and no result of it is published; run the job again, and report "
            "the error if it repeats"
        )


def _sections(
    order: int, elements: list[StreamElement]
) -> Iterator[tuple[int, list[StreamElement]]]:
    """The elements up to each watermark, and the order of the channel before them."""
    first = 0
    for end, element in enumerate(elements, 1):
        if element.__class__ is Watermark:
            yield order, elements[first:end]
            order, first = max(order, element.timestamp), end
    if first < len(elements):
        yield order, elements[first:]
