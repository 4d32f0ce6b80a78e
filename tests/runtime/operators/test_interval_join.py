from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.functions.record_functions import ProcessJoinFunction
from opchain.runtime.operators.interval_join import TimeBuffer
from opchain.runtime.program.operator_specs import IntervalJoinSpec
from opchain.runtime.testing.operator_harness import KeyedTwoInputOperatorHarness
from opchain.runtime.types.output_tag import OutputTag

if TYPE_CHECKING:
    from collections.abc import Iterator

SIDE = OutputTag("side")


class Pairs(ProcessJoinFunction[Any, Any, Any]):
    """Emits the numbers of a pair, and its three timestamps to the side output."""

    def __init__(self) -> None:
        self.life: list[str] = []

    def open(self, runtime_context: Any) -> None:
        self.life.append("open")

    def close(self) -> None:
        self.life.append("close")

    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterator[Any]:
        yield left[1], right[1]
        yield SIDE, (ctx.get_left_timestamp(), ctx.get_right_timestamp(), ctx.get_timestamp())


def join(lower: int, upper: int, **spec: Any) -> KeyedTwoInputOperatorHarness:
    harness = spec.pop("harness", {})
    function = spec.pop("function", None) or Pairs()
    return KeyedTwoInputOperatorHarness(
        IntervalJoinSpec(function, lower, upper, **spec),
        lambda record: record[0],
        lambda record: record[0],
        **harness,
    )


@pytest.mark.parametrize(
    ("bounds", "partners"),
    [
        ({}, [8, 9, 10, 11, 12]),
        ({"lower_inclusive": False}, [9, 10, 11, 12]),
        ({"upper_inclusive": False}, [8, 9, 10, 11]),
        ({"lower_inclusive": False, "upper_inclusive": False}, [9, 10, 11]),
    ],
)
@pytest.mark.parametrize("left_comes_first", [True, False])
def test_bounds_are_inclusive_unless_excluded(
    bounds: dict[str, bool], partners: list[int], left_comes_first: bool
) -> None:
    with join(-2, 2, **bounds) as harness:
        if left_comes_first:
            harness.process_element1(("a", 10), 10)
        for time in range(5, 16):
            harness.process_element2(("a", time), time)
        if not left_comes_first:
            harness.process_element1(("a", 10), 10)
        assert harness.values() == [(10, time) for time in partners]


def test_records_with_different_keys_are_not_joined() -> None:
    with join(-5, 5) as harness:
        harness.process_element1(("a", 1), 10)
        harness.process_element2(("b", 2), 10)
        harness.process_element2((True, 3), 10)
        harness.process_element1((1, 4), 10)
        assert harness.values() == []


def test_a_pair_has_the_later_timestamp_also_in_side_outputs() -> None:
    with join(-5, 5) as harness:
        harness.process_element1(("a", 1), 10)
        harness.process_element2(("a", 2), 7)
        harness.process_element2(("a", 3), 12)
        assert harness.records() == [((1, 2), 10), ((1, 3), 12)]
        assert harness.records(SIDE) == [((10, 7, 10), 10), ((10, 12, 12), 12)]


@pytest.mark.parametrize(
    ("lower", "upper", "left_is_gone_at", "right_is_gone_at"),
    [(-2, 3, 13, 12), (1, 3, 13, 10), (-4, -2, 10, 14), (0, 0, 10, 10)],
)
def test_records_are_kept_until_no_partner_can_arrive(
    lower: int, upper: int, left_is_gone_at: int, right_is_gone_at: int
) -> None:
    for gone_at, is_left in ((left_is_gone_at, True), (right_is_gone_at, False)):
        with join(lower, upper) as harness:
            (harness.process_element1 if is_left else harness.process_element2)(("a", 1), 10)
            harness.process_both_watermarks(gone_at - 1)
            assert harness.state_entry_count() == 1
            harness.process_both_watermarks(gone_at)
            assert harness.state_entry_count() == 0
            assert harness.event_time_timer_count() == 0


def test_the_slower_input_decides_which_records_are_late() -> None:
    left, right = OutputTag("left"), OutputTag("right")
    with join(-5, 5, left_late_tag=left, right_late_tag=right) as harness:
        harness.process_watermark1(20)
        harness.process_element1(("a", 1), 9)
        harness.process_watermark2(10)
        harness.process_element1(("a", 2), 9)
        harness.process_element2(("a", 3), 8)
        harness.process_element1(("a", 4), 10)  # a record at the watermark is not late
        assert harness.records(left) == [(("a", 2), 9)]
        assert harness.records(right) == [(("a", 3), 8)]
        assert harness.values() == []
        harness.process_element2(("a", 5), 10)
        assert harness.values() == [(1, 5), (4, 5)]


def test_late_records_without_a_tag_are_dropped() -> None:
    with join(-5, 5) as harness:
        harness.process_both_watermarks(10)
        harness.process_element1(("a", 1), 9)
        harness.process_element2(("a", 1), 9)
        assert harness.values() == []
        assert harness.state_entry_count() == 0


@pytest.mark.parametrize("timestamp", [None, -(2**63)])
def test_a_record_without_a_timestamp_is_refused(timestamp: int | None) -> None:
    with join(-5, 5) as harness:
        for take in (harness.process_element1, harness.process_element2):
            with pytest.raises(ValueError, match=r"record \('a', 1\) has no timestamp"):
                take(("a", 1), timestamp)
        assert harness.operator.current_key == "a"


def test_the_function_is_opened_and_closed() -> None:
    function = Pairs()
    with join(-5, 5, function=function):
        assert function.life == ["open"]
    assert function.life == ["open", "close"]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_buffered_records_and_their_timers_survive_a_restart(parallelism: int) -> None:
    keys = "abcdef"
    with join(-5, 5, harness={"max_parallelism": 8}) as harness:
        for key in keys:
            harness.process_element1((key, 1), 10)
            harness.process_element1((key, 2), 2)
            harness.process_element1((key, 3), 10)
        harness.process_both_watermarks(7)
        snapshot = harness.snapshot()
    found = []
    for subtask in range(parallelism):
        settings = {
            "max_parallelism": 8,
            "parallelism": parallelism,
            "subtask": subtask,
            "snapshots": [snapshot],
        }
        with join(-5, 5, harness=settings) as harness:
            for key in filter(harness.owns, keys):
                harness.process_element2((key, 4), 6)
                found += [(key, pair) for pair in harness.values()]
                harness.clear_output()
            harness.end_input()
            assert harness.state_entry_count() == 0
    assert sorted(found) == [(key, pair) for key in keys for pair in ((1, 4), (3, 4))]


def test_buffered_records_are_sorted_by_timestamp() -> None:
    buffer = TimeBuffer()
    assert [buffer.add(time, name) for time, name in ((5, "a"), (1, "b"), (5, "c"), (3, "d"))] == [
        True,
        True,
        False,
        True,
    ]
    assert buffer.between(1, 5) == [(1, "b"), (3, "d"), (5, "a"), (5, "c")]
    assert buffer.between(2, 4) == [(3, "d")]
    buffer.remove(5)
    buffer.remove(4)
    assert buffer.between(0, 9) == [(1, "b"), (3, "d")]
    assert buffer.times == [1, 3]


def test_in_processing_time_records_are_joined_by_arrival() -> None:
    with join(-2, 3, is_event_time=False) as harness:
        harness.set_processing_time(10)
        harness.process_element1(("a", 1))
        harness.set_processing_time(13)
        harness.process_element2(("a", 2))
        assert harness.values() == [(1, 2)]
        assert harness.values(SIDE) == [(10, 13, 13)]
        harness.set_processing_time(14)
        harness.process_element2(("a", 3))
        harness.set_processing_time(15)
        harness.process_element1(("a", 4))
        assert harness.values() == [(1, 2), (4, 2), (4, 3)]
        # All are too old to be joined with later records.
        harness.set_processing_time(100)
        assert harness.operator.left.buffers == {}  # type: ignore[attr-defined]
        assert harness.operator.right.buffers == {}  # type: ignore[attr-defined]


def test_in_processing_time_no_record_is_late_and_results_have_no_timestamps() -> None:
    with join(0, 0, is_event_time=False) as harness:
        harness.process_watermark1(100)
        harness.process_watermark2(100)
        harness.process_element1(("a", 1), 5)
        harness.process_element2(("a", 2), None)
        (record,) = harness.records()
        assert record.timestamp is None
