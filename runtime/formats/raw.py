"""The format `raw`: a message, or a line, is the value of the only column. Flink: RawFormatFactory."""

from __future__ import annotations

import struct
from typing import Any

from opchain.runtime.types.row import Row, row_of
from opchain.runtime.types.serialization import DeserializationSchema, SerializationSchema

NUMBERS = {"BOOLEAN": "?", "TINYINT": "b", "SMALLINT": "h", "INT": "i", "BIGINT": "q"}
NUMBERS |= {"FLOAT": "f", "DOUBLE": "d"}
"""The code of each type that has a fixed number of bytes, as in the module struct."""


class RawRowDeserializationSchema(DeserializationSchema["Row"]):
    r"""Reads a row of one column from each message.

    Args:
        name: The name of the column.
        of: The name of the column's SQL type.
        charset: The character set of a text.
        order: `>` for numbers with the highest byte first, or `<`.

    >>> RawRowDeserializationSchema("size", "INT").deserialize(b"\x00\x00\x01\x00")
    Row(size=256)
    """

    def __init__(self, name: str, of: str, charset: str = "UTF-8", order: str = ">") -> None:
        self.name = name
        self.of = of
        self.charset = charset
        self.order = order

    def deserialize(self, message: bytes) -> Row:
        """The row.

        Raises:
            ValueError: The message has another number of bytes than the type, or is no text of the character set.
        """
        return row_of([self._value(message)], [self.name])

    def _value(self, message: bytes) -> Any:
        if self.of == "BYTES":
            return message
        if self.of not in NUMBERS:
            return message.decode(self.charset)
        code = self.order + NUMBERS[self.of]
        if len(message) != struct.calcsize(code):
            raise ValueError(
                f"the message has {len(message)} bytes, and {self.of} has {struct.calcsize(code)}"
            )
        return struct.unpack(code, message)[0]


class RawRowSerializationSchema(SerializationSchema["Row"]):
    r"""The reverse of RawRowDeserializationSchema. NULL becomes a message without a value.

    >>> RawRowSerializationSchema("INT").serialize(Row(256))
    b'\x00\x00\x01\x00'
    """

    def __init__(self, of: str, charset: str = "UTF-8", order: str = ">") -> None:
        self.of = of
        self.charset = charset
        self.order = order

    def serialize(self, element: Row) -> bytes | None:  # type: ignore[override]  # NULL is no message
        """The message."""
        value: Any = element[0]
        message: bytes | None = value
        if value is not None and self.of in NUMBERS:
            message = struct.pack(self.order + NUMBERS[self.of], value)
        elif value is not None and self.of != "BYTES":
            message = value.encode(self.charset)
        return message
