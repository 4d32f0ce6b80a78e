"""Conversion of records to and from bytes: schemas for messages, encoders and bulk writers for files."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO, Generic

from opchain.runtime.errors import short_repr
from opchain.runtime.types.type_variables import T, T_contra
from opchain.runtime.types.types import Types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from opchain.runtime.types.record_types import RowTypeInfo
    from opchain.runtime.types.row import Row
    from opchain.runtime.types.type_information import TypeInformation


class SerializationSchema(ABC, Generic[T_contra]):
    """Converts records to the bytes of messages. Flink: SerializationSchema."""

    def open(self) -> None:
        """Called once in each subtask, before the first record."""

    @abstractmethod
    def serialize(self, element: T_contra) -> bytes:
        """Returns the message for a record."""


class DeserializationSchema(ABC, Generic[T]):
    """Converts the bytes of messages to records. Flink: DeserializationSchema."""

    def open(self) -> None:
        """Called once in each subtask, before the first message."""

    @abstractmethod
    def deserialize(self, message: bytes) -> T:
        """Returns the record of a message. None skips the message."""

    def deserialize_batch(self, messages: Sequence[bytes]) -> Sequence[T] | None:  # noqa: ARG002 - the contract
        """Returns the records of all messages, if that is faster than one call for each. Not in Flink.

        None if a message must be skipped, or is malformed: `deserialize` then gets each message.
        """
        return None

    @property
    def row_names(self) -> Sequence[str]:
        """The names of the fields, if `deserialize_batch` may return rows as `Columns`. Not in Flink."""
        return ()

    def is_end_of_stream(self, next_element: T) -> bool:  # noqa: ARG002 - the contract
        """Whether the stream ends with this record. The default is never."""
        return False

    def get_produced_type(self) -> TypeInformation[Any]:
        """The type of the records. The default is the type of any object."""
        return Types.PICKLED_BYTE_ARRAY()


@dataclass(frozen=True)
class SimpleStringSchema(SerializationSchema[str], DeserializationSchema[str]):
    """Converts strings in a character set.

    As in Java, a character that cannot be encoded becomes "?", and bytes that cannot be decoded become U+FFFD.

    Raises:
        ValueError: The character set is unknown.
    """

    charset: str = "UTF-8"
    _codec: _Charset = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_codec", _Charset.named(self.charset))

    def serialize(self, element: str) -> bytes:
        """Encodes the string."""
        return self._codec.encode(element)

    def deserialize(self, message: bytes) -> str:
        """Decodes the message."""
        return self._codec.decode(message)

    def deserialize_batch(self, messages: Sequence[bytes]) -> Sequence[str] | None:
        """Decodes UTF-8, unless a message has other bytes."""
        if not self.is_plain_utf_8:
            return None
        try:
            return list(map(bytes.decode, messages))
        except UnicodeDecodeError:
            return None

    @property
    def is_plain_utf_8(self) -> bool:
        """Whether messages are UTF-8, and no subclass converts them. Not in Flink."""
        return type(self) is SimpleStringSchema and self.charset.upper() == "UTF-8"

    def get_produced_type(self) -> TypeInformation[str]:
        """Always Types.STRING()."""
        return Types.STRING()


@dataclass(frozen=True)
class ByteArraySchema(SerializationSchema[bytes], DeserializationSchema[bytes]):
    """Passes bytes through unchanged."""

    def serialize(self, element: bytes) -> bytes:
        """Returns the same bytes."""
        return element

    def deserialize(self, message: bytes) -> bytes:
        """Returns the same bytes."""
        return message

    def get_produced_type(self) -> TypeInformation[Any]:
        """Always Types.PRIMITIVE_ARRAY(Types.BYTE())."""
        return Types.PRIMITIVE_ARRAY(Types.BYTE())


@dataclass(frozen=True)
class RowFieldExtractorSchema(SerializationSchema["Row"]):
    """Writes one field of a row, which must be bytes. None becomes an empty message.

    Raises:
        ValueError: The index is negative.
    """

    field_index: int

    def __post_init__(self) -> None:
        if self.field_index < 0:
            raise ValueError(
                f"RowFieldExtractorSchema: Field index must be non-negative, and is {self.field_index}"
            )

    def serialize(self, element: Row) -> bytes:
        """Returns the bytes of the field.

        Raises:
            ValueError: The row has no such field.
            TypeError: The value of the field is not bytes.
        """
        if self.field_index >= len(element):
            raise ValueError(
                f"RowFieldExtractorSchema({self.field_index}): {short_repr(element)} has only "
                f"{len(element)} fields"
            )
        value = element[self.field_index]
        if value is None:
            return b""
        if not isinstance(value, (bytes, bytearray)):
            raise TypeError(
                f"RowFieldExtractorSchema({self.field_index}): the field is {short_repr(value)}; "
                "it must hold bytes"
            )
        return bytes(value)


class Encoder(ABC, Generic[T_contra]):
    """Writes records to a file, one after another. Flink: Encoder."""

    @abstractmethod
    def encode(self, element: T_contra, stream: BinaryIO) -> None:
        """Writes one record to the open file."""

    def encode_batch(self, elements: Sequence[T_contra], stream: BinaryIO) -> None:
        """Writes several records. The default calls `encode` for each; override it if there is a faster way."""
        for element in elements:
            self.encode(element, stream)

    def for_type(self, record_type: TypeInformation[Any]) -> Encoder[T_contra]:  # noqa: ARG002 - as it is
        """The encoder for records of a declared type. The default is this encoder."""
        return self

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder[Any]:
        """An encoder that writes the text of each record, and a line feed.

        Raises:
            ValueError: The character set is unknown.
        """
        return SimpleStringEncoder(charset_name)


@dataclass(frozen=True)
class SimpleStringEncoder(Encoder[Any]):
    """Writes the text of each record, and a line feed.

    As in Flink, the line feed is the single byte 10 in any character set.

    A record of a declared type has the text of its Java class. Other records have the text of `str`.
    """

    charset_name: str = "UTF-8"
    record_type: TypeInformation[Any] | None = None
    _codec: _Charset = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_codec", _Charset.named(self.charset_name))

    def encode(self, element: Any, stream: BinaryIO) -> None:
        """Writes one line."""
        stream.write(self._codec.encode(self._text(element)) + b"\n")

    def encode_batch(self, elements: Sequence[Any], stream: BinaryIO) -> None:
        """Writes a line for each record, with a single call."""
        stream.write(self._codec.lines(map(self._text, elements)))

    def for_type(self, record_type: TypeInformation[Any]) -> SimpleStringEncoder:
        """An encoder for records of the type."""
        return replace(self, record_type=record_type)

    @cached_property
    def _text(self) -> Callable[[Any], str]:
        # Created on first use: the function cannot be pickled, but its type can.
        from opchain.runtime.types.printed_form import java_text_of  # noqa: PLC0415 - only for declared types

        return java_text_of(self.record_type)


class BulkWriter(ABC, Generic[T_contra]):
    """Writes the records of a file in a format that is only readable once the file is complete, such as Parquet.

    Flink: BulkWriter.
    """

    @abstractmethod
    def add_element(self, element: T_contra) -> None:
        """Adds a record. It may be buffered."""

    def add_batch(self, elements: Sequence[T_contra]) -> None:
        """Adds several records. The default calls `add_element` for each; override it if there is a faster way."""
        for element in elements:
            self.add_element(element)

    @abstractmethod
    def flush(self) -> None:
        """Writes the buffered records."""

    @abstractmethod
    def finish(self) -> None:
        """Completes the file, without closing it."""


class BulkWriterFactory(ABC, Generic[T_contra]):
    """Creates a BulkWriter for each file. Flink: BulkWriter.Factory."""

    @abstractmethod
    def create(self, stream: BinaryIO) -> BulkWriter[T_contra]:
        """Creates a writer to the open file."""


class RowDataBulkWriterFactory(BulkWriterFactory["Row"]):
    """Creates bulk writers for rows of one type."""

    def __init__(self, row_type: RowTypeInfo) -> None:
        self._row_type = row_type

    def get_row_type(self) -> RowTypeInfo:
        """The type of the rows."""
        return self._row_type


@dataclass(frozen=True)
class _Charset:
    """A character set with the same bytes on every machine, given by its name in Java or Python.

    Attributes:
        encoding: The name in Python, of the variant without byte order mark.
        mark: The byte order mark at the start of an encoded text; may be empty.
        marked: The encoding of a message that begins with one of `marks`.
    """

    encoding: str
    mark: bytes = b""
    marked: str = ""
    marks: tuple[bytes, ...] = ()

    @staticmethod
    def named(charset: str) -> _Charset:
        try:
            name = codecs.lookup(charset).name
            "".encode(name)  # fails for codecs that are not character sets, such as base64
        except LookupError as error:
            raise ValueError(f"unknown character set {charset!r}") from error
        return MARKED_CHARSETS.get(name) or _Charset(name)

    def encode(self, text: str) -> bytes:
        return self.mark + text.encode(self.encoding, errors="replace") if text else b""

    def lines(self, texts: Iterable[str]) -> bytes:
        """Encodes the texts, each followed by a line feed."""
        if self.encoding in _ASCII_AND_MORE:
            return "".join([f"{text}\n" for text in texts]).encode(self.encoding, errors="replace")
        return b"".join([self.encode(text) + b"\n" for text in texts])

    def decode(self, data: bytes) -> str:
        return data.decode(self.codec_of(data), errors="replace")

    def codec_of(self, data: bytes) -> str:
        """The codec for data that may begin with a byte order mark."""
        return self.marked if self.marks and data.startswith(self.marks) else self.encoding


_ASCII_AND_MORE = frozenset({"utf-8", "ascii", "iso8859-1"})
"""Character sets without state and byte order marks, in which a line feed is the byte 10."""

# Python writes these in the machine's byte order. Java writes big-endian, and a byte order mark only for UTF-16.
MARKED_CHARSETS = {
    "utf-16": _Charset(
        "utf-16-be", codecs.BOM_UTF16_BE, "utf-16", (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)
    ),
    "utf-32": _Charset("utf-32-be", b"", "utf-32", (codecs.BOM_UTF32_BE, codecs.BOM_UTF32_LE)),
}
