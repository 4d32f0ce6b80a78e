"""Records as bytes: schemas for message queues, encoders and bulk writers for files."""

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
    """Turns records into the bytes of messages. Flink: SerializationSchema."""

    def open(self) -> None:
        """Called once in each subtask, before any record."""

    @abstractmethod
    def serialize(self, element: T_contra) -> bytes:
        """The message."""


class DeserializationSchema(ABC, Generic[T]):
    """Turns the bytes of messages into records. Flink: DeserializationSchema."""

    def open(self) -> None:
        """Called once in each subtask, before any message."""

    @abstractmethod
    def deserialize(self, message: bytes) -> T:
        """The record; None for a message that holds none, which is skipped."""

    def is_end_of_stream(self, next_element: T) -> bool:  # noqa: ARG002 - the contract
        """Whether this record says that nothing follows; never, unless overridden."""
        return False

    def get_produced_type(self) -> TypeInformation[Any]:
        """The type of the records; any object, unless overridden."""
        return Types.PICKLED_BYTE_ARRAY()


@dataclass(frozen=True)
class SimpleStringSchema(SerializationSchema[str], DeserializationSchema[str]):
    """Strings in a character set.

    What the character set cannot say becomes "?" on the way out, and bytes that it does not know
    U+FFFD on the way in, as in Java.

    Raises:
        ValueError: There is no such character set.
    """

    charset: str = "UTF-8"
    _codec: _Charset = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_codec", _Charset.named(self.charset))

    def serialize(self, element: str) -> bytes:
        """The string's bytes."""
        return self._codec.encode(element)

    def deserialize(self, message: bytes) -> str:
        """The string."""
        return self._codec.decode(message)

    def get_produced_type(self) -> TypeInformation[str]:
        """Types.STRING()."""
        return Types.STRING()


@dataclass(frozen=True)
class ByteArraySchema(SerializationSchema[bytes], DeserializationSchema[bytes]):
    """Bytes as they are."""

    def serialize(self, element: bytes) -> bytes:
        """The same bytes."""
        return element

    def deserialize(self, message: bytes) -> bytes:
        """The same bytes."""
        return message

    def get_produced_type(self) -> TypeInformation[Any]:
        """Types.PRIMITIVE_ARRAY(Types.BYTE())."""
        return Types.PRIMITIVE_ARRAY(Types.BYTE())


@dataclass(frozen=True)
class RowFieldExtractorSchema(SerializationSchema["Row"]):
    """One field of a row, which must hold bytes; None gives no bytes.

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
        """The field's bytes.

        Raises:
            ValueError: The row has no such field.
            TypeError: The field holds no bytes.
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
    """Writes records to a file, one after the other. Flink: Encoder."""

    @abstractmethod
    def encode(self, element: T_contra, stream: BinaryIO) -> None:
        """Appends one record to the open file."""

    def encode_batch(self, elements: Sequence[T_contra], stream: BinaryIO) -> None:
        """Appends records: one by one, unless overridden by something faster."""
        for element in elements:
            self.encode(element, stream)

    def for_type(self, record_type: TypeInformation[Any]) -> Encoder[T_contra]:  # noqa: ARG002 - as it is
        """The encoder for records of a declared type: this one, unless overridden."""
        return self

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder[Any]:
        """Writes a record's text and a line feed.

        Raises:
            ValueError: There is no such character set.
        """
        return SimpleStringEncoder(charset_name)


@dataclass(frozen=True)
class SimpleStringEncoder(Encoder[Any]):
    """Writes a record's text and a line feed, which is always the single byte 10, as in Flink.

    The text of a record of a declared type is Java's; of any other it is `str`.
    """

    charset_name: str = "UTF-8"
    record_type: TypeInformation[Any] | None = None
    _codec: _Charset = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_codec", _Charset.named(self.charset_name))

    def encode(self, element: Any, stream: BinaryIO) -> None:
        """Appends one line."""
        stream.write(self._codec.encode(self._text(element)) + b"\n")

    def encode_batch(self, elements: Sequence[Any], stream: BinaryIO) -> None:
        """Appends a line for each record, at once."""
        stream.write(self._codec.lines(map(self._text, elements)))

    def for_type(self, record_type: TypeInformation[Any]) -> SimpleStringEncoder:
        """The same for records of the type."""
        return replace(self, record_type=record_type)

    @cached_property
    def _text(self) -> Callable[[Any], str]:
        # Made where it is used: it cannot be pickled, its type can.
        from opchain.runtime.types.printed_form import java_text_of  # noqa: PLC0415 - likewise

        return java_text_of(self.record_type)


class BulkWriter(ABC, Generic[T_contra]):
    """Writes the records of one file in a form that is only complete at its end, such as Parquet.

    Flink: BulkWriter.
    """

    @abstractmethod
    def add_element(self, element: T_contra) -> None:
        """Takes one record; it may stay in memory."""

    def add_batch(self, elements: Sequence[T_contra]) -> None:
        """Takes records: one by one, unless overridden by something faster."""
        for element in elements:
            self.add_element(element)

    @abstractmethod
    def flush(self) -> None:
        """Writes out what stayed in memory."""

    @abstractmethod
    def finish(self) -> None:
        """Completes the file, without closing it."""


class BulkWriterFactory(ABC, Generic[T_contra]):
    """Makes a BulkWriter for each file. Flink: BulkWriter.Factory."""

    @abstractmethod
    def create(self, stream: BinaryIO) -> BulkWriter[T_contra]:
        """A writer into the open file."""


class RowDataBulkWriterFactory(BulkWriterFactory["Row"]):
    """Makes bulk writers for rows of one type."""

    def __init__(self, row_type: RowTypeInfo) -> None:
        self._row_type = row_type

    def get_row_type(self) -> RowTypeInfo:
        """The type of the rows."""
        return self._row_type


@dataclass(frozen=True)
class _Charset:
    """A character set by Java's or Python's name, giving the same bytes on every machine.

    Attributes:
        encoding: Python's name of it, without byte order marks.
        mark: What a text begins with, unless it is empty.
        marked: How a message is read that begins with one of `marks`.
    """

    encoding: str
    mark: bytes = b""
    marked: str = ""
    marks: tuple[bytes, ...] = ()

    @staticmethod
    def named(charset: str) -> _Charset:
        try:
            name = codecs.lookup(charset).name
            "".encode(name)  # refuses codecs that are no character sets, such as base64
        except LookupError as error:
            raise ValueError(f"unknown character set {charset!r}") from error
        return _MARKED_CHARSETS.get(name) or _Charset(name)

    def encode(self, text: str) -> bytes:
        return self.mark + text.encode(self.encoding, errors="replace") if text else b""

    def lines(self, texts: Iterable[str]) -> bytes:
        """The texts with a line feed behind each."""
        if self.encoding in _ASCII_AND_MORE:
            return "".join([f"{text}\n" for text in texts]).encode(self.encoding, errors="replace")
        return b"".join([self.encode(text) + b"\n" for text in texts])

    def decode(self, data: bytes) -> str:
        is_marked = data.startswith(self.marks) if self.marks else False
        return data.decode(self.marked if is_marked else self.encoding, errors="replace")


_ASCII_AND_MORE = frozenset({"utf-8", "ascii", "iso8859-1"})
"""Character sets without state and byte order marks, in which a line feed is the byte 10."""

# Python writes these in the machine's byte order. Java: big-endian, and UTF-16 alone with a mark.
_MARKED_CHARSETS = {
    "utf-16": _Charset(
        "utf-16-be", codecs.BOM_UTF16_BE, "utf-16", (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)
    ),
    "utf-32": _Charset("utf-32-be", b"", "utf-32", (codecs.BOM_UTF32_BE, codecs.BOM_UTF32_LE)),
}
