"""Kafka messages as programs see them, and their conversion to records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeAlias, cast

from opchain.runtime.connectors.kafka.client import KafkaConnectorError
from opchain.runtime.errors import add_note, short_repr
from opchain.runtime.files.malformed import FAIL, MALFORMED_COUNTER, not_decoded
from opchain.runtime.types.output_tag import OutputTag
from opchain.runtime.types.serialization import (
    ByteArraySchema,
    DeserializationSchema,
    SimpleStringSchema,
)
from opchain.runtime.types.type_variables import T
from opchain.runtime.types.types import Types

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.runtime.functions.source import SourceReaderContext
    from opchain.runtime.types.type_information import TypeInformation

    OnMalformedMessage: TypeAlias = Literal["fail", "skip"] | OutputTag["MalformedMessage"]


class KafkaMessage(NamedTuple):
    """A message with its metadata. `timestamp` is in milliseconds; None for a message without timestamp.

    Kafka: ConsumerRecord.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class MalformedMessage(NamedTuple):
    """A message that cannot be deserialized, as sent to a side output."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    reason: str


class MalformedMessageError(KafkaConnectorError, ValueError):
    """A message can't be deserialized.

    What to do: Correct the schema, or call `on_malformed` on the source's builder to skip such messages or to collect them.
    """


class KafkaRecordDeserializationSchema(ABC, Generic[T]):
    """Converts messages to records, with access to key, headers, topic, partition, offset and timestamp.

    Flink: KafkaRecordDeserializationSchema (Java only).

    >>> class WithTopic(KafkaRecordDeserializationSchema):
    ...     def deserialize(self, message):
    ...         return message.topic, message.value.decode()
    """

    def open(self) -> None:
        """Called once in each subtask, before the first message."""

    @abstractmethod
    def deserialize(self, message: KafkaMessage) -> T | None:
        """Returns the record of a message. None skips the message."""

    def get_produced_type(self) -> TypeInformation[Any]:
        """The type of the records. The default is the type of any object."""
        return Types.PICKLED_BYTE_ARRAY()

    @staticmethod
    def of(
        function: Callable[[KafkaMessage], T | None], type_info: TypeInformation[Any] | None = None
    ) -> KafkaRecordDeserializationSchema[T]:
        """A schema that calls a function for each message."""
        return _FunctionSchema(function, type_info)


class _FunctionSchema(KafkaRecordDeserializationSchema[T]):
    def __init__(
        self, function: Callable[[KafkaMessage], T | None], type_info: TypeInformation[Any] | None
    ) -> None:
        if not callable(function):
            raise TypeError(
                f"KafkaRecordDeserializationSchema.of got {function!r}; it takes a function"
            )
        self._function = function
        self._type = type_info

    def deserialize(self, message: KafkaMessage) -> T | None:
        """The result of the function."""
        return self._function(message)

    def get_produced_type(self) -> TypeInformation[Any]:
        """The declared type."""
        return Types.PICKLED_BYTE_ARRAY() if self._type is None else self._type


_ADVICE = (
    "Give SimpleStringSchema another character set, or call .on_malformed('skip') or "
    ".on_malformed(OutputTag(...)) on the source's builder"
)


@dataclass
class Deserializer(Generic[T]):
    """Converts batches of messages to records, and handles malformed messages."""

    schema: DeserializationSchema[T] | KafkaRecordDeserializationSchema[T]
    policy: OnMalformedMessage = "fail"
    context: SourceReaderContext | None = field(default=None, compare=False)

    @property
    def reads_whole_messages(self) -> bool:
        """Whether the schema gets whole messages; otherwise, it gets their values."""
        return isinstance(self.schema, KafkaRecordDeserializationSchema)

    def open(self, context: SourceReaderContext) -> None:
        """Opens the schema."""
        self.context = context
        self.schema.open()

    def __call__(self, messages: Sequence[Any]) -> tuple[Sequence[T], list[int | None]]:
        """Returns records and timestamps.

        Raises:
            MalformedMessageError: A message is malformed, and the policy is "fail".
        """
        together = self._deserialized_together(messages)
        if together is not None:
            return together, timestamps_of(messages)
        values: list[T] = []
        timestamps: list[int | None] = []
        whole, deserialize = self.reads_whole_messages, self._deserialize()
        for message in messages:
            data = whole_message(message) if whole else message.value()
            try:
                if data is None:
                    raise ValueError("the message has no value: it deletes its key")  # noqa: TRY301 - one way out
                value = deserialize(data)
            except (
                KafkaConnectorError
            ) as error:  # the schema registry does not answer: the message may not be malformed
                add_note(error, f"at {_place(message)}")
                raise
            except Exception as error:  # noqa: BLE001 - a user's schema may raise anything
                if not (self.policy == FAIL and self._is_plain_text() and data is not None):
                    self._take(message, error)
                    continue
                value = cast("T", self._replaced(message, cast("bytes", data)))  # T is str
            if value is not None:
                values.append(value)
                timestamps.append(timestamp_of(message))
        return values, timestamps

    def _deserialized_together(self, messages: Sequence[Any]) -> Sequence[T] | None:
        """The records of all messages. None if some are malformed, or if the schema takes them one by one."""
        schema = self.schema
        if not isinstance(schema, DeserializationSchema):
            return None
        values = [message.value() for message in messages]
        return None if None in values else schema.deserialize_batch(values)

    def _is_plain_text(self) -> bool:
        schema = self.schema
        return isinstance(schema, SimpleStringSchema) and schema.is_plain_utf_8

    def _deserialize(self) -> Callable[[Any], T | None]:
        schema: Any = self.schema
        if schema.__class__ is ByteArraySchema:
            return bytes  # type: ignore[return-value]  # T is bytes
        if self._is_plain_text():
            return bytes.decode  # type: ignore[return-value]  # T is str
        deserialize: Callable[[Any], T | None] = schema.deserialize
        return deserialize

    def _replaced(self, message: Any, data: bytes) -> str:
        """The text of a message that is not UTF-8. As in Flink, bytes that cannot be decoded become U+FFFD."""
        text = data.decode("utf-8", "replace")
        if self.context is not None:
            self.context.metric_group().counter(MALFORMED_COUNTER).inc(1)
            self.context.warn(not_decoded(_place(message), text, _ADVICE))
        return text

    def _take(self, message: Any, error: Exception) -> None:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        reason = f"{type(error).__name__}: {error}"
        if self.policy == FAIL:
            raise MalformedMessageError(
                f"{_place(message)}: {short_repr(message.value())} can't be "
                f"deserialized by {type(self.schema).__name__} ({reason}); correct the schema, or call "
                ".on_malformed('skip') or .on_malformed(OutputTag(...)) on the source's builder"
            ) from error
        if self.context is None:
            return
        self.context.metric_group().counter(MALFORMED_COUNTER).inc(1)
        if isinstance(self.policy, OutputTag):
            self.context.emit_to(
                self.policy,
                MalformedMessage(
                    *(topic, partition, offset, timestamp_of(message)),
                    *(message.key(), message.value(), reason),
                ),
            )


def _place(message: Any) -> str:
    return f"topic {message.topic()}, partition {message.partition()}, offset {message.offset()}"


def whole_message(message: Any) -> KafkaMessage:
    """Converts a message of confluent-kafka to a KafkaMessage."""
    return KafkaMessage(
        *(message.topic(), message.partition(), message.offset(), timestamp_of(message)),
        *(message.key(), message.value(), tuple(message.headers() or ())),
    )


def timestamp_of(message: Any) -> int | None:
    """The timestamp of a message in milliseconds. None for a message without timestamp."""
    kind, timestamp_ms = message.timestamp()
    return timestamp_ms if kind else None


def timestamps_of(messages: Sequence[Any]) -> list[int | None]:
    """The timestamps of messages in milliseconds."""
    return [
        timestamp_ms if kind else None
        for kind, timestamp_ms in [message.timestamp() for message in messages]
    ]
