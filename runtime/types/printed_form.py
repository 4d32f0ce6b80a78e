"""The text of records, as `print` shows them and as `simple_string_encoder` writes them to files.

In PyFlink, Java formats both. A record of a declared type has the text of its Java class (`(a,1)`, `true`, `1.0E10`,
`+I[a, null]`). Other records have the text of Python's `str`. An exception are printed rows, which PyFlink formats
itself (`+I[a,None]`).
"""

from __future__ import annotations

import struct
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING, Any, TypeGuard

from opchain.runtime.configuration.text import to_text
from opchain.runtime.time import Instant
from opchain.runtime.types.container_types import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
)
from opchain.runtime.types.record_types import (
    ExternalTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from opchain.runtime.types.row import Row
from opchain.runtime.types.time_types import LocalTimeTypeInfo, TimeTypeInfo
from opchain.runtime.types.type_information import BasicType, BasicTypeInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.types.type_information import TypeInformation

_LISTS = (ListTypeInfo, PrimitiveArrayTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo)
_FLOAT_DIGITS = range(2, 10)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the text ends in Z


def printer_of(record_type: TypeInformation[Any] | None) -> Callable[[Any], str]:
    """The function that returns the printed text of records of a type.

    >>> from opchain.runtime.types.types import Types
    >>> printer_of(Types.TUPLE([Types.STRING(), Types.BOOLEAN()]))(("a", True))
    '(a,true)'
    """
    return _row_printer(record_type) if is_row(record_type) else java_text_of(record_type)


def java_text_of(record_type: TypeInformation[Any] | None) -> Callable[[Any], str]:
    """The function that returns the Java text of records of a type.

    >>> from opchain.runtime.types.types import Types
    >>> java_text_of(Types.ROW([Types.STRING(), Types.DOUBLE()]))(("a", 1e10))
    '+I[a, 1.0E10]'
    """
    if record_type is None:
        return str
    of_value = _text_of(record_type)
    return lambda value: "null" if value is None else of_value(value)


def is_row(record_type: TypeInformation[Any] | None) -> TypeGuard[RowTypeInfo]:
    """Whether records are Rows, which PyFlink formats itself."""
    return isinstance(record_type, RowTypeInfo) and not record_type.is_row_data


def _text_of(record_type: TypeInformation[Any]) -> Callable[[Any], str]:
    for of_type, make in _MAKERS:
        if isinstance(record_type, of_type):
            return make(record_type)
    return _any


def _any(value: Any) -> str:
    if isinstance(value, bytearray):
        return str(list(value))
    return _timestamp(value) if isinstance(value, datetime) else str(value)


def _row_printer(record_type: RowTypeInfo) -> Callable[[Any], str]:
    def text(value: Any) -> str:
        if value is None:
            return "null"
        is_one = isinstance(value, Row)
        kind, items = (
            (value.get_row_kind(), value) if is_one else ("+I", record_type.values_of(value))
        )
        return f"{kind}[{','.join(map(str, items))}]"

    return text


def _row_text(record_type: RowTypeInfo) -> Callable[[Any], str]:
    fields = [java_text_of(field) for field in record_type.field_types]
    # Flink: Row and GenericRowData.
    form, comma = ("{}({})", ",") if record_type.is_row_data else ("{}[{}]", ", ")

    def text(value: Any) -> str:
        kind = value.get_row_kind() if isinstance(value, Row) else "+I"
        items = zip(fields, record_type.values_of(value), strict=False)
        return form.format(kind, comma.join(field(item) for field, item in items))

    return text


def _tuple_text(record_type: TupleTypeInfo) -> Callable[[Any], str]:
    fields = [java_text_of(field) for field in record_type.field_types]
    return lambda value: f"({','.join(field(item) for field, item in zip(fields, value))})"  # noqa: B905 - as declared


def _list_text(record_type: Any) -> Callable[[Any], str]:
    element = java_text_of(record_type.element_type)
    return lambda value: f"[{', '.join(map(element, value))}]"


def _map_text(record_type: MapTypeInfo[Any, Any]) -> Callable[[Any], str]:
    key, of_value = (
        java_text_of(kind) for kind in (record_type.key_type_info, record_type.value_type_info)
    )

    def text(value: Any) -> str:
        items = (f"{key(name)}={of_value(item)}" for name, item in value.items())
        return f"{{{', '.join(items)}}}"

    return text


def double_text(value: float) -> str:
    """The result of Java's Double.toString."""
    return to_text(float(value))


def float_text(value: float) -> str:
    """The result of Java's Float.toString: the fewest digits that identify the 32-bit float."""
    single: float = struct.unpack("f", struct.pack("f", value))[0]
    for digits in _FLOAT_DIGITS:
        shortest = float(f"{single:.{digits}g}")
        if struct.pack("f", shortest) == struct.pack("f", single):
            return to_text(shortest)
    raise AssertionError(f"9 digits always give a 32-bit float back, but not {single!r}")


def _timestamp(value: datetime) -> str:
    """The result of Java's Timestamp.toString: the fraction of the second has at least one digit."""
    fraction = f"{value.microsecond:06d}".rstrip("0") or "0"
    return f"{value:%Y-%m-%d %H:%M:%S}.{fraction}"


def _time(value: Any) -> str:
    """The result of Java's java.sql.Time.toString, which omits the fraction of the second."""
    return f"{value:%H:%M:%S}" if isinstance(value, (time, datetime)) else str(value)


def _local_time(value: Any) -> str:
    """The text of Java's LocalDate, LocalTime or LocalDateTime, or of an Instant for a value with a time zone.

    A fraction has 3 or 6 digits. Only an Instant shows seconds that are zero.
    """
    if not isinstance(value, (time, datetime)):
        return str(value)
    is_whole = value.microsecond % 1000 == 0
    unit = "milliseconds" if value.microsecond and is_whole else "auto"
    text: str = value.replace(tzinfo=None).isoformat(timespec=unit)
    return f"{text}Z" if value.tzinfo else text.removesuffix(":00")


def _instant(value: Any) -> str:
    """The result of Java's Instant.toString: the fraction of the second has 0, 3, 6 or 9 digits."""
    if not isinstance(value, Instant):
        return str(value)
    fraction = f"{value.nanos:09d}"
    while fraction.endswith("000"):
        fraction = fraction[:-3]
    moment = _EPOCH + timedelta(seconds=value.seconds)
    return f"{moment.isoformat()}{'.' if fraction else ''}{fraction}Z"


_OF_BASIC_TYPE: dict[BasicType, Callable[[Any], str]] = {
    BasicType.BOOLEAN: lambda value: "true" if value else "false",
    BasicType.FLOAT: float_text,
    BasicType.DOUBLE: double_text,
    BasicType.INSTANT: _instant,
}

_MAKERS: tuple[tuple[Any, Callable[[Any], Callable[[Any], str]]], ...] = (
    (ExternalTypeInfo, lambda record_type: _text_of(record_type.type_info)),
    (RowTypeInfo, _row_text),
    (TupleTypeInfo, _tuple_text),
    (MapTypeInfo, _map_text),
    (_LISTS, _list_text),
    (TimeTypeInfo, lambda _: _time),
    (LocalTimeTypeInfo, lambda _: _local_time),
    (BasicTypeInfo, lambda record_type: _OF_BASIC_TYPE.get(record_type.basic_type, _any)),
)
