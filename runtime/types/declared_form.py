"""Records of a collection in the form of their declared type.

PyFlink hands a collection to Java, whose source casts its numbers: an INT keeps the low 32 of its bits, a FLOAT
has 32 bits, a tuple that is declared as a row is a Row with the row's field names. What functions return is
converted elsewhere, see `crossing`.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import short_repr
from opchain.runtime.types.container_types import ListTypeInfo, MapTypeInfo
from opchain.runtime.types.record_types import ExternalTypeInfo, RowTypeInfo, TupleTypeInfo
from opchain.runtime.types.row import Row, RowKind
from opchain.runtime.types.type_information import BasicType, BasicTypeInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.runtime.types.type_information import TypeInformation

    Converter = Callable[[Any], Any]

_FLOAT32 = struct.Struct("f")


def converter_to(record_type: TypeInformation[Any] | None) -> Converter | None:
    """What gives a record the form of its type; None where every record has it already.

    >>> from opchain.runtime.types.types import Types
    >>> convert = converter_to(Types.ROW_NAMED(["word"], [Types.STRING()]))
    >>> convert(("a",))
    Row(word='a')
    """
    for of_type, make in _MAKERS:
        if isinstance(record_type, of_type):
            return make(record_type)
    return None


def _to_float32(value: Any) -> Any:
    """The nearest float of 32 bits; beyond those infinity, as in Java."""
    if not isinstance(value, float):
        return value
    try:
        single: float = _FLOAT32.unpack(_FLOAT32.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return single


def _to_bits(bits: int) -> Converter:
    """The integer that is left of one in a variable of so many bits, as a cast in Java leaves it."""
    half, mask = 1 << bits - 1, (1 << bits) - 1

    def convert(value: Any) -> Any:
        if not isinstance(value, int) or -half <= value < half:
            return value
        return (value + half & mask) - half

    return convert


_OF_BASIC_TYPE: dict[BasicType, Converter] = {
    BasicType.BYTE: _to_bits(8),
    BasicType.SHORT: _to_bits(16),
    BasicType.INT: _to_bits(32),
    BasicType.FLOAT: _to_float32,
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
    return _unless_none(lambda record: tuple(convert_fields(list(record))))


def _to_list(record_type: ListTypeInfo[Any]) -> Converter | None:
    element = converter_to(record_type.element_type)
    return _unless_none(lambda value: list(map(element, value))) if element else None


def _to_map(record_type: MapTypeInfo[Any, Any]) -> Converter | None:
    item = converter_to(record_type.value_type_info)
    if item is None:
        return None
    return _unless_none(lambda value: {key: item(each) for key, each in value.items()})


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


def _unless_none(convert: Converter) -> Converter:
    return lambda value: None if value is None else convert(value)


_MAKERS: tuple[tuple[Any, Callable[[Any], Converter | None]], ...] = (
    (ExternalTypeInfo, lambda record_type: converter_to(record_type.type_info)),
    (RowTypeInfo, _to_row),
    (TupleTypeInfo, _to_tuple),
    (ListTypeInfo, _to_list),
    (MapTypeInfo, _to_map),
    (BasicTypeInfo, lambda record_type: _OF_BASIC_TYPE.get(record_type.basic_type)),
)
