from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.functions.window import CountWindow, GlobalWindow, TimeWindow
from opchain.runtime.operators.windows.window_operator import WindowOperator
from opchain.runtime.time import MAX_LONG_VALUE
from opchain.runtime.windows.data_triggers import (
    CountTrigger,
    DeltaTrigger,
    ProcessingTimeoutTrigger,
    PurgingTrigger,
)
from opchain.runtime.windows.global_windows import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    GlobalWindows,
)
from opchain.runtime.windows.time_windows import (
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from opchain.runtime.windows.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    EventTimeTrigger,
    Trigger,
    TriggerResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.testing.operator_harness import KeyedOneInputOperatorHarness
    from opchain.runtime.types.output_tag import OutputTag

    Windows = Callable[..., KeyedOneInputOperatorHarness]

TEN = TumblingEventTimeWindows.of(10)
FIRST, SECOND = TimeWindow(0, 10), TimeWindow(10, 20)
EVERYTHING = GlobalWindow.get()


def fired(harness: KeyedOneInputOperatorHarness) -> list[Any]:
    """The results since the last call."""
    values = harness.values()
    harness.clear_output()
    return values


class Asks(Trigger[Any, Any]):
    """Returns the given results in turn; sets the given event-time timers."""

    def __init__(self, *results: TriggerResult | None, timers: tuple[int, ...] = ()) -> None:
        self.results = list(results)
        self.timers = timers
        self.cleared: list[Any] = []

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> Any:
        for time in self.timers:
            ctx.register_event_time_timer(time)
        return self.results.pop(0)

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> Any:
        return self.results.pop(0)

    def on_event_time(self, time: int, window: Any, ctx: Any) -> Any:
        return self.results.pop(0)

    def clear(self, window: Any, ctx: Any) -> None:
        self.cleared.append(window)


CONTINUE, FIRE, PURGE, FIRE_AND_PURGE = (
    TriggerResult.CONTINUE,
    TriggerResult.FIRE,
    TriggerResult.PURGE,
    TriggerResult.FIRE_AND_PURGE,
)


def test_the_trigger_result_decides_about_each_record(windows: Windows) -> None:
    asks = Asks(CONTINUE, FIRE, PURGE, FIRE, FIRE_AND_PURGE, CONTINUE, FIRE)
    with windows(TEN, asks) as harness:
        assert isinstance(harness.operator, WindowOperator)
        harness.process_elements((("a", number), 5) for number in range(7))
        assert fired(harness) == [
            ("a", FIRST, [0, 1]),
            ("a", FIRST, [3]),
            ("a", FIRST, [3, 4]),
            ("a", FIRST, [5, 6]),
        ]


def test_a_window_without_contents_fires_nothing(windows: Windows) -> None:
    with windows(TEN, Asks(PURGE, FIRE, CONTINUE, timers=(7,))) as harness:
        harness.process_element(("a", 1), 5)
        harness.process_watermark(7)
        assert fired(harness) == []


def test_a_trigger_that_returns_none_is_refused(windows: Windows) -> None:
    with (
        windows(TEN, Asks(None)) as harness,
        pytest.raises(
            TypeError, match=r"trigger Asks\(\) returned None; it must return a TriggerResult"
        ),
    ):
        harness.process_element(("a", 1), 5)


def test_all_state_of_an_expired_window_is_dropped(windows: Windows) -> None:
    asks = Asks(CONTINUE, CONTINUE, CONTINUE)
    with windows(TEN, asks, allowed_lateness_ms=5) as harness:
        harness.process_element(("a", 1), 5)
        harness.process_watermark(13)
        assert (harness.state_entry_count(), asks.cleared) == (1, [])
        harness.process_watermark(14)
        assert (harness.state_entry_count(), asks.cleared) == (0, [FIRST])
        assert harness.event_time_timer_count() == 0


def test_timers_left_by_a_trigger_do_not_fire_an_expired_window(windows: Windows) -> None:
    with windows(TEN, Asks(CONTINUE, CONTINUE, FIRE, timers=(12,))) as harness:
        harness.process_element(("a", 1), 5)
        harness.process_watermark(20)
        assert fired(harness) == []


@pytest.mark.parametrize(
    ("assigner", "window"), [(TEN, FIRST), (GlobalWindows.create(), EVERYTHING)]
)
def test_count_triggers_count_per_key_and_window(
    windows: Windows, assigner: Any, window: Any
) -> None:
    with windows(assigner, PurgingTrigger(CountTrigger(2))) as harness:
        for record in (("a", 1), ("b", 2), ("a", 3), ("a", 4), ("b", 5)):
            harness.process_element(record, 5)
        assert fired(harness) == [("a", window, [1, 3]), ("b", window, [2, 5])]
        harness.end_input()
        assert fired(harness) == []


def test_a_purging_trigger_leaves_no_contents(windows: Windows) -> None:
    with windows(TEN, PurgingTrigger(EventTimeTrigger()), allowed_lateness_ms=20) as harness:
        harness.process_element(("a", 1), 5)
        harness.process_watermark(9)
        harness.process_element(("a", 2), 6)
        harness.process_element(("a", 3), 7)
        assert fired(harness) == [("a", FIRST, [1]), ("a", FIRST, [2]), ("a", FIRST, [3])]


def test_continuous_triggers_fire_at_multiples_and_at_the_end(windows: Windows) -> None:
    with windows(TEN, ContinuousEventTimeTrigger.of(4)) as harness:
        harness.process_element(("a", 1), 1)
        for watermark in (3, 4, 8, 20):
            harness.process_watermark(watermark)
        assert fired(harness) == [("a", FIRST, [1])] * 3
        assert harness.state_entry_count() == harness.event_time_timer_count() == 0


def test_a_continuous_processing_time_trigger_fires_in_a_global_window(windows: Windows) -> None:
    with windows(GlobalWindows.create(), ContinuousProcessingTimeTrigger.of(10)) as harness:
        harness.set_processing_time(3)
        harness.process_element(("a", 1))
        harness.set_processing_time(10)
        harness.process_element(("a", 2))
        harness.set_processing_time(20)
        assert fired(harness) == [("a", EVERYTHING, [1]), ("a", EVERYTHING, [1, 2])]


def test_a_timeout_trigger_fires_before_the_count_is_reached(windows: Windows) -> None:
    trigger = ProcessingTimeoutTrigger.of(PurgingTrigger(CountTrigger(3)), 10)
    with windows(GlobalWindows.create(), trigger) as harness:
        for number in range(4):
            harness.process_element(("a", number))
        assert fired(harness) == [("a", EVERYTHING, [0, 1, 2])]
        harness.set_processing_time(10)
        assert fired(harness) == [("a", EVERYTHING, [3])]


def test_a_delta_trigger_measures_from_the_last_element_that_fired(windows: Windows) -> None:
    trigger = DeltaTrigger.of(5, lambda last, new: new[1] - last[1])
    with windows(GlobalWindows.create(), PurgingTrigger(trigger)) as harness:
        for number in (1, 4, 7, 12, 14):
            harness.process_element(("a", number))
        assert fired(harness) == [("a", EVERYTHING, [1, 4, 7]), ("a", EVERYTHING, [12, 14])]


def test_global_windows_fire_at_the_end_of_input_with_the_end_of_stream_trigger(
    windows: Windows,
) -> None:
    for assigner, expected in (
        (GlobalWindows.create(), []),
        (GlobalWindows.create_with_end_of_stream_trigger(), [("a", EVERYTHING, [1, 2])]),
    ):
        with windows(assigner) as harness:
            harness.process_element(("a", 1), 5)
            harness.process_watermark(100)
            harness.process_element(("a", 2), 7)
            harness.end_input()
            assert fired(harness) == expected


def test_processing_time_windows_follow_the_clock(windows: Windows) -> None:
    with windows(TumblingProcessingTimeWindows.of(10)) as harness:
        harness.set_processing_time(3)
        harness.process_element(("a", 1), 500)
        harness.process_watermark(1_000)
        harness.set_processing_time(8)
        harness.process_element(("b", 2))
        assert fired(harness) == []
        harness.set_processing_time(9)
        assert harness.records() == [
            (("a", FIRST, [1]), 9),
            (("b", FIRST, [2]), 9),
        ]
        assert harness.state_entry_count() == harness.processing_time_timer_count() == 0
        harness.clear_output()
        harness.set_processing_time(10)
        harness.process_element(("a", 3))
        harness.end_input()
        assert fired(harness) == []  # as in Flink: the clock never reached the end of the window


def test_processing_time_sliding_windows_follow_the_clock(windows: Windows) -> None:
    with windows(SlidingProcessingTimeWindows.of(10, 5), allowed_lateness_ms=100) as harness:
        harness.set_processing_time(12)
        harness.process_element(("a", 1))
        harness.set_processing_time(13)
        harness.process_element(("a", 2))
        harness.set_processing_time(100)
        assert fired(harness) == [
            ("a", TimeWindow(5, 15), [1, 2]),
            ("a", TimeWindow(10, 20), [1, 2]),
        ]
        assert harness.state_entry_count() == 0


def test_count_windows_fire_when_they_are_full(windows: Windows) -> None:
    with windows(CountTumblingWindowAssigner.of(2)) as harness:
        for record in (("a", 1), ("b", 2), ("a", 3), ("a", 4)):
            harness.process_element(record)
        assert fired(harness) == [("a", CountWindow(0), [1, 3])]
    with windows(CountSlidingWindowAssigner.of(3, 1)) as harness:
        for number in range(4):
            harness.process_element(("a", number))
        assert fired(harness) == [
            ("a", CountWindow(0), [0, 1, 2]),
            ("a", CountWindow(1), [1, 2, 3]),
        ]


def test_late_records_are_sent_to_the_side_output_with_their_timestamp(
    windows: Windows, late: OutputTag[Any]
) -> None:
    with windows(TEN, PurgingTrigger(EventTimeTrigger()), allowed_lateness_ms=3) as harness:
        harness.process_watermark(11)
        harness.process_element(("a", 1), 4)
        harness.process_watermark(12)
        harness.process_element(("a", 2), 5)
        assert fired(harness) == [("a", FIRST, [1])]
        harness.process_element(("a", 3), 6)
        assert harness.records(late) == [(("a", 3), 6)]
        assert harness.operator.late_records_dropped.get_count() == 0  # type: ignore[attr-defined]


def test_dropped_records_are_counted_in_the_metrics(windows: Windows) -> None:
    with windows(TEN, PurgingTrigger(EventTimeTrigger()), late_tag=None) as harness:
        harness.process_watermark(9)
        harness.process_elements([(("a", 1), 4), (("a", 2), 9), (("a", 3), 10)])
        metrics = harness.operator.context.metrics.snapshot()
        assert metrics["numLateRecordsDropped"] == 2


def test_allowed_lateness_beyond_the_largest_timestamp_keeps_windows_to_the_end(
    windows: Windows,
) -> None:
    trigger = PurgingTrigger(EventTimeTrigger())
    with windows(TEN, trigger, allowed_lateness_ms=MAX_LONG_VALUE) as harness:
        harness.process_element(("a", 1), 5)
        harness.process_watermark(MAX_LONG_VALUE - 1)
        harness.process_element(("a", 2), 6)
        assert fired(harness) == [("a", FIRST, [1]), ("a", FIRST, [2])]
        assert harness.event_time_timer_count() == 0


@pytest.mark.parametrize(
    ("timestamp", "message"),
    [
        (None, "needs event time, and record .* has no timestamp"),
        (-(2**63), "needs event time, and record .* has no timestamp"),
        (MAX_LONG_VALUE, "ends after the largest timestamp"),
    ],
)
def test_missing_and_too_large_timestamps_are_refused(
    windows: Windows, timestamp: int | None, message: str
) -> None:
    for trigger in (EventTimeTrigger(), PurgingTrigger(EventTimeTrigger())):
        with windows(TEN, trigger) as harness, pytest.raises(ValueError, match=message):
            harness.process_element(("a", 1), timestamp)


@pytest.mark.parametrize("key", [True, 1.0, ("a", None), [1, 2]])
def test_the_window_function_gets_the_key_as_it_was_selected(windows: Windows, key: Any) -> None:
    for trigger in (EventTimeTrigger(), PurgingTrigger(EventTimeTrigger())):
        with windows(TEN, trigger) as harness:
            harness.process_elements([((key, 1), 5), ((1, 2), 6)])
            harness.process_watermark(9)
            assert fired(harness) == [(key, FIRST, [1]), (1, FIRST, [2])]
