"""SQL's scalar functions on Python values, as in Flink's Table API. None is NULL.

compiler/table/expressions.py compiles a SQL expression to the text of a Python expression over `row`. Tasks receive the
text and compile it once. The expression can only use names of this module.
"""

from __future__ import annotations

import math
import operator
import re
from datetime import date, datetime, time, timedelta, timezone
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from opchain.runtime.configuration.text import to_text
from opchain.runtime.functions.date_patterns import date_pattern
from opchain.runtime.functions.process_functions import ProcessFunction
from opchain.runtime.functions.scalar_functions import OTHERS, PARTS, STRICT, moved
from opchain.runtime.time import MIN_LONG_VALUE, Instant
from opchain.runtime.types.collection_values import to_float32
from opchain.runtime.types.printed_form import float_text
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - SQL's TIMESTAMP has no zone
_MILLISECOND = timedelta(milliseconds=1)
_EXACT = Context(prec=100, rounding=ROUND_HALF_UP)
"""Enough digits for the product of two DECIMALs of 38 digits."""


class RowExpression:
    """A function of a row, which is sent as the text of a Python expression.

    >>> RowExpression("add(row[0], 1)", "int")(Row(41))
    42

    Args:
        text: The Python expression. It comes from the program, never from data.
        shown: The SQL text, for plans and errors.
    """

    def __init__(self, text: str, shown: str) -> None:
        self.text = text
        self.shown = shown
        self._function: Callable[[Any], Any] = eval(  # noqa: S307 - compiled from the program's SQL
            compile(f"lambda row: {text}", f"<{shown}>", "eval"), dict(FUNCTIONS)
        )

    def __call__(self, row: Any) -> Any:
        """The value of the expression."""
        return self._function(row)

    def __repr__(self) -> str:
        return self.shown

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.text, self.shown)


class RowProjection(RowExpression):
    """Creates a Row from an expression that returns a tuple.

    >>> RowProjection("(row[0], add(row[0], 1))", "a, a + 1", ["a", "b"])(Row(1))
    Row(a=1, b=2)
    """

    def __init__(self, text: str, shown: str, names: Sequence[str]) -> None:
        super().__init__(text, shown)
        self.names = list(names)
        self._row = Row(*names)

    def __call__(self, row: Any) -> Row:
        """The resulting Row."""
        return self._row(*self._function(row))

    def __reduce__(self) -> tuple[Any, ...]:
        return RowProjection, (self.text, self.shown, self.names)


class RowPredicate(RowExpression):
    """The condition of WHERE: a row passes if it is TRUE, not if it is FALSE or NULL."""

    def __call__(self, row: Any) -> bool:
        """Whether the row passes."""
        return self._function(row) is True


class EventTime(RowExpression):
    """The milliseconds of a TIMESTAMP expression: the timestamp assigner of WATERMARK FOR."""

    def __call__(self, value: Any, record_timestamp: int = 0) -> int:  # noqa: ARG002 - the contract
        """The event time of a row.

        Raises:
            ValueError: The column is NULL.
        """
        found = self._function(value)
        if found is None:
            raise ValueError(
                f"the event time {self.shown} of {value} is NULL; it must have a value"
            )
        return epoch_ms(found)


class WithTimestamp(ProcessFunction):
    """Appends the timestamp of a record to its fields, as a TIMESTAMP or TIMESTAMP_LTZ."""

    def __init__(self, of: str) -> None:
        self.in_utc = of == "TIMESTAMP_LTZ"

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        """The fields and the timestamp.

        Raises:
            ValueError: The record has no timestamp.
        """
        timestamp = ctx.timestamp()
        if timestamp is None or timestamp == MIN_LONG_VALUE:
            raise ValueError(
                f"{value} has no timestamp; call assign_timestamps_and_watermarks() on the stream before it is a table"
            )
        yield (*value, from_epoch_ms(timestamp, in_utc=self.in_utc))


def epoch_ms(value: datetime) -> int:
    """Milliseconds since 1970 of a TIMESTAMP, read as UTC, or of a TIMESTAMP_LTZ."""
    if value.tzinfo is not None:
        value = value.astimezone(timezone.utc).replace(tzinfo=None)
    return (value - _EPOCH) // _MILLISECOND


def from_epoch_ms(value: int, *, in_utc: bool = False) -> datetime:
    """The datetime of a number of milliseconds since 1970."""
    found = _EPOCH + value * _MILLISECOND
    return found.replace(tzinfo=timezone.utc) if in_utc else found


def _of_instant(value: Instant | datetime) -> datetime:
    """The datetime of an instant, which a TIMESTAMP_LTZ is."""
    if not isinstance(value, Instant):
        return value
    since = timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    return (_EPOCH + since).replace(tzinfo=timezone.utc)


def _strict(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function return NULL if an argument is NULL."""

    def call(*arguments: Any) -> Any:
        return None if None in arguments else function(*arguments)

    return call


def _same(a: Any, b: Any) -> tuple[Any, Any]:
    """Converts two numbers to the same class. As in Flink, DECIMAL with DOUBLE becomes DOUBLE."""
    if isinstance(a, float) and isinstance(b, Decimal):
        return a, float(b)
    if isinstance(b, float) and isinstance(a, Decimal):
        return float(a), b
    return a, b


def _arithmetic(
    apply: Callable[[Any, Any], Any], exact: Callable[[Any, Any], Any]
) -> Callable[[Any, Any], Any]:
    def call(a: Any, b: Any) -> Any:
        a, b = _same(a, b)
        return (exact if isinstance(a, Decimal) or isinstance(b, Decimal) else apply)(a, b)

    return _strict(call)


def _comparison(apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return _strict(apply)


def _divide(a: Any, b: Any) -> Any:
    a, b = _same(a, b)
    if b == 0 and not isinstance(a, float) and not isinstance(b, float):
        raise ZeroDivisionError(f"{a} / {b}: division by zero; use NULLIF for the divisor")
    if isinstance(a, int) and isinstance(b, int):
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
        if b == 0:
            return math.nan if a == 0 or a != a else math.copysign(math.inf, a)  # noqa: PLR0124 - NaN
        return a / b
    return _EXACT.divide(a, b)


def _modulo(a: Any, b: Any) -> Any:
    a, b = _same(a, b)
    if isinstance(a, float):
        return math.fmod(a, b) if b else math.nan
    if b == 0:
        raise ZeroDivisionError(f"MOD({a}, {b}): division by zero; use NULLIF for the divisor")
    rest = abs(a) % abs(b)
    return rest if a >= 0 else -rest


def _and(left: Any, right: Callable[[], Any]) -> Any:
    if left is False:
        return False
    other = right()
    return None if left is None and other is not False else other


def _or(left: Any, right: Callable[[], Any]) -> Any:
    if left is True:
        return True
    other = right()
    return None if left is None and other is not True else other


def _in(value: Any, *choices: Any) -> Any:
    if value is None:
        return None
    if value in choices:
        return True
    return None if None in choices else False


@lru_cache(maxsize=256)
def _pattern(like: str, escape: str | None) -> re.Pattern[str]:
    parts, literal = [], False
    for character in like:
        if literal or character not in ("%", "_", escape):
            parts.append(re.escape(character))
            literal = False
        elif character == escape:
            literal = True
        else:
            parts.append(".*" if character == "%" else ".")
    return re.compile("".join(parts), re.DOTALL)


def _like(value: str, pattern: str, escape: str | None = None) -> bool:
    return _pattern(pattern, escape).fullmatch(value) is not None


def _substring(text: str, start: int, length: int | None = None) -> str | None:
    """A negative start counts from the end. As in Flink, a start before the text gives an empty text."""
    if length is not None and length < 0:
        return None
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    if first < 0:
        return ""
    return text[first:] if length is None else text[first : first + length]


def _round(value: Any, digits: int = 0) -> Any:
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or exponent >= -digits:  # NaN and infinity have no exponent
        return value + 0.0 if isinstance(value, float) else value
    rounded = number.quantize(Decimal(1).scaleb(-digits), context=_EXACT)
    if isinstance(value, Decimal):
        return _EXACT.plus(rounded.quantize(Decimal(1).scaleb(min(0, -digits)), context=_EXACT))
    return type(value)(rounded) + 0


def _integral(rounded: Callable[[Any], int], value: Any) -> Any:
    is_special = isinstance(value, float) and not math.isfinite(value)
    return value if is_special else type(value)(rounded(value))


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return to_text(value)
    if isinstance(value, datetime):
        return timestamp_text(value.replace(tzinfo=None))
    if isinstance(value, time):
        return str(value).rstrip("0") if value.microsecond else str(value)
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _timestamp_as_text(value: datetime, digits: int) -> str:
    """A TIMESTAMP as SQL text, with a number of fractional digits."""
    fraction = f".{value.microsecond:06d}000"[: digits + 1] if digits else ""
    return f"{value:%Y-%m-%d %H:%M:%S}{fraction}"


def timestamp_text(value: datetime) -> str:
    """A timestamp as SQL text: `2024-01-02 03:04:05.678`. The fraction has 0, 3 or 6 digits."""
    text = f"{value:%Y-%m-%d %H:%M:%S}"
    if value.microsecond:
        text += f".{value.microsecond:06d}"
        text = text.removesuffix("000")
    return text


def _format_timestamp(value: datetime, separator: str, is_instant: bool) -> str:
    """A timestamp as JSON and CSV have it: without zeros at the end of the fraction. An instant ends with Z."""
    text = timestamp_text(value.replace(tzinfo=None)).replace(" ", separator)
    text = text.rstrip("0") if value.microsecond else text
    return f"{text}Z" if is_instant else text


_ONE_DIGIT = re.compile(r"(?<=[-: ])(?=\d(?!\d))")


def timestamp_of(text: str) -> datetime:
    """Parses a TIMESTAMP without time zone, in SQL or ISO format.

    Raises:
        ValueError: The text has neither format.
    """
    head, point, fraction = text.strip().rstrip("Z").partition(".")
    # Without a time zone, like TIMESTAMP. Flink also reads numbers of one digit.
    found = datetime.fromisoformat(_ONE_DIGIT.sub("0", head))
    return found.replace(microsecond=int(fraction[:6].ljust(6, "0"))) if point else found


_BOOLEANS = {
    **dict.fromkeys(("TRUE", "T", "YES", "Y", "1"), True),
    **dict.fromkeys(("FALSE", "F", "NO", "N", "0"), False),
}


def _as_boolean(value: Any) -> bool:
    if isinstance(value, str):
        found = _BOOLEANS.get(value.strip().upper())
        if found is None:
            raise ValueError(f"CAST to BOOLEAN: {value!r} is neither 'true' nor 'false'")
        return found
    return bool(value)


_WHOLE = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)\s*", re.ASCII)
"""A number without exponent. A CAST to an integer drops its fraction."""
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)


def _as_integer(value: Any, bits: int) -> int:
    """Converts to an integer like Java.

    Large integers lose their high bits. Floats are first clamped to the range of INT or BIGINT.
    """
    half = 1 << (bits - 1)
    if isinstance(value, str):
        number = int(_number_of(value, _WHOLE))
        if not -half <= number < half:
            raise ValueError(f"CAST: {value!r} does not fit into {bits} bits")
        return number
    if isinstance(value, float):
        limit = 1 << (max(bits, 32) - 1)
        number = 0 if math.isnan(value) else int(max(-limit, min(value, limit)))
        value = min(number, limit - 1)
    return _wrapped(int(value), bits)


def _number_of(text: str, form: re.Pattern[str] = _NUMBER) -> Decimal:
    if form.fullmatch(text) is None:
        raise ValueError(f"CAST: {text!r} is not a number; TRY_CAST gives NULL instead")
    return Decimal(text.strip())


def _as_decimal(value: Any, precision: int, scale: int) -> Decimal | None:
    """Returns NULL for a number with too many digits."""
    number = _number_of(repr(value) if isinstance(value, float) else str(value))
    if number.adjusted() >= precision - scale and number:
        return None
    number = number.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
    return number if number.adjusted() < precision - scale else None


def _as_char(text: str, length: int) -> str:
    return text[:length].ljust(length)


def _cut(value: Any, digits: int) -> Any:
    """Truncates a time to a number of fractional digits."""
    unit = 10 ** max(0, 6 - digits)
    return value.replace(microsecond=value.microsecond // unit * unit)


def _as_timestamp(value: Any) -> datetime:
    if isinstance(value, str):
        return timestamp_of(value)
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)  # noqa: DTZ001


def _as_instant(value: Any) -> datetime:
    found = _as_timestamp(value)
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


_DATE = re.compile(r"\s*(\d{1,4})-(\d{1,2})-(\d{1,2})(?!\d)")


def _as_date(value: Any) -> date:
    if isinstance(value, str):
        found = _DATE.match(value)
        if found is None:
            raise ValueError(f"CAST to DATE: {value!r} does not have the form yyyy-mm-dd")
        return date(*map(int, found.groups()))
    return value.date() if isinstance(value, datetime) else value


def _as_time(value: Any) -> time:
    if isinstance(value, str):
        return time.fromisoformat(value.strip())
    return value.time() if isinstance(value, datetime) else value


def _wrapped(value: int, bits: int) -> int:
    """The low bits of an integer, as in a Java overflow."""
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half if isinstance(value, int) else value


def _not_null(value: Any, column: str) -> Any:
    if value is None:
        raise ValueError(
            f"column '{column}' is declared NOT NULL, and its value is NULL; filter such rows out, or COALESCE the value"
        )
    return value


def _attempted(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except (ValueError, ArithmeticError, OverflowError):
        return None


_TIMESTAMP_PATTERN = "yyyy-MM-dd HH:mm:ss"


def _to_timestamp(text: str, pattern: str | None = None) -> datetime | None:
    try:
        if pattern is None:
            return timestamp_of(text)
        return date_pattern(pattern).parse(text)
    except ValueError:
        return None


def _to_timestamp_ltz(
    value: int | str, precision: int | str = 3, zone: str = "UTC"
) -> datetime | None:
    """The instant of a number and its precision, or of a text, its pattern and its time zone."""
    if isinstance(value, str):
        found = _to_timestamp(value, precision if isinstance(precision, str) else None)
        at = None if found is None else found.replace(tzinfo=ZoneInfo(zone))
        return None if at is None else at.astimezone(timezone.utc)
    try:
        return from_epoch_ms(value * 1000 if precision == 0 else value, in_utc=True)
    except OverflowError:
        return None


def _to_date(text: str, pattern: str | None = None) -> date | None:
    if pattern is None:
        try:
            return _as_date(text)
        except ValueError:
            return None
    found = _to_timestamp(text, pattern)
    return None if found is None else _as_date(found)


def _from_unixtime(seconds: int, pattern: str = _TIMESTAMP_PATTERN) -> str:
    return date_pattern(pattern).format(from_epoch_ms(seconds * 1000))


def _unix_timestamp(text: str, pattern: str = _TIMESTAMP_PATTERN) -> int:
    """As in Flink, returns the smallest BIGINT for a text that does not match the pattern."""
    found = _to_timestamp(
        text.partition(".")[0] if pattern == _TIMESTAMP_PATTERN else text, pattern
    )
    return -(2**63) if found is None else epoch_ms(found) // 1000


def _split_index(text: str, separator: str, index: int) -> str | None:
    parts = text.split(separator) if text else []
    return parts[index] if 0 <= index < len(parts) else None


def _date_format(value: Any, pattern: str) -> str | None:
    found = _to_timestamp(value) if isinstance(value, str) else _as_timestamp(value)
    return None if found is None else date_pattern(pattern).format(found)


def _item(container: Any, key: Any) -> Any:
    """Indexes an array, counting from 1 as in SQL, or a map. A missing key of a map returns NULL."""
    if isinstance(container, dict):
        return container.get(key)
    return container[key - 1] if 0 < key <= len(container) else None


_PARTS: dict[str, Callable[[Any], int]] = {
    "YEAR": operator.attrgetter("year"),
    "MONTH": operator.attrgetter("month"),
    "DAY": operator.attrgetter("day"),
    "HOUR": operator.attrgetter("hour"),
    "MINUTE": operator.attrgetter("minute"),
    "SECOND": operator.attrgetter("second"),
    "QUARTER": lambda value: (value.month + 2) // 3,
    **PARTS,
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": _arithmetic(operator.add, _EXACT.add),
    "subtract": _arithmetic(operator.sub, _EXACT.subtract),
    "multiply": _arithmetic(operator.mul, _EXACT.multiply),
    "divide": _strict(_divide),
    "modulo": _strict(_modulo),
    "moved": _strict(moved),
    "negate": _strict(lambda a: _EXACT.minus(a) if isinstance(a, Decimal) else -a),
    "wrapped": _strict(_wrapped),
    "equal": _comparison(operator.eq),
    "unequal": _comparison(operator.ne),
    "less": _comparison(operator.lt),
    "at_most": _comparison(operator.le),
    "greater": _comparison(operator.gt),
    "at_least": _comparison(operator.ge),
    "and_": _and,
    "or_": _or,
    "not_": _strict(operator.not_),
    "in_": _in,
    "like": _strict(_like),
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "nullif": lambda a, b: None if a is not None and a == b else a,
    "upper": _strict(str.upper),
    "lower": _strict(str.lower),
    "trim": _strict(lambda text, of=" ": text.strip(of)),
    "trim_start": _strict(lambda text, of=" ": text.lstrip(of)),
    "trim_end": _strict(lambda text, of=" ": text.rstrip(of)),
    "length": _strict(len),
    "concat": _strict(lambda *values: "".join(map(_as_text, values))),
    "substring": _strict(_substring),
    "replace": _strict(str.replace),
    "abs_": _strict(lambda a: _EXACT.abs(a) if isinstance(a, Decimal) else abs(a)),
    "round_": _strict(_round),
    "floor_": _strict(partial(_integral, math.floor)),
    "ceil_": _strict(partial(_integral, math.ceil)),
    "item": _strict(_item),
    "field": _strict(lambda row, name: row[name]),
    "part": _strict(lambda name, value: _PARTS[name](value)),
    "to_timestamp": _strict(_to_timestamp),
    "to_timestamp_ltz": _strict(_to_timestamp_ltz),
    "to_date": _strict(_to_date),
    "date_format": _strict(_date_format),
    "from_unixtime": _strict(_from_unixtime),
    "unix_timestamp": _strict(_unix_timestamp),
    "split_index": _strict(_split_index),
    "left": _strict(lambda text, count: text[: max(0, count)]),
    "right": _strict(lambda text, count: text[-count:] if count > 0 else ""),
    "milliseconds": lambda number: timedelta(milliseconds=number),
    "attempted": _attempted,
    "not_null": _not_null,
    "as_text": _strict(_as_text),
    "text_of_float": _strict(float_text),
    "as_char": _strict(_as_char),
    "format_timestamp": _strict(_format_timestamp),
    "timestamp_as_text": _strict(_timestamp_as_text),
    "cut": _strict(_cut),
    "as_boolean": _strict(_as_boolean),
    "as_integer": _strict(_as_integer),
    "as_double": _strict(float),
    "as_float": _strict(lambda value: to_float32(float(value))),
    "as_decimal": _strict(_as_decimal),
    "as_timestamp": _strict(_as_timestamp),
    "as_instant": _strict(_as_instant),
    "as_bytes": _strict(lambda value: value.encode() if isinstance(value, str) else bytes(value)),
    "text_of_bytes": _strict(lambda value: bytes(value).decode(errors="replace")),
    "as_date": _strict(_as_date),
    "as_time": _strict(_as_time),
    "of_instant": _strict(_of_instant),
    "from_epoch_ms": _strict(from_epoch_ms),
    "from_epoch_ms_ltz": _strict(partial(from_epoch_ms, in_utc=True)),
    "decimal": Decimal,
    "Row": Row,
    "row_of": lambda names, *values: Row(*names)(*values),
    "as_row": _strict(lambda row, names, fields: Row(*names)(*fields(row))),
    "as_array": _strict(lambda values, element: list(map(element, values))),
    "as_map": _strict(lambda entries, key, value: {key(k): value(v) for k, v in entries.items()}),
    **{name: _strict(function) for name, function in STRICT.items()},
    **OTHERS,
}
"""The functions that an expression may call."""
