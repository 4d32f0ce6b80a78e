"""Converts single values of a declared type to text and back, for CSV fields and JSON strings.

As in Flink, dates and times are ISO 8601, and bytes are base64.
"""

from __future__ import annotations

import base64
import re
from datetime import date, datetime, time
from decimal import Decimal
from operator import index
from typing import TYPE_CHECKING, Any

from opchain.runtime.formats.row_values import instant_of, moment_of
from opchain.runtime.types.collection_values import to_float32
from opchain.runtime.types.container_types import PrimitiveArrayTypeInfo
from opchain.runtime.types.record_types import PickledBytesTypeInfo
from opchain.runtime.types.time_types import DateTypeInfo, TimestampTypeInfo, TimeTypeInfo
from opchain.runtime.types.type_information import BasicType, BasicTypeInfo, TypeInformation

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.types.type_variables import T

INTEGER_BITS = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}
_FRACTION = re.compile(r"\.(\d+)")
_TRUTHS = {"true": True, "false": False}


def text_reader(kind: TypeInformation[Any]) -> Callable[[str], Any] | None:
    """The function that converts text to a value, or raises ValueError. None if the type has no text form."""
    if isinstance(kind, BasicTypeInfo):
        return _READERS[kind.basic_type]
    if isinstance(kind, DateTypeInfo):
        return lambda text: date.fromisoformat(text.strip())
    if isinstance(kind, TimeTypeInfo):
        return lambda text: _in_time(time.fromisoformat, text)
    if isinstance(kind, TimestampTypeInfo):
        return _moment
    if is_bytes(kind):
        return lambda text: base64.b64decode(text, validate=True)
    return str if isinstance(kind, PickledBytesTypeInfo) else None


def text_writer(kind: TypeInformation[Any]) -> Callable[[Any], str] | None:
    """The function that converts a value to text. None if the type has no text form."""
    if isinstance(kind, BasicTypeInfo):
        return _WRITERS.get(kind.basic_type, str)
    if isinstance(kind, (DateTypeInfo, TimeTypeInfo)):
        return lambda value: str(value.isoformat())
    if isinstance(kind, TimestampTypeInfo):
        return lambda value: str(value.isoformat(sep=" "))
    if is_bytes(kind):
        return lambda value: base64.b64encode(bytes(value)).decode()
    return str if isinstance(kind, PickledBytesTypeInfo) else None


def is_bytes(kind: TypeInformation[Any]) -> bool:
    """Whether values of the type are bytes."""
    return (
        isinstance(kind, PrimitiveArrayTypeInfo)
        and isinstance(kind.element_type, BasicTypeInfo)
        and kind.element_type.basic_type is BasicType.BYTE
    )


def checked_range(value: int, bits: int) -> int:
    """Returns the number if it fits into the bits.

    Raises:
        ValueError: It does not fit.
    """
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError(f"{value} has more than {bits} bits")
    return value


def _integer(text: str) -> int:
    if "_" in text:  # a number only in Python
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def _integer_of(bits: int) -> Callable[[str], int]:
    return lambda text: checked_range(_integer(text), bits)


def _float(text: str) -> float:
    if "_" in text:
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def _decimal(text: str) -> Decimal:
    try:
        value = Decimal(text.strip())
    except ArithmeticError as error:
        raise ValueError(f"{text!r} is not a decimal") from error
    if "_" in text or not value.is_finite():
        raise ValueError(f"{text!r} is not a decimal")
    return value


def _integer_text(value: Any) -> str:
    """The digits of an int, or of a whole number of another class. Other text would not be a JSON number."""
    return int.__repr__(index(value))


def _decimal_text(value: Any) -> str:
    """The text of a number with all its digits, a float as in Python. `format()` alone writes six decimals."""
    exact = value if isinstance(value, Decimal) else Decimal(str(value))
    if not exact.is_finite():
        raise ValueError(f"{value!r} is not a decimal")
    return format(exact, "f")


def _boolean(text: str) -> bool:
    value = _TRUTHS.get(text.strip().lower())
    if value is None:
        raise ValueError(f"{text!r} is neither true nor false")
    return value


def _moment(text: str) -> datetime:
    return _in_time(datetime.fromisoformat, text)


def _in_time(parse: Callable[[str], T], text: str) -> T:
    """Parses ISO text of a date or time, to the microsecond.

    Java writes fractions of 1 to 9 digits. Python 3.10 only parses 3 or 6 digits; later versions parse any number.
    """
    text = text.strip().removesuffix("Z")
    try:
        return parse(text)
    except ValueError:
        six_digits = _FRACTION.sub(lambda found: f".{found[1]:0<6.6}", text)
        if six_digits == text:
            raise
        return parse(six_digits)


_READERS: dict[BasicType, Callable[[str], Any]] = {
    **{kind: _integer_of(bits) for kind, bits in INTEGER_BITS.items()},
    BasicType.BIG_INT: _integer,
    BasicType.FLOAT: lambda text: to_float32(_float(text)),
    BasicType.DOUBLE: _float,
    BasicType.BIG_DEC: _decimal,
    BasicType.BOOLEAN: _boolean,
    BasicType.STRING: str,
    BasicType.CHAR: str,
    BasicType.INSTANT: lambda text: instant_of(_moment(text)),
}

_WRITERS: dict[BasicType, Callable[[Any], str]] = {
    BasicType.BOOLEAN: lambda value: "true" if value else "false",
    **dict.fromkeys((*INTEGER_BITS, BasicType.BIG_INT), _integer_text),
    BasicType.BIG_DEC: _decimal_text,
    BasicType.INSTANT: lambda value: f"{moment_of(value).replace(tzinfo=None).isoformat()}Z",
}
