"""Converts columns of JSON values to values of a declared type, and columns of values to JSON text."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from functools import partial
from itertools import chain, islice
from json.encoder import encode_basestring
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import UnsupportedFeatureError, short_repr
from opchain.runtime.formats.row_values import columns_of_rows
from opchain.runtime.formats.text_values import (
    INTEGER_BITS,
    checked_range,
    is_bytes,
    text_reader,
    text_writer,
)
from opchain.runtime.records.columns import Columns
from opchain.runtime.types.coders import shortest_float
from opchain.runtime.types.collection_values import to_float32
from opchain.runtime.types.container_types import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
)
from opchain.runtime.types.record_types import PickledBytesTypeInfo, RowTypeInfo
from opchain.runtime.types.time_types import TimestampTypeInfo, TimeTypeInfo
from opchain.runtime.types.type_information import BasicType, BasicTypeInfo, TypeInformation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime, time

    Column = Sequence[Any]
    Convert = Callable[[Column], Column]

LISTS = (ListTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo, PrimitiveArrayTypeInfo)
_NULL = type(None)


def from_json(
    kind: TypeInformation[Any], *, needs_all_fields: bool = False, errors_are_null: bool = False
) -> Convert:
    """The function that converts a column of parsed JSON to values of the type. None stays None.

    It raises a ValueError if a value does not have the type.

    Args:
        kind: The type.
        needs_all_fields: Whether a missing field of an object is an error; otherwise it is None.
        errors_are_null: Whether a value in an object, list or map is None if it does not have the type.
    """

    def inner(of: TypeInformation[Any]) -> Convert:
        convert = from_json(of, needs_all_fields=needs_all_fields, errors_are_null=errors_are_null)
        return _lenient(convert) if errors_are_null else convert

    if isinstance(kind, PickledBytesTypeInfo):
        return lambda column: column
    if isinstance(kind, RowTypeInfo):
        fields = list(map(inner, kind.get_field_types()))
        return _nullable(_rows_from_objects(kind, fields, needs_all_fields))
    if isinstance(kind, LISTS) and not is_bytes(kind):
        return _nullable(_nested(list, inner(kind.element_type), list, "list"))
    if isinstance(kind, MapTypeInfo):
        return _nullable(_maps_from_objects(kind, inner(kind.value_type_info)))
    as_they_are = _AS_THEY_ARE.get(kind.basic_type) if isinstance(kind, BasicTypeInfo) else None
    convert = partial(_scalar, kind, _reader(kind))

    def column_of(column: Column) -> Column:
        if as_they_are is not None and as_they_are(column):
            return column
        return [None if value is None else convert(value) for value in column]

    return column_of


def to_json(
    kind: TypeInformation[Any] | None,
    *,
    leaves_out_nulls: bool = False,
    ends_times_with_z: bool = False,
) -> Callable[[Column], list[str]]:
    """The function that converts each value of a column to JSON text. Without a type, it uses `json.dumps`.

    Args:
        kind: The type of the values.
        leaves_out_nulls: Whether fields of rows that are None are left out. Otherwise they are written as null.
        ends_times_with_z: Whether times and timestamps have the form of RFC 3339, such as 2024-01-02T03:04:05Z.

    Raises:
        UnsupportedFeatureError: JSON does not support the type.
    """
    inner = partial(to_json, leaves_out_nulls=leaves_out_nulls, ends_times_with_z=ends_times_with_z)
    if kind is None or isinstance(kind, PickledBytesTypeInfo):
        dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
        return lambda column: list(map(dumps, column))
    if isinstance(kind, RowTypeInfo):
        fields = list(map(inner, kind.get_field_types()))
        return _nullable_text(_objects_of_rows(kind, fields, leaves_out_nulls))
    if isinstance(kind, LISTS) and not is_bytes(kind):
        return _nullable_text(_array_texts(inner(kind.element_type)))
    if isinstance(kind, MapTypeInfo):
        return _nullable_text(_map_texts(kind, inner(kind.value_type_info)))
    has_time = isinstance(kind, (TimeTypeInfo, TimestampTypeInfo))
    write = _rfc_3339 if has_time and ends_times_with_z else _writer(kind)
    return lambda column: ["null" if value is None else write(value) for value in column]


def _reader(kind: TypeInformation[Any]) -> Callable[[str], Any]:
    read = text_reader(kind)
    if read is None:
        raise UnsupportedFeatureError(f"JSON does not support {kind!r}; choose another type")
    return read


def _writer(kind: TypeInformation[Any]) -> Callable[[Any], str]:
    basic = kind.basic_type if isinstance(kind, BasicTypeInfo) else None
    text_of = text_writer(kind)
    if text_of is None:
        raise UnsupportedFeatureError(f"JSON does not support {kind!r}; choose another type")
    if basic is BasicType.FLOAT:
        return lambda value: _float_text(shortest_float(to_float32(value)))
    if basic is BasicType.DOUBLE:
        return _float_text
    if basic in INTEGER_BITS or basic in (BasicType.BIG_INT, BasicType.BIG_DEC, BasicType.BOOLEAN):
        return text_of
    if basic in (BasicType.STRING, BasicType.CHAR):
        return encode_basestring
    return lambda value: encode_basestring(text_of(value))


def _rfc_3339(value: time | datetime) -> str:
    """A time of day or a datetime as text. Like Flink's RFC3339_TIMESTAMP_FORMAT, a value without zone ends with Z."""
    text = value.isoformat()
    if value.tzinfo is not None:
        return f'"{text}"'
    return f'"{text.rstrip("0") if value.microsecond else text}Z"'


def _float_text(value: float) -> str:
    """JSON has no NaN and infinities. They are written as strings, which both opchain and Flink can read."""
    if math.isfinite(value):
        return float.__repr__(float(value))
    return '"NaN"' if math.isnan(value) else f'"{"-" if value < 0 else ""}Infinity"'


def _only(*kinds: type) -> Callable[[Column], bool]:
    return lambda column: {*kinds, _NULL}.issuperset(map(type, column))


def _only_integers(bits: int) -> Callable[[Column], bool]:
    least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    only = _only(int)

    def holds(column: Column) -> bool:
        if not only(column):
            return False
        numbers = [number for number in column if number is not None] if None in column else column
        return not numbers or (min(numbers) >= least and max(numbers) <= most)

    return holds


_AS_THEY_ARE: dict[BasicType, Callable[[Column], bool]] = {
    **{kind: _only_integers(bits) for kind, bits in INTEGER_BITS.items()},
    BasicType.STRING: _only(str),
    BasicType.CHAR: _only(str),
    BasicType.BIG_INT: _only(int),
    BasicType.DOUBLE: _only(float),
    BasicType.BIG_DEC: _only(Decimal),
    BasicType.BOOLEAN: _only(bool),
}


_MOST_DIGITS = 4300
"""As many as Python reads in a whole number. The digits of 1e999999999 would take minutes."""


def _whole(value: float | Decimal) -> int:
    if isinstance(value, Decimal) and value.adjusted() >= _MOST_DIGITS:
        raise ValueError(f"{value} has more than {_MOST_DIGITS} digits")
    if value != int(value):
        raise ValueError(f"{value!r} is not a whole number")
    return int(value)


def _whole_of(bits: int) -> Callable[[Any], int]:
    return lambda value: checked_range(_whole(value), bits)


_OF_BOOL: dict[BasicType, Callable[[Any], Any]] = {
    BasicType.BOOLEAN: bool,
    BasicType.STRING: lambda value: "true" if value else "false",
}
_OF_CONTAINER: dict[BasicType, Callable[[Any], Any]] = {
    BasicType.STRING: json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode,
}
_OF_NUMBER: dict[BasicType, Callable[[Any], Any]] = {
    **{kind: _whole_of(bits) for kind, bits in INTEGER_BITS.items()},
    BasicType.BIG_INT: _whole,
    BasicType.FLOAT: lambda value: to_float32(float(value)),
    BasicType.DOUBLE: float,
    BasicType.BIG_DEC: lambda value: Decimal(str(value)),
    BasicType.STRING: str,
}


def _scalar(kind: TypeInformation[Any], read: Callable[[str], Any], value: Any) -> Any:
    """Converts one value. Strings are parsed as text; other values are converted if nothing is lost."""
    if isinstance(value, str):
        return read(value)
    made: dict[BasicType, Callable[[Any], Any]] = {}
    if isinstance(value, bool):
        made = _OF_BOOL
    elif isinstance(value, (int, float, Decimal)):
        made = _OF_NUMBER
    elif isinstance(value, (dict, list)):
        made = _OF_CONTAINER
    convert = made.get(kind.basic_type) if isinstance(kind, BasicTypeInfo) else None
    if convert is None:
        raise ValueError(f"{short_repr(value)} is not of type {kind!r}")
    return convert(value)


def _nullable(convert: Convert) -> Convert:
    """Wraps a converter for columns with None."""

    def column_of(column: Column) -> Column:
        if None not in column:
            return convert(column)
        there = iter(convert([value for value in column if value is not None]))
        return [None if value is None else next(there) for value in column]

    return column_of


def _nullable_text(convert: Callable[[Column], list[str]]) -> Callable[[Column], list[str]]:
    def texts_of(column: Column) -> list[str]:
        there = iter(convert([value for value in column if value is not None]))
        return ["null" if value is None else next(there) for value in column]

    return texts_of


def _nested(of: type, inner: Convert, made: Callable[[Any], Any], what: str) -> Convert:
    """Converts the contents of several containers as one column."""

    def column_of(column: Column) -> Column:
        for value in column:
            if not isinstance(value, of):
                raise ValueError(f"{short_repr(value)} is not a {what}")  # noqa: TRY004 - the data's fault
        flat = iter(inner(list(chain.from_iterable(column))))
        return [made(islice(flat, len(value))) for value in column]

    return column_of


def _maps_from_objects(kind: MapTypeInfo[Any, Any], values: Convert) -> Convert:
    keys = from_json(kind.key_type_info)

    def column_of(column: Column) -> Column:
        for value in column:
            if not isinstance(value, dict):
                raise ValueError(f"{short_repr(value)} is not a JSON object")  # noqa: TRY004 - the data's fault
        return [
            dict(zip(keys(list(value)), values(list(value.values())), strict=True))
            for value in column
        ]

    return column_of


def _rows_from_objects(
    kind: RowTypeInfo, fields: Sequence[Convert], needs_all_fields: bool
) -> Convert:
    names = kind.get_field_names()
    pick: Callable[[Any], Any] = itemgetter(*names) if len(names) > 1 else _pick_one(names)

    def picked(column: Column) -> list[Any]:
        try:
            return list(map(pick, column))
        except KeyError as error:
            if needs_all_fields:
                raise ValueError(f"there is no field {error}") from error
            return [tuple(value.get(name) for name in names) for value in column]

    def column_of(column: Column) -> Column:
        if not column:
            return column
        if set(map(type, column)) != {dict}:
            wrong = next(value for value in column if type(value) is not dict)
            raise ValueError(f"{short_repr(wrong)} is not a JSON object")
        converted = []
        for name, convert, values in zip(
            names, fields, zip(*picked(column), strict=True), strict=True
        ):
            try:
                converted.append(convert(values))
            except ValueError as error:  # noqa: PERF203 - a few fields for a batch of rows
                raise ValueError(f"field '{name}': {error}") from error
        return Columns.of_fields(names, converted)

    return column_of


def _lenient(convert: Convert) -> Convert:
    """Converts each value by itself if the whole column cannot be converted. A value with an error becomes None."""

    def value_of(value: Any) -> Any:
        try:
            return convert([value])[0]
        except _ERRORS:
            return None

    def column_of(column: Column) -> Column:
        try:
            return convert(column)
        except _ERRORS:
            return list(map(value_of, column))

    return column_of


_ERRORS = (ValueError, TypeError, LookupError, ArithmeticError)


def _pick_one(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda value: tuple(value[name] for name in names)


def _objects_of_rows(
    kind: RowTypeInfo, fields: Sequence[Callable[[Column], list[str]]], leaves_out_nulls: bool
) -> Callable[[Column], list[str]]:
    names = [encode_basestring(name) for name in kind.get_field_names()]
    template = "{" + ",".join(f"{name.replace('%', '%%')}:%s" for name in names) + "}"

    def columns_of(rows: Column) -> list[list[str]]:
        columns = columns_of_rows(kind, rows)
        return [text_of(column) for text_of, column in zip(fields, columns, strict=True)]

    def texts_of(rows: Column) -> list[str]:
        return [template % values for values in zip(*columns_of(rows), strict=True)]

    def texts_without_nulls(rows: Column) -> list[str]:
        found = []
        for values in zip(*columns_of(rows), strict=True):
            fields = zip(names, values, strict=True)
            given = ",".join(f"{name}:{text}" for name, text in fields if text != "null")
            found.append(f"{{{given}}}")
        return found

    return texts_without_nulls if leaves_out_nulls else texts_of


def _array_texts(inner: Callable[[Column], list[str]]) -> Callable[[Column], list[str]]:
    def texts_of(lists: Column) -> list[str]:
        flat = iter(inner(list(chain.from_iterable(lists))))
        return [f"[{','.join(islice(flat, len(value)))}]" for value in lists]

    return texts_of


def _map_texts(
    kind: MapTypeInfo[Any, Any], value_texts: Callable[[Column], list[str]]
) -> Callable[[Column], list[str]]:
    key_text = text_writer(kind.key_type_info)
    if key_text is None:
        raise UnsupportedFeatureError(
            f"JSON does not support map keys of type {kind.key_type_info!r}; use strings"
        )

    def text_of(value: dict[Any, Any]) -> str:
        keys: Iterable[str] = map(encode_basestring, map(key_text, value))
        texts = value_texts(list(value.values()))
        return f"{{{','.join(f'{key}:{text}' for key, text in zip(keys, texts, strict=True))}}}"

    return lambda maps: list(map(text_of, maps))
