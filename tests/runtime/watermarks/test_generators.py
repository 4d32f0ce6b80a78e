from __future__ import annotations

import pickle
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.time import MIN_LONG_VALUE, Duration
from opchain.runtime.watermarks.generators import (
    AscendingTimestampsWatermarks,
    BoundedOutOfOrdernessWatermarks,
    IdlenessTimer,
    NoWatermarksGenerator,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarksWithIdleness,
)

SECOND = 1_000_000_000


@dataclass
class Recorded(WatermarkOutput):
    """Records the calls of a generator."""

    seen: list[int | str] = field(default_factory=list)

    def emit_watermark(self, timestamp: int) -> None:
        self.seen.append(timestamp)

    def mark_idle(self) -> None:
        self.seen.append("idle")

    def mark_active(self) -> None:
        self.seen.append("active")


@dataclass
class Clock:
    """A clock that a test sets; it starts at zero, which must not be a special time."""

    now_ns: int = 0

    def __call__(self) -> int:
        return self.now_ns


def emitted(generator: WatermarkGenerator[str], *timestamps: int) -> list[int | str]:
    output = Recorded()
    for timestamp in timestamps:
        generator.on_event("record", timestamp, output)
    generator.on_periodic_emit(output)
    return output.seen


def test_no_watermarks_generator_emits_nothing() -> None:
    assert emitted(NoWatermarksGenerator(), 1, 2) == []


BOUNDED = [
    (0, [], MIN_LONG_VALUE),
    (10, [], MIN_LONG_VALUE),
    (0, [5], 4),
    (10, [100, 50], 89),
    (10, [50, 100], 89),
    (10, [-5], -16),
    (10, [MIN_LONG_VALUE], MIN_LONG_VALUE),
    (10, [MIN_LONG_VALUE + 11], MIN_LONG_VALUE),
    (10, [MIN_LONG_VALUE + 12], MIN_LONG_VALUE + 1),
]


@pytest.mark.parametrize(("bound_ms", "timestamps", "watermark"), BOUNDED)
def test_a_bounded_generator_subtracts_its_bound_from_the_greatest_timestamp(
    bound_ms: int, timestamps: list[int], watermark: int
) -> None:
    generator = BoundedOutOfOrdernessWatermarks[str](Duration.of_millis(bound_ms))
    assert emitted(generator, *timestamps) == [watermark]


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1), st.integers(0, 2**20))
def test_no_record_within_the_bound_is_late(timestamps: list[int], bound_ms: int) -> None:
    output = Recorded()
    generator = BoundedOutOfOrdernessWatermarks[str](Duration.of_millis(bound_ms))
    for count, timestamp in enumerate(timestamps):
        greatest = max(timestamps[: count + 1])
        generator.on_event("record", timestamp, output)
        generator.on_periodic_emit(output)
        assert output.seen[-1] == greatest - bound_ms - 1


def test_watermarks_are_emitted_only_on_periodic_emit() -> None:
    output = Recorded()
    BoundedOutOfOrdernessWatermarks[str](Duration(0)).on_event("record", 5, output)
    assert output.seen == []


def test_ascending_timestamps_have_a_bound_of_zero() -> None:
    assert emitted(AscendingTimestampsWatermarks(), 3, 7) == [6]


def test_a_pickled_generator_keeps_the_greatest_timestamp() -> None:
    generator = AscendingTimestampsWatermarks[str]()
    generator.on_event("record", 7, Recorded())
    assert emitted(pickle.loads(pickle.dumps(generator))) == [6]


def test_the_idle_timeout_starts_at_the_first_check_without_records() -> None:
    clock = Clock()
    timer = IdlenessTimer(clock, Duration.of_seconds(10))
    timer.activity()
    clock.now_ns = 100 * SECOND
    assert not timer.check_if_idle()  # there were records since the last check
    assert not timer.check_if_idle()  # the timeout starts here
    clock.now_ns += 10 * SECOND
    assert not timer.check_if_idle()  # the time must exceed the timeout
    clock.now_ns += 1
    assert timer.check_if_idle()
    assert timer.check_if_idle()
    timer.activity()
    assert not timer.check_if_idle()
    assert not timer.check_if_idle()
    clock.now_ns += 10 * SECOND + 1
    assert timer.check_if_idle()


def test_a_clock_may_start_at_zero() -> None:
    clock = Clock()
    timer = IdlenessTimer(clock, Duration.of_seconds(1))
    assert not timer.check_if_idle()
    clock.now_ns = SECOND + 1
    assert timer.check_if_idle()


def test_an_idle_input_is_marked_once_and_active_at_the_next_record() -> None:
    clock, output = Clock(), Recorded()
    generator = WatermarksWithIdleness[str](
        AscendingTimestampsWatermarks(), Duration.of_seconds(1), clock
    )
    generator.on_event("record", 10, output)
    for _ in range(4):
        generator.on_periodic_emit(output)
        clock.now_ns += SECOND
    assert output.seen == [9, 9, 9, "idle"]
    generator.on_periodic_emit(output)
    assert output.seen[3:] == ["idle"]
    generator.on_event("record", 20, output)
    generator.on_periodic_emit(output)
    assert output.seen[3:] == ["idle", 19]
    clock.now_ns += SECOND
    generator.on_periodic_emit(output)
    clock.now_ns += 2 * SECOND
    generator.on_periodic_emit(output)
    assert output.seen[3:] == ["idle", 19, 19, "idle"]


def test_an_input_that_never_had_a_record_becomes_idle() -> None:
    clock, output = Clock(), Recorded()
    generator = WatermarksWithIdleness[str](NoWatermarksGenerator(), Duration.of_seconds(1), clock)
    generator.on_periodic_emit(output)
    clock.now_ns += SECOND + 1
    generator.on_periodic_emit(output)
    assert output.seen == ["idle"]
