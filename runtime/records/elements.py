"""Elements of a stream: batches of records, watermarks, barriers and markers; and the buffer, the unit of an exchange.

Flink: `StreamElement` and its subclasses, and the events `CheckpointBarrier` and `EndOfData`. Flink has one element per
record. Here a batch of records is one element, so nothing is allocated per record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

from opchain.runtime.time import MAX_LONG_VALUE, MIN_LONG_VALUE

MIN_WATERMARK = MIN_LONG_VALUE
"""The watermark before the first one."""

MAX_WATERMARK = MAX_LONG_VALUE
"""The watermark at the end of a bounded input: no event time follows."""


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Records in order. `timestamps` has one entry per record. It is None if no record has a timestamp."""

    values: Sequence[Any]
    timestamps: list[int | None] | None = None


@dataclass(frozen=True, slots=True)
class Watermark:
    """Declares that no record with this timestamp (milliseconds) or an earlier one follows, except late records."""

    timestamp: int


@dataclass(frozen=True)
class NothingYet(Sequence[Any]):
    """An empty batch of a source that waits: it has no records before `wait_s` seconds have passed."""

    wait_s: float

    def __len__(self) -> int:
        return 0

    def __getitem__(self, place: Any) -> Any:
        raise IndexError(place)


class WatermarkStatus(Enum):
    """Whether a channel is active, or idle so that it does not hold back event time."""

    ACTIVE = "active"
    IDLE = "idle"


@dataclass(frozen=True, slots=True)
class LatencyMarker:
    """Measures the time that records take from their source. User functions do not see it.

    Args:
        marked_time_ms: When the source created it, by the clock of the source's machine.
        operator_id: The operator id of the source.
        subtask: The subtask of the source.
    """

    marked_time_ms: int
    operator_id: str
    subtask: int


@dataclass(frozen=True, slots=True)
class CheckpointBarrier:
    """Separates the records that belong to a checkpoint from those that come after it."""

    checkpoint_id: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class EndOfInput:
    """The last element of every channel of a bounded job. Flink: `EndOfData`, `EndOfPartitionEvent`."""


StreamElement: TypeAlias = (
    RecordBatch
    | Watermark
    | WatermarkStatus
    | LatencyMarker
    | CheckpointBarrier
    | EndOfInput
    | NothingYet
)


class Buffer(NamedTuple):
    """Bytes that are sent to a task.

    `target` is a task number, or DRIVER. `order` is the last watermark of the sender when the buffer was started, in
    milliseconds; MIN_WATERMARK before the first. It never decreases within a channel. `channel` is the receiver's
    number of the channel. `sequence` counts the buffers of the channel from 0. Receivers read buffers in the order of
    (order, channel, sequence), so the result depends neither on the order of arrival nor on retries. `others` are the
    (target, channel) pairs of further tasks that read the same payload, if a data set has several readers.
    """

    target: int
    order: int
    channel: int
    sequence: int
    payload: bytes
    others: tuple[tuple[int, int], ...] = ()

    def for_each_reader(self) -> Iterator[Buffer]:
        """A buffer for each task that reads the payload."""
        _, order, _, sequence, payload, _ = self
        for target, channel in self.readers:
            yield Buffer(target, order, channel, sequence, payload)

    def for_readers(self, readers: Sequence[tuple[int, int]]) -> Buffer:
        """A buffer with the same payload for some of the readers, at least one."""
        (target, channel), *others = readers
        return Buffer(target, self.order, channel, self.sequence, self.payload, tuple(others))

    @property
    def readers(self) -> tuple[tuple[int, int], ...]:
        """The (target, channel) of all tasks that read the payload."""
        return ((self.target, self.channel), *self.others)


def reading_order(buffer: Buffer) -> tuple[int, int, int]:
    """The sort key of receivers."""
    return buffer.order, buffer.channel, buffer.sequence
