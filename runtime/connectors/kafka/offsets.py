"""KafkaTopicPartition, and the offsets at which reading starts and stops."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from opchain.runtime.errors import require_instance

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, order=True)
class KafkaTopicPartition:
    """A partition of a topic. Kafka: TopicPartition."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class KafkaOffsetResetStrategy(Enum):
    """The offset to start from if the requested offset does not exist. Kafka: OffsetResetStrategy."""

    LATEST = 0
    EARLIEST = 1
    NONE = 2


class Offsets(Enum):
    """The kinds of KafkaOffsetsInitializer."""

    EARLIEST = "earliest"
    LATEST = "latest"
    COMMITTED = "committed_offsets"
    TIMESTAMP = "timestamp"
    GIVEN = "offsets"


class KafkaOffsetsInitializer:
    """The offsets at which a source starts or stops, partition by partition. Flink: OffsetsInitializer."""

    def __init__(
        self,
        kind: Offsets,
        reset: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
        timestamp_ms: int | None = None,
        given: Mapping[KafkaTopicPartition, int] | None = None,
    ) -> None:
        self.kind = kind
        self.reset = reset
        self.timestamp_ms = timestamp_ms
        self.given = dict(given or {})

    def __repr__(self) -> str:
        return f"KafkaOffsetsInitializer.{self.kind.value}"

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """The committed offsets of the source's group.

        Args:
            offset_reset_strategy: The offset for partitions without a committed offset. NONE fails the job.
        """
        _require_strategy(offset_reset_strategy, "committed_offsets")
        return KafkaOffsetsInitializer(Offsets.COMMITTED, offset_reset_strategy)

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """The first record of each partition with at least this timestamp, in milliseconds.

        For a partition without such a record, it is the end of the partition.
        """
        if not isinstance(timestamp, int) or timestamp < 0:
            raise ValueError(
                f"KafkaOffsetsInitializer.timestamp got {timestamp!r}; it takes milliseconds since 1970"
            )
        return KafkaOffsetsInitializer(
            Offsets.TIMESTAMP, KafkaOffsetResetStrategy.LATEST, timestamp
        )

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """The first record that each partition still has."""
        return KafkaOffsetsInitializer(Offsets.EARLIEST, KafkaOffsetResetStrategy.EARLIEST)

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """The end of each partition at the start of the job."""
        return KafkaOffsetsInitializer(Offsets.LATEST, KafkaOffsetResetStrategy.LATEST)

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """The given offsets.

        Args:
            offsets: The offset of each partition.
            offset_reset_strategy: The offset for other partitions, and for offsets that do not exist.
        """
        for partition, offset in offsets.items():
            if not isinstance(partition, KafkaTopicPartition) or not isinstance(offset, int):
                raise TypeError(
                    f"KafkaOffsetsInitializer.offsets got {partition!r}: {offset!r}; it takes a number for "
                    "each KafkaTopicPartition"
                )
        _require_strategy(offset_reset_strategy, "offsets")
        return KafkaOffsetsInitializer(Offsets.GIVEN, offset_reset_strategy, given=offsets)


def _require_strategy(value: object, method: str) -> None:
    wanted = "a KafkaOffsetResetStrategy"
    require_instance(value, KafkaOffsetResetStrategy, f"KafkaOffsetsInitializer.{method}", wanted)
