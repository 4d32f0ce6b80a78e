"""Converts the records of `from_collection` to their declared type.

PyFlink sends a collection to Java. There, a FLOAT has 32 bits, and a tuple declared as a row becomes a Row with the
field names of the row type. A value of another class fails in Java, usually with a NullPointerException. Here the error
names the value and the type. PyFlink keeps the low bits of a number that is too large, so 2**40 becomes the INT 0; here
it is an error. coders.py converts the results of functions.
"""

from __future__ import annotations

import copyreg
import datetime as dt
import math
import operator
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import short_repr
from opchain.runtime.types.coders import integer_converter, to_decimal
from opchain.runtime.types.container_types import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
)
from opchain.runtime.types.record_types import ExternalTypeInfo, RowTypeInfo, TupleTypeInfo
from opchain.runtime.types.row import Row, RowKind
from opchain.runtime.types.time_types import DateTypeInfo, TimestampTypeInfo, TimeTypeInfo
from opchain.runtime.types.type_information import BasicType, BasicTypeInfo, TypeInformation

if TYPE_CHECKING:
    Converter = Callable[[Any], Any]

_FLOAT32 = struct.Struct("f")
_NEW_OBJECT = copyreg.__newobj__  # type: ignore[attr-defined]  # how pickle makes objects of most classes


def converter_to(record_type: TypeInformation[Any] | None) -> Converter | None:
    """The converter of a record to its type. None if no record needs a conversion.

    >>> from opchain.runtime.types.types import Types
    >>> convert = converter_to(Types.ROW_NAMED(["word"], [Types.STRING()]))
    >>> convert(("a",))
    Row(word='a')
    """
    for of_type, make in _MAKERS:
        if isinstance(record_type, of_type):
            return make(record_type)
    return None


def _to_float(value: Any) -> Any:
    """Converts to a float; integers are accepted."""
    if value.__class__ is float or value is None:
        return value
    if isinstance(value, bool) or not hasattr(type(value), "__float__"):
        raise _wrong(value, "a float", "DOUBLE")
    return float(value)


def to_float32(value: Any) -> Any:
    """Converts to the nearest 32-bit float. Values out of range become infinity, as in Java."""
    if value is None:
        return None
    number = _to_float(value)
    try:
        single: float = _FLOAT32.unpack(_FLOAT32.pack(number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)
    return single


def _whole_number(value: Any, declared: str) -> int:
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise _wrong(value, "a whole number", declared)
    return operator.index(value)


def _to_boolean(value: Any) -> Any:
    if value is None or value.__class__ is bool:
        return value
    raise _wrong(value, "True or False", "BOOLEAN")


def _to_string(value: Any) -> Any:
    """Converts to a str. An integer becomes its text, as in PyFlink."""
    if value is None or isinstance(value, str):
        return value
    if value.__class__ is int:
        return str(value)
    raise _wrong(value, "a str", "STRING")


def _wrong(value: Any, expected: str, declared: str) -> TypeError:
    return TypeError(
        f"{short_repr(value)} is declared as {declared}, and is of type {type(value).__name__}: expected {expected}; "
        "correct the record, or declare another type"
    )


def _of_class(kind: type | tuple[type, ...], expected: str, declared: str) -> Converter:
    def convert(value: Any) -> Any:
        if value is None or (isinstance(value, kind) and not isinstance(value, bool)):
            return value
        raise _wrong(value, expected, declared)

    return convert


def _to_milliseconds(check: Converter) -> Converter:
    """Truncates a time or datetime to milliseconds. As in PyFlink, a datetime with a time zone becomes one in UTC."""

    def convert(value: Any) -> Any:
        if check(value) is None:
            return None
        if value.tzinfo is not None and isinstance(value, dt.datetime):
            value = value.astimezone(dt.timezone.utc)
        return value.replace(microsecond=value.microsecond // 1000 * 1000, tzinfo=None)

    return convert


def _to_date(value: Any) -> Any:
    checked = _check_date(value)
    return checked.date() if isinstance(checked, dt.datetime) else checked


def _unless_none(convert: Converter) -> Converter:
    return lambda value: None if value is None else convert(value)


_check_date = _of_class(dt.date, "a date", "SQL_DATE")
_check_datetime = _of_class(dt.datetime, "a datetime", "SQL_TIMESTAMP")
_check_decimal = _of_class((Decimal, int), "a Decimal", "BIG_DEC")


_OF_BASIC_TYPE: dict[BasicType, Converter] = {
    BasicType.BYTE: _unless_none(integer_converter("BYTE", 8, _whole_number)),
    BasicType.SHORT: _unless_none(integer_converter("SHORT", 16, _whole_number)),
    BasicType.INT: _unless_none(integer_converter("INT", 32, _whole_number)),
    BasicType.LONG: _unless_none(integer_converter("LONG", 64, _whole_number)),
    BasicType.FLOAT: to_float32,
    BasicType.DOUBLE: _to_float,
    BasicType.BOOLEAN: _to_boolean,
    BasicType.STRING: _to_string,
    BasicType.BIG_INT: _of_class(int, "a whole number", "BIG_INT"),
    BasicType.BIG_DEC: _unless_none(lambda value: to_decimal(_check_decimal(value))),
}


def _to_row(record_type: RowTypeInfo) -> Converter:
    names = record_type.get_field_names()
    convert_fields = _fields_converter(record_type.field_types)

    def convert(record: Any) -> Any:
        if record is None:
            return None
        kind = record.get_row_kind() if isinstance(record, Row) else RowKind.INSERT
        row = Row.of_kind(kind, *convert_fields(record_type.values_of(record)))
        row.set_field_names(names)
        return row

    return convert


def _to_tuple(record_type: TupleTypeInfo) -> Converter:
    convert_fields = _fields_converter(record_type.field_types)

    def convert(record: Any) -> Any:
        if not isinstance(record, Sequence) or isinstance(record, (str, bytes)):
            raise _wrong(record, "a tuple", "TUPLE")
        return tuple(convert_fields(record))

    return _unless_none(convert)


def _to_list(record_type: ListTypeInfo[Any]) -> Converter | None:
    element = converter_to(record_type.element_type)
    if element is None:
        return None

    def convert(value: Any) -> Any:
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            raise _wrong(value, "a list", "LIST")
        return list(map(element, value))

    return _unless_none(convert)


def _to_array(record_type: Any) -> Converter | None:
    """The converter of an array. Bytes and arrays of libraries need no conversion."""
    element = converter_to(record_type.element_type)
    if element is None:
        return None
    return lambda value: list(map(element, value)) if isinstance(value, (list, tuple)) else value


def _to_map(record_type: MapTypeInfo[Any, Any]) -> Converter | None:
    item = converter_to(record_type.value_type_info)
    if item is None:
        return None

    def convert(value: Any) -> Any:
        found = value if isinstance(value, Mapping) else _attributes(value)
        if found is None:
            raise _wrong(value, "a dict", "MAP")
        return {key: item(each) for key, each in found.items()}

    return _unless_none(convert)


def _attributes(value: object) -> dict[str, Any] | None:
    """What Java reads from a pickled object of a user's class: its attributes and class. None for other objects."""
    kind = type(value)
    pickled: Any = value.__reduce_ex__(2)
    if isinstance(pickled, str) or pickled[:2] != (_NEW_OBJECT, (kind,)):
        return None
    attributes, *items = pickled[2:]
    if not isinstance(attributes, dict | None) or any(item is not None for item in items):
        return None
    return {**(attributes or {}), "__class__": f"{kind.__module__}.{kind.__name__}"}


def _fields_converter(types: Sequence[TypeInformation[Any]]) -> Converter:
    converters = [converter_to(each) for each in types]

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        if len(values) != len(converters):
            raise ValueError(
                f"{short_repr(values)} has {len(values)} fields; its type has {len(converters)}"
            )
        return [
            value if converter is None else converter(value)
            for converter, value in zip(converters, values)  # noqa: B905 - compared above
        ]

    return convert


_MAKERS: tuple[tuple[Any, Callable[[Any], Converter | None]], ...] = (
    (ExternalTypeInfo, lambda record_type: converter_to(record_type.type_info)),
    (RowTypeInfo, _to_row),
    (TupleTypeInfo, _to_tuple),
    (ListTypeInfo, _to_list),
    (MapTypeInfo, _to_map),
    ((PrimitiveArrayTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo), _to_array),
    (DateTypeInfo, lambda _: _to_date),
    (TimeTypeInfo, lambda _: _to_milliseconds(_of_class(dt.time, "a time", "SQL_TIME"))),
    (
        TimestampTypeInfo,
        lambda of: _check_datetime if of.keeps_zone else _to_milliseconds(_check_datetime),
    ),
    (BasicTypeInfo, lambda record_type: _OF_BASIC_TYPE.get(record_type.basic_type)),
)
