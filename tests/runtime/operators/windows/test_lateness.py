from __future__ import annotations

import pytest

from opchain.runtime.functions.callables import as_function
from opchain.runtime.functions.record_functions import ReduceFunction
from opchain.runtime.functions.window import GlobalWindow, TimeWindow
from opchain.runtime.operators.windows.window_operator import Lateness
from opchain.runtime.program.operator_specs import WindowSpec
from opchain.runtime.time import MAX_LONG_VALUE, MIN_LONG_VALUE
from opchain.runtime.windows.time_windows import (
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)

EVENT, PROCESSING = True, False


@pytest.mark.parametrize(
    ("is_event_time", "allowed", "window", "time"),
    [
        (EVENT, 0, TimeWindow(0, 10), 9),
        (EVENT, 5, TimeWindow(0, 10), 14),
        (PROCESSING, 5, TimeWindow(0, 10), 9),
        (EVENT, 5, TimeWindow(MAX_LONG_VALUE - 9, MAX_LONG_VALUE + 1), MAX_LONG_VALUE),
        (EVENT, 0, GlobalWindow.get(), MAX_LONG_VALUE),
    ],
)
def test_a_window_expires_after_its_last_timestamp_and_the_allowed_lateness(
    is_event_time: bool, allowed: int, window: TimeWindow, time: int
) -> None:
    assert Lateness(is_event_time, allowed).cleanup_time(window) == time


@pytest.mark.parametrize(
    ("is_event_time", "allowed", "watermark", "is_late"),
    [
        (EVENT, 0, 8, False),
        (EVENT, 0, 9, True),
        (EVENT, 5, 13, False),
        (EVENT, 5, 14, True),
        (PROCESSING, 0, 100, False),
    ],
)
def test_a_window_is_late_when_the_watermark_reaches_its_expiration(
    is_event_time: bool, allowed: int, watermark: int, is_late: bool
) -> None:
    assert Lateness(is_event_time, allowed).is_window_late(TimeWindow(0, 10), watermark) is is_late


@pytest.mark.parametrize(
    ("is_event_time", "allowed", "timestamp", "watermark", "is_late"),
    [
        (EVENT, 0, 5, 4, False),
        (EVENT, 0, 5, 5, True),
        (EVENT, 3, 5, 7, False),
        (EVENT, 3, 5, 8, True),
        (PROCESSING, 0, 5, 100, False),
        (EVENT, 0, None, MIN_LONG_VALUE, True),
        (EVENT, 3, MAX_LONG_VALUE, MAX_LONG_VALUE, True),
    ],
)
def test_a_record_without_a_window_is_late_after_the_allowed_lateness(
    is_event_time: bool, allowed: int, timestamp: int | None, watermark: int, is_late: bool
) -> None:
    assert Lateness(is_event_time, allowed).is_element_late(timestamp, watermark) is is_late


def test_a_window_beyond_the_largest_timestamp_is_refused() -> None:
    with pytest.raises(ValueError, match="ends after the largest timestamp"):
        Lateness(EVENT, 0).cleanup_time(TimeWindow(MAX_LONG_VALUE, MAX_LONG_VALUE + 2))


@pytest.mark.parametrize(
    ("assigner", "rules"),
    [
        (TumblingEventTimeWindows.of(10), Lateness(EVENT, 7)),
        (TumblingProcessingTimeWindows.of(10), Lateness(PROCESSING, 7)),
    ],
)
def test_the_lateness_of_a_spec_has_its_clock_and_allowed_lateness(
    assigner: TumblingEventTimeWindows | TumblingProcessingTimeWindows, rules: Lateness
) -> None:
    spec = WindowSpec(
        assigner=assigner,
        trigger=assigner.get_default_trigger(),
        allowed_lateness_ms=7,
        reduce=as_function(ReduceFunction, max),
    )
    assert Lateness.of(spec) == rules
