from __future__ import annotations

import pickle
from typing import Any

import pytest

from opchain.runtime.functions.record_functions import DeltaFunction
from opchain.runtime.functions.window import GlobalWindow, TimeWindow
from opchain.runtime.windows.data_triggers import CountTrigger, DeltaTrigger

WINDOW = GlobalWindow.get()


class Distance(DeltaFunction[float]):
    def get_delta(self, old_data_point: float, new_data_point: float) -> float:
        return new_data_point - old_data_point


def values(pane: Any, *elements: Any) -> str:
    """One letter per element: f for fire, c for continue."""
    return "".join(pane.element(WINDOW, value=value).name[0].lower() for value in elements)


@pytest.mark.parametrize(
    ("size", "results"), [(3, "ccfccfc"), (1, "fffffff"), (0, "fffffff"), (8, "ccccccc")]
)
def test_count_trigger_fires_at_every_nth_element(panes: Any, size: int, results: str) -> None:
    assert values(panes(CountTrigger.of(size)), *range(7)) == results


def test_count_trigger_counts_per_window(panes: Any) -> None:
    pane = panes(CountTrigger(2))
    left, right = TimeWindow(0, 1), TimeWindow(1, 2)
    assert [pane.element(w).name for w in (left, right, right, left)] == [
        "CONTINUE",
        "CONTINUE",
        "FIRE",
        "FIRE",
    ]


def test_count_trigger_adds_counts_of_merged_windows(panes: Any) -> None:
    pane = panes(CountTrigger.of(3))
    left, right, both = TimeWindow(0, 2), TimeWindow(1, 3), TimeWindow(0, 3)
    for window in (left, left, right, right):
        pane.element(window)
    assert pane.trigger.can_merge()
    pane.merge(both, left, right)
    assert pane.element(both).name == "FIRE"
    assert pane.is_clean()


def test_delta_trigger_measures_from_the_last_element_that_fired(panes: Any) -> None:
    pane = panes(DeltaTrigger.of(5.0, Distance()))
    assert values(pane, 10, 15, 15.5, 20, 20.6, 30) == "ccfcff"


def test_delta_trigger_takes_a_function(panes: Any) -> None:
    assert values(panes(DeltaTrigger.of(1, lambda old, new: abs(new - old))), 0, -2, -3) == "cfc"


def test_delta_trigger_cannot_merge() -> None:
    assert not DeltaTrigger.of(1, Distance()).can_merge()


def test_delta_trigger_refuses_an_object_that_is_not_callable() -> None:
    with pytest.raises(TypeError, match="DeltaTrigger: expected a DeltaFunction or a callable"):
        DeltaTrigger.of(1, "far")  # type: ignore[arg-type]


TRIGGERS = [CountTrigger.of(3), DeltaTrigger.of(5.0, Distance())]


@pytest.mark.parametrize("trigger", TRIGGERS, ids=repr)
def test_clear_removes_all_state_and_timers_are_ignored(panes: Any, trigger: Any) -> None:
    pane = panes(trigger)
    values(pane, 1, 2)
    assert not pane.is_clean()
    pane.event_timers.add((1, WINDOW))
    pane.processing_timers.add((1, WINDOW))
    assert pane.advance_watermark(2) + pane.advance_clock(2) == [(1, "CONTINUE")] * 2
    pane.clear(WINDOW)
    assert pane.is_clean()


def test_data_triggers_are_printed_as_in_flink_and_can_be_pickled() -> None:
    copies = [pickle.loads(pickle.dumps(trigger)) for trigger in TRIGGERS]
    assert [repr(copy) for copy in copies] == ["CountTrigger(3)", "DeltaTrigger(Distance, 5.0)"]
