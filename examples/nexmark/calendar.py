"""The calendar in UTC: days, minutes and hours of times in milliseconds."""

from __future__ import annotations

from datetime import datetime, timezone
from functools import lru_cache

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


def day_and_minute(time_ms: int) -> tuple[str, str]:
    """The day and the minute.

    >>> day_and_minute(1_700_000_000_000)
    ('2023-11-14', '22:13')
    """
    return _day_and_minute(time_ms // MINUTE_MS)


def day(time_ms: int) -> str:
    """The day.

    >>> day(1_700_000_000_000)
    '2023-11-14'
    """
    return _day_and_minute(time_ms // MINUTE_MS)[0]


def hour(time_ms: int) -> int:
    """The hour of the day, 0 to 23."""
    return time_ms % DAY_MS // HOUR_MS


@lru_cache(maxsize=4096)
def _day_and_minute(minute: int) -> tuple[str, str]:
    time = datetime.fromtimestamp(minute * 60, timezone.utc)
    return time.strftime("%Y-%m-%d"), time.strftime("%H:%M")
