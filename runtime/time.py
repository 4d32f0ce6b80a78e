"""Duration, Time and Instant of PyFlink, TimeDomain (the clock that a timer follows), and the bounds of timestamps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from functools import total_ordering
from typing import Any

MAX_LONG_VALUE = 2**63 - 1
"""The timestamp of the last watermark: nothing comes after it."""

MIN_LONG_VALUE = -(2**63)
"""The timestamp of a record that has none, and the watermark before any other."""

_NANOS_PER_MILLI = 1_000_000
_NANOS_PER_SECOND = 1_000_000_000
_MAX_SECONDS = 2**63

# From the longest to the shortest; the first label is the one that is printed.
_UNITS: tuple[tuple[int, tuple[str, ...]], ...] = (
    (86_400 * _NANOS_PER_SECOND, ("d", "day", "days")),
    (3_600 * _NANOS_PER_SECOND, ("h", "hour", "hours")),
    (60 * _NANOS_PER_SECOND, ("min", "m", "minute", "minutes")),
    (_NANOS_PER_SECOND, ("s", "sec", "secs", "second", "seconds")),
    (_NANOS_PER_MILLI, ("ms", "milli", "millis", "millisecond", "milliseconds")),
    (1_000, ("µs", "micro", "micros", "microsecond", "microseconds")),
    (1, ("ns", "nano", "nanos", "nanosecond", "nanoseconds")),
)
_NANOS_OF_LABEL = {label: nanos for nanos, labels in _UNITS for label in labels}

_NUMBER_AND_UNIT = re.compile(r"(?P<number>[0-9]+)\s*(?P<unit>.*)", re.DOTALL)
_ISO_8601 = re.compile(
    r"(?P<sign>[+-]?)P(?=.)"
    r"(?:(?P<days>[+-]?[0-9]+)D)?"
    r"(?:T(?=.)(?:(?P<hours>[+-]?[0-9]+)H)?(?:(?P<minutes>[+-]?[0-9]+)M)?"
    r"(?:(?P<seconds>[+-]?[0-9]+)(?:[.,](?P<fraction>[0-9]{0,9}))?S)?)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, order=True, slots=True, repr=False)
class Duration:
    """A span of time, exact to the nanosecond.

    Flink: java.time.Duration. Its range is 64 bits of seconds; more raises ValueError.

    >>> Duration.of_minutes(1) < Duration.of_seconds(61)
    True
    >>> Duration.parse("61 s").to_millis()
    61000
    """

    nanos: int

    def __post_init__(self) -> None:
        _require_int("Duration", self.nanos)
        if not -_MAX_SECONDS <= self.nanos // _NANOS_PER_SECOND < _MAX_SECONDS:
            raise ValueError(f"Duration of {self.nanos} ns: its seconds do not fit 64 bits")

    @staticmethod
    def of_days(days: int) -> Duration:
        """That many days of 24 hours."""
        return _duration("of_days", days, 86_400 * _NANOS_PER_SECOND)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        """That many hours."""
        return _duration("of_hours", hours, 3_600 * _NANOS_PER_SECOND)

    @staticmethod
    def of_millis(millis: int) -> Duration:
        """That many milliseconds."""
        return _duration("of_millis", millis, _NANOS_PER_MILLI)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        """That many minutes."""
        return _duration("of_minutes", minutes, 60 * _NANOS_PER_SECOND)

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        """That many nanoseconds."""
        return _duration("of_nanos", nanos, 1)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        """That many seconds."""
        return _duration("of_seconds", seconds, _NANOS_PER_SECOND)

    @staticmethod
    def of_timedelta(delta: timedelta) -> Duration:
        """The same span as a Python timedelta."""
        return Duration(delta // timedelta(microseconds=1) * 1_000)

    @staticmethod
    def parse(text: str) -> Duration:
        """Reads a span as Flink's configuration writes it: "10 s", "200ms", "1 min", "PT1M".

        A number without a unit is milliseconds.

        Raises:
            ValueError: The text is empty, has another unit, or no whole number in front.

        Flink: TimeUtils.parseDuration.
        """
        stripped = text.strip()
        if match := _NUMBER_AND_UNIT.fullmatch(stripped):
            return _duration_of_label(text, int(match["number"]), match["unit"].lower() or "ms")
        if match := _ISO_8601.fullmatch(stripped):
            return _duration_of_iso_8601(match)
        raise ValueError(
            f"{text!r} is not a duration: expected a whole number and a unit, such as '10 s' or "
            "'200 ms', or the ISO-8601 form, such as 'PT10S'"
        )

    def to_nanos(self) -> int:
        """The span in nanoseconds."""
        return self.nanos

    def to_millis(self) -> int:
        """The span in milliseconds, rounded down."""
        return self.nanos // _NANOS_PER_MILLI

    def to_timedelta(self) -> timedelta:
        """The span as a Python timedelta, rounded down to the microsecond."""
        return timedelta(microseconds=self.nanos // 1_000)

    def __str__(self) -> str:
        # Flink: TimeUtils.formatWithHighestUnit, the form in which a Configuration shows it.
        if self.nanos == 0:
            return "0 ms"
        nanos, labels = next(unit for unit in _UNITS if self.nanos % unit[0] == 0)
        return f"{self.nanos // nanos} {labels[0]}"

    def __repr__(self) -> str:
        return f"Duration({self})"


@dataclass(frozen=True, order=True, slots=True, repr=False)
class Instant:
    """A point of time: seconds since the Unix epoch, and 0 to 999,999,999 nanoseconds after them.

    Flink: java.time.Instant.
    """

    seconds: int
    nanos: int

    def __post_init__(self) -> None:
        if not 0 <= self.nanos < _NANOS_PER_SECOND:
            raise ValueError(
                f"Instant: nanos is {self.nanos}; it must be 0 to 999999999, also before the epoch"
            )

    def to_epoch_milli(self) -> int:
        """Milliseconds since the epoch, rounded down.

        PyFlink 2.3 is wrong by up to a second here for instants before the epoch; this is Java's.
        """
        return self.seconds * 1_000 + self.nanos // _NANOS_PER_MILLI

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        """The instant that many milliseconds after (or, if negative, before) the epoch."""
        seconds, millis = divmod(epoch_milli, 1_000)
        return Instant(seconds, millis * _NANOS_PER_MILLI)

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"


@total_ordering
class Time:
    """A span of whole milliseconds, as window assigners take it. `Time.hours(1.5)` is one too, as in PyFlink.

    Flink: Time of PyFlink's window API.
    """

    __slots__ = ("_milliseconds",)

    def __init__(self, milliseconds: float) -> None:
        if isinstance(milliseconds, float) and milliseconds.is_integer():
            milliseconds = int(milliseconds)
        _require_int("Time", milliseconds)
        self._milliseconds = int(milliseconds)

    def to_milliseconds(self) -> int:
        """The span in milliseconds."""
        return self._milliseconds

    @staticmethod
    def milliseconds(milliseconds: float) -> Time:
        """That many milliseconds."""
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: float) -> Time:
        """That many seconds."""
        return Time(seconds * 1_000)

    @staticmethod
    def minutes(minutes: float) -> Time:
        """That many minutes."""
        return Time(minutes * 60_000)

    @staticmethod
    def hours(hours: float) -> Time:
        """That many hours."""
        return Time(hours * 3_600_000)

    @staticmethod
    def days(days: float) -> Time:
        """That many days of 24 hours."""
        return Time(days * 86_400_000)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Time):
            return NotImplemented
        return self._milliseconds == other._milliseconds

    def __lt__(self, other: Time) -> bool:
        return self._milliseconds < other._milliseconds

    def __hash__(self) -> int:
        return hash(self._milliseconds)

    def __str__(self) -> str:
        return f"{self._milliseconds} ms"

    def __repr__(self) -> str:
        return f"Time({self})"


def millis_of(span: Duration | Time | timedelta | int) -> int:
    """The milliseconds of any span that the API accepts, rounded down; an int is milliseconds.

    Raises:
        TypeError: It is something else, such as a float.
    """
    if isinstance(span, Duration):
        return span.to_millis()
    if isinstance(span, Time):
        return span.to_milliseconds()
    if isinstance(span, timedelta):
        return span // timedelta(milliseconds=1)
    if isinstance(span, int) and not isinstance(span, bool):
        return span
    raise TypeError(
        f"a span of time is a Duration, Time, timedelta or int of milliseconds, not {span!r}"
    )


def _require_int(where: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{where} takes a whole number, not {value!r}")


def _duration(where: str, count: int, nanos_each: int) -> Duration:
    _require_int(f"Duration.{where}()", count)
    return Duration(count * nanos_each)


def _duration_of_label(text: str, number: int, label: str) -> Duration:
    nanos = _NANOS_OF_LABEL.get(label)
    if nanos is None:
        known = ", ".join(labels[0] for _, labels in _UNITS)
        raise ValueError(
            f"{text!r} is not a duration: {label!r} is not a unit of time; the units are {known} "
            "and their long names"
        )
    return Duration(number * nanos)


def _duration_of_iso_8601(match: re.Match[str]) -> Duration:
    seconds_text = match["seconds"] or "0"
    fraction = int((match["fraction"] or "").ljust(9, "0"))
    nanos = (
        (int(match["days"] or 0) * 86_400)
        + int(match["hours"] or 0) * 3_600
        + int(match["minutes"] or 0) * 60
        + int(seconds_text)
    ) * _NANOS_PER_SECOND
    nanos += -fraction if seconds_text.startswith("-") else fraction
    return Duration(-nanos if match["sign"] == "-" else nanos)


def whole_millis(time: Any) -> int | None:
    """A point of time in milliseconds without its fraction, as PyFlink's coder of a long writes it.

    None where it is not a number.
    """
    if time.__class__ is int:
        return time
    kind = type(time)
    return int(time) if hasattr(kind, "__int__") or hasattr(kind, "__index__") else None


def timer_millis(time: Any) -> int:
    """The time of a timer in whole milliseconds.

    Raises:
        TypeError: It is not a number.
    """
    if time.__class__ is int:
        return time
    millis = whole_millis(time)
    if millis is None:
        raise TypeError(
            f"a timer is registered or deleted for {time!r:.200}: its time must be a number of milliseconds"
        )
    return millis


class TimeDomain(Enum):
    """Event time follows the watermark, processing time the clock of the machine."""

    EVENT_TIME = 0
    PROCESSING_TIME = 1
