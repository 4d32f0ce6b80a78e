from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.functions.window import TimeWindow
from opchain.runtime.time import Duration, Time
from opchain.runtime.windows.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    EventTimeTrigger,
    ProcessingTimeTrigger,
    TriggerResult,
)

WINDOW = TimeWindow(0, 10)


def test_event_time_trigger_fires_at_the_end_and_for_each_late_element(
    panes: Any,
) -> None:
    pane = panes(EventTimeTrigger.create())
    assert pane.elements(WINDOW, 3, 9) == ["CONTINUE", "CONTINUE"]
    assert pane.advance_watermark(8) == []
    assert pane.advance_watermark(9) == [(9, "FIRE")]
    assert pane.elements(WINDOW, 4, 5) == ["FIRE", "FIRE"]
    assert pane.event_timers == set()


def test_event_time_trigger_ignores_other_timers(panes: Any) -> None:
    pane = panes(EventTimeTrigger())
    pane.event_timers.add((5, WINDOW))
    pane.processing_timers.add((5, WINDOW))
    assert pane.advance_watermark(7) == [(5, "CONTINUE")]
    assert pane.advance_clock(7) == [(5, "CONTINUE")]


@pytest.mark.parametrize(("watermark", "timers"), [(13, {14}), (14, set())])
def test_event_time_trigger_sets_a_timer_for_a_future_end_of_a_merged_window(
    panes: Any, watermark: int, timers: set[int]
) -> None:
    pane = panes(EventTimeTrigger())
    parts = TimeWindow(0, 10), TimeWindow(5, 15)
    for part in parts:
        pane.element(part)
    pane.event_timers = {timer for timer in pane.event_timers if timer[0] > watermark}
    pane.watermark = watermark
    pane.merge(TimeWindow(0, 15), *parts)
    assert pane.event_timers == {(time, TimeWindow(0, 15)) for time in timers}


def test_processing_time_trigger_fires_at_the_end_of_the_window_only(
    panes: Any,
) -> None:
    pane = panes(ProcessingTimeTrigger.create())
    assert pane.elements(WINDOW, 3) == ["CONTINUE"]
    assert pane.advance_watermark(100) == []
    assert pane.advance_clock(9) == [(9, "FIRE")]
    assert pane.elements(WINDOW, 3) == ["CONTINUE"]
    assert pane.advance_clock(9) == [(9, "FIRE")]


@pytest.mark.parametrize(("now", "timers"), [(13, {14}), (14, set())])
def test_processing_time_trigger_sets_a_timer_for_the_end_of_a_merged_window(
    panes: Any, now: int, timers: set[int]
) -> None:
    pane = panes(ProcessingTimeTrigger())
    pane.now = now
    pane.merge(TimeWindow(0, 15), TimeWindow(0, 10), TimeWindow(5, 15))
    assert {time for time, _ in pane.processing_timers} == timers


def test_processing_time_trigger_ignores_event_time_timers(panes: Any) -> None:
    pane = panes(ProcessingTimeTrigger())
    pane.event_timers.add((5, WINDOW))
    assert pane.advance_watermark(7) == [(5, "CONTINUE")]


def test_continuous_event_time_trigger_fires_at_multiples_and_at_the_end(panes: Any) -> None:
    pane = panes(ContinuousEventTimeTrigger.of(Duration.of_millis(3)))
    assert pane.elements(WINDOW, 1, 2, 7) == ["CONTINUE"] * 3
    assert pane.advance_watermark(20) == [(3, "FIRE"), (6, "FIRE"), (9, "FIRE")]
    assert pane.element(WINDOW, 4) is TriggerResult.FIRE


def test_continuous_event_time_trigger_fires_at_an_end_that_is_not_a_multiple(panes: Any) -> None:
    pane = panes(ContinuousEventTimeTrigger.of(4))
    pane.element(WINDOW, 1)
    assert pane.advance_watermark(20) == [(4, "FIRE"), (8, "FIRE"), (9, "FIRE")]


def test_continuous_event_time_trigger_is_started_by_the_first_element_only(panes: Any) -> None:
    pane = panes(ContinuousEventTimeTrigger.of(Time.milliseconds(4)))
    pane.elements(WINDOW, 5, 1)
    assert pane.advance_watermark(20) == [(8, "FIRE"), (9, "FIRE")]


@pytest.mark.parametrize("trigger", [ContinuousEventTimeTrigger, ContinuousProcessingTimeTrigger])
def test_continuous_triggers_continue_at_a_timer_of_another_trigger(
    panes: Any, trigger: Any
) -> None:
    pane = panes(trigger.of(4))
    pane.event_timers.add((5, WINDOW))
    pane.processing_timers.add((5, WINDOW))
    assert pane.advance_watermark(5) + pane.advance_clock(5) == [(5, "CONTINUE")] * 2


def test_continuous_processing_time_trigger_uses_multiples_of_the_interval(panes: Any) -> None:
    pane = panes(ContinuousProcessingTimeTrigger.of(4))
    pane.now = 1
    assert pane.elements(WINDOW, 7) == ["CONTINUE"]
    assert pane.advance_clock(4) == [(4, "FIRE")]
    assert pane.advance_clock(30) == [(8, "FIRE"), (9, "FIRE")]


@pytest.mark.parametrize("kind", ["event", "clock"])
def test_continuous_triggers_of_merged_windows_fire_at_the_earliest_time(
    panes: Any, kind: str
) -> None:
    pane = panes(
        (ContinuousEventTimeTrigger if kind == "event" else ContinuousProcessingTimeTrigger).of(4)
    )
    first, second, both = TimeWindow(1, 11), TimeWindow(9, 19), TimeWindow(1, 19)
    pane.now = 9
    pane.element(second, 9)
    pane.now = 1
    pane.element(first, 1)
    pane.merge(both, first, second)
    advance = pane.advance_watermark if kind == "event" else pane.advance_clock
    assert [time for time, result in advance(16) if result == "FIRE"] == [4, 8, 12, 16]


TRIGGERS = {
    "event": EventTimeTrigger(),
    "processing": ProcessingTimeTrigger(),
    "continuous event": ContinuousEventTimeTrigger.of(4),
    "continuous processing": ContinuousProcessingTimeTrigger.of(4),
}


@pytest.mark.parametrize("trigger", TRIGGERS.values(), ids=TRIGGERS.keys())
def test_time_triggers_can_merge_and_be_pickled(trigger: Any) -> None:
    assert trigger.can_merge()
    assert repr(pickle.loads(pickle.dumps(trigger))) == repr(trigger)


@pytest.mark.parametrize("trigger", [TRIGGERS["processing"], TRIGGERS["continuous processing"]])
def test_clear_of_processing_time_triggers_removes_timers_and_state(
    panes: Any, trigger: Any
) -> None:
    pane = panes(trigger)
    pane.element(WINDOW, 1)
    assert not pane.is_clean()
    pane.clear(WINDOW)
    assert pane.is_clean()


def test_clear_of_event_time_triggers_removes_timers_and_state(panes: Any) -> None:
    pane = panes(TRIGGERS["event"])
    pane.element(WINDOW, 1)
    pane.clear(WINDOW)
    assert pane.is_clean()


def test_clear_of_continuous_event_time_trigger_keeps_the_end_timer_as_in_flink(
    panes: Any,
) -> None:
    pane = panes(TRIGGERS["continuous event"])
    pane.element(WINDOW, 1)
    pane.clear(WINDOW)
    assert pane.event_timers == {(9, WINDOW)}
    pane.event_timers.clear()
    assert pane.is_clean()


def test_names_of_triggers_are_those_of_flink() -> None:
    assert [repr(trigger) for trigger in TRIGGERS.values()] == [
        "EventTimeTrigger()",
        "ProcessingTimeTrigger()",
        "ContinuousEventTimeTrigger(4)",
        "ContinuousProcessingTimeTrigger(4)",
    ]


@pytest.mark.parametrize("interval", [0, -1])
def test_an_interval_must_be_positive(interval: int) -> None:
    with pytest.raises(ValueError, match=rf"ContinuousEventTimeTrigger is {interval} ms"):
        ContinuousEventTimeTrigger.of(interval)


@given(
    start=st.integers(-50, 50),
    size=st.integers(1, 30),
    interval=st.integers(1, 12),
    offset=st.integers(0, 29),
    steps=st.lists(st.integers(1, 20), max_size=8),
)
def test_continuous_event_time_trigger_fires_at_each_multiple_after_an_element(
    panes: Any, start: int, size: int, interval: int, offset: int, steps: list[int]
) -> None:
    window = TimeWindow(start, start + size)
    first = start + offset % size
    pane = panes(ContinuousEventTimeTrigger.of(interval), watermark=first - 1)
    pane.element(window, first)
    fired = []
    for step in [*steps, 100]:
        fired += pane.advance_watermark(pane.watermark + step)
    end = window.max_timestamp()
    multiples = {time for time in range(first + 1, end + 1) if time % interval == 0}
    assert fired == [(time, "FIRE") for time in sorted(multiples | {end})]
