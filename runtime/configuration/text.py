"""Configuration values as text, and text as values: the forms that Flink's configuration files use.

Lists and maps are written in YAML's flow style (`[a, 'b: c']`, `{k: v}`), and read in that style or
in Flink's older ones (`a;b` and `k:v,k2:v2`). Items are always strings. No YAML library is needed on
an executor: this module knows the part of YAML that Flink writes.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?")
_SMALLEST_PLAIN, _SMALLEST_BIG = 1e-3, 1e7
_NOT_FINITE = {"NaN": "nan", "Infinity": "inf", "+Infinity": "inf", "-Infinity": "-inf"}

# A plain scalar inside [..] or {..} that a YAML reader returns as the same string.
_NEEDS_QUOTES = re.compile(
    r"""
    ^$ | ^\s | \s$              # empty, or spaces at an end
    | ^[*&!%@`|>'"\#]           # characters that start something else
    | ^[-?](\s|$)
    | [:,\[\]{}] | \s\#         # characters that end it
    | ^(~|null|Null|NULL|true|True|TRUE|false|False|FALSE)$
    | ^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$
    | ^0(x[0-9a-fA-F]+|o[0-7]+)$
    | ^[-+]?\.(inf|Inf|INF)$ | ^\.(nan|NaN|NAN)$
    """,
    re.VERBOSE,
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")
_QUOTED = re.compile(r"""'((?:[^']|'')*)'|"((?:[^"\\]|\\.)*)\"""", re.DOTALL)


def to_text(value: Any) -> str:
    """The text of a value, as Flink writes it into its configuration and into `to_dict`."""
    for of_type, write in _WRITERS:
        if isinstance(value, of_type):
            return write(value)
    return str(value)


def parse_boolean(text: str) -> bool:
    """`true` or `false` in any case; nothing else, and no spaces around it."""
    lowered = text.lower()
    if lowered not in {"true", "false"}:
        raise ValueError(f"{text!r} is not a boolean: expected true or false")
    return lowered == "true"


def parse_integer(text: str) -> int:
    """A whole number in decimal digits, with or without a sign."""
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def parse_decimal(text: str) -> float:
    """A decimal number, as Java's Double.parseDouble reads it, except for hexadecimal ones."""
    stripped = text.strip()
    if stripped in _NOT_FINITE:
        return float(_NOT_FINITE[stripped])
    if not _DECIMAL.fullmatch(stripped):
        raise ValueError(f"{text!r} is not a number")
    return float(stripped.rstrip("fFdD"))


def parse_list(text: str) -> list[str]:
    """The items of `[a, b]`, of lines `- a`, or of `a;b`; an empty text has none."""
    stripped = text.strip()
    if not stripped:
        return []
    if stripped.startswith("[") and stripped.endswith("]"):
        return [_flow_scalar(item) for item in _split(stripped[1:-1], ",")]
    lines = [line.strip() for line in stripped.splitlines() if line.strip()]
    if all(line.startswith("- ") for line in lines):
        return [_unquote(line[2:]) for line in lines]
    return [_unquote(item) for item in _split(stripped, ";")]


def parse_map(text: str) -> dict[str, str]:
    """The entries of `{a: b, c: d}` or of `a:b,c:d`; an empty text has none."""
    stripped = text.strip()
    if stripped.startswith("{") and stripped.endswith("}"):
        stripped = stripped[1:-1]
    entries = (_split(entry, ":", limit=1) for entry in _split(stripped, ",", quotes_after=",:"))
    result = {}
    for entry in entries:
        if len(entry) == 1:
            raise ValueError(f"{entry[0]!r} in {text!r} is not an entry: expected key:value")
        result[_unquote(entry[0])] = _unquote(entry[1])
    return result


def _binary(value: bytes | bytearray) -> str:
    encoded = base64.b64encode(value).decode()
    return f"!!binary |-\n  {encoded}" if encoded else '!!binary ""'


def _item(value: Any) -> str:
    text = to_text(value)
    if not isinstance(value, str):
        return text
    if _CONTROL.search(text):
        return json.dumps(text, ensure_ascii=False)
    if _NEEDS_QUOTES.search(text):
        return "'" + text.replace("'", "''") + "'"
    return text


def _split(text: str, separator: str, limit: int = -1, quotes_after: str = "") -> list[str]:
    """The stripped parts of a text between separators that are not inside quotes.

    A quote counts only at the start, and behind a separator or another character of `quotes_after`.
    """
    if not text.strip():
        return []
    parts: list[str] = []
    start = 0
    for at in _outside_quotes(text, separator + quotes_after):
        if text[at] == separator and (limit < 0 or len(parts) < limit):
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return parts


def _outside_quotes(text: str, quotes_after: str) -> Iterator[int]:
    """The positions of a text that are not quoted."""
    at = 0
    item_starts = True
    while at < len(text):
        if item_starts and text[at] in "'\"":
            quoted = _QUOTED.match(text, at)
            if quoted is None:
                raise ValueError(f"the quote at position {at} of {text!r} is not closed")
            at = quoted.end()
            item_starts = False
            continue
        yield at
        item_starts = text[at] in quotes_after or (item_starts and text[at].isspace())
        at += 1


def _flow_scalar(item: str) -> str:
    if item.startswith(("[", "{")):
        raise ValueError(
            f"{item!r} is not an item of a list: nested lists and maps are not supported"
        )
    return _unquote(item)


def _unquote(item: str) -> str:
    item = item.strip()
    quoted = _QUOTED.fullmatch(item)
    if quoted is None:
        return item
    single, double = quoted.groups()
    if single is not None:
        return str(single.replace("''", "'"))
    try:
        return str(json.loads(f'"{double}"', strict=False))
    except json.JSONDecodeError as error:
        raise ValueError(f"{item} has an unknown escape: {error.msg}") from error


def _java_double(value: float) -> str:
    """Java's Double.toString: always a decimal point, and an exponent for small and big numbers.

    Where one digit would be enough, Java writes the two that are nearest: 4.9E-324, not 5.0E-324.
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or _SMALLEST_PLAIN <= abs(value) < _SMALLEST_BIG:
        return repr(value)
    sign, digits, exponent = _decimal_digits(value)
    if len(digits) == 1:
        mantissa, _, power = f"{value:.1e}".partition("e")
        return f"{mantissa}E{int(power)}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _decimal_digits(value: float) -> tuple[str, str, int]:
    """Sign, shortest digits, and the exponent of the first digit."""
    mantissa, _, exponent = f"{value!r}".lower().partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = whole + fraction
    leading_zeros = len(digits) - len(digits.lstrip("0"))
    return (
        sign,
        digits.strip("0"),
        int(exponent or 0) + len(whole) - 1 - leading_zeros,
    )


# The first that fits decides: str is a Sequence, and bool an int.
_WRITERS: tuple[tuple[type | tuple[type, ...], Callable[[Any], str]], ...] = (
    (str, str),
    (bool, lambda value: "true" if value else "false"),
    (float, _java_double),
    ((bytes, bytearray), _binary),
    (Enum, lambda value: str(value.name)),
    (
        Mapping,
        lambda value: "{" + ", ".join(f"{_item(k)}: {_item(v)}" for k, v in value.items()) + "}",
    ),
    (Sequence, lambda value: "[" + ", ".join(map(_item, value)) + "]"),
)
