from __future__ import annotations

import time as clock
from datetime import date, datetime, time, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opchain.runtime.types.time_types import (
    ZONED_TIMESTAMP,
    DateTypeInfo,
    LocalTimeTypeInfo,
    SqlTimeTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.runtime.types.type_information import TypeInformation


@pytest.fixture(params=["UTC0", "XXX-05:30", "YYY+08"])
def _zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    clock.tzset()
    yield
    monkeypatch.undo()
    clock.tzset()


def test_sql_types_are_created_by_their_factories() -> None:
    assert SqlTimeTypeInfo.DATE() == DateTypeInfo()
    assert SqlTimeTypeInfo.TIME() == TimeTypeInfo()
    assert SqlTimeTypeInfo.TIMESTAMP() == TimestampTypeInfo()


@pytest.mark.parametrize(("day", "internal"), [(date(1970, 1, 2), 1), (date(1969, 12, 31), -1)])
def test_a_date_is_stored_as_days(day: date, internal: int) -> None:
    assert DateTypeInfo().to_internal_type(day) == internal
    assert DateTypeInfo().from_internal_type(internal) == day


zoned = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=30,
)


@pytest.mark.usefixtures("_zone")
@zoned
@given(st.times())
def test_a_time_of_day_is_converted_and_restored(of_day: time) -> None:
    kept = TimeTypeInfo().to_internal_type(of_day)
    assert TimeTypeInfo().from_internal_type(kept) == of_day


@pytest.mark.usefixtures("_zone")
@zoned
@given(st.datetimes(datetime(1970, 1, 3), datetime(2200, 1, 1)))  # noqa: DTZ001
def test_a_timestamp_is_restored_to_the_microsecond(stamp: datetime) -> None:
    kept = TimestampTypeInfo().to_internal_type(stamp)
    assert TimestampTypeInfo().from_internal_type(kept) == stamp


@pytest.mark.usefixtures("_zone")
def test_the_zone_of_a_datetime_takes_precedence_over_the_local_one() -> None:
    zone = timezone(timedelta(hours=2))
    assert TimeTypeInfo().to_internal_type(time(3, 0, 0, 5, zone)) == 3_600_000_005
    stamp = datetime(1970, 1, 1, 3, 0, 0, 5, zone)
    assert TimestampTypeInfo().to_internal_type(stamp) == 3_600_000_005


@pytest.mark.parametrize("kind", [DateTypeInfo(), TimeTypeInfo(), TimestampTypeInfo()])
def test_none_is_not_converted(kind: TypeInformation[Any]) -> None:
    assert kind.need_conversion()
    assert kind.to_internal_type(None) is None
    assert kind.from_internal_type(None) is None


@pytest.mark.parametrize(
    ("time_type", "java_class"),
    [
        (LocalTimeTypeInfo.TimeType.LOCAL_DATE, "LocalDate"),
        (LocalTimeTypeInfo.TimeType.LOCAL_TIME, "LocalTime"),
        (LocalTimeTypeInfo.TimeType.LOCAL_DATE_TIME, "LocalDateTime"),
    ],
)
def test_local_time_types_have_their_java_classes(
    time_type: LocalTimeTypeInfo.TimeType, java_class: str
) -> None:
    made = LocalTimeTypeInfo(time_type)
    assert made.java_class == java_class
    assert repr(made) == f"LocalTimeTypeInfo<{time_type.name}>"
    assert made == LocalTimeTypeInfo(time_type)


def test_zoned_timestamp_is_a_type_of_its_own() -> None:
    assert TimestampTypeInfo() != ZONED_TIMESTAMP
    assert repr(ZONED_TIMESTAMP) != repr(TimestampTypeInfo())
    stamp = datetime(1930, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc)
    again = ZONED_TIMESTAMP.from_internal_type(ZONED_TIMESTAMP.to_internal_type(stamp))
    assert (again, again and again.tzinfo) == (stamp, timezone.utc)
