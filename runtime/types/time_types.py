"""Types of dates and times (java.sql and java.time), and of decimals with precision and scale."""
# ruff: noqa: N802 - the factory methods have PyFlink's names

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_HALF_UP, Context, Decimal
from enum import Enum
from typing import Any, ClassVar

from opchain.runtime.types.type_information import BasicType, BasicTypeInfo, TypeInformation

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_MICROS_PER_SECOND = 1_000_000


class SqlTimeTypeInfo(TypeInformation[Any]):
    """The types of Java's java.sql package.

    Flink: SqlTimeTypeInfo.
    """

    @staticmethod
    def DATE() -> DateTypeInfo:
        """The type of dates."""
        return DateTypeInfo()

    @staticmethod
    def TIME() -> TimeTypeInfo:
        """The type of times of day."""
        return TimeTypeInfo()

    @staticmethod
    def TIMESTAMP() -> TimestampTypeInfo:
        """The type of datetimes."""
        return TimestampTypeInfo()


@dataclass(frozen=True, repr=False)
class DateTypeInfo(TypeInformation[date]):
    """The type of dates. The internal value is the number of days since the epoch."""

    EPOCH_ORDINAL: ClassVar[int] = _EPOCH_ORDINAL

    @property
    def java_class(self) -> str:
        """The class in java.sql."""
        return "Date"

    def need_conversion(self) -> bool:
        """Always True."""
        return True

    def to_internal_type(self, d: date | None) -> int | None:
        """The number of days since the epoch."""
        return None if d is None else d.toordinal() - _EPOCH_ORDINAL

    def from_internal_type(self, v: int | None) -> date | None:
        """The date of a number of days since the epoch."""
        return None if v is None else date.fromordinal(v + _EPOCH_ORDINAL)

    def __repr__(self) -> str:
        return "DateTypeInfo"


@dataclass(frozen=True, repr=False)
class TimeTypeInfo(TypeInformation[time]):
    """The type of times of day. The internal value is the number of microseconds since midnight UTC.

    As in PyFlink, a time without time zone is in the zone offset that the machine had at the epoch.
    """

    EPOCH_ORDINAL: ClassVar[int] = _EPOCH_ORDINAL * 24 * 3600 * _MICROS_PER_SECOND

    @property
    def java_class(self) -> str:
        """The class in java.sql."""
        return "Time"

    def need_conversion(self) -> bool:
        """Always True."""
        return True

    def to_internal_type(self, t: time | None) -> int | None:
        """The number of microseconds since midnight UTC.

        It is negative if the time falls on the previous day in UTC.
        """
        if t is None:
            return None
        offset = _local_offset_at_epoch() if t.tzinfo is None else t.utcoffset() or timedelta()
        since_midnight = timedelta(
            hours=t.hour, minutes=t.minute, seconds=t.second, microseconds=t.microsecond
        )
        return (since_midnight - offset) // timedelta(microseconds=1)

    def from_internal_type(self, t: int | None) -> time | None:
        """The time of day in the machine's time zone, as a time without zone."""
        if t is None:
            return None
        # `timedelta.seconds` is within one day, so the time wraps at midnight.
        of_day = timedelta(microseconds=t) + _local_offset_at_epoch()
        minutes, seconds = divmod(of_day.seconds, 60)
        hours, minutes = divmod(minutes, 60)
        return time(hours, minutes, seconds, of_day.microseconds)

    def __repr__(self) -> str:
        return "TimeTypeInfo"


@dataclass(frozen=True, repr=False)
class TimestampTypeInfo(TypeInformation[datetime]):
    """The type of datetimes. The internal value is the number of microseconds since the epoch.

    As in PyFlink, a datetime without time zone is in the machine's zone, and results have no time zone.

    Attributes:
        keeps_zone: Whether values keep their time zone and microseconds. Internal values become datetimes in UTC.
    """

    keeps_zone: bool = False

    @property
    def java_class(self) -> str:
        """The class in java.sql."""
        return "Timestamp"

    def need_conversion(self) -> bool:
        """Always True."""
        return True

    def to_internal_type(self, dt: datetime | None) -> int | None:
        """The number of microseconds since the epoch."""
        if dt is None:
            return None
        # A float cannot represent today's timestamps to the microsecond, so whole seconds are converted first.
        seconds = int(dt.replace(microsecond=0).timestamp())
        return seconds * _MICROS_PER_SECOND + dt.microsecond

    def from_internal_type(self, ts: int | None) -> datetime | None:
        """The datetime in the machine's time zone, as a datetime without zone."""
        if ts is None:
            return None
        seconds, micros = divmod(ts, _MICROS_PER_SECOND)
        zone = timezone.utc if self.keeps_zone else None
        return datetime.fromtimestamp(seconds, zone).replace(microsecond=micros)

    def __repr__(self) -> str:
        return "TimestampTypeInfo(keeps_zone=True)" if self.keeps_zone else "TimestampTypeInfo"


ZONED_TIMESTAMP = TimestampTypeInfo(keeps_zone=True)
"""The type of `timestamp` columns of DataFrames, and of TIMESTAMP_LTZ columns of tables."""


@dataclass(frozen=True, repr=False)
class LocalTimeTypeInfo(TypeInformation[Any]):
    """The types without time zone of Java's java.time package.

    Flink: LocalTimeTypeInfo.
    """

    class TimeType(Enum):
        """The types of java.time."""

        LOCAL_DATE = 0
        LOCAL_TIME = 1
        LOCAL_DATE_TIME = 2

    time_type: TimeType

    @property
    def java_class(self) -> str:
        """One of LocalDate, LocalTime and LocalDateTime."""
        return "".join(word.capitalize() for word in self.time_type.name.split("_"))

    def __repr__(self) -> str:
        return f"LocalTimeTypeInfo<{self.time_type.name}>"


def _local_offset_at_epoch() -> timedelta:
    return datetime.fromtimestamp(0) - datetime(1970, 1, 1)  # noqa: DTZ001, DTZ006 - local by definition


DEFAULT_PRECISION, DEFAULT_SCALE = 38, 18
"""Precision and scale of `Types.BIG_DEC()` in formats that need them, as in Flink's legacy types."""

_MAX_PRECISION = 38
EXACTLY = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
"""A context that keeps all digits."""


@dataclass(frozen=True, repr=False)
class BigDecimalTypeInfo(BasicTypeInfo[Decimal]):
    """The type of Decimals with `precision` digits, of which `scale` are after the decimal point.

    Flink: BigDecimalTypeInfo. Only formats use precision and scale.

    Raises:
        ValueError: The precision is not from 1 to 38, or the scale not from 0 to the precision.
    """

    precision: int = DEFAULT_PRECISION
    scale: int = DEFAULT_SCALE

    def __post_init__(self) -> None:
        if not (1 <= self.precision <= _MAX_PRECISION and 0 <= self.scale <= self.precision):
            raise ValueError(
                f"a decimal of {self.precision} digits with scale {self.scale} is not possible; "
                f"the precision must be 1 to {_MAX_PRECISION}, and the scale 0 to the precision"
            )

    @staticmethod
    def of(precision: int, scale: int) -> BigDecimalTypeInfo:
        """The type with this precision and scale."""
        return BigDecimalTypeInfo(BasicType.BIG_DEC, precision, scale)

    def rounded(self, value: Decimal) -> Decimal:
        """The decimal, rounded half up to the scale. Flink: DecimalData.fromBigDecimal."""
        return value.quantize(Decimal(1).scaleb(-self.scale), ROUND_HALF_UP, EXACTLY)

    def __repr__(self) -> str:
        return f"BigDecimal({self.precision}, {self.scale})"
