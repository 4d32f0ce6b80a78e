from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.functions.window import TimeWindow
from opchain.runtime.time import MIN_LONG_VALUE, Time
from opchain.runtime.windows.assigners import MergingWindowAssigner, WindowAssigner
from opchain.runtime.windows.time_windows import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SessionWindowTimeGapExtractor,
)
from opchain.runtime.windows.triggers import EventTimeTrigger, ProcessingTimeTrigger


class At(WindowAssigner.WindowAssignerContext):
    def get_current_processing_time(self) -> int:
        return 500

    def get_runtime_context(self) -> Any:
        raise NotImplementedError


class Merges(MergingWindowAssigner.MergeCallback[TimeWindow]):
    def __init__(self) -> None:
        self.results: list[TimeWindow] = []

    def merge(self, to_be_merged: Any, merge_result: TimeWindow) -> None:
        self.results.append(merge_result)


class FirstField(SessionWindowTimeGapExtractor[tuple[int, str]]):
    def extract(self, element: tuple[int, str]) -> int:
        return element[0]


EVENT_TIME: list[Any] = [
    EventTimeSessionWindows.with_gap(Time.milliseconds(7)),
    EventTimeSessionWindows.with_dynamic_gap(FirstField()),
    DynamicEventTimeSessionWindows.with_dynamic_gap(lambda element: element[0]),
]
PROCESSING_TIME: list[Any] = [
    ProcessingTimeSessionWindows.with_gap(7),
    ProcessingTimeSessionWindows.with_dynamic_gap(FirstField()),
    DynamicProcessingTimeSessionWindows.with_dynamic_gap(lambda element: element[0]),
]


@pytest.mark.parametrize("assigner", EVENT_TIME, ids=repr)
def test_an_event_time_session_lasts_from_the_timestamp_for_the_gap(assigner: Any) -> None:
    assert assigner.assign_windows((7, "a"), 20, At()) == [TimeWindow(20, 27)]
    assert assigner.is_event_time()
    assert type(assigner.get_default_trigger(None)) is EventTimeTrigger


@pytest.mark.parametrize("assigner", PROCESSING_TIME, ids=repr)
def test_a_processing_time_session_lasts_from_the_current_time_for_the_gap(assigner: Any) -> None:
    assert assigner.assign_windows((7, "a"), 20, At()) == [TimeWindow(500, 507)]
    assert not assigner.is_event_time()
    assert type(assigner.get_default_trigger(None)) is ProcessingTimeTrigger


@pytest.mark.parametrize("assigner", EVENT_TIME + PROCESSING_TIME, ids=repr)
def test_adjacent_sessions_are_merged(assigner: Any) -> None:
    callback = Merges()
    windows = [TimeWindow(0, 5), TimeWindow(20, 25), TimeWindow(5, 9)]
    assigner.merge_windows(windows, callback)
    assert callback.results == [TimeWindow(0, 9)]


@pytest.mark.parametrize("assigner", EVENT_TIME, ids=repr)
def test_event_time_sessions_require_a_timestamp(assigner: Any) -> None:
    with pytest.raises(ValueError, match="has no timestamp"):
        assigner.assign_windows((7, "a"), MIN_LONG_VALUE, At())


@pytest.mark.parametrize("kind", [EventTimeSessionWindows, ProcessingTimeSessionWindows])
@pytest.mark.parametrize("gap", [0, -1])
def test_a_gap_must_be_positive(kind: Any, gap: int) -> None:
    with pytest.raises(ValueError, match=f"{kind.__name__}: the gap is {gap} ms"):
        kind.with_gap(gap)


@pytest.mark.parametrize("assigner", [EVENT_TIME[1], PROCESSING_TIME[1]], ids=repr)
def test_the_dynamic_gap_of_a_record_must_be_positive(assigner: Any) -> None:
    with pytest.raises(ValueError, match=r"gap of record \(0, 'a'\) is 0 ms; it must be positive"):
        assigner.assign_windows((0, "a"), 20, At())


def test_a_dynamic_gap_is_computed_by_an_extractor_or_a_callable() -> None:
    with pytest.raises(TypeError, match="expected a SessionWindowTimeGapExtractor or a callable"):
        EventTimeSessionWindows.with_dynamic_gap(5)  # type: ignore[arg-type]


def test_session_windows_are_printed_and_pickled() -> None:
    assigners = [*EVENT_TIME[:2], *PROCESSING_TIME[:2]]
    assert [repr(pickle.loads(pickle.dumps(assigner))) for assigner in assigners] == [
        "EventTimeSessionWindows(7)",
        "DynamicEventTimeSessionWindows()",
        "ProcessingTimeSessionWindows(7)",
        "DynamicProcessingTimeSessionWindows()",
    ]


@given(st.lists(st.integers(-100, 100), min_size=1, max_size=20), st.integers(1, 10))
def test_sessions_are_runs_of_records_no_further_apart_than_the_gap(
    times: list[int], gap: int
) -> None:
    assigner = EventTimeSessionWindows.with_gap(gap)
    windows = [window for t in times for window in assigner.assign_windows(None, t, At())]
    callback = Merges()
    assigner.merge_windows(windows, callback)
    merged = callback.results + [
        window for window in set(windows) if not any(window.intersects(w) for w in callback.results)
    ]
    ordered = sorted(set(times))
    starts = [t for i, t in enumerate(ordered) if i == 0 or t - ordered[i - 1] > gap]
    ends = [t for i, t in enumerate(ordered) if i + 1 == len(ordered) or ordered[i + 1] - t > gap]
    assert sorted(merged) == [
        TimeWindow(start, end + gap) for start, end in zip(starts, ends, strict=True)
    ]
