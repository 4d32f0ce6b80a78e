from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.functions.window import CountWindow, GlobalWindow, TimeWindow, Window
from opchain.runtime.time import MAX_LONG_VALUE
from opchain.runtime.windows.assigners import MergingWindowAssigner

TIME_WINDOWS = st.builds(
    lambda start, size: TimeWindow(start, start + size), st.integers(-30, 30), st.integers(0, 8)
)


class Merges(MergingWindowAssigner.MergeCallback[TimeWindow]):
    def __init__(self) -> None:
        self.seen: list[tuple[list[TimeWindow], TimeWindow]] = []

    def merge(self, to_be_merged: Any, merge_result: TimeWindow) -> None:
        self.seen.append((list(to_be_merged), merge_result))


def merged(*windows: TimeWindow) -> list[tuple[list[TimeWindow], TimeWindow]]:
    callback = Merges()
    TimeWindow.merge_windows(windows, callback)
    return callback.seen


# (timestamp, offset, size, start): results of TimeWindow.getWindowStartWithOffset of Flink 2.3.
STARTS = [
    (-1, 0, 10, -10),
    (-10, 0, 10, -10),
    (-11, 3, 10, -17),
    (5, 7, 10, -3),
    (7, 7, 10, 7),
    (-3, -4, 10, -4),
    (0, -4, 10, -4),
]


@pytest.mark.parametrize(("timestamp", "offset", "size", "start"), STARTS)
def test_window_start_is_that_of_flink(timestamp: int, offset: int, size: int, start: int) -> None:
    assert TimeWindow.get_window_start_with_offset(timestamp, offset, size) == start


@given(st.integers(), st.integers(), st.integers(1, 2**40))
def test_a_window_starts_at_or_before_its_timestamp_and_ends_after_it(
    timestamp: int, offset: int, size: int
) -> None:
    start = TimeWindow.get_window_start_with_offset(timestamp, offset, size)
    assert start <= timestamp < start + size
    assert (start - offset) % size == 0


def test_max_timestamp_is_one_millisecond_before_the_end() -> None:
    assert TimeWindow(3, 10).max_timestamp() == 9


@pytest.mark.parametrize(
    ("left", "right", "do"),
    [
        ((0, 5), (5, 9), True),
        ((0, 5), (6, 9), False),
        ((0, 9), (2, 3), True),
        ((5, 9), (0, 5), True),
    ],
)
def test_overlapping_or_adjacent_windows_intersect(
    left: tuple[int, int], right: tuple[int, int], do: bool
) -> None:
    assert TimeWindow(*left).intersects(TimeWindow(*right)) is do


@given(TIME_WINDOWS, TIME_WINDOWS)
def test_cover_is_the_smallest_window_around_both(left: TimeWindow, right: TimeWindow) -> None:
    assert left.cover(right) == TimeWindow(min(left.start, right.start), max(left.end, right.end))


def test_merged_windows_are_those_of_flink() -> None:
    windows = [TimeWindow(*w) for w in [(10, 12), (2, 4), (11, 11), (0, 2), (5, 6)]]
    assert merged(*windows) == [
        ([TimeWindow(0, 2), TimeWindow(2, 4)], TimeWindow(0, 4)),
        ([TimeWindow(11, 11), TimeWindow(10, 12)], TimeWindow(10, 12)),
    ]


def test_merged_windows_have_the_order_of_pyflinks_set() -> None:
    early, between, late = TimeWindow(100, 1900), TimeWindow(1800, 2800), TimeWindow(2500, 3500)
    ((group, whole),) = merged(early, late, between)
    assert whole == TimeWindow(100, 3500)
    # PyFlink 2.3 emits records at 100, 900, 2500 and 1800 in the order third, first, second, fourth.
    assert [window for window in group if window != between] == [late, early]


def test_a_single_window_is_not_merged() -> None:
    assert merged(TimeWindow(0, 1), TimeWindow(0, 1)) == []


@given(st.lists(TIME_WINDOWS, max_size=12))
def test_no_two_windows_intersect_after_merging(windows: list[TimeWindow]) -> None:
    groups = merged(*windows)
    gone = {window for group, _ in groups for window in group}
    left = [window for window in set(windows) if window not in gone] + [w for _, w in groups]
    assert not [(a, b) for a in left for b in left if a is not b and a.intersects(b)]
    for group, result in groups:
        assert len(group) == len(set(group))
        ends = max(window.end for window in group)
        assert (result.start, result.end) == (min(group).start, ends)


WINDOWS: list[list[Window]] = [
    [TimeWindow(0, 5), TimeWindow(0, 6), TimeWindow(1, 2)],
    [CountWindow(0), CountWindow(1), CountWindow(20)],
]


@pytest.mark.parametrize("windows", WINDOWS, ids=["time", "count"])
def test_windows_are_ordered_by_time_or_number(windows: list[Any]) -> None:
    assert sorted([windows[2], windows[0], windows[1]]) == windows
    for at, window in enumerate(windows):
        assert [window <= other for other in windows] == [at <= o for o in range(len(windows))]
        assert [window > other for other in windows] == [at > o for o in range(len(windows))]


ONE_OF_EACH: list[Any] = [TimeWindow(1, 2), CountWindow(3), GlobalWindow.get()]


@pytest.mark.parametrize("window", ONE_OF_EACH, ids=repr)
def test_windows_are_compared_and_hashed_by_value(window: Any) -> None:
    copy = pickle.loads(pickle.dumps(window))
    assert copy == window
    assert hash(copy) == hash(window)
    assert [other == window for other in ONE_OF_EACH].count(True) == 1
    assert window <= copy
    assert not window < copy


@pytest.mark.parametrize("window", ONE_OF_EACH, ids=repr)
def test_windows_of_different_classes_cannot_be_ordered(window: Any) -> None:
    for other in ONE_OF_EACH:
        if other is not window:
            with pytest.raises(TypeError):
                assert window < other
            with pytest.raises(TypeError):
                assert window <= other


def test_hashes_of_windows_are_the_same_in_every_process() -> None:
    assert hash(TimeWindow(1, 2)) == hash((1, 2))
    assert hash(CountWindow(7)) == 7
    assert hash(GlobalWindow.get()) == 0


def test_windows_without_an_end_have_the_largest_timestamp() -> None:
    assert CountWindow(0).max_timestamp() == GlobalWindow.get().max_timestamp() == MAX_LONG_VALUE


def test_global_window_is_a_singleton() -> None:
    assert pickle.loads(pickle.dumps(GlobalWindow.get())) is GlobalWindow.get()
    assert GlobalWindow() == GlobalWindow.get()


def test_max_timestamp_of_a_users_window_is_abstract() -> None:
    class Mine(Window):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Mine()  # type: ignore[abstract]


def test_windows_are_printed_as_in_pyflink() -> None:
    assert [repr(window) for window in ONE_OF_EACH] == [
        "TimeWindow(start=1, end=2)",
        "CountWindow(id=3)",
        "GlobalWindow",
    ]
