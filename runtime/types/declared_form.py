"""Records in the form of their declared type.

In PyFlink a record of a declared type passes through Java, and comes back in that type's form: a tuple
declared as a row is a Row with the row's field names. Types that keep their records' form cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import short_repr
from opchain.runtime.types.container_types import ListTypeInfo, MapTypeInfo
from opchain.runtime.types.record_types import ExternalTypeInfo, RowTypeInfo, TupleTypeInfo
from opchain.runtime.types.row import Row, RowKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.runtime.types.type_information import TypeInformation

    Converter = Callable[[Any], Any]


def converter_to(record_type: TypeInformation[Any] | None) -> Converter | None:
    """What gives a record the form of its type; None where every record has it already.

    >>> from opchain.runtime.types.types import Types
    >>> convert = converter_to(Types.ROW_NAMED(["word"], [Types.STRING()]))
    >>> convert(("a",))
    Row(word='a')
    """
    if isinstance(record_type, ExternalTypeInfo):
        return converter_to(record_type.type_info)
    if isinstance(record_type, RowTypeInfo):
        return _to_row(record_type)
    if isinstance(record_type, TupleTypeInfo):
        return _unless_none(_to_tuple(record_type))
    if isinstance(record_type, ListTypeInfo):
        element = converter_to(record_type.element_type)
        return _unless_none(lambda value: list(map(element, value))) if element else None
    if isinstance(record_type, MapTypeInfo):
        item = converter_to(record_type.value_type_info)
        return (
            _unless_none(lambda value: {key: item(each) for key, each in value.items()})
            if item
            else None
        )
    return None


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
    return lambda record: tuple(convert_fields(list(record)))


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
