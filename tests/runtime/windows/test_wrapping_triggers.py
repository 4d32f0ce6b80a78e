from __future__ import annotations

import pickle
from typing import Any

import pytest

from opchain.runtime.functions.window import TimeWindow
from opchain.runtime.time import Duration
from opchain.runtime.windows.data_triggers import (
    CountTrigger,
    DeltaTrigger,
    ProcessingTimeoutTrigger,
    PurgingTrigger,
)
from opchain.runtime.windows.global_windows import NeverTrigger
from opchain.runtime.windows.triggers import (
    ContinuousEventTimeTrigger,
    EventTimeTrigger,
    ProcessingTimeTrigger,
    Trigger,
    TriggerResult,
)

WINDOW = TimeWindow(0, 1000)


class Says(Trigger[Any, Any]):
    """Returns the same result from every method."""

    def __init__(self, result: TriggerResult) -> None:
        self.result = result

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        return self.result

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return self.result

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return self.result

    def clear(self, window: Any, ctx: Any) -> None:
        pass


PURGED = {
    "CONTINUE": "CONTINUE",
    "FIRE": "FIRE_AND_PURGE",
    "PURGE": "PURGE",
    "FIRE_AND_PURGE": "FIRE_AND_PURGE",
}


@pytest.mark.parametrize(("said", "purged"), PURGED.items())
def test_purging_trigger_turns_fire_into_fire_and_purge(panes: Any, said: str, purged: str) -> None:
    pane = panes(PurgingTrigger.of(Says(TriggerResult[said])))
    pane.event_timers.add((1, WINDOW))
    pane.processing_timers.add((1, WINDOW))
    assert pane.element(WINDOW).name == purged
    assert pane.advance_watermark(1) + pane.advance_clock(1) == [(1, purged)] * 2


def test_purging_trigger_merges_and_clears_its_nested_trigger(panes: Any) -> None:
    pane = panes(PurgingTrigger(CountTrigger(3)))
    left, right, both = TimeWindow(0, 2), TimeWindow(1, 3), TimeWindow(0, 3)
    for window in (left, right):
        pane.element(window)
    pane.merge(both, left, right)
    assert pane.element(both).name == "FIRE_AND_PURGE"
    pane.element(both)
    pane.clear(both)
    assert pane.is_clean()
    assert PurgingTrigger.of(EventTimeTrigger()).can_merge()
    assert not PurgingTrigger.of(DeltaTrigger.of(1, max)).can_merge()


def test_timeout_trigger_fires_before_its_nested_trigger(panes: Any) -> None:
    pane = panes(ProcessingTimeoutTrigger.of(CountTrigger.of(3), Duration.of_millis(10)), now=100)
    assert pane.elements(WINDOW, 1) == ["CONTINUE"]
    pane.now = 105
    assert pane.elements(WINDOW, 1) == ["CONTINUE"]
    assert pane.advance_clock(110) == [(110, "FIRE")]
    assert pane.elements(WINDOW, 1, 1, 1) == ["CONTINUE", "CONTINUE", "FIRE"]
    assert pane.is_clean()


def test_the_timeout_can_be_restarted_by_each_element(panes: Any) -> None:
    pane = panes(ProcessingTimeoutTrigger.of(CountTrigger.of(9), 10, True), now=100)
    pane.element(WINDOW)
    pane.now = 105
    pane.element(WINDOW)
    assert pane.advance_clock(200) == [(115, "FIRE")]


def test_the_timeout_can_leave_the_nested_trigger_unchanged(panes: Any) -> None:
    trigger = ProcessingTimeoutTrigger.of(CountTrigger.of(3), 10, should_clear_on_timeout=False)
    pane = panes(trigger)
    pane.elements(WINDOW, 1, 1)
    assert pane.advance_clock(10) == [(10, "FIRE")]
    assert pane.elements(WINDOW, 1) == ["FIRE"]


def test_the_timeout_is_cancelled_when_the_nested_trigger_fires(panes: Any) -> None:
    pane = panes(ProcessingTimeoutTrigger.of(CountTrigger.of(2), 10))
    assert pane.elements(WINDOW, 1, 1) == ["CONTINUE", "FIRE"]
    assert pane.advance_clock(100) == []
    assert pane.is_clean()


@pytest.mark.parametrize(
    ("nested", "result"),
    [
        (ContinuousEventTimeTrigger.of(400), "FIRE"),
        (PurgingTrigger(EventTimeTrigger()), "FIRE_AND_PURGE"),
    ],
    ids=repr,
)
def test_an_event_time_timer_of_the_nested_trigger_fires(
    panes: Any, nested: Any, result: str
) -> None:
    pane = panes(ProcessingTimeoutTrigger.of(nested, 10))
    pane.element(WINDOW, 1)
    assert pane.advance_watermark(999)[-1] == (999, result)


def test_a_processing_time_timer_of_the_nested_trigger_fires(panes: Any) -> None:
    pane = panes(ProcessingTimeoutTrigger.of(ProcessingTimeTrigger(), 5000))
    pane.element(WINDOW, 1)
    assert pane.advance_clock(999) == [(999, "FIRE")]
    assert pane.is_clean()


def test_timeout_trigger_cannot_merge() -> None:
    assert not ProcessingTimeoutTrigger.of(CountTrigger.of(1), 1).can_merge()


@pytest.mark.parametrize(
    "wrap", [PurgingTrigger.of, lambda nested: ProcessingTimeoutTrigger.of(nested, 1)]
)
def test_an_object_that_is_not_a_trigger_cannot_be_wrapped(wrap: Any) -> None:
    with pytest.raises(TypeError, match="takes a Trigger, not 3"):
        wrap(3)


def test_wrapping_triggers_are_printed_as_in_flink_and_can_be_pickled() -> None:
    triggers = [
        PurgingTrigger.of(CountTrigger.of(3)),
        ProcessingTimeoutTrigger.of(NeverTrigger(), 1),
    ]
    assert [repr(pickle.loads(pickle.dumps(trigger))) for trigger in triggers] == [
        "PurgingTrigger(CountTrigger(3))",
        "TimeoutTrigger(NeverTrigger())",
    ]
