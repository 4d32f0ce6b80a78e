"""Records as `print` shows them.

PyFlink prints with Java: a record of a declared type looks as Java shows it (`(a,1)`, `true`, `1.0E10`),
any other as Python's `str`. Rows are an exception, which PyFlink formats itself.
"""

from __future__ import annotations

import struct
from datetime import datetime
from typing import TYPE_CHECKING, Any

from opchain.runtime.configuration.text import to_text
from opchain.runtime.types.container_types import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
)
from opchain.runtime.types.record_types import ExternalTypeInfo, RowTypeInfo, TupleTypeInfo
from opchain.runtime.types.row import Row
from opchain.runtime.types.type_information import BasicType, BasicTypeInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.types.type_information import TypeInformation

_LISTS = (ListTypeInfo, PrimitiveArrayTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo)
_FLOAT_DIGITS = range(1, 10)


def printer_of(record_type: TypeInformation[Any] | None) -> Callable[[Any], str]:
    """What turns records of a type into text.

    >>> from opchain.runtime.types.types import Types
    >>> printer_of(Types.TUPLE([Types.STRING(), Types.BOOLEAN()]))(("a", True))
    '(a,true)'
    """
    if record_type is None:
        return str
    of_value = _printer_of_value(record_type)
    return lambda value: "null" if value is None else of_value(value)


def _printer_of_value(record_type: TypeInformation[Any]) -> Callable[[Any], str]:
    for of_type, make in _MAKERS:
        if isinstance(record_type, of_type):
            return make(record_type)
    return _any


def _any(value: Any) -> str:
    return _timestamp(value) if isinstance(value, datetime) else str(value)


def _row(value: Any) -> str:
    kind, items = (value.get_row_kind(), list(value)) if isinstance(value, Row) else ("+I", value)
    return f"{kind}[{','.join(map(str, items))}]"


def _tuple_printer(record_type: TupleTypeInfo) -> Callable[[Any], str]:
    fields = [printer_of(field) for field in record_type.field_types]
    return lambda value: f"({','.join(field(item) for field, item in zip(fields, value))})"  # noqa: B905 - as declared


def _list_printer(record_type: Any) -> Callable[[Any], str]:
    element = printer_of(record_type.element_type)
    return lambda value: f"[{', '.join(map(element, value))}]"


def _map_printer(record_type: MapTypeInfo[Any, Any]) -> Callable[[Any], str]:
    key, of_value = printer_of(record_type.key_type_info), printer_of(record_type.value_type_info)

    def text(value: Any) -> str:
        items = (f"{key(name)}={of_value(item)}" for name, item in value.items())
        return f"{{{', '.join(items)}}}"

    return text


def _double(value: float) -> str:
    return to_text(float(value))


def _float(value: float) -> str:
    """Java's Float.toString: the fewest digits that give the same 32-bit float."""
    single: float = struct.unpack("f", struct.pack("f", value))[0]
    for digits in _FLOAT_DIGITS:
        shortest = float(f"{single:.{digits}g}")
        if struct.pack("f", shortest) == struct.pack("f", single):
            return to_text(shortest)
    raise AssertionError(f"9 digits always give a 32-bit float back, but not {single!r}")


def _timestamp(value: datetime) -> str:
    """Java's Timestamp.toString: at least one digit of the second's fraction."""
    fraction = f"{value.microsecond:06d}".rstrip("0") or "0"
    return f"{value:%Y-%m-%d %H:%M:%S}.{fraction}"


_OF_BASIC_TYPE: dict[BasicType, Callable[[Any], str]] = {
    BasicType.BOOLEAN: lambda value: "true" if value else "false",
    BasicType.FLOAT: _float,
    BasicType.DOUBLE: _double,
}

_MAKERS: tuple[tuple[Any, Callable[[Any], Callable[[Any], str]]], ...] = (
    (ExternalTypeInfo, lambda record_type: _printer_of_value(record_type.type_info)),
    (RowTypeInfo, lambda _: _row),
    (TupleTypeInfo, _tuple_printer),
    (MapTypeInfo, _map_printer),
    (_LISTS, _list_printer),
    (BasicTypeInfo, lambda record_type: _OF_BASIC_TYPE.get(record_type.basic_type, _any)),
)
