"""Converts the types of records to Arrow types, and columns of values in both directions.

Only this module needs pyarrow, which it imports when it is used.
"""

from __future__ import annotations

import operator
from datetime import date, datetime, timezone
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import UnsupportedFeatureError, imported
from opchain.runtime.formats.json_values import LISTS
from opchain.runtime.formats.row_values import instant_of, moment_of
from opchain.runtime.formats.text_values import INTEGER_BITS, is_bytes
from opchain.runtime.types.container_types import MapTypeInfo
from opchain.runtime.types.record_types import RowTypeInfo
from opchain.runtime.types.row import Row
from opchain.runtime.types.time_types import (
    DEFAULT_PRECISION,
    DEFAULT_SCALE,
    BigDecimalTypeInfo,
    DateTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from opchain.runtime.types.type_information import BasicType, BasicTypeInfo, TypeInformation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def pyarrow(needed_by: str) -> Any:
    """Imports pyarrow.

    Raises:
        MissingLibraryError: pyarrow is not installed.
    """
    return imported("pyarrow", "files", needed_by)


def arrow_type(kind: TypeInformation[Any]) -> Any:  # noqa: PLR0911 - one for each kind of type
    """The Arrow type for values of a type.

    Raises:
        UnsupportedFeatureError: Arrow has no such type.
    """
    pa = pyarrow("Arrow's types")
    if isinstance(kind, BigDecimalTypeInfo):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, BasicTypeInfo):
        return _basic_type(pa, kind.basic_type)
    if is_bytes(kind):
        return pa.binary()
    if isinstance(kind, LISTS):
        return pa.list_(arrow_type(kind.element_type))
    if isinstance(kind, MapTypeInfo):
        return pa.map_(arrow_type(kind.key_type_info), arrow_type(kind.value_type_info))
    if isinstance(kind, RowTypeInfo):
        return pa.struct(list(arrow_schema(kind)))
    if isinstance(kind, TimestampTypeInfo):
        return pa.timestamp("us", "UTC" if kind.keeps_zone else None)
    for of_type, made in (
        (DateTypeInfo, pa.date32()),
        (TimeTypeInfo, pa.time64("us")),
    ):
        if isinstance(kind, of_type):
            return made
    raise UnsupportedFeatureError(
        f"Parquet does not support {kind!r}; declare the types of all fields"
    )


def arrow_schema(row_type: RowTypeInfo) -> Any:
    """The Arrow schema for rows of a type. Every field is nullable."""
    fields = zip(row_type.get_field_names(), row_type.get_field_types(), strict=True)
    return pyarrow("Arrow's types").schema([(name, arrow_type(kind)) for name, kind in fields])


def arrow_array(kind: TypeInformation[Any], column: Sequence[Any]) -> Any:
    """Converts a column of values to an Arrow array.

    Raises:
        ValueError: A value does not have the type.
    """
    pa = pyarrow("writing Arrow")
    convert = _to_arrow(kind)
    made = arrow_type(kind)
    try:
        if convert is not None and not _AS_THEY_ARE.get(convert, _NONE).issuperset(
            map(type, column)
        ):
            column = [None if value is None else convert(value) for value in column]
        return pa.array(column, made)
    except (
        pa.ArrowInvalid,
        pa.ArrowTypeError,
        OverflowError,
        TypeError,
        AttributeError,
    ) as error:
        raise ValueError(f"a value is not of type {kind!r}: {error}") from error


def python_values(array: Any, kind: TypeInformation[Any] | None, *, in_utc: bool) -> list[Any]:
    """The values of an Arrow array as a list.

    Args:
        array: An Array or a ChunkedArray.
        kind: The declared type. None uses the type in the file.
        in_utc: The time zone for an instant that is declared as a datetime without zone: UTC if true, else the
            machine's.
    """
    convert = None if kind is None else _from_arrow(kind, in_utc=in_utc)
    values = _plain_values(array)
    if convert is None:
        return values
    return [None if value is None else convert(value) for value in values]


def _basic_type(pa: Any, basic: BasicType) -> Any:
    return {
        BasicType.STRING: pa.string(),
        BasicType.CHAR: pa.string(),
        BasicType.BOOLEAN: pa.bool_(),
        BasicType.BYTE: pa.int8(),
        BasicType.SHORT: pa.int16(),
        BasicType.INT: pa.int32(),
        BasicType.LONG: pa.int64(),
        BasicType.FLOAT: pa.float32(),
        BasicType.DOUBLE: pa.float64(),
        BasicType.BIG_INT: pa.decimal128(DEFAULT_PRECISION, 0),
        BasicType.BIG_DEC: pa.decimal128(DEFAULT_PRECISION, DEFAULT_SCALE),
        BasicType.INSTANT: pa.timestamp("us", "UTC"),
    }[basic]


def _plain_values(array: Any) -> list[Any]:
    """The values of an Arrow array.

    Uses numpy where numpy creates the Python objects in C: `to_pylist` creates each in Python.

    For a million values: ints take 0.02 s instead of 0.4 s, strings 0.03 s instead of 0.5 s.
    """
    pa = pyarrow("reading Arrow")
    types, array = pa.types, in_micros(array)
    of = array.type
    is_string = types.is_string(of) or types.is_large_string(of)
    is_number = types.is_integer(of) or types.is_floating(of)
    is_time = types.is_date32(of) or (types.is_timestamp(of) and of.tz is None)
    if not (is_string or is_number or is_time) or not _has_numpy():
        found: list[Any] = array.to_pylist()
        return found
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if is_string or not array.null_count:
        return _in_range(array.to_numpy(zero_copy_only=False).tolist(), of, is_time=is_time)
    # numpy's numbers have no None, so nulls are filled with a placeholder, and replaced below.
    filled = array.fill_null(pa.scalar(0, pa.int64()).cast(_stand_in(pa, of)).cast(of))
    values: list[Any] = filled.to_numpy(zero_copy_only=False).tolist()
    for index in imported("pyarrow.compute", "files", "reading").indices_nonzero(array.is_null()):
        values[index.as_py()] = None
    return _in_range(values, of, is_time=is_time)


def _in_range(values: list[Any], of: Any, *, is_time: bool) -> list[Any]:
    """The values that numpy made. It gives ints for dates that Python does not have."""
    if is_time and int in set(map(type, values)):
        far = next(value for value in values if value.__class__ is int)
        raise ValueError(
            f"{far} as {of} is outside of the years 1 to 9999, which Python's dates have; declare the column as a number"
        )
    return values


def in_micros(array: Any) -> Any:
    """The array with its timestamps and times in microseconds, also within nested types. Nanoseconds are truncated."""
    pa = pyarrow("reading Arrow")
    wanted = _type_in_micros(pa, array.type)
    return array if wanted == array.type else array.cast(wanted, safe=False)


def _type_in_micros(pa: Any, of: Any) -> Any:  # noqa: PLR0911 - one for each kind of type
    types = pa.types
    if types.is_timestamp(of):
        return pa.timestamp("us", of.tz)
    if types.is_time64(of):
        return pa.time64("us")
    if types.is_large_list(of):
        return pa.large_list(_type_in_micros(pa, of.value_type))
    if types.is_list(of):
        return pa.list_(of.value_field.with_type(_type_in_micros(pa, of.value_type)))
    if types.is_map(of):
        return pa.map_(_type_in_micros(pa, of.key_type), _type_in_micros(pa, of.item_type))
    if types.is_struct(of):
        return pa.struct([field.with_type(_type_in_micros(pa, field.type)) for field in of])
    return of


def _stand_in(pa: Any, of: Any) -> Any:
    """An intermediate type that allows casting a number to a time type."""
    return pa.int32() if pa.types.is_date32(of) else pa.int64()


def _has_numpy() -> bool:
    """Whether numpy is installed: pyarrow also works without it."""
    try:
        import numpy  # noqa: F401, ICN001, PLC0415 - pyarrow uses it
    except ModuleNotFoundError:
        return False
    return True


def _from_arrow(  # noqa: PLR0911 - one for each kind of type
    kind: TypeInformation[Any], *, in_utc: bool
) -> Callable[[Any], Any] | None:
    """The converter of Arrow's values to the type. None if they need no conversion."""
    if isinstance(kind, BasicTypeInfo):
        return _OF_BASIC.get(kind.basic_type)
    if isinstance(kind, TimestampTypeInfo):
        return _with_zone if kind.keeps_zone else partial(_without_zone, in_utc=in_utc)
    if isinstance(kind, MapTypeInfo):
        return _map_from_arrow(kind, in_utc=in_utc)
    if isinstance(kind, RowTypeInfo):
        return _row_from_arrow(kind, in_utc=in_utc)
    if isinstance(kind, LISTS) and not is_bytes(kind):
        element = _from_arrow(kind.element_type, in_utc=in_utc)
        if element is None:
            return None
        return lambda values: [None if value is None else element(value) for value in values]
    return None


_OF_BASIC: dict[BasicType, Callable[[Any], Any]] = {
    BasicType.INSTANT: instant_of,
    BasicType.BIG_INT: int,
}


def _with_zone(value: datetime) -> datetime:
    """A datetime in UTC. A datetime without zone is in UTC."""
    return value.replace(tzinfo=timezone.utc) if value.tzinfo is None else value


def _without_zone(value: datetime, *, in_utc: bool) -> datetime:
    if value.tzinfo is None:
        return value
    return value.astimezone(timezone.utc if in_utc else None).replace(tzinfo=None)


def _map_from_arrow(kind: MapTypeInfo[Any, Any], *, in_utc: bool) -> Callable[[Any], Any] | None:
    key = _from_arrow(kind.key_type_info, in_utc=in_utc) or _itself
    item = _from_arrow(kind.value_type_info, in_utc=in_utc) or _itself
    return lambda pairs: {
        key(name): None if value is None else item(value) for name, value in pairs
    }


def _row_from_arrow(kind: RowTypeInfo, *, in_utc: bool) -> Callable[[Any], Any]:
    names = kind.get_field_names()
    fields = [_from_arrow(field, in_utc=in_utc) or _itself for field in kind.get_field_types()]

    def row_of(struct: dict[str, Any]) -> Row:
        values = map(struct.get, names)
        row = Row(
            *(
                None if value is None else field(value)
                for field, value in zip(fields, values, strict=True)
            )
        )
        row.set_field_names(names)
        return row

    return row_of


def _to_arrow(  # noqa: PLR0911 - one for each kind of type
    kind: TypeInformation[Any],
) -> Callable[[Any], Any] | None:
    """The converter of a value for Arrow. None if Arrow accepts the value itself.

    The converter raises a TypeError if Arrow would truncate a value: the fraction of a number, or the time of a date.
    """
    if isinstance(kind, BasicTypeInfo) and kind.basic_type is BasicType.INSTANT:
        return lambda value: value if isinstance(value, datetime) else moment_of(value)
    if isinstance(kind, BasicTypeInfo) and kind.basic_type in INTEGER_BITS:
        return operator.index
    if isinstance(kind, BasicTypeInfo) and kind.basic_type is BasicType.BIG_DEC:
        of_scale = kind if isinstance(kind, BigDecimalTypeInfo) else _LEGACY_DECIMAL
        return partial(_decimal, of_scale)
    if isinstance(kind, DateTypeInfo):
        return _day
    if is_bytes(kind):
        return _bytes
    if isinstance(kind, LISTS):
        element = _to_arrow(kind.element_type)
        if element is None:
            return list
        return lambda values: [None if value is None else element(value) for value in values]
    if isinstance(kind, MapTypeInfo):
        key = _to_arrow(kind.key_type_info) or _itself
        item = _to_arrow(kind.value_type_info) or _itself
        return lambda values: [
            (key(name), None if value is None else item(value)) for name, value in values.items()
        ]
    if isinstance(kind, RowTypeInfo):
        return _row_to_arrow(kind)
    return None


_LEGACY_DECIMAL = BigDecimalTypeInfo(BasicType.BIG_DEC)


def _decimal(kind: BigDecimalTypeInfo, value: Any) -> Any:
    """The decimal, without digits after the scale, which Arrow refuses."""
    is_rounded = not isinstance(value, Decimal) or value == value.to_integral_value()
    return value if is_rounded else kind.rounded(value)


def _day(value: Any) -> Any:
    if isinstance(value, datetime):
        raise TypeError(f"{value!r} has a time of day")
    return value


def _bytes(value: Any) -> bytes:
    if isinstance(value, int):  # bytes(5) would be five zero bytes
        raise TypeError(f"{value!r} is a number")
    return bytes(value)


_NONE: frozenset[type] = frozenset()
_AS_THEY_ARE: dict[Callable[[Any], Any], frozenset[type]] = {
    operator.index: frozenset({int, type(None)}),
    _day: frozenset({date, type(None)}),
}
"""Value types that need no conversion: a column of them is not converted value by value."""


def _row_to_arrow(kind: RowTypeInfo) -> Callable[[Any], Any]:
    names = kind.get_field_names()
    fields = [_to_arrow(field) or _itself for field in kind.get_field_types()]
    return lambda row: {
        name: None if value is None else field(value)
        for name, field, value in zip(names, fields, kind.values_of(row), strict=True)
    }


def _itself(value: Any) -> Any:
    return value
