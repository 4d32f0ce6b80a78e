"""Reads ranges of partitions with a consumer that a task keeps from epoch to epoch. It does not join a consumer group.

One consumer fetches all ranges of a subtask concurrently. Messages are buffered per partition until they are read. A
partition with a full buffer is paused, so memory stays small for ranges of any size. Batches have a fixed size, so the
order in which a subtask reads its partitions depends only on the records.
"""

from __future__ import annotations

import time
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.connectors.kafka.client import (
    API_TIMEOUT,
    API_TIMEOUT_MS,
    GROUP,
    READ_COMMITTED,
    KafkaConnectorError,
    advice,
    confluent_kafka,
    make_client,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_POLL_S = 0.1
_BATCHES_AHEAD = 4
"""The number of batches of a partition to buffer before it is paused."""

_PASSING = frozenset({"_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_RESOLVE"})
"""Errors after which the client retries by itself."""


class PartitionRange(NamedTuple):
    """The offsets of a partition from `first` (inclusive) to `behind` (exclusive). None: no end."""

    topic: str
    partition: int
    first: int
    behind: int | None


class _Open:
    """A range that is being read: its buffered messages, and whether it is complete."""

    def __init__(self, item: PartitionRange) -> None:
        self.item = item
        self.held: list[Any] = []
        self.is_over = item.behind is not None and item.first >= item.behind
        self.is_fetched = not self.is_over
        self.is_paused = False

    def take(self, messages: list[Any]) -> None:
        """Buffers messages in the order of their offsets. The end of the partition counts as an empty message."""
        behind = self.item.behind
        last = messages[-1]
        is_end = last.error() is not None
        if is_end:
            messages.pop()
        if behind is not None and last.offset() + (not is_end) >= behind:
            self.is_over = True
            messages = [message for message in messages if message.offset() < behind]
        self.held += messages

    def pop_first(self, count: int) -> list[Any]:
        """Removes and returns the first buffered messages."""
        messages = self.held[:count]
        del self.held[:count]
        return messages


class RangeReader:
    """Reads ranges of offsets; at any time one per partition."""

    def __init__(self, properties: Mapping[str, Any], where: str) -> None:
        self._where = where
        self._timeout_s = float(properties.get(API_TIMEOUT, API_TIMEOUT_MS)) / 1000
        library = confluent_kafka()
        self._partition = library.TopicPartition
        self._message = library.Message
        self._end_of_partition = library.KafkaError._PARTITION_EOF  # noqa: SLF001 - its public name
        given = {
            GROUP: "opchain",  # librdkafka requires a group
            "isolation.level": READ_COMMITTED,
            "fetch.wait.max.ms": 50,  # limits the time to find out that only transaction markers are left
            **properties,
        }
        fixed = {
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
        self._consumer, self._reported = make_client("Consumer", given, fixed, where)
        self._open: dict[tuple[str, int], _Open] = {}

    def close(self) -> None:
        """Closes the connections."""
        self._consumer.close()

    def begin(self, ranges: Iterable[PartitionRange]) -> None:
        """Starts to fetch ranges that will be read soon."""
        new = [_Open(item) for item in ranges if self._opened(item) is None]
        for opened in new:
            self._drop(opened.item)
            self._open[opened.item.topic, opened.item.partition] = opened
        wanted = [opened.item for opened in new if opened.is_fetched]
        if wanted:
            self._consumer.incremental_assign(
                [self._partition(item.topic, item.partition, item.first) for item in wanted]
            )

    def read(self, item: PartitionRange, batch_size: int) -> Iterator[list[Any]]:
        """Yields the messages of a range in batches of this size.

        A range without an end yields what has arrived, possibly nothing.

        Raises:
            KafkaConnectorError: Messages are lost, or cannot be read.
        """
        self.begin([item])
        opened = self._opened(item)
        assert opened is not None
        try:
            heard_at = time.monotonic()
            while opened.held or not opened.is_over:
                count = len(opened.held)
                if count < batch_size and not opened.is_over:
                    self._resume(opened)
                    self._poll(batch_size)
                    if item.behind is not None and not opened.is_over:
                        is_alive = len(opened.held) > count
                        heard_at = self._require_life(item, heard_at, is_alive=is_alive)
                        continue
                yield opened.pop_first(batch_size)
                heard_at = time.monotonic()
        finally:
            self._drop(item)

    def _opened(self, item: PartitionRange) -> _Open | None:
        opened = self._open.get((item.topic, item.partition))
        return opened if opened is not None and opened.item == item else None

    def _drop(self, item: PartitionRange) -> None:
        opened = self._open.pop((item.topic, item.partition), None)
        if opened is not None:
            self._end(opened)

    def _end(self, opened: _Open) -> None:
        """Stops fetching a range."""
        self._resume(opened)  # otherwise the client would also pause the partition's next range
        if opened.is_fetched:
            opened.is_fetched = False
            item = opened.item
            self._consumer.incremental_unassign([self._partition(item.topic, item.partition)])

    def _resume(self, opened: _Open) -> None:
        if opened.is_paused:
            item = opened.item
            self._consumer.resume([self._partition(item.topic, item.partition)])
            opened.is_paused = False

    def _poll(self, batch_size: int) -> None:
        """Buffers the messages that have arrived. Waits for a moment if there are none."""
        first = self._consumer.poll(_POLL_S)
        if first is None:
            return
        touched: dict[tuple[str, int], _Open] = {}
        messages = [first, *self._consumer.consume(batch_size, 0)]
        for place, own in self._by_place(messages):
            opened = self._open.get(place)
            if opened is None or opened.is_over:
                continue
            touched[place] = opened
            if any(map(self._message.error, own)):
                for message in own:
                    if message.error() is None or self._is_end(message, opened.item):
                        opened.take([message])
            else:
                opened.take(own)
        for opened in touched.values():
            if opened.is_over:
                self._end(opened)
            elif len(opened.held) > _BATCHES_AHEAD * batch_size and not opened.is_paused:
                opened.is_paused = True
                item = opened.item
                self._consumer.pause([self._partition(item.topic, item.partition)])

    def _by_place(self, messages: list[Any]) -> Iterator[tuple[tuple[str, int], list[Any]]]:
        """Groups consecutive messages of the same partition."""
        message = self._message
        places = list(
            zip(map(message.topic, messages), map(message.partition, messages), strict=True)
        )
        if len(set(places)) == 1:
            yield places[0], messages
            return
        for place, group in groupby(zip(places, messages, strict=True), itemgetter(0)):
            yield place, [item for _, item in group]

    def _is_end(self, message: Any, item: PartitionRange) -> bool:
        """Whether this is the end of the partition. Raises an error if it is a real error."""
        error = message.error()
        if error.code() == self._end_of_partition:
            return True
        if error.name() in _PASSING or error.retriable():
            return False
        place = f"{self._where}, topic {item.topic}, partition {item.partition}"
        if error.name() == "_AUTO_OFFSET_RESET":
            raise KafkaConnectorError(lost(place, item.first, error.str()))
        raise KafkaConnectorError(
            f"{place}, offset {message.offset()}: {error.str()}{advice(error)}"
        )

    def _require_life(self, item: PartitionRange, heard_at: float, *, is_alive: bool) -> float:
        """The time of the last message. Raises an error if it is too long ago."""
        now = time.monotonic()
        if is_alive:
            return now
        if now - heard_at > self._timeout_s:
            raise KafkaConnectorError(
                f"{self._where}, topic {item.topic}, partition {item.partition}: no message of offsets "
                f"{item.first} to {item.behind} has come for {self._timeout_s:g} s"
                f"{self._reported.reason()}{advice(None, self._reported)}; {API_TIMEOUT} sets this time limit"
            )
        return heard_at


def lost(place: str, offset: int, why: str) -> str:
    """The error for messages that were deleted before they were read."""
    return (
        f"{place}: the next offset to read is {offset}, but it no longer exists ({why}): the topic's retention "
        "or a delete request has removed messages before they were read. Give the topic a longer retention.ms. To continue "
        "without these messages, start the job with a new directory of checkpoints and the offsets to start from"
    )
