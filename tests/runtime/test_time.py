"""Durations, instants and times; the expected values were printed by Flink 2.3's TimeUtils and Java 17."""

from __future__ import annotations

import pickle
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.time import Duration, Instant, Time, millis_of

PARSED = {
    "10 s": "10 s",
    "10s": "10 s",
    "10": "10 ms",
    "1 min": "1 min",
    " 3  m ": "3 min",
    "100 ms": "100 ms",
    "1 h": "1 h",
    "25 hours": "25 h",
    "2 d": "2 d",
    "48 h": "2 d",
    "5 µs": "5 µs",
    "7 ns": "7 ns",
    "4 SECONDS": "4 s",
    "5 milli": "5 ms",
    "3 micro": "3 µs",
    "6 nano": "6 ns",
    "PT10S": "10 s",
    "P1D": "1 d",
    "pt10s": "10 s",
    "PT1.5S": "1500 ms",
    "P1DT2H3M4.005S": "93784005 ms",
    "-PT6H": "-6 h",
    "PT-6H+3M": "-357 min",
    "PT0.000000001S": "1 ns",
    "PT-0.5S": "-500 ms",
    "9223372036854775807 ns": "9223372036854775807 ns",
    "0 d": "0 ms",
}


@pytest.mark.parametrize(("text", "expected"), PARSED.items(), ids=PARSED)
def test_a_duration_is_parsed_and_printed_as_in_flink(text: str, expected: str) -> None:
    assert str(Duration.parse(text)) == expected


@pytest.mark.parametrize(
    "text", ["", " ", "s", "-1 s", "1.5 s", "1 w", "5 us", "P", "PT", "P2DT", "PT1.5M", "P1W"]
)
def test_a_text_that_flink_does_not_parse_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        Duration.parse(text)


def test_a_duration_beyond_64_bits_of_seconds_is_refused() -> None:
    assert Duration.parse("9223372036854775807 s").nanos == (2**63 - 1) * 10**9
    with pytest.raises(ValueError, match="do not fit 64 bits"):
        Duration.parse("9223372036854775808 s")


FACTORIES = [
    (Duration.of_days(1), Duration.of_hours(24)),
    (Duration.of_hours(1), Duration.of_minutes(60)),
    (Duration.of_minutes(1), Duration.of_seconds(60)),
    (Duration.of_seconds(1), Duration.of_millis(1_000)),
    (Duration.of_millis(1), Duration.of_nanos(1_000_000)),
    (Duration.of_timedelta(timedelta(days=-1, microseconds=1)), Duration(-86_399_999_999_000)),
]


@pytest.mark.parametrize(("longer", "shorter"), FACTORIES)
def test_conversions_between_units_are_exact(longer: Duration, shorter: Duration) -> None:
    assert longer == shorter
    assert hash(longer) == hash(shorter)
    assert longer.to_nanos() == shorter.to_nanos()


@pytest.mark.parametrize("value", [1.5, "1", None, True])
def test_a_duration_requires_whole_numbers(value: object) -> None:
    with pytest.raises(TypeError, match=r"Duration\.of_seconds\(\) takes a whole number"):
        Duration.of_seconds(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(("nanos", "millis"), [(999_999, 0), (-1, -1), (-1_000_001, -2)])
def test_milliseconds_of_a_duration_round_down(nanos: int, millis: int) -> None:
    assert Duration(nanos).to_millis() == millis


@given(st.integers(-(2**62), 2**62))
def test_timedeltas_are_converted_to_durations_and_back(micros: int) -> None:
    delta = timedelta(microseconds=micros % 10**15)
    assert Duration.of_timedelta(delta).to_timedelta() == delta


@given(st.integers(0, 2**63))
def test_a_printed_duration_is_parsed_back(nanos: int) -> None:
    assert Duration.parse(str(Duration(nanos))) == Duration(nanos)


@given(st.integers(-(10**15), 10**15))
def test_an_instant_keeps_its_milliseconds(epoch_milli: int) -> None:
    instant = Instant.of_epoch_milli(epoch_milli)
    assert instant.to_epoch_milli() == epoch_milli
    assert 0 <= instant.nanos < 10**9


def test_instants_are_compared_and_hashed_by_value() -> None:
    assert Instant(1, 2) == Instant(1, 2)
    assert Instant(-1, 999_000_000) < Instant(0, 0)
    assert repr(Instant(1, 2)) == "Instant<1, 2>"
    with pytest.raises(ValueError, match="nanos is -1"):
        Instant(0, -1)


def test_an_instant_before_the_epoch_rounds_down() -> None:
    assert Instant(-1, 999_999_999).to_epoch_milli() == -1
    assert Instant(-2, 1).to_epoch_milli() == -2_000


def test_times_are_compared_and_hashed_by_value() -> None:
    assert Time.days(1) == Time.hours(24) == Time.minutes(1440) == Time.seconds(86_400)
    assert Time.milliseconds(5).to_milliseconds() == 5
    assert Time(4) < Time(5)
    assert Time(5) >= Time(5)
    assert len({Time(5), Time.milliseconds(5)}) == 1
    assert Time(5) != 5
    assert str(Time.seconds(2)) == "2000 ms"
    assert repr(Time(2)) == "Time(2 ms)"
    with pytest.raises(TypeError, match="Time takes a whole number"):
        Time(0.5)


def test_a_fraction_of_a_unit_is_a_time_of_whole_milliseconds() -> None:
    assert repr(Time.hours(-1.75)) == "Time(-6300000 ms)"
    assert repr(Time.seconds(0.5)) == "Time(500 ms)"


@pytest.mark.parametrize("value", [Duration.of_days(3), Instant(5, 6), Time.hours(1)])
def test_values_survive_pickling(value: object) -> None:
    assert pickle.loads(pickle.dumps(value)) == value


@pytest.mark.parametrize(
    ("span", "millis"),
    [
        (Duration.of_seconds(2), 2_000),
        (Time.seconds(2), 2_000),
        (timedelta(seconds=2, microseconds=999), 2_000),
        (2_000, 2_000),
    ],
)
def test_every_span_type_is_converted_to_milliseconds(span: Duration, millis: int) -> None:
    assert millis_of(span) == millis


@pytest.mark.parametrize("span", [1.5, "1 s", None, True])
def test_an_object_that_is_not_a_span_is_refused(span: object) -> None:
    with pytest.raises(TypeError, match="a span of time is a Duration"):
        millis_of(span)  # type: ignore[arg-type]
