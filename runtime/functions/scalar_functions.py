"""SQL's scalar functions of texts, numbers, JSON and the calendar, as in Flink's Table API.

sql.py has the operators, casts and the most used functions, and makes the functions here return NULL for NULL.
"""

from __future__ import annotations

import base64
import calendar
import hashlib
import json
import math
import random
import re
import uuid
from datetime import date, datetime, time, timedelta, timezone
from decimal import ROUND_DOWN, Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_MONTHS_OF = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_SECONDS_OF = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86_400, "WEEK": 604_800}
UNITS = frozenset({*_MONTHS_OF, *_SECONDS_OF})
"""The units of TIMESTAMPADD, TIMESTAMPDIFF, and of FLOOR and CEIL of times."""


class Months:
    """A number of months, which can be added to a date and subtracted from it. The day stays within the month."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __radd__(self, value: Any) -> Any:
        year, month = divmod(value.year * 12 + value.month - 1 + self.count, 12)
        day = min(value.day, calendar.monthrange(year, month + 1)[1])
        return value.replace(year=year, month=month + 1, day=day)

    def __rsub__(self, value: Any) -> Any:
        return value + Months(-self.count)


def _on_first_day(value: time) -> datetime:
    return datetime.combine(date.min, value)


def moved(value: time, interval: timedelta) -> time:
    """A TIME and an interval. After midnight, the clock begins again."""
    return (_on_first_day(value) + interval % timedelta(1)).time()


def _added(unit: str, count: int, value: Any) -> Any:
    if isinstance(value, time):
        return moved(value, timedelta(seconds=count * _SECONDS_OF[unit]))
    if unit in _MONTHS_OF:
        return value + Months(count * _MONTHS_OF[unit])
    if unit in ("SECOND", "MINUTE", "HOUR") and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - a DATE has no zone
    return value + timedelta(seconds=count * _SECONDS_OF[unit])


def _as_moment(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, time):
        return _on_first_day(value)
    return datetime(value.year, value.month, value.day)  # noqa: DTZ001 - a DATE has no zone


def _difference(unit: str, first: Any, last: Any) -> int:
    """The number of whole units from the first to the last."""
    first, last = _as_moment(first), _as_moment(last)
    if first > last:
        return -_difference(unit, last, first)
    if unit not in _MONTHS_OF:
        return int((last - first) // timedelta(seconds=_SECONDS_OF[unit]))
    months = (last.year - first.year) * 12 + last.month - first.month
    if first + Months(months) > last:
        months -= 1
    return int(months // _MONTHS_OF[unit])


def _floor_of_time(unit: str, value: Any) -> Any:
    if isinstance(value, time):
        return _floor_of_time(unit, _on_first_day(value)).time()
    if not isinstance(value, datetime):
        floor = _floor_of_time(unit, _as_moment(value))
        return floor.date()
    if unit == "WEEK":
        value -= timedelta(days=(value.weekday() + 1) % 7)  # weeks begin on Sunday
    clock = ("microsecond", "second", "minute", "hour")
    if unit in _CLOCK:
        return value.replace(**dict.fromkeys(clock[: _CLOCK.index(unit) + 1], 0))
    day = {} if unit in ("DAY", "WEEK") else {"day": 1}
    months = _MONTHS_OF.get(unit, 1)
    month = (value.month - 1) // months * months + 1
    return value.replace(**dict.fromkeys(clock, 0), **day, month=month)


_CLOCK = ("SECOND", "MINUTE", "HOUR")


def _ceil_of_time(unit: str, value: Any) -> Any:
    floor = _floor_of_time(unit, value)
    return floor if floor == value else _added(unit, 1, floor)


def _pad(text: str, length: int, pad: str, *, is_left: bool) -> str | None:
    if length < 0 or not pad:
        return None
    if len(text) >= length:
        return text[:length]
    filled = (pad * (length // len(pad) + 1))[: length - len(text)]
    return filled + text if is_left else text + filled


def _position(text: str, part: str, start: int = 1) -> int:
    return text.find(part, max(0, start - 1)) + 1


def _initcap(text: str) -> str:
    return re.sub(r"[^\W_]+", lambda found: found[0][0].upper() + found[0][1:].lower(), text)


def concat_ws(separator: str | None, *texts: str | None) -> str | None:
    """Joins the texts that are not NULL."""
    return None if separator is None else separator.join(each for each in texts if each is not None)


@lru_cache(maxsize=256)
def _regex(pattern: str) -> re.Pattern[str]:
    r"""As in Java, classes such as \w are ASCII, and a named group is `(?<name>...)`."""
    return re.compile(re.sub(r"\(\?<(?=[A-Za-z])", "(?P<", pattern), re.ASCII)


def _similar_to(text: str, pattern: str) -> bool:
    """SQL's patterns: `%` as in LIKE, `_`, and the operators of regular expressions. As in Flink, `.` is one of them."""
    parts = {"%": "(?s:.*)", "_": ".", "$": r"\$", "\\": r"\\"}
    regex = "".join(parts.get(each, each) for each in pattern)
    return re.fullmatch(regex, text) is not None


def _regexp_replace(text: str, pattern: str, replacement: str) -> str:
    """Flink does not read groups such as $1 in the replacement."""
    return _regex(pattern).sub(lambda _: replacement, text)


def _regexp_extract(text: str, pattern: str, group: int = 0) -> str | None:
    found = _regex(pattern).search(text)
    if found is None or not 0 <= group <= _regex(pattern).groups:
        return None
    extracted: str | None = found[group]
    return extracted


def _digest(name: str) -> Callable[[str], str]:
    return lambda text: hashlib.new(name, text.encode(), usedforsecurity=False).hexdigest()


def _truncate(value: Any, digits: int = 0) -> Any:
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or exponent >= -digits:
        return value
    cut = number.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_DOWN)
    return cut if isinstance(value, Decimal) else type(value)(cut)


def _sign(value: Any) -> Any:
    if value != value:  # noqa: PLR0124 - NaN
        return value
    sign = (value > 0) - (value < 0)
    if isinstance(value, Decimal):
        return Decimal(sign).quantize(value)
    return type(value)(sign)


def _real(function: Callable[..., float]) -> Callable[..., float]:
    """A function of Java's Math: NaN outside of its domain, and infinity where it overflows."""

    def call(*values: Any) -> float:
        try:
            return float(function(*map(float, values)))
        except ValueError:
            return math.nan
        except (OverflowError, ZeroDivisionError):
            return math.inf

    return call


def _log(*values: float) -> float:
    base, value = values if len(values) == 2 else (math.e, values[0])  # noqa: PLR2004 - LOG(x) and LOG(base, x)
    if value == 0:
        return -math.inf
    if base == 2:  # noqa: PLR2004 - exact for powers of two
        return math.log2(value)
    if base == 10:  # noqa: PLR2004 - likewise
        return math.log10(value)
    return math.log(value) if base == math.e else math.log(value) / math.log(base)


def _week(value: Any) -> int:
    return int(value.isocalendar()[1])


def _epoch_seconds(value: Any) -> int:
    """Seconds since 1970 of a DATE or a TIMESTAMP, read as UTC."""
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - in UTC, as the next line says
    seconds: int = calendar.timegm(value.utctimetuple())
    return seconds


PARTS: dict[str, Callable[[Any], int]] = {
    "DOW": lambda value: (value.weekday() + 1) % 7 + 1,
    "DOY": lambda value: value.timetuple().tm_yday,
    "WEEK": _week,
    "DECADE": lambda value: value.year // 10,
    "CENTURY": lambda value: (value.year + 99) // 100,
    "MILLENNIUM": lambda value: (value.year + 999) // 1000,
    "ISODOW": lambda value: value.isoweekday(),
    "ISOYEAR": lambda value: value.isocalendar()[0],
    "MILLISECOND": lambda value: value.microsecond // 1000,
    "MICROSECOND": lambda value: value.microsecond,
    "EPOCH": _epoch_seconds,
}
"""Parts of a date: weeks as in ISO 8601; days of the week count from Sunday, which is 1."""


_STEP = re.compile(r"""\.(\w+)|\[(\d+)\]|\[(?:'([^']*)'|"([^"]*)")\]""")


@lru_cache(maxsize=256)
def steps_of(path: str) -> tuple[str | int, ...]:
    """The names and numbers of a JSON path.

    >>> steps_of("$.a[0]['b c']")
    ('a', 0, 'b c')

    Raises:
        ValueError: It has wildcards, filters or a wrong form.
    """
    text = re.sub(r"^\s*(lax|strict)\s+", "", path.strip())
    steps: list[str | int] = []
    place = 1
    while place < len(text):
        found = _STEP.match(text, place)
        if found is None:
            break
        name, number, *quoted = found.groups()
        steps.append(int(number) if number else next(e for e in (name, *quoted) if e is not None))
        place = found.end()
    if not text.startswith("$") or place < len(text):
        raise ValueError(f"the JSON path {path!r} has steps other than .name, ['name'] and [0]")
    return tuple(steps)


_MISSING = object()


def _found(text: str, path: str) -> Any:
    try:
        value = json.loads(text, parse_float=Decimal)
    except ValueError:
        return _MISSING
    for step in steps_of(path):
        is_there = (
            isinstance(value, list) and step < len(value)
            if isinstance(step, int)
            else isinstance(value, dict) and step in value
        )
        if not is_there:
            return _MISSING
        value = value[step]
    return value


def _json_value(text: str, path: str) -> str | None:
    found = _found(text, path)
    if found is _MISSING or found is None or isinstance(found, (dict, list)):
        return None
    if isinstance(found, bool):
        return str(found).lower()
    return str(found)


def _json_query(text: str, path: str) -> str | None:
    found = _found(text, path)
    return _json_text(found) if isinstance(found, (dict, list)) else None


def _json_text(value: Any) -> str:
    """The JSON of a value. Numbers keep their digits: json.dumps() refuses decimals."""
    if isinstance(value, dict):
        entries = (f"{_json_text(name)}:{_json_text(each)}" for name, each in value.items())
        return f"{{{','.join(entries)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_json_text, value))}]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


_JSON_KINDS: dict[str, Any] = {
    "OBJECT": dict,
    "ARRAY": list,
    "SCALAR": (str, int, float, type(None)),
}


def _is_json(text: str | None, kind: str) -> bool:
    """NULL is no JSON, as in Flink."""
    try:
        found = json.loads("" if text is None else text)
    except ValueError:
        return False
    return isinstance(found, _JSON_KINDS.get(kind, object))


def _element(values: list[Any]) -> Any:
    if len(values) > 1:
        raise ValueError(f"ELEMENT takes an array of one element, and got {len(values)}")
    return values[0] if values else None


def _milliseconds_of(value: datetime) -> datetime:
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


STRICT: dict[str, Callable[..., Any]] = {
    "months": Months,
    "timestamp_add": _added,
    "timestamp_diff": _difference,
    "floor_of_time": _floor_of_time,
    "ceil_of_time": _ceil_of_time,
    "lpad": lambda text, length, pad=" ": _pad(text, length, pad, is_left=True),
    "rpad": lambda text, length, pad=" ": _pad(text, length, pad, is_left=False),
    "repeat": lambda text, count: text * max(0, count),
    "reverse": lambda text: text[::-1],
    "position": _position,
    "locate": lambda part, text, start=1: _position(text, part, start),
    "initcap": _initcap,
    "ascii_": lambda text: ord(text[0]) if text else 0,
    "chr_": lambda code: None if code < 0 else chr(code & 0xFF),
    "regexp": lambda text, pattern: _regex(pattern).search(text) is not None,
    "regexp_replace": _regexp_replace,
    "similar_to": _similar_to,
    "regexp_extract": _regexp_extract,
    **{name: _digest(name) for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")},
    "to_base64": lambda text: base64.b64encode(text.encode()).decode(),
    "from_base64": lambda text: base64.b64decode(text).decode(),
    "hex_": lambda value: (
        value.encode().hex().upper() if isinstance(value, str) else f"{value & (1 << 64) - 1:X}"
    ),
    "bin_": lambda value: f"{value & (1 << 64) - 1:b}",
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "truncate": _truncate,
    "sign": _sign,
    "power": _real(math.pow),
    "sqrt": _real(math.sqrt),
    "exp": _real(math.exp),
    "log": _real(_log),
    **{
        name: _real(getattr(math, name))
        for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "degrees", "radians")
    },
    "greatest": max,
    "least": min,
    "cardinality": len,
    "element": _element,
    "json_value": _json_value,
    "json_query": _json_query,
    "json_exists": lambda text, path: _found(text, path) not in (_MISSING, None),
}
"""Functions that return NULL if an argument is NULL."""

OTHERS: dict[str, Callable[..., Any]] = {
    "concat_ws": concat_ws,
    "is_json": _is_json,
    "pi": lambda: math.pi,
    "e": lambda: math.e,
    "distinct": lambda a, b: not (a is None and b is None) and (a is None or b is None or a != b),
    "now": lambda: _milliseconds_of(datetime.now(timezone.utc)),
    "proctime": lambda: _milliseconds_of(datetime.now(timezone.utc)),
    "local_now": lambda: _milliseconds_of(datetime.now(timezone.utc).replace(tzinfo=None)),
    "time_of_day": lambda: datetime.now(timezone.utc).time().replace(microsecond=0),
    "today": lambda: datetime.now(timezone.utc).date(),
    "unix_now": lambda: int(datetime.now(timezone.utc).timestamp()),
    "uuid": lambda: str(uuid.uuid4()),
    "rand": random.random,
    "array": lambda *values: list(values),
    "array_contains": lambda values, value: None if values is None else value in values,
    "map_of": lambda *values: dict(zip(values[::2], values[1::2], strict=True)),
}
"""Functions that decide about NULL themselves."""
