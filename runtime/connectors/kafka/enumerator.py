"""The driver's requests to the brokers: which partitions a source reads, and between which offsets.

A position is {topic: {"id": .., "next": {partition: offset}}}. The id distinguishes a topic from a later topic with the
same name.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.connectors.kafka.client import (
    GROUP,
    READ_COMMITTED,
    SERVERS,
    Brokers,
    KafkaConnectorError,
    confluent_kafka,
)
from opchain.runtime.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
    Offsets,
)
from opchain.runtime.errors import imported

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    Position = dict[str, dict[str, Any]]

_LOG = logging.getLogger("opchain.kafka")


class Subscription(NamedTuple):
    """The topics, the pattern or the partitions of a source. Exactly one field is set."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[KafkaTopicPartition, ...] = ()

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"topics like {self.pattern}"
        return ", ".join(map(str, self.topics or self.partitions))


class KafkaEnumerator:
    """Sends requests to the brokers. Not picklable."""

    def __init__(
        self, subscription: Subscription, properties: Mapping[str, Any], where: str
    ) -> None:
        self._subscription = subscription
        self._properties = properties
        self._where = where
        self._brokers = Brokers(properties, where)

    def subscribes_to(self, topic: str) -> bool:
        """Whether the source reads a topic, if it exists."""
        wanted = self._subscription
        if wanted.pattern is not None:
            return re.fullmatch(wanted.pattern, topic) is not None
        return topic in (*wanted.topics, *(item.topic for item in wanted.partitions))

    def partitions(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """The id and partitions of each topic that exists now, sorted by name.

        Raises:
            KafkaConnectorError: A topic or partition that the program names does not exist.
        """
        wanted = self._subscription
        topics: Collection[str] = wanted.topics or {item.topic for item in wanted.partitions}
        if wanted.pattern is not None:
            found = self._brokers.topics()
            topics = [name for name in found if re.fullmatch(wanted.pattern, name)]
        described = self._described(sorted(topics))
        if not wanted.partitions:
            return described
        result = {}
        for topic in sorted(topics):
            topic_id, there = described[topic]
            asked_for = tuple(
                sorted(item.partition for item in wanted.partitions if item.topic == topic)
            )
            missing = [number for number in asked_for if number not in there]
            if missing:
                raise KafkaConnectorError(
                    f"{self._where} reads partition {missing[0]} of topic {topic}, but the topic has the partitions "
                    f"{_shown(there)}: correct set_partitions(), or add partitions to the topic"
                )
            result[topic] = (topic_id, asked_for)
        return result

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        """See `Brokers.topic_ids`."""
        return self._brokers.topic_ids(topics)

    def _described(self, topics: list[str]) -> dict[str, tuple[str, tuple[int, ...]]]:
        if not topics:
            return {}
        answers = self._brokers.described(topics)
        for topic in topics:
            if answers[topic] is None:
                raise KafkaConnectorError(
                    f"{self._where}: there is no topic {topic} on {self._properties.get(SERVERS)}: create "
                    "it, or correct its name; set_topic_pattern() also reads topics that are created later"
                )
        return {
            topic: (
                str(answers[topic].topic_id),
                tuple(sorted(item.id for item in answers[topic].partitions)),
            )
            for topic in topics
        }

    def _require(self, partitions: Collection[KafkaTopicPartition]) -> None:
        """Checks that partitions exist.

        Raises:
            KafkaConnectorError: One does not.
        """
        there = self._described(sorted({item.topic for item in partitions}))
        for item in partitions:
            if item.partition not in there[item.topic][1]:
                raise KafkaConnectorError(
                    f"{self._where}: topic {item.topic} has no partition {item.partition} any more, so it was deleted and "
                    "created again; messages may be lost. Start the job with a new directory of checkpoints to continue "
                    "with the messages that still exist"
                )

    def begins(self, partitions: Collection[KafkaTopicPartition]) -> dict[KafkaTopicPartition, int]:
        """The first offsets of the partitions that still exist."""
        return self._listed(partitions, "earliest")

    def ends(self, partitions: Collection[KafkaTopicPartition]) -> dict[KafkaTopicPartition, int]:
        """The offset of the next message. With read_committed, it is the start of the first open transaction."""
        return self._listed(partitions, "latest")

    def resolved(
        self,
        initializer: KafkaOffsetsInitializer,
        partitions: Collection[KafkaTopicPartition],
    ) -> dict[KafkaTopicPartition, int]:
        """The offsets of an initializer.

        Raises:
            KafkaConnectorError: An offset does not exist, and the initializer has no reset strategy.
        """
        kind = initializer.kind
        if kind is Offsets.EARLIEST:
            return self.begins(partitions)
        if kind is Offsets.LATEST:
            return self.ends(partitions)
        begins, ends = self.begins(partitions), self.ends(partitions)
        if kind is Offsets.TIMESTAMP:
            found = self._listed(partitions, "for_timestamp", initializer.timestamp_ms)
            return {item: ends[item] if at < 0 else at for item, at in found.items()}
        if kind is Offsets.COMMITTED:
            found = self._committed(partitions)
        else:
            found = {item: initializer.given.get(item, -1) for item in partitions}
        result = {}
        for item in partitions:
            offset = found[item]
            if begins[item] <= offset <= ends[item]:
                result[item] = offset
            elif initializer.reset is not KafkaOffsetResetStrategy.NONE:
                earliest = initializer.reset is KafkaOffsetResetStrategy.EARLIEST
                result[item] = begins[item] if earliest else ends[item]
                if offset >= 0:
                    _LOG.warning(
                        "%s, topic %s, partition %d: there is no offset %d, so the source starts at %d (%s); the "
                        "partition has the offsets %d to %d",
                        *(self._where, item.topic, item.partition, offset, result[item]),
                        *(initializer.reset.name, begins[item], ends[item]),
                    )
            else:
                raise KafkaConnectorError(self._no_offset(initializer, item, offset, begins, ends))
        return result

    def _no_offset(
        self,
        initializer: KafkaOffsetsInitializer,
        item: KafkaTopicPartition,
        offset: int,
        begins: Mapping[KafkaTopicPartition, int],
        ends: Mapping[KafkaTopicPartition, int],
    ) -> str:
        group = self._properties.get(GROUP)
        there = f"the partition has the offsets {begins[item]} to {ends[item]}"
        if initializer.kind is Offsets.COMMITTED:
            what = (
                f"group {group} has committed no offset"
                if offset < 0
                else f"group {group} has committed offset {offset}, but {there}"
            )
        elif offset < 0:
            what = f"no offset is given, and {there}"
        else:
            what = f"offset {offset} is given, but {there}"
        return (
            f"{self._where}, topic {item.topic}, partition {item.partition}: {what}; give "
            f"{initializer!r}() a KafkaOffsetResetStrategy of EARLIEST or LATEST, or another offset"
        )

    def _listed(
        self, partitions: Collection[KafkaTopicPartition], spec: str, *arguments: Any
    ) -> dict[KafkaTopicPartition, int]:
        if not partitions:
            return {}
        library, admin = confluent_kafka(), imported("confluent_kafka.admin", "kafka", "Kafka")
        offset = getattr(admin.OffsetSpec, spec)(*arguments)
        isolation = self._properties.get("isolation.level", READ_COMMITTED)
        level = library.IsolationLevel
        answers = self._brokers.answers(
            f"ask for the offsets of {', '.join(map(str, partitions))}",
            lambda: self._brokers.client.list_offsets(
                {library.TopicPartition(item.topic, item.partition): offset for item in partitions},
                isolation_level=level.READ_COMMITTED
                if isolation == READ_COMMITTED
                else level.READ_UNCOMMITTED,
                request_timeout=self._brokers.request_s,
            ),
            check=lambda: self._require(partitions),
        )
        return {
            KafkaTopicPartition(item.topic, item.partition): answer.offset
            for item, answer in answers.items()
        }

    def _committed(
        self, partitions: Collection[KafkaTopicPartition]
    ) -> dict[KafkaTopicPartition, int]:
        group = self._properties.get(GROUP)
        if group is None:
            raise KafkaConnectorError(
                f"{self._where} starts at the committed offsets of its consumer group, but it has no group: "
                "call set_group_id()"
            )
        found = self._brokers.committed(
            group, [(item.topic, item.partition) for item in partitions]
        )
        return {item: found.get((item.topic, item.partition), -1) for item in partitions}


def position_of(
    topics: Mapping[str, tuple[str, tuple[int, ...]]], offsets: Mapping[KafkaTopicPartition, int]
) -> Position:
    """The position with the next offset of each partition."""
    return {
        topic: {
            "id": topic_id,
            "next": {
                str(number): offsets[KafkaTopicPartition(topic, number)] for number in partitions
            },
        }
        for topic, (topic_id, partitions) in topics.items()
    }


def offsets_in(position: Mapping[str, Any]) -> dict[KafkaTopicPartition, int]:
    """The offsets of a position, in the order of topics and partitions."""
    return {
        KafkaTopicPartition(topic, int(number)): offset
        for topic in sorted(position)
        for number, offset in sorted(position[topic]["next"].items(), key=lambda item: int(item[0]))
    }


def all_partitions(
    topics: Mapping[str, tuple[str, tuple[int, ...]]],
) -> list[KafkaTopicPartition]:
    """The partitions of topics, in order."""
    return [
        KafkaTopicPartition(topic, number)
        for topic, (_, partitions) in sorted(topics.items())
        for number in partitions
    ]


def _shown(numbers: Collection[int]) -> str:
    return f"0 to {max(numbers)}" if len(numbers) > 1 else ", ".join(map(str, numbers))
