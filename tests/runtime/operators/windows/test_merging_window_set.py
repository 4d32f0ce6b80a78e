from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.functions.window import TimeWindow
from opchain.runtime.operators.windows.merging_window_operator import MergingWindowSet
from opchain.runtime.windows.assigners import MergingWindowAssigner
from opchain.runtime.windows.time_windows import (
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

SESSIONS = EventTimeSessionWindows.with_gap(3)


class Sessions:
    """A set with its mapping, and the merges that it reported."""

    def __init__(
        self,
        assigner: MergingWindowAssigner[Any, Any] = SESSIONS,
        in_order: list[TimeWindow] | None = None,
    ) -> None:
        self.set: MergingWindowSet[TimeWindow] = MergingWindowSet(assigner, {}, in_order)
        self.merges: list[tuple[Any, ...]] = []

    def add(self, start: int, end: int) -> TimeWindow:
        return self.set.add(TimeWindow(start, end), self._on_merge)

    def _on_merge(self, *merge: Any) -> None:
        self.merges.append(merge)

    def active(self) -> dict[tuple[int, int], tuple[int, int]]:
        return {
            (window.start, window.end): (state.start, state.end)
            for window, state in self.set.mapping.items()
        }


def test_separate_windows_have_their_own_state() -> None:
    sessions = Sessions()
    assert sessions.add(0, 4) == TimeWindow(0, 4)
    assert sessions.add(5, 8) == TimeWindow(5, 8)
    assert sessions.active() == {(0, 4): (0, 4), (5, 8): (5, 8)}
    assert sessions.merges == []


def test_a_window_that_grows_keeps_its_state_window() -> None:
    sessions = Sessions()
    sessions.add(1, 4)
    assert sessions.add(0, 2) == TimeWindow(0, 4)
    assert sessions.active() == {(0, 4): (1, 4)}
    assert sessions.merges == [(TimeWindow(0, 4), [TimeWindow(1, 4)], TimeWindow(1, 4), [])]


def test_a_window_inside_another_changes_nothing() -> None:
    sessions = Sessions()
    sessions.add(0, 10)
    assert sessions.add(3, 6) == TimeWindow(0, 10)
    assert sessions.active() == {(0, 10): (0, 10)}
    assert sessions.merges == []


def test_a_window_that_joins_two_keeps_the_state_window_of_one_of_them() -> None:
    sessions = Sessions()
    sessions.add(10, 13)
    sessions.add(1, 4)
    assert sessions.add(4, 10) == TimeWindow(1, 13)
    assert sessions.active() == {(1, 13): (10, 13)}
    assert sessions.merges == [
        (
            TimeWindow(1, 13),
            [TimeWindow(10, 13), TimeWindow(1, 4)],
            TimeWindow(10, 13),
            [TimeWindow(1, 4)],
        )
    ]


def test_a_window_equal_to_a_grown_one_is_merged_into_it() -> None:
    """Flink loses the contents of [0, 2) here."""
    sessions = Sessions()
    sessions.add(0, 2)
    sessions.add(1, 4)
    assert sessions.add(0, 4) == TimeWindow(0, 4)
    assert sessions.active() == {(0, 4): (0, 2)}


def test_a_window_can_be_removed() -> None:
    sessions = Sessions()
    window = sessions.add(0, 4)
    sessions.set.remove(window)
    assert sessions.set.state_window(window) is None
    with pytest.raises(KeyError):
        sessions.set.remove(window)


class MergesWrongly(MergingWindowAssigner[Any, TimeWindow]):
    def __init__(self, *group: TimeWindow) -> None:
        self.group = group

    def merge_windows(
        self,
        windows: Iterable[TimeWindow],
        callback: MergingWindowAssigner.MergeCallback[TimeWindow],
    ) -> None:
        callback.merge(self.group, TimeWindow(0, 100))

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[TimeWindow]:
        return []

    def get_default_trigger(self, env: Any) -> Any:
        return None

    def is_event_time(self) -> bool:
        return True


@pytest.mark.parametrize(
    "group", [(TimeWindow(7, 8),), (TimeWindow(0, 4),)], ids=["unknown", "alone"]
)
def test_an_assigner_that_merges_unknown_or_single_windows_is_refused(
    group: tuple[TimeWindow, ...],
) -> None:
    with pytest.raises(ValueError, match="call merge only with windows from its argument"):
        Sessions(MergesWrongly(*group)).add(0, 4)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 8)), max_size=20))
def test_state_windows_hold_the_records_of_the_session(records: list[tuple[int, int]]) -> None:
    """Records moved along with their state windows through all merges are those of the definition."""
    sessions = Sessions(DynamicEventTimeSessionWindows(lambda record: record[1]))
    contents: dict[TimeWindow, list[tuple[int, int]]] = {}

    def move(_result: Any, _merged: Any, target: TimeWindow, sources: list[TimeWindow]) -> None:
        for source in sources:
            contents[target] += contents.pop(source)

    for time, gap in records:
        window = sessions.set.add(TimeWindow(time, time + gap), move)
        state_window = sessions.set.state_window(window)
        assert state_window is not None
        contents.setdefault(state_window, []).append((time, gap))
    found = {
        (window.start, window.end): sorted(contents[state])
        for window, state in sessions.set.mapping.items()
    }
    assert found == _sessions_by_definition(records)
    assert len(contents) == len(found)


def _sessions_by_definition(
    records: list[tuple[int, int]],
) -> dict[tuple[int, int], list[tuple[int, int]]]:
    sessions: list[list[tuple[int, int]]] = []
    end = -1
    for time, gap in sorted(records):
        if not sessions or time > end:
            sessions.append([])
            end = time + gap
        sessions[-1].append((time, gap))
        end = max(end, time + gap)
    return {
        (session[0][0], max(time + gap for time, gap in session)): session for session in sessions
    }


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 60), st.integers(1, 9)), max_size=40),
)
def test_a_sorted_set_merges_the_same_windows(steps: list[tuple[bool, int, int]]) -> None:
    in_order: list[TimeWindow] = []
    plain, sorts = Sessions(), Sessions(in_order=in_order)
    for removes, start, size in steps:
        if removes and plain.set.mapping:
            gone = sorted(plain.set.mapping)[start % len(plain.set.mapping)]
            plain.set.remove(gone)
            sorts.set.remove(gone)
        else:
            assert plain.add(start, start + size) == sorts.add(start, start + size)
        assert sorts.active() == plain.active()
        assert sorts.merges == plain.merges
        assert in_order == sorted(plain.set.mapping)
