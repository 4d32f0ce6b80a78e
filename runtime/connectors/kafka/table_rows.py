"""Rows of tables in Kafka messages: fields of the value and of the key, and metadata of the message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.connectors.kafka.record import KafkaRecordDeserializationSchema
from opchain.runtime.connectors.kafka.serializer import KafkaPartitioner
from opchain.runtime.types.row import Row, row_of
from opchain.runtime.types.serialization import DeserializationSchema, SerializationSchema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.runtime.connectors.kafka.record import KafkaMessage
    from opchain.runtime.functions.sql import RowExpression
    from opchain.runtime.types.record_types import RowTypeInfo


class KafkaRows(KafkaRecordDeserializationSchema[Row]):
    """Reads a row from each message. Flink: DynamicKafkaDeserializationSchema, which drops a message without a key.

    Args:
        value: Reads the fields of the value.
        key: Reads the fields of the key, which are NULL if a message has none; None if no column is in the key.
        places: The place of each column in the fields of the value, followed by those of the key.
        metadata: The metadata columns of a message, which follow.
        of: The type of the rows.
    """

    def __init__(
        self,
        value: DeserializationSchema[Row],
        key: DeserializationSchema[Row] | None,
        places: Sequence[int],
        metadata: RowExpression,
        of: RowTypeInfo,
    ) -> None:
        self.value = value
        self.key = key
        self.places = tuple(places)
        self.metadata = metadata
        self.type = of

    def deserialize(self, message: KafkaMessage) -> Row | None:
        """The row; None for a malformed message that is skipped.

        Raises:
            ValueError: The message is malformed, or has no value.
        """
        if message.value is None:
            raise ValueError("the message has no value: it deletes its key")
        fields: Any = self.value.deserialize(message.value)
        if fields is None:
            return None
        if self.key is not None:
            missing = [None] * (len(self.places) - len(fields))
            own: Any = missing if message.key is None else self.key.deserialize(message.key)
            if own is None:
                return None
            whole = (*fields, *own)
            fields = [whole[place] for place in self.places]
        return row_of([*fields, *self.metadata(message)], self.type.get_field_names())

    def get_produced_type(self) -> RowTypeInfo:
        """The type of the rows."""
        return self.type


class PartOfRow(SerializationSchema[Row]):
    """Writes some columns of a row with a format.

    Args:
        schema: The format.
        places: The places of the columns.
        names: The names of the columns in the message.
    """

    def __init__(
        self, schema: SerializationSchema[Row], places: Sequence[int], names: Sequence[str]
    ) -> None:
        self.schema = schema
        self.places = tuple(places)
        self.names = list(names)

    def serialize(self, element: Row) -> bytes:
        """The message, or the key of the message."""
        part = Row(*[element[place] for place in self.places])
        part.set_field_names(self.names)
        return self.schema.serialize(part)


class FixedPartitioner(KafkaPartitioner):
    """Writes all records of a subtask to one partition. Flink: FlinkFixedPartitioner."""

    subtask = 0

    def open(self, parallel_instance_id: int, parallel_instances: int) -> None:  # noqa: ARG002 - the contract
        """Takes the number of the subtask."""
        self.subtask = parallel_instance_id

    def partition(
        self,
        record: Any,  # noqa: ARG002 - the contract
        key: bytes | None,  # noqa: ARG002 - likewise
        value: bytes | None,  # noqa: ARG002 - likewise
        target_topic: str,  # noqa: ARG002 - likewise
        partitions: int,
    ) -> int:
        """The partition of the subtask."""
        return self.subtask % partitions
