"""KafkaSource: reads topics between two positions, with the same code for bounded and unbounded jobs.

The driver asks the brokers for the ends of the partitions, and decides between which positions an epoch reads. Tasks
read exactly this range, so a repeated epoch reads the same messages.

Flink: `KafkaSource`, whose readers decide by themselves, and keep their offsets as state.
"""

from __future__ import annotations

import copy
import logging
import math
import pickle
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.connectors.kafka.client import (
    GROUP,
    KafkaConnectorError,
    confluent_kafka,
    error_text,
    kafka_datasets,
    make_client,
)
from opchain.runtime.connectors.kafka.enumerator import (
    KafkaEnumerator,
    Subscription,
    all_partitions,
    offsets_in,
    position_of,
)
from opchain.runtime.connectors.kafka.reader import PartitionRange, RangeReader, lost
from opchain.runtime.connectors.unbounded_source import EpochPace, UnboundedSource
from opchain.runtime.errors import ALLOW_NON_RESTORED_STATE
from opchain.runtime.records.elements import RecordBatch
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opchain.runtime.connectors.kafka.builder import KafkaSourceBuilder
    from opchain.runtime.connectors.kafka.offsets import (
        KafkaOffsetsInitializer,
        KafkaTopicPartition,
    )
    from opchain.runtime.connectors.kafka.record import Deserializer
    from opchain.runtime.functions.source import SourceReaderContext
    from opchain.runtime.types.type_information import TypeInformation

DISCOVERY = "partition.discovery.interval.ms"
COMMITS = "commit.offsets.on.checkpoint"
DISCOVERY_MS = 300_000
RECORDS_PER_EPOCH = 1_000_000

_SAMPLED = 200
_FIRST_EPOCH = 10_000
"""The number of records of the first epoch if a time limits epochs, because the speed is not known yet."""

_LOG = logging.getLogger("opchain.kafka")


class Admission(NamedTuple):
    """The maximum input of an epoch. None: no limit."""

    records: int | None = RECORDS_PER_EPOCH
    size_bytes: int | None = None
    time_ms: int | None = None


class KafkaSource(UnboundedSource[T]):
    """A source of Kafka messages. Created by `KafkaSource.builder()`.

    Records have the timestamps of their messages. One subtask reads a partition: the same subtask as in Flink.
    """

    has_timestamps = True
    follows_positions = True

    def __init__(
        self,
        subscription: Subscription,
        deserializer: Deserializer[T],
        properties: Mapping[str, Any],
        starting: KafkaOffsetsInitializer,
        stopping: KafkaOffsetsInitializer | None = None,
        *,
        is_bounded: bool = False,
        admission: Admission | None = None,
    ) -> None:
        self.subscription = subscription
        self.deserializer = deserializer
        self.properties = dict(properties)
        self.starting = starting
        self.stopping = stopping
        self.is_bounded = is_bounded
        self.admission = admission or Admission()
        self._ranges: tuple[PartitionRange, ...] | None = None
        self._enumerator: KafkaEnumerator | None = None
        self._reader: RangeReader | None = None
        self._committer: Any = None
        self._has_ended = False
        self._pace = EpochPace(_FIRST_EPOCH)
        self._discovered_ms: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Omits connections."""
        return {**self.__dict__, "_enumerator": None, "_reader": None, "_committer": None}

    def __repr__(self) -> str:
        return f"KafkaSource({self.subscription})"

    @property
    def topics(self) -> str:
        """The topics, the partitions, or the pattern of topic names, for plans."""
        return str(self.subscription)

    @property
    def datasets(self) -> tuple[tuple[str, str], ...]:
        """The topics, for lineage. Empty if a pattern chooses them."""
        named = (item.topic for item in self.subscription.partitions)
        return kafka_datasets(self.properties, (*self.subscription.topics, *named))

    @staticmethod
    def builder() -> KafkaSourceBuilder[Any]:
        """Returns a builder."""
        from opchain.runtime.connectors.kafka.builder import (  # noqa: PLC0415 - needs this module
            KafkaSourceBuilder,
        )

        return KafkaSourceBuilder()

    def get_produced_type(self) -> TypeInformation[Any] | None:
        """The type that the deserializer produces."""
        return self.deserializer.schema.get_produced_type()

    # On the driver

    def planned(self, parallelism: int) -> KafkaSource[T]:
        """Returns the source; a bounded source with its resolved offsets. In both cases, the brokers must answer.

        Raises:
            KafkaConnectorError: The brokers cannot be reached, or a topic or offset does not exist.
        """
        planned = copy.copy(self)
        if self.is_bounded:
            planned._ranges = tuple(self._resolved())  # noqa: SLF001 - its own class
        else:
            self._brokers().partitions()
        planned._enumerator = None  # noqa: SLF001 - its own class
        del parallelism
        return planned

    def split_name(self, split: PartitionRange) -> str:
        """Topic and partition."""
        return self._name_of(split)

    @staticmethod
    def _name_of(item: PartitionRange | KafkaTopicPartition) -> str:
        return f"{item.topic}-{item.partition}"

    def splits(self, parallelism: int) -> list[list[PartitionRange]]:
        """The partitions of each subtask."""
        if self._ranges is None:
            self._ranges = tuple(self._resolved())
        return _dealt_out(self._ranges, parallelism)

    def _resolved(self) -> Iterator[PartitionRange]:
        """The ranges of a bounded source."""
        brokers = self._brokers()
        partitions = all_partitions(brokers.partitions())
        starts = brokers.resolved(self.starting, partitions)
        stops = {} if self.stopping is None else brokers.resolved(self.stopping, partitions)
        for item in partitions:
            first, behind = starts[item], stops.get(item)
            if behind is None or first < behind:
                yield PartitionRange(item.topic, item.partition, first, behind)

    def initial_position(self, now_ms: int) -> dict[str, Any]:
        """The starting offsets and the stopping offsets."""
        brokers = self._brokers()
        topics = brokers.partitions()
        partitions = all_partitions(topics)
        position = {"topics": position_of(topics, brokers.resolved(self.starting, partitions))}
        if self.stopping is not None:
            position["stop"] = position_of(topics, brokers.resolved(self.stopping, partitions))
        self._discovered_ms = now_ms
        return position

    def latest_position(self, start: Mapping[str, Any], now_ms: int) -> dict[str, Any]:
        """The end of the next epoch: the ends of the partitions, if these are not too many messages.

        Raises:
            KafkaConnectorError: Unread messages were deleted, or a topic was deleted or replaced.
        """
        brokers = self._brokers()
        topics = {name: dict(entry) for name, entry in start["topics"].items()}
        # New partitions have no position before this epoch. The next epoch reads them, from the beginning.
        offsets = offsets_in(topics)
        new = self._discovered(topics, now_ms)
        begins, there = brokers.begins(list(offsets)), brokers.ends(list(offsets))
        ends = dict(there)
        stops = offsets_in(start["stop"]) if "stop" in start else {}
        for item, offset in offsets.items():
            place = f"{self!r}, topic {item.topic}, partition {item.partition}"
            if offset < begins[item]:
                raise KafkaConnectorError(lost(place, offset, f"the first one is {begins[item]}"))
            if offset > ends[item]:
                self._require_same_topics(topics)
                raise KafkaConnectorError(
                    f"{place}: the next offset to read is {offset}, but the partition ends at {ends[item]}: the topic "
                    "was truncated. Start the job with a new directory of checkpoints to read it from its starting "
                    "offsets"
                )
            ends[item] = max(min(ends[item], stops.get(item, ends[item])), offset)
        waiting = [item for item in offsets if self._name_of(item) in self.waiting_splits]
        # A partition that reached its stopping offset in the last epoch holds back the watermark until an epoch omits
        # it.
        is_over = any(offsets.get(item, 0) >= stop for item, stop in stops.items())
        if not is_over or any(ends[item] > offsets[item] for item in offsets.keys() - {*waiting}):
            ends.update((item, offsets[item]) for item in waiting)
        admitted = self._admitted(offsets, ends, now_ms)
        if admitted == offsets and not new:
            return dict(start)
        self._require_same_topics(topics)
        ids = {
            topic: (entry["id"], tuple(sorted(map(int, entry["next"]))))
            for topic, entry in sorted(topics.items())
        }
        nexts = {**admitted, **new}
        lags = {
            self._name_of(item): end - admitted[item]
            for item, end in there.items()
            if end > admitted[item]
        }
        return {**start, "topics": position_of(ids, nexts), "lags": lags}

    def split_offsets(self, position: Mapping[str, Any]) -> dict[str, dict[str, int]]:
        """The next offset of each partition, and the number of offsets that were left when the epoch began."""
        lags = position.get("lags", {})
        return {
            self._name_of(item): {"next": offset, "lag": lags.get(self._name_of(item), 0)}
            for item, offset in offsets_in(position["topics"]).items()
        }

    def _discovered(
        self, topics: dict[str, dict[str, Any]], now_ms: int
    ) -> dict[KafkaTopicPartition, int]:
        """Adds new partitions to a position, and returns their first offsets."""
        interval_ms = int(self.properties.get(DISCOVERY, DISCOVERY_MS))
        if self._discovered_ms is not None and (
            interval_ms <= 0 or 0 <= now_ms - self._discovered_ms < interval_ms
        ):
            return {}
        self._discovered_ms = now_ms
        brokers = self._brokers()
        there = brokers.partitions()
        for topic, entry in topics.items():
            topic_id, numbers = there.get(topic, (None, ()))
            gone = [number for number in map(int, entry["next"]) if number not in numbers]
            if topic_id is None and not brokers.subscribes_to(topic):
                raise KafkaConnectorError(
                    f"{self!r}: the checkpoint has positions of topic {topic}, which this source no longer reads. Read "
                    f"it again, or give the source another uid and {ALLOW_NON_RESTORED_STATE}, or use a new directory of "
                    "checkpoints"
                )
            if topic_id is None:
                raise self._changed(f"topic {topic} is gone")
            if topic_id != entry["id"]:
                raise self._changed(_created_again(topic))
            if gone:
                raise self._changed(f"topic {topic} has no partition {min(gone)} any more")
        new = [
            item
            for item in all_partitions(there)
            if str(item.partition) not in topics.get(item.topic, {}).get("next", {})
        ]
        if self.stopping is not None:
            return {}
        found = brokers.begins(new)
        for item, offset in found.items():
            entry = topics.setdefault(item.topic, {"id": there[item.topic][0], "next": {}})
            entry["next"] = {**entry["next"], str(item.partition): offset}
        return found

    def _require_same_topics(self, topics: Mapping[str, Mapping[str, Any]]) -> None:
        """Raises an error if a topic was deleted and created again, because its offsets now refer to other messages."""
        for topic, topic_id in self._brokers().topic_ids(topics).items():
            if topic_id != topics[topic]["id"]:
                raise self._changed(_created_again(topic))

    def _changed(self, what: str) -> KafkaConnectorError:
        return KafkaConnectorError(
            f"{self!r}: {what}; messages may be lost. Start the job with a new directory of checkpoints to "
            "continue with the messages that still exist"
        )

    def _admitted(
        self,
        offsets: Mapping[KafkaTopicPartition, int],
        ends: Mapping[KafkaTopicPartition, int],
        now_ms: int,
    ) -> dict[KafkaTopicPartition, int]:
        """The offset up to which an epoch reads each partition. All partitions get the same share of their messages."""
        waiting = {item: ends[item] - offset for item, offset in offsets.items()}
        total = sum(waiting.values())
        limits = [limit for limit in (self.admission.records,) if limit is not None]
        time_ms = self.admission.time_ms or self.target_epoch_ms
        if time_ms is not None:
            limits.append(self._pace.limit(time_ms, now_ms))
        if total and self.admission.size_bytes is not None:
            size = self._record_size(offsets, ends)
            limits.append(max(int(self.admission.size_bytes / size), 1))
        share = min(1.0, min(limits, default=total) / total) if total else 0.0
        admitted = {
            item: offset + math.ceil(waiting[item] * share) for item, offset in offsets.items()
        }
        self._pace.admitted = sum(admitted.values()) - sum(offsets.values())
        return admitted

    def _record_size(
        self,
        offsets: Mapping[KafkaTopicPartition, int],
        ends: Mapping[KafkaTopicPartition, int],
    ) -> float:
        """The mean size of the next messages in bytes, sampled from each partition."""
        reader = self._ranges_reader()
        ranges = [
            PartitionRange(item.topic, item.partition, offset, min(ends[item], offset + _SAMPLED))
            for item, offset in offsets.items()
            if offset < ends[item]
        ]
        count = size = 0
        reader.begin(ranges)
        for messages in chain.from_iterable(reader.read(item, _SAMPLED) for item in ranges):
            count += len(messages)
            size += sum(len(item.value() or b"") + len(item.key() or b"") for item in messages)
        return max(size / count, 1.0) if count else 1.0

    def splits_between(
        self, start: Mapping[str, Any], end: Mapping[str, Any], parallelism: int
    ) -> list[list[tuple[PartitionRange, ...]]]:
        """The input of each subtask between two positions: all its partitions, as one delivery.

        It includes partitions without new messages, because their watermarks count. It omits partitions that reached
        their stopping offsets in an earlier epoch. An empty delivery means that the input has ended.
        """
        firsts = offsets_in(start["topics"])
        stops = offsets_in(start["stop"]) if "stop" in start else {}
        over = {
            (item.topic, item.partition)
            for item, stop in stops.items()
            if item in firsts and firsts[item] >= stop
        }
        ranges = [
            PartitionRange(item.topic, item.partition, firsts.get(item, behind), behind)
            for item, behind in offsets_in(end["topics"]).items()
        ]
        found: list[list[tuple[PartitionRange, ...]]] = []
        for own in _dealt_out(ranges, parallelism):
            left = tuple(item for item in own if item[:2] not in over)
            found.append([left] if left or own else [])
        if self.is_at_end(end):
            for deliveries in found:
                deliveries.append(())
        return found

    def is_at_end(self, position: Mapping[str, Any]) -> bool:
        """Whether all stopping offsets are reached."""
        if "stop" not in position:
            return False
        nexts = offsets_in(position["topics"])
        return all(nexts[item] >= stop for item, stop in offsets_in(position["stop"]).items())

    @property
    def has_ended(self) -> bool:
        """Whether an empty delivery has arrived."""
        return self._has_ended

    def checkpoint_completed(self, position: Mapping[str, Any]) -> None:
        """Commits the position to the consumer group, for monitoring tools. Failures are logged."""
        group = self.properties.get(GROUP)
        if group is None or str(self.properties.get(COMMITS, "true")).lower() == "false":
            return
        library = confluent_kafka()
        try:
            if self._committer is None:
                fixed = {"enable.auto.commit": False}
                self._committer, _ = make_client("Consumer", self.properties, fixed, repr(self))
            self._committer.commit(
                offsets=[
                    library.TopicPartition(item.topic, item.partition, offset)
                    for item, offset in offsets_in(position["topics"]).items()
                ],
                asynchronous=False,
            )
        except library.KafkaException as error:
            _LOG.warning(
                "%r: the offsets of group %s could not be committed: %s; the job resumes from its checkpoints, not from these offsets",
                self,
                group,
                error_text(error),
            )

    # In tasks

    def open(self, context: SourceReaderContext) -> None:
        """Opens the deserializer."""
        self.deserializer.open(context)

    def delivered_splits(self, delivery: bytes) -> dict[str, PartitionRange]:
        """The partitions in a delivery."""
        return {self.split_name(item): item for item in self._delivered(delivery)}

    def read_delivery(self, delivery: bytes, batch_size: int) -> Iterator[Sequence[T]]:
        """Yields the records of a delivery, one partition after another."""
        for item in self._delivered(delivery):
            yield from self.read(item, batch_size)

    def _delivered(self, delivery: bytes) -> Sequence[PartitionRange]:
        ranges: Sequence[PartitionRange] = pickle.loads(delivery)
        if ranges:
            self._ranges_reader().begin(ranges)
        else:
            self._has_ended = True
        return ranges

    def read(self, split: PartitionRange, batch_size: int) -> Iterator[Sequence[T]]:
        """The records of a range, as RecordBatch objects."""
        for messages in self._ranges_reader().read(split, batch_size):
            values, timestamps = self.deserializer(messages)
            yield RecordBatch(values, timestamps)  # type: ignore[misc]  # sources with timestamps yield these

    def close(self) -> None:
        """Closes the connections of the task."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _ranges_reader(self) -> RangeReader:
        if self._reader is None:
            self._reader = RangeReader(self.properties, repr(self))
        return self._reader

    def _brokers(self) -> KafkaEnumerator:
        if self._enumerator is None:
            self._enumerator = KafkaEnumerator(self.subscription, self.properties, repr(self))
        return self._enumerator


def _created_again(topic: str) -> str:
    return f"topic {topic} was deleted and created again since the job began to read it"


def _dealt_out(ranges: Sequence[PartitionRange], parallelism: int) -> list[list[PartitionRange]]:
    """The ranges of each subtask. Flink: `KafkaSourceEnumerator.getSplitOwner`."""
    dealt: list[list[PartitionRange]] = [[] for _ in range(parallelism)]
    for item in ranges:
        code = 0  # Java's hash code of the topic, whose name is ASCII
        for character in item.topic.encode():
            code = 31 * code + character
        first = ((31 * code) & 0x7FFFFFFF) % parallelism
        dealt[(first + item.partition) % parallelism].append(item)
    return dealt
