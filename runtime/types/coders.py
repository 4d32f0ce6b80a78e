"""Converts values to their declared types, as PyFlink's coders do.

In PyFlink, the results of a chain of Python functions are encoded for Java, and decoded again. So the coder of the
declared type truncates a float declared as INT, rounds a FLOAT to 32 bits, converts a number declared as BOOLEAN to a
bool, and drops extra fields of a tuple and the microseconds of a timestamp. It fails for a value that it cannot encode.
The converters here do the same without encoding. A value that needs no conversion is returned unchanged.

There are differences where PyFlink loses data: timestamps before 1970 and after 2038 keep their value. BIG_INT keeps
all bits, and dictionaries keep their order. A row may be given as a tuple, list, mapping or object.
"""

from __future__ import annotations

import struct
from copy import copy
from datetime import date, datetime, time
from decimal import Decimal
from math import copysign, inf, isfinite
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import short_repr
from opchain.runtime.time import Instant
from opchain.runtime.types.container_types import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
)
from opchain.runtime.types.printed_form import float_text
from opchain.runtime.types.record_types import ExternalTypeInfo, RowTypeInfo, TupleTypeInfo
from opchain.runtime.types.row import Row, row_of
from opchain.runtime.types.time_types import DateTypeInfo, TimestampTypeInfo, TimeTypeInfo
from opchain.runtime.types.type_information import BasicType, BasicTypeInfo, TypeInformation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Converter = Callable[[Any], Any]

_LISTS = (ListTypeInfo, PrimitiveArrayTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo)
_FLOAT32 = struct.Struct("f")
_BYTE_HIGH = 255
_MICROS_PER_MILLI = 1_000


def coder_converter(record_type: TypeInformation[Any] | None) -> Converter | None:
    """The converter to a declared type at the end of a chain of Python functions. None if values need no conversion.

    >>> from opchain.runtime.types.types import Types
    >>> convert = coder_converter(Types.TUPLE([Types.INT(), Types.DOUBLE()]))
    >>> convert((1.7, 2, "dropped"))
    (1, 2.0)
    """
    for of_type, make in _MAKERS:
        if isinstance(record_type, of_type):
            return make(record_type)
    return None


def record_converter(record_type: TypeInformation[Any] | None) -> Converter | None:
    """The `coder_converter` of a whole record. The record may be None if Flink's serializer of its type can write null.

    Flink's serializers of STRING, BIG_INT, BIG_DEC, SQL_DATE, SQL_TIME, SQL_TIMESTAMP and INSTANT can write null.
    Inside a tuple, a field of these types must not be None.

    >>> from opchain.runtime.types.types import Types
    >>> record_converter(Types.STRING())(None) is None
    True
    """
    convert = coder_converter(record_type)
    if convert is None or not may_be_none(record_type):
        return convert

    def convert_record(record: Any) -> Any:
        return None if record is None else convert(record)

    return convert_record


def collected_converter(record_type: TypeInformation[Any] | None) -> Converter | None:
    """The converter of records for `execute_and_collect`. None if records need no conversion.

    PyFlink parses a FLOAT from its decimal text here, so 0.1 is 0.1 again.

    >>> from opchain.runtime.types.types import Types
    >>> collected_converter(Types.TUPLE([Types.STRING(), Types.FLOAT()]))(("a", 0.10000000149011612))
    ('a', 0.1)
    """
    while isinstance(record_type, ExternalTypeInfo):
        record_type = record_type.type_info
    convert: Converter | None = None
    if isinstance(record_type, BasicTypeInfo) and record_type.basic_type is BasicType.FLOAT:
        convert = shortest_float
    elif isinstance(record_type, (RowTypeInfo, TupleTypeInfo)):
        convert = _collected_fields(record_type.field_types)
    elif isinstance(record_type, MapTypeInfo):
        convert = _collected_map(record_type)
    elif isinstance(record_type, _LISTS):
        element = collected_converter(record_type.element_type)
        if element is not None:
            convert = lambda value: value and list(map(element, value))  # noqa: E731
    return convert


def shortest_float(value: Any) -> Any:
    """The float with the fewest digits that is the same 32-bit float."""
    return float(float_text(value)) if isinstance(value, float) and isfinite(value) else value


def _collected_fields(field_types: Sequence[TypeInformation[Any]]) -> Converter | None:
    converters = enumerate(map(collected_converter, field_types))
    changed = [(place, each) for place, each in converters if each is not None]

    def convert(record: Any) -> Any:
        if record is None:
            return None
        values = copy(record) if isinstance(record, Row) else list(record)
        for place, of_field in changed:
            values[place] = of_field(values[place])
        return values if isinstance(values, Row) else tuple(values)

    return convert if changed else None


def _collected_map(record_type: MapTypeInfo[Any, Any]) -> Converter | None:
    key = collected_converter(record_type.key_type_info)
    item = collected_converter(record_type.value_type_info)
    if key is None and item is None:
        return None
    of_key, of_item = key or _as_it_is, item or _as_it_is
    return lambda value: value and {of_key(name): of_item(each) for name, each in value.items()}


def may_be_none(record_type: TypeInformation[Any] | None) -> bool:
    """Whether a whole record of a declared type may be None."""
    while isinstance(record_type, ExternalTypeInfo):
        record_type = record_type.type_info
    if isinstance(record_type, BasicTypeInfo):
        return record_type.basic_type in _NULLABLE
    return isinstance(record_type, (DateTypeInfo, TimeTypeInfo, TimestampTypeInfo))


def _wrong(value: Any, declared: str, expected: str) -> TypeError:
    name = type(value).__name__
    article = "an" if name[0] in "aeiouAEIOU" else "a"
    return TypeError(
        f"{short_repr(value)} is declared as {declared}, and is {article} {name}; "
        f"convert it to {expected}, or declare another type"
    )


def _integer(value: Any, declared: str) -> int:
    """Converts a number to an int with `__int__`, as Cython does."""
    if value.__class__ is int:
        return value
    if isinstance(value, int):
        return int(value)
    if hasattr(type(value), "__int__") or hasattr(type(value), "__index__"):
        return int(value)
    raise _wrong(value, declared, "a number")


def integer_converter(
    declared: str, bits: int, whole_number: Callable[[Any, str], int]
) -> Converter:
    """The converter to an integer of `bits` bits. `whole_number` converts other values to int, or raises an error."""
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1

    def convert(value: Any) -> Any:
        if value.__class__ is int and low <= value <= high:
            return value
        number = whole_number(value, declared)
        if not low <= number <= high:
            raise OverflowError(
                f"{short_repr(value)} does not fit into {declared}, which holds {low} to {high}; "
                "declare a wider type"
            )
        return number

    return convert


def _to_boolean(value: Any) -> Any:
    if value.__class__ is bool:
        return value
    number = _integer(value, "BOOLEAN")
    if not 0 <= number <= _BYTE_HIGH:
        raise OverflowError(f"{short_repr(value)} is not a BOOLEAN: it is not in 0 to {_BYTE_HIGH}")
    return number != 0


def _double(value: Any, declared: str) -> float:
    kind = type(value)
    if hasattr(kind, "__float__") or hasattr(kind, "__index__"):
        return float(value)
    raise _wrong(value, declared, "a number")


def _to_double(value: Any) -> Any:
    return value if value.__class__ is float else _double(value, "DOUBLE")


def _to_float(value: Any) -> Any:
    number = value if value.__class__ is float else _double(value, "FLOAT")
    try:
        single: float = _FLOAT32.unpack(_FLOAT32.pack(number))[0]
    except OverflowError:
        return copysign(inf, number)
    return single


def _to_string(value: Any) -> Any:
    if value.__class__ is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    raise _wrong(value, "STRING", "a str")


def to_decimal(value: Any) -> Decimal:
    """A Decimal with the value of a number. Like Java's BigDecimal, it has no negative zero."""
    number = value if value.__class__ is Decimal else Decimal(str(value))
    return number or number.copy_abs()


def _to_big_integer(value: Any) -> Any:
    return value if value.__class__ is int else _integer(value, "BIG_INT")


def _to_date(value: Any) -> Any:
    if value.__class__ is date:
        return value
    if not isinstance(value, date):
        raise _wrong(value, "SQL_DATE", "a date")
    return date(value.year, value.month, value.day)


def _to_time(value: Any) -> Any:
    if not isinstance(value, (time, datetime)):
        raise _wrong(value, "SQL_TIME", "a time")
    micros = value.microsecond // _MICROS_PER_MILLI * _MICROS_PER_MILLI
    if value.__class__ is time and micros == value.microsecond and value.tzinfo is None:
        return value
    return time(value.hour, value.minute, value.second, micros)


def _to_timestamp(value: Any) -> Any:
    value = _to_datetime(value)
    micros = value.microsecond // _MICROS_PER_MILLI * _MICROS_PER_MILLI
    if value.__class__ is datetime and micros == value.microsecond and value.tzinfo is None:
        return value
    return value.replace(microsecond=micros, tzinfo=None)


def _to_datetime(value: Any) -> Any:
    if isinstance(value, datetime):
        return value
    raise _wrong(value, "SQL_TIMESTAMP", "a datetime")


def _to_instant(value: Any) -> Any:
    if value is None or isinstance(value, Instant):
        return value
    raise _wrong(value, "INSTANT", "an Instant")


_OF_BASIC_TYPE: dict[BasicType, Converter] = {
    BasicType.BYTE: integer_converter("BYTE", 8, _integer),
    BasicType.SHORT: integer_converter("SHORT", 16, _integer),
    BasicType.INT: integer_converter("INT", 32, _integer),
    BasicType.LONG: integer_converter("LONG", 64, _integer),
    BasicType.BIG_INT: _to_big_integer,
    BasicType.BOOLEAN: _to_boolean,
    BasicType.FLOAT: _to_float,
    BasicType.DOUBLE: _to_double,
    BasicType.STRING: _to_string,
    BasicType.CHAR: _to_string,
    BasicType.BIG_DEC: to_decimal,
    BasicType.INSTANT: _to_instant,
}


def _to_row(record_type: RowTypeInfo) -> Converter:
    names = record_type.get_field_names()
    converters = [coder_converter(each) for each in record_type.field_types]

    def convert(record: Any) -> Any:
        is_row = isinstance(record, Row)
        values = record.get_fields_by_names(names) if is_row else record_type.values_of(record)
        if len(values) < len(converters):
            raise IndexError(
                f"{short_repr(record)} has {len(values)} fields; its type has {len(converters)}"
            )
        row = row_of(
            [
                value if value is None or convert_field is None else convert_field(value)
                for convert_field, value in zip(converters, values)  # noqa: B905 - more fields are dropped
            ],
            [*names],
        )
        if is_row:
            row.set_row_kind(record.get_row_kind())
        return row

    return convert


def _to_tuple(record_type: TupleTypeInfo) -> Converter:
    converters = [coder_converter(each) for each in record_type.field_types]
    size = len(converters)

    def convert(record: Any) -> Any:
        if not isinstance(record, tuple):
            raise _wrong(record, "TUPLE", "a tuple")
        if len(record) < size:
            raise IndexError(f"{short_repr(record)} has {len(record)} fields; its type has {size}")
        return tuple(
            [
                value if convert_field is None else convert_field(value)
                for convert_field, value in zip(converters, record)  # noqa: B905 - more fields are dropped
            ]
        )

    return convert


def _to_list(element_type: TypeInformation[Any], declared: str, *, holds_none: bool) -> Converter:
    convert_element = coder_converter(element_type)
    is_bytes = isinstance(element_type, BasicTypeInfo) and element_type.basic_type is BasicType.BYTE

    def convert(value: Any) -> Any:
        if not holds_none and is_bytes:
            if isinstance(value, (bytes, bytearray)):
                return bytes(value)
            raise _wrong(value, f"{declared} of BYTE", "bytes")
        if not isinstance(value, list):
            raise _wrong(value, declared, "a list")
        if convert_element is None:
            return value
        if holds_none:
            return [None if item is None else convert_element(item) for item in value]
        return list(map(convert_element, value))

    return convert


def _to_map(record_type: MapTypeInfo[Any, Any]) -> Converter:
    key = coder_converter(record_type.key_type_info) or _as_it_is
    item = coder_converter(record_type.value_type_info) or _as_it_is

    def convert(value: Any) -> Any:
        if not hasattr(value, "items"):
            raise _wrong(value, "MAP", "a dict")
        return {key(name): None if each is None else item(each) for name, each in value.items()}

    return convert


def _as_it_is(value: Any) -> Any:
    return value


_MAKERS: tuple[tuple[Any, Callable[[Any], Converter | None]], ...] = (
    (ExternalTypeInfo, lambda declared: coder_converter(declared.type_info)),
    (RowTypeInfo, _to_row),
    (TupleTypeInfo, _to_tuple),
    (ListTypeInfo, lambda declared: _to_list(declared.element_type, "LIST", holds_none=False)),
    (
        PrimitiveArrayTypeInfo,
        lambda declared: _to_list(declared.element_type, "PRIMITIVE_ARRAY", holds_none=False),
    ),
    (
        BasicArrayTypeInfo,
        lambda declared: _to_list(declared.element_type, "BASIC_ARRAY", holds_none=True),
    ),
    (
        ObjectArrayTypeInfo,
        lambda declared: _to_list(declared.element_type, "OBJECT_ARRAY", holds_none=True),
    ),
    (MapTypeInfo, _to_map),
    (DateTypeInfo, lambda _: _to_date),
    (TimeTypeInfo, lambda _: _to_time),
    (TimestampTypeInfo, lambda declared: _to_datetime if declared.keeps_zone else _to_timestamp),
    (BasicTypeInfo, lambda declared: _OF_BASIC_TYPE.get(declared.basic_type)),
)

_NULLABLE = {BasicType.STRING, BasicType.BIG_INT, BasicType.BIG_DEC, BasicType.INSTANT}

_CLASSES = {
    BasicType.STRING: "str",
    BasicType.CHAR: "str",
    BasicType.BOOLEAN: "bool",
    BasicType.DOUBLE: "float",
    BasicType.FLOAT: "float",
    BasicType.BIG_INT: "int",
    BasicType.LONG: "int",
    BasicType.INT: "int",
    BasicType.SHORT: "int",
    BasicType.BYTE: "int",
}
_BITS = {BasicType.LONG: 64, BasicType.INT: 32, BasicType.SHORT: 16, BasicType.BYTE: 8}


def fitting(record_type: TypeInformation[Any]) -> Callable[[Any], bool]:
    """A function that says whether a value, other than None, can be converted to a declared type.

    >>> from opchain.runtime.types.types import Types
    >>> fits = fitting(Types.ROW([Types.INT()]))
    >>> fits((1,)), fits(("text",))
    (True, False)
    """
    convert = coder_converter(record_type)
    assert convert is not None
    names = record_type.get_field_names() if isinstance(record_type, RowTypeInfo) else []
    have_form = _fields_test(record_type) if isinstance(record_type, RowTypeInfo) else None

    def fits(value: Any) -> bool:
        if value is None:
            return False
        try:
            if (
                have_form is None
                or value.__class__ is not Row
                or not have_form(value.get_fields_by_names(names))
            ):
                convert(value)
        except Exception:  # noqa: BLE001 - a state that gets the value raises it again
            return False
        return True

    return fits


def fitting_each(record_type: TypeInformation[Any]) -> Callable[[list[Any]], bool]:
    """A function that says whether all elements of a list, none of them None, can be converted to a declared type.

    >>> from opchain.runtime.types.types import Types
    >>> fit = fitting_each(Types.LONG())
    >>> fit([1, 2.5]), fit([1, "text"])
    (True, False)
    """
    fits = fitting(record_type)
    test = form_test(record_type, "value", None, is_exact=True)
    if test is None:
        return lambda values: all(map(fits, values))
    names: dict[str, Any] = {"fits": fits}
    text = (
        "def fit(values):\n    for value in values:\n"
        f"        if not ({test}):\n            return all(map(fits, values))\n    return True"
    )
    exec(text, names)  # noqa: S102 - our own text
    fit: Callable[[list[Any]], bool] = names["fit"]
    return fit


def _fields_test(record_type: RowTypeInfo) -> Callable[[list[Any]], bool] | None:
    """Whether values are enough fields of their declared form; half the time of a conversion."""
    tests = [
        form_test(field_type, f"value[{position}]", None, is_exact=True)
        for position, field_type in enumerate(record_type.field_types)
    ]
    if None in tests:
        return None
    size = f"len(value) >= {len(tests)}"
    text = f"lambda value: {' and '.join(filter(None, [size, *tests]))}"
    found: Callable[[list[Any]], bool] = eval(text)  # noqa: S307 - our own text
    return found


def class_of(record_type: BasicTypeInfo[Any]) -> str | None:
    """The name of the builtin class of converted values of a basic type. None if there is none."""
    return _CLASSES.get(record_type.basic_type)


def form_test(
    record_type: TypeInformation[Any],
    value: str,
    known: Sequence[Any] | type | None,
    *,
    is_exact: bool = False,
) -> str | None:
    """An expression for generated code that is true if a value needs no conversion to its declared type.

    The result is empty if the value is known to need none, and None if there is no short test. Unless the test is exact,
    integers of known class, and integers in tuples, are assumed to fit into a LONG, which saves a comparison per record.

    Args:
        record_type: The declared type.
        value: The name of the value in the generated code.
        known: What the compiler knows of the value: its class, or for a tuple the same for each field.
        is_exact: Whether to test the size of every LONG.
    """
    while isinstance(record_type, ExternalTypeInfo):
        record_type = record_type.type_info
    if coder_converter(record_type) is None:
        return ""
    if isinstance(record_type, BasicTypeInfo):
        return _basic_test(record_type.basic_type, value, known, is_exact)
    if isinstance(record_type, TupleTypeInfo):
        return _tuple_test(record_type, value, known, is_exact)
    return None


def _basic_test(basic_type: BasicType, value: str, known: Any, is_exact: bool) -> str | None:
    name = _CLASSES.get(basic_type)
    if name is None or basic_type is BasicType.FLOAT:
        return None
    is_known = isinstance(known, type) and known.__name__ == name
    tests = [] if is_known else [f"{value}.__class__ is {name}"]
    bits = _BITS.get(basic_type)
    is_field = value.endswith("]")
    is_assumed = (is_known or is_field) and basic_type is BasicType.LONG and not is_exact
    if bits is not None and not is_assumed:
        tests.append(f"{-(1 << bits - 1)} <= {value} <= {(1 << bits - 1) - 1}")
    return " and ".join(tests)


def _tuple_test(record_type: TupleTypeInfo, value: str, known: Any, is_exact: bool) -> str | None:
    size = len(record_type.field_types)
    is_known = isinstance(known, tuple) and len(known) == size
    tests = [] if is_known else [f"{value}.__class__ is tuple and len({value}) == {size}"]
    for position, field_type in enumerate(record_type.field_types):
        of_field = form_test(
            field_type,
            f"{value}[{position}]",
            known[position] if is_known else None,
            is_exact=is_exact,
        )
        if of_field is None:
            return None
        if of_field:
            tests.append(of_field)
    return " and ".join(tests)
