from __future__ import annotations

import pickle
from typing import Any

import pytest

from opchain.runtime.functions.window import GlobalWindow
from opchain.runtime.time import MAX_LONG_VALUE
from opchain.runtime.windows.global_windows import EndOfStreamTrigger, GlobalWindows, NeverTrigger

WINDOW = GlobalWindow.get()


def test_global_windows_assigns_all_records_to_one_window() -> None:
    assigner = GlobalWindows.create()
    assert assigner.assign_windows("a", 5, None) == [WINDOW]  # type: ignore[arg-type]
    assert not assigner.is_event_time()
    assert repr(pickle.loads(pickle.dumps(assigner))) == "GlobalWindows()"


def test_the_default_trigger_of_global_windows_never_fires(panes: Any) -> None:
    trigger = GlobalWindows.create().get_default_trigger()
    assert type(trigger) is NeverTrigger
    pane = panes(trigger)
    assert pane.elements(WINDOW, 1, 2) == ["CONTINUE"] * 2
    pane.event_timers.add((1, WINDOW))
    pane.processing_timers.add((1, WINDOW))
    assert pane.advance_watermark(MAX_LONG_VALUE) == [(1, "CONTINUE")]
    assert pane.advance_clock(1) == [(1, "CONTINUE")]
    pane.clear(WINDOW)
    assert pane.is_clean()


def test_end_of_stream_trigger_fires_once_at_the_end_of_input(panes: Any) -> None:
    trigger = GlobalWindows.create_with_end_of_stream_trigger().get_default_trigger()
    assert type(trigger) is EndOfStreamTrigger
    pane = panes(trigger)
    assert pane.elements(WINDOW, 1, 2) == ["CONTINUE"] * 2
    pane.event_timers.add((5, WINDOW))
    assert pane.advance_watermark(MAX_LONG_VALUE - 1) == [(5, "CONTINUE")]
    assert pane.advance_watermark(MAX_LONG_VALUE) == [(MAX_LONG_VALUE, "FIRE")]


@pytest.mark.parametrize("trigger", [NeverTrigger(), EndOfStreamTrigger()], ids=repr)
def test_never_trigger_and_end_of_stream_trigger_cannot_merge(trigger: NeverTrigger) -> None:
    assert not trigger.can_merge()
