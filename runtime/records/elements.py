"""Elements of a stream: batches of records, watermarks, barriers and markers; and the buffer, the unit of an exchange.

Flink: `StreamElement` and its subclasses, and the events `CheckpointBarrier` and `EndOfData`. Flink has one element per
record. Here a batch of records is one element, so nothing is allocated per record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from opchain.runtime.time import MAX_LONG_VALUE, MIN_LONG_VALUE

if TYPE_CHECKING:
    from opchain.runtime.records.columns import Columns


MIN_WATERMARK = MIN_LONG_VALUE
"""The watermark before any other."""

MAX_WATERMARK = MAX_LONG_VALUE
"""The watermark at the end of a bounded input: event time is over."""


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Records in their order. `timestamps` has as many entries, or is None if no record has a timestamp."""

    values: list[Any] | Columns
    timestamps: list[int | None] | None = None


@dataclass(frozen=True, slots=True)
class Watermark:
    """Says that no record with this timestamp (milliseconds) or an earlier one follows, except late records."""

    timestamp: int


@dataclass(frozen=True)
class NothingYet(Sequence[Any]):
    """An empty batch of a source that waits: nothing is due before `wait_s` seconds have passed."""

    wait_s: float

    def __len__(self) -> int:
        return 0

    def __getitem__(self, place: Any) -> Any:
        raise IndexError(place)


class WatermarkStatus(Enum):
    """Whether a channel takes part in event time, or is idle and must not hold it back."""

    ACTIVE = "active"
    IDLE = "idle"


@dataclass(frozen=True, slots=True)
class LatencyMarker:
    """Measures how long a record takes from its source. User functions do not see it.

    Args:
        marked_time_ms: When the source made it, by that machine's clock.
        operator_id: The source.
        subtask: The source's subtask.
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
    """Bytes on their way to a task.

    `target` is a task number, or DRIVER. `order` is the sender's event-time progress when the buffer
    was begun (its last emitted watermark, in milliseconds; MIN_WATERMARK before the first); it never
    falls within a channel. `channel` is the receiver's number of the channel, `sequence` counts that
    channel's buffers from 0. Receivers read in the order of (order, channel, sequence), so that the
    result depends neither on the order in which buffers are fetched nor on retries. `others` are the
    (target, channel) of further tasks that read the same payload, of a data set with several readers.
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
        """The same payload for some readers only, at least one."""
        (target, channel), *others = readers
        return Buffer(target, self.order, channel, self.sequence, self.payload, tuple(others))

    @property
    def readers(self) -> tuple[tuple[int, int], ...]:
        """The (target, channel) of all tasks that read the payload."""
        return ((self.target, self.channel), *self.others)


def reading_order(buffer: Buffer) -> tuple[int, int, int]:
    """The key by which receivers sort."""
    return buffer.order, buffer.channel, buffer.sequence
