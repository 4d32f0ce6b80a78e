"""JSON in messages: rows to bytes and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import UnsupportedFeatureError, short_repr
from opchain.runtime.formats.json_lines import json_decoder
from opchain.runtime.formats.json_values import to_json
from opchain.runtime.formats.line_records import MALFORMED, reason_of
from opchain.runtime.formats.row_values import type_of_rows
from opchain.runtime.types.serialization import DeserializationSchema, SerializationSchema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from opchain.runtime.formats.line_records import Decode
    from opchain.runtime.types.record_types import RowTypeInfo
    from opchain.runtime.types.row import Row


class JsonRowDeserializationSchema(DeserializationSchema["Row"]):
    """A row from each message. Flink: JsonRowDeserializationSchema."""

    def __init__(
        self, row_type: RowTypeInfo, *, fails_on_missing_field: bool, ignores_parse_errors: bool
    ) -> None:
        self.row_type = row_type
        self.fails_on_missing_field = fails_on_missing_field
        self.ignores_parse_errors = ignores_parse_errors
        self._decode: Decode | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_decode": None}

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        """Starts a schema."""
        return JsonRowDeserializationSchema.Builder()

    def deserialize(self, message: bytes) -> Row:
        """The row; None for a message that is none, where parse errors are ignored.

        Raises:
            ValueError: The message is not a row of the type.
        """
        if self._decode is None:
            needs_all_fields = self.fails_on_missing_field
            self._decode = json_decoder(self.row_type, needs_all_fields=needs_all_fields)
        try:
            (row,) = self._decode([message.decode()])
        except MALFORMED as error:
            if self.ignores_parse_errors:
                return None  # type: ignore[return-value]  # as the contract has it
            raise ValueError(
                f"the message {short_repr(message)} is not a JSON record of {self.row_type!r} "
                f"({reason_of(error)}); "
                "correct it, or ignore_parse_errors()"
            ) from error
        found: Row = row
        return found

    def get_produced_type(self) -> RowTypeInfo:
        """As given."""
        return self.row_type

    class Builder:
        """A schema in the making."""

        def __init__(self) -> None:
            self._row_type: RowTypeInfo | None = None
            self._fails_on_missing_field = False
            self._ignores_parse_errors = False

        def type_info(self, type_info: Any) -> JsonRowDeserializationSchema.Builder:
            """Sets the rows' type: fields are found by their names."""
            self._row_type = type_of_rows(type_info, "JsonRowDeserializationSchema.type_info")
            return self

        def json_schema(self, json_schema: str) -> NoReturn:
            """Not supported.

            Raises:
                UnsupportedFeatureError: Always.
            """
            raise UnsupportedFeatureError(
                f"json_schema({short_repr(json_schema)}) is not supported; set the row type with "
                f"type_info()"
            )

        def fail_on_missing_field(self) -> JsonRowDeserializationSchema.Builder:
            """A message without one of the fields is not a row; if not said, the field is None."""
            self._fails_on_missing_field = True
            return self

        def ignore_parse_errors(self) -> JsonRowDeserializationSchema.Builder:
            """Messages that are not rows are skipped."""
            self._ignores_parse_errors = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            """The schema.

            Raises:
                TypeError: The rows' type is not set.
            """
            if self._row_type is None:
                raise TypeError("JsonRowDeserializationSchema has no type; set it with type_info()")
            return JsonRowDeserializationSchema(
                self._row_type,
                fails_on_missing_field=self._fails_on_missing_field,
                ignores_parse_errors=self._ignores_parse_errors,
            )


class JsonRowSerializationSchema(SerializationSchema["Row"]):
    """A message from each row. Flink: JsonRowSerializationSchema."""

    def __init__(self, row_type: RowTypeInfo) -> None:
        self.row_type = row_type
        self._texts: Callable[[Sequence[Any]], list[str]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_texts": None}

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        """Starts a schema."""
        return JsonRowSerializationSchema.Builder()

    def serialize(self, element: Row) -> bytes:
        """The message."""
        if self._texts is None:
            self._texts = to_json(self.row_type)
        (text,) = self._texts([element])
        return text.encode()

    class Builder:
        """A schema in the making."""

        def __init__(self) -> None:
            self._row_type: RowTypeInfo | None = None

        def with_type_info(self, type_info: Any) -> JsonRowSerializationSchema.Builder:
            """Sets the rows' type."""
            where = "JsonRowSerializationSchema.with_type_info"
            self._row_type = type_of_rows(type_info, where)
            return self

        def build(self) -> JsonRowSerializationSchema:
            """The schema.

            Raises:
                TypeError: The rows' type is not set.
            """
            if self._row_type is None:
                raise TypeError(
                    "JsonRowSerializationSchema has no type; set it with with_type_info()"
                )
            return JsonRowSerializationSchema(self._row_type)
