"""The unit of an exchange: a buffer of stream elements from one channel to one task."""

from __future__ import annotations

from typing import NamedTuple


class Buffer(NamedTuple):
    """Bytes on their way to a task.

    `target` is a task number, or DRIVER. `order` is the sender's event-time progress when the buffer
    was begun (its last emitted watermark, in milliseconds; MIN_WATERMARK before the first); it never
    falls within a channel. `channel` is the receiver's number of the channel, `sequence` counts that
    channel's buffers from 0. Receivers read in the order of (order, channel, sequence), so that the
    result depends neither on the order in which buffers are fetched nor on retries.
    """

    target: int
    order: int
    channel: int
    sequence: int
    payload: bytes


def reading_order(buffer: Buffer) -> tuple[int, int, int]:
    """The key by which receivers sort."""
    return buffer.order, buffer.channel, buffer.sequence
