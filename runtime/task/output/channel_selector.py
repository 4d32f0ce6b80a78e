"""Chooses the channels of the records of a batch, for each kind of partitioning.

A selector chooses for a whole batch. Its result is an `Assignment`, which is applied to several columns (values,
timestamps). Flink's partitioners choose per record, and rebalance and shuffle begin at a random channel. Here the
choice depends only on the id of the sending operator and its subtask, so a retried task sends the same records to the
same channels. Otherwise a consumer that is retried alone would lose some records and get others twice.
"""

from __future__ import annotations

import operator
import random
import zlib
from typing import TYPE_CHECKING, Any, Protocol

from opchain.runtime.errors import InternalError, KeyTypeError, PartitionError, add_note, short_repr
from opchain.runtime.measurements.hot_keys import KeySample
from opchain.runtime.program.vertex_program import (
    KeyProgram,
    OutputProgram,
    Shipping,
    pointwise_consumers,
)
from opchain.runtime.records.arrays import scatterer
from opchain.runtime.records.columns import Column, keys_by_record
from opchain.runtime.state.keys.key_router import KeyRouter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Assignment(Protocol):
    """The channel of each record of a batch."""

    def scatter(self, column: Sequence[Any], buckets: Sequence[Column]) -> None:
        """Appends each entry of a column to the bucket of its channel. Buckets are arrays if the column is one."""


class ToFirst:
    """All records to the first channel."""

    def scatter(self, column: Sequence[Any], buckets: Sequence[Column]) -> None:
        """Appends the column as it is."""
        buckets[0].extend(column)


class InTurn:
    """The channels in turn, beginning with `first`."""

    def __init__(self, first: int) -> None:
        self.first = first

    def scatter(self, column: Sequence[Any], buckets: Sequence[Column]) -> None:
        """Appends every n-th entry, by slices: 1 ns a record."""
        count = len(buckets)
        for offset in range(min(count, len(column))):
            buckets[(self.first + offset) % count].extend(column[offset::count])


class ByRecord:
    """A channel for each record."""

    def __init__(self, channels: Sequence[int]) -> None:
        self._scatter = scatterer(channels)

    def scatter(self, column: Sequence[Any], buckets: Sequence[Column]) -> None:
        """Appends entry by entry, or sorts the column by channel if numpy has computed the channels."""
        self._scatter(column, buckets)


class ChannelSelector(Protocol):
    """Chooses the channels of one output of one subtask."""

    def assign(self, values: Sequence[Any], keys: Sequence[Any] | None) -> Assignment:
        """The channels of the records; `keys` has the key of each record if the output has a key selector."""


class OneChannel:
    """Forward, global and broadcast. A broadcast has one bucket for all channels."""

    def __init__(self) -> None:
        self._assignment = ToFirst()

    def assign(self, values: Sequence[Any], keys: Sequence[Any] | None) -> Assignment:  # noqa: ARG002
        """The first channel."""
        return self._assignment


class RoundRobin:
    """Rebalance and rescale: each record goes to the channel after the previous record's."""

    def __init__(self, channels: int, first: int) -> None:
        self._channels = channels
        self._next = first % channels

    def assign(self, values: Sequence[Any], keys: Sequence[Any] | None) -> Assignment:  # noqa: ARG002
        """The channels in turn, from the end of the last batch."""
        first = self._next
        self._next = (first + len(values)) % self._channels
        return InTurn(first)


class Shuffle:
    """Each record goes to a random channel, which is the same in every attempt."""

    def __init__(self, channels: int, seed: str, subtask: int) -> None:
        self._channels = channels
        # Python guarantees the sequence of `random()` for all versions, but not that of `choices`.
        self._random = random.Random(f"shuffle {seed} {subtask}").random  # noqa: S311

    def assign(self, values: Sequence[Any], keys: Sequence[Any] | None) -> Assignment:  # noqa: ARG002
        """A random channel for each record."""
        draw, channels = self._random, self._channels
        return ByRecord([int(draw() * channels) for _ in range(len(values))])


class KeyGroups:
    """Each record goes to the channel that owns the key group of its key. Flink: `KeyGroupStreamPartitioner`."""

    def __init__(self, key: KeyProgram, channels: int, max_parallelism: int) -> None:
        self._key = key
        self._channels = channels
        self._router = KeyRouter(max_parallelism, channels, key.hasher)
        self.sample = KeySample(self._router)

    def assign(self, values: Sequence[Any], keys: Sequence[Any] | None) -> Assignment:
        """The channels of the keys.

        Raises:
            KeyTypeError: A key has no stable hash, or not the declared type. The message has the key and the record.
        """
        assert keys is not None
        try:
            channels = self._router.channels(keys)
        except TypeError as error:
            raise self._refusal(values, keys, error) from error
        self.sample.add(keys_by_record(values, keys))
        return ToFirst() if self._channels == 1 else ByRecord(channels)

    def _refusal(
        self, values: Sequence[Any], keys: Sequence[Any], failure: TypeError
    ) -> KeyTypeError:
        for value, key in zip(values, keys, strict=True):
            error = _error_of(self._router, key)
            if error is not None:
                kind = type(error) if isinstance(error, KeyTypeError) else KeyTypeError
                return kind(
                    f"{self._key.label} gives the record {short_repr(value)} the key {short_repr(key)}: {error}"
                )
        return KeyTypeError(f"{self._key.label} returns keys that cannot be hashed: {failure}")


class Custom:
    """The user's partitioner chooses the channel of each record."""

    def __init__(self, key: KeyProgram, partitioner: Any, channels: int) -> None:
        self._key = key
        self._channels = channels
        self._partition: Callable[[Any, int], Any] = getattr(partitioner, "partition", partitioner)

    def assign(self, values: Sequence[Any], keys: Sequence[Any] | None) -> Assignment:
        """Calls the partitioner for each key.

        Raises:
            PartitionError: It returned something other than the number of a channel.
        """
        assert keys is not None
        partition, count = self._partition, self._channels
        channels: list[int] = []
        for key in keys:
            try:
                channel = partition(key, count)
            except Exception as error:
                value = values[len(channels)]
                note = f"while partitioning the record {short_repr(value)} by {short_repr(key)}"
                add_note(error, f"{note}, for {self._key.label}")
                raise
            if channel.__class__ is not int or not 0 <= channel < count:
                channel = self._checked(channel, values[len(channels)], key)
            channels.append(channel)
        return ByRecord(channels)

    def _checked(self, channel: Any, value: Any, key: Any) -> int:
        """The channel as an int. Other types of whole numbers are converted."""
        try:
            number = operator.index(channel)
        except TypeError:
            number = -1
        if 0 <= number < self._channels:
            return number
        raise PartitionError(
            f"the partitioner of {self._key.label} returns {short_repr(channel)} for the key "
            f"{short_repr(key)} of the record {short_repr(value)}: expected an int from 0 to "
            f"{self._channels - 1}"
        )


def channels_of(output: OutputProgram, subtask: int, parallelism: int) -> range:
    """The consumer subtasks to which a producer subtask has a channel."""
    if output.shipping in (Shipping.FORWARD, Shipping.RESCALE):
        return range(*pointwise_consumers(subtask, parallelism, output.target_parallelism))
    return range(output.target_parallelism)


def create_channel_selector(
    output: OutputProgram, channels: int, seed: str, subtask: int
) -> ChannelSelector:
    """The selector of an output.

    Args:
        output: The output.
        channels: The number of channels of `channels_of`.
        seed: The id of the operator that emits the records, from which choices are derived.
        subtask: The subtask that emits the records.
    """
    shipping = output.shipping
    if shipping is Shipping.RESCALE:
        return RoundRobin(channels, 0)  # as in Flink
    if shipping is Shipping.REBALANCE:
        # Flink begins at a random channel. Subtasks begin at consecutive ones, so that a few records are spread, too.
        return RoundRobin(channels, zlib.crc32(seed.encode()) + subtask)
    if shipping is Shipping.SHUFFLE:
        return Shuffle(channels, seed, subtask)
    if shipping in (Shipping.KEY_GROUP, Shipping.CUSTOM):
        if output.key is None:
            raise InternalError(
                f"output '{output.label}' is shipped by {shipping.value} without a key"
            )
        if shipping is Shipping.KEY_GROUP:
            return KeyGroups(output.key, channels, output.target_max_parallelism)
        return Custom(output.key, output.custom_partitioner, channels)
    if shipping is Shipping.FORWARD and channels != 1:
        raise InternalError(
            f"output '{output.label}' is a forward edge and must have 1 channel, but has {channels}"
        )
    return OneChannel()


def _error_of(router: KeyRouter, key: Any) -> TypeError | None:
    try:
        router.route([key])
    except TypeError as error:
        return error
    return None
