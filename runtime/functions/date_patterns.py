"""Java's patterns of dates and times, such as `yyyy-MM-dd HH:mm:ss.SSS`. Java: DateTimeFormatter."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SHORT, _SHORT_YEAR = 3, 2
_MOST_DAYS = 31
_TOKEN = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+")

_NUMBERS: dict[str, Callable[[datetime], int]] = {
    "y": lambda value: value.year,
    "u": lambda value: value.year,
    "M": lambda value: value.month,
    "d": lambda value: value.day,
    "D": lambda value: value.timetuple().tm_yday,
    "H": lambda value: value.hour,
    "h": lambda value: value.hour % 12 or 12,
    "m": lambda value: value.minute,
    "s": lambda value: value.second,
}
LETTERS = "yMdDHhmsSaE"


class DatePattern:
    """A pattern, which may have some letters. `date_pattern` caches it.

    >>> pattern = date_pattern("d. MMM yy, h:mm a")
    >>> pattern.format(datetime(2024, 1, 2, 15, 4))
    '2. Jan 24, 3:04 PM'
    >>> pattern.parse("2. Jan 24, 3:04 PM")
    datetime.datetime(2024, 1, 2, 15, 4)

    Raises:
        ValueError: The pattern has other letters, or a quote that is not closed.
    """

    def __init__(self, pattern: str, letters: Collection[str] = LETTERS) -> None:
        self._pattern = pattern
        self.parts: list[tuple[str, int, str]] = []
        place = 0
        while place < len(pattern):
            found = _TOKEN.match(pattern, place)
            if found is None:
                raise ValueError(f"the pattern {pattern!r} has a quote that is not closed")
            text, letter = found[0], found[1] or ""
            if letter and letter not in letters:
                raise ValueError(f"the pattern {pattern!r} has the letter {letter!r}")
            quoted = text[1:-1].replace("''", "'") or "'" if text[0] == "'" else text
            self.parts.append((letter, len(text), quoted))
            place = found.end()
        self._regex = re.compile("".join(map(self._regex_of, range(len(self.parts)))))

    def format(self, value: datetime) -> str:
        """The text of a time."""
        return "".join(self._text_of(value, *part) for part in self.parts)

    def parse(self, text: str) -> datetime:
        """The time of a text. What the pattern lacks is that of midnight on 1970-01-01.

        As in Flink, numbers may have other widths (`2024-1-2` for yyyy-MM-dd), and February 30 is the end of February.

        Raises:
            ValueError: The text does not match the pattern.
        """
        found = self._regex.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} does not match the pattern {self._pattern!r}")
        given: dict[str, int] = {}
        letters = [(letter, count) for letter, count, _ in self.parts if letter]
        for (letter, count), part in zip(letters, found.groups(), strict=True):
            given[letter] = _number_of(letter, count, part)
        hour = given.get("H", given.get("h", 0) % 12 + 12 * given.get("a", 0))
        year, month, day = given.get("y", 1970), given.get("M", 1), given.get("d", 1)
        if day <= _MOST_DAYS and 1 <= month <= len(_MONTHS):
            day = min(day, monthrange(year, month)[1])
        return datetime(  # noqa: DTZ001 - SQL's TIMESTAMP has no zone
            *(year, month, day, hour, given.get("m", 0), given.get("s", 0), given.get("S", 0))
        )

    @staticmethod
    def _text_of(value: datetime, letter: str, count: int, text: str) -> str:
        if not letter:
            return text
        if letter == "a":
            return "AM" if value.hour < 12 else "PM"  # noqa: PLR2004 - noon
        if letter == "S":
            return f"{value.microsecond:06d}000"[:count]
        if letter == "E" or (letter == "M" and count >= _SHORT):
            name = _DAYS[value.weekday()] if letter == "E" else _MONTHS[value.month - 1]
            return name if count > _SHORT else name[:_SHORT]
        number = _NUMBERS[letter](value)
        return (
            f"{number % 100:02d}"
            if letter in "yu" and count == _SHORT_YEAR
            else f"{number:0{count}d}"
        )

    def _regex_of(self, position: int) -> str:
        letter, count, text = self.parts[position]
        if not letter:
            return re.escape(text)
        if letter == "a":
            return "(AM|PM)"
        if letter == "E" or (letter == "M" and count >= _SHORT):
            names = _DAYS if letter == "E" else _MONTHS
            return f"({'|'.join(name if count > _SHORT else name[:_SHORT] for name in names)})"
        beside = self.parts[max(0, position - 1) : position + 2]
        if sum(other in {*_NUMBERS, "S"} for other, _, _ in beside) > 1:
            return rf"(\d{{{count}}})"  # yyyyMMdd
        return r"(\d{0,9})" if letter == "S" else r"(\d+)"


def _number_of(letter: str, count: int, text: str) -> int:
    if letter == "a":
        return int(text == "PM")
    if letter == "S":
        return int(text[:6].ljust(6, "0"))
    if letter == "E":
        return 0
    if letter == "M" and count >= _SHORT:
        return next(n for n, name in enumerate(_MONTHS, 1) if name.startswith(text))
    return int(text) + 2000 if letter in "yu" and count == _SHORT_YEAR else int(text)


@lru_cache(maxsize=256)
def date_pattern(pattern: str) -> DatePattern:
    """The pattern of a text."""
    return DatePattern(pattern)
