"""The types of a table's rows, and the form of their values in JSON and CSV, where times are texts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opchain.compiler.table.data_types import (
    ArrayType,
    DataType,
    DataTypes,
    LocalTimeType,
    MapType,
    RowField,
    RowType,
    ZonedTimeType,
)
from opchain.compiler.table.expressions import STRING, Column, Typed, cast
from opchain.runtime.functions.sql import RowProjection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opchain.compiler.table.table_descriptor import TableDescriptor
    from opchain.runtime.types.record_types import RowTypeInfo
    from opchain.runtime.types.type_information import TypeInformation


_AS_TEXT = ("TIMESTAMP", "TIMESTAMP_LTZ", "DATE", "TIME")
"""Types whose values are texts in SQL's form in JSON and CSV, as in Flink's table formats."""


def row_type(columns: Sequence[Column]) -> RowTypeInfo:
    """The type of a table's rows."""
    from opchain.runtime.types.types import Types  # noqa: PLC0415 - loaded when a stream is made

    return Types.ROW_NAMED(
        [each.name for each in columns], [type_information_of(each.data_type) for each in columns]
    )


def type_information_of(data_type: DataType) -> TypeInformation[Any]:
    """The type of the values of a column. TIMESTAMP_LTZ is an aware datetime: PyFlink's Instant has no arithmetic."""
    zoned = ZonedTimeType("TIMESTAMP", (6,), is_nullable=True)
    return _with(data_type, ("TIMESTAMP_LTZ",), zoned).type_information()


def printed_type(data_type: DataType) -> TypeInformation[Any]:
    """The type for the text of the `print` connector, which shows times as classes of java.time do."""
    local = LocalTimeType("TIMESTAMP")
    return _with(data_type, ("TIMESTAMP", "TIMESTAMP_LTZ", "TIME"), local).type_information()


def wire_type(columns: Sequence[Column]) -> RowTypeInfo:
    """The type of rows in JSON and CSV."""
    from opchain.runtime.types.types import Types  # noqa: PLC0415 - likewise

    types = [
        Types.BIG_DEC()
        if each.data_type.name == "DECIMAL"
        else type_information_of(_wire_of(each.data_type))
        for each in columns
    ]
    return Types.ROW_NAMED([each.name for each in columns], types)


def _wire_of(data_type: DataType) -> DataType:
    """The type in JSON and CSV: times are texts."""
    return _with(data_type, _AS_TEXT, DataTypes.STRING())


def _with(data_type: DataType, names: Sequence[str], other: DataType) -> DataType:
    """The type with another one in place of some types, also in arrays, maps and rows."""
    if data_type.name in names:
        return other
    if isinstance(data_type, ArrayType):
        return replace(data_type, element_type=_with(data_type.element_type, names, other))
    if isinstance(data_type, MapType):
        key, value = data_type.key_type, data_type.value_type
        return replace(
            data_type, key_type=_with(key, names, other), value_type=_with(value, names, other)
        )
    if isinstance(data_type, RowType):
        fields = (
            RowField(each.name, _with(each.data_type, names, other)) for each in data_type.fields
        )
        return replace(data_type, fields=tuple(fields))
    return data_type


def partition_keys(descriptor: TableDescriptor) -> tuple[str, ...]:
    """The columns whose values are in the names of folders. Only files have them."""
    return descriptor.partition_keys if descriptor.connector == "filesystem" else ()


def wire_values(descriptor: TableDescriptor) -> dict[str, Typed]:
    """The expression for each physical column of a record of the source.

    Partition columns are texts, and come after the others.
    """
    assert descriptor.schema is not None
    columns, keys = descriptor.schema.columns, partition_keys(descriptor)
    places = [*(name for name, _ in columns if name not in keys), *keys]
    return {name: _wire_value(places.index(name), name, of, descriptor) for name, of in columns}


def _wire_value(place: int, name: str, data_type: DataType, descriptor: TableDescriptor) -> Typed:
    of, prefix = format_of_column(name, descriptor.options)
    key: Any = name if of == "avro" and descriptor.connector == "filesystem" else place
    value = Typed(f"row[{key!r}]", data_type)
    if name in partition_keys(descriptor):
        return cast(value._replace(data_type=STRING), data_type)
    wire = DataTypes.STRING() if data_type.name == "DECIMAL" else _wire_of(data_type)
    if of not in ("json", "csv") or wire == data_type:
        return value
    if of == "csv" and f"{prefix}csv.null-literal" not in descriptor.options:
        value = Typed(f"nullif({value.text}, '')", data_type)
    found = cast(value._replace(data_type=wire), data_type)
    if descriptor.options.get(f"{prefix}{of}.ignore-parse-errors", "").lower() == "true":
        return found._replace(text=f"attempted(lambda: {found.text})")
    return found


def format_of_column(name: str, options: Mapping[str, str]) -> tuple[str | None, str]:
    """The format that a column is read with, and the prefix of the format's options."""
    if name in own_key_names(options):
        return options.get("key.format"), "key."
    if "format" in options:
        return options["format"], ""
    return options.get("value.format"), "value."


def key_names(options: Mapping[str, str]) -> list[str]:
    """The columns in the keys of messages."""
    return [each.strip() for each in options.get("key.fields", "").split(";") if each.strip()]


def own_key_names(options: Mapping[str, str]) -> list[str]:
    """The columns in the keys of messages, if they are not also in the values."""
    return key_names(options) if options.get("value.fields-include") == "EXCEPT_KEY" else []


def to_wire(
    columns: Sequence[Column], places: Sequence[int] | None = None, *, is_iso: bool = False
) -> RowProjection | None:
    """The reverse of `wire_values`: turns rows into the form of JSON and CSV; None if there is nothing to do.

    The places are those of the columns in a row that also has other columns.
    """
    texts = [
        _wire_text(f"row[{place}]", data_type, is_iso)
        for place, (_, data_type) in zip(places or range(len(columns)), columns, strict=True)
    ]
    if places is None and texts == [f"row[{position}]" for position in range(len(columns))]:
        return None
    return RowProjection(f"({', '.join(texts)},)", "format", [each.name for each in columns])


def _wire_text(value: str, data_type: DataType, is_iso: bool) -> str:
    """The expression of a value in JSON or CSV: times are texts."""
    if isinstance(data_type, RowType):
        texts = [
            _wire_text(f"row[{place}]", each.data_type, is_iso)
            for place, each in enumerate(data_type.fields)
        ]
        names = tuple(each.name for each in data_type.fields)
        written = (
            f"as_row({value}, {names!r}, lambda row: ({''.join(f'{each}, ' for each in texts)}))"
        )
    elif isinstance(data_type, ArrayType):
        element = _wire_text("row", data_type.element_type, is_iso)
        written = f"as_array({value}, lambda row: {element})"
    elif isinstance(data_type, MapType):
        key = _wire_text("row", data_type.key_type, is_iso)
        entry = _wire_text("row", data_type.value_type, is_iso)
        written = f"as_map({value}, lambda row: {key}, lambda row: {entry})"
    elif data_type.name in _AS_TEXT:
        return _time_text(value, data_type, is_iso)
    else:
        return value
    return value if _wire_of(data_type) == data_type else written


def _time_text(value: str, data_type: DataType, is_iso: bool) -> str:
    if not data_type.name.startswith("TIMESTAMP"):
        return f"as_text({value})"
    return f"format_timestamp({value}, {'T' if is_iso else ' '!r}, {data_type.name == 'TIMESTAMP_LTZ'})"
