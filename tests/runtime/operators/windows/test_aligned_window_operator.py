from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.functions.window import TimeWindow
from opchain.runtime.operators.windows.aligned_window_operator import AlignedWindowOperator
from opchain.runtime.operators.windows.window_operator import WindowOperator
from opchain.runtime.windows.time_windows import SlidingEventTimeWindows, TumblingEventTimeWindows
from opchain.runtime.windows.triggers import EventTimeTrigger

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.testing.operator_harness import KeyedOneInputOperatorHarness

    Windows = Callable[..., KeyedOneInputOperatorHarness]

TEN = TumblingEventTimeWindows.of(10)
FIRST, SECOND = TimeWindow(0, 10), TimeWindow(10, 20)


class SameTrigger(EventTimeTrigger):
    """The default trigger in a subclass, for which the general operator is chosen."""


CHEAP, GENERAL = EventTimeTrigger(), SameTrigger()


def fired(harness: KeyedOneInputOperatorHarness) -> list[Any]:
    values = harness.values()
    harness.clear_output()
    return values


def test_keys_fire_in_the_order_of_their_first_records_in_the_window(windows: Windows) -> None:
    with windows(TEN) as harness:
        assert isinstance(harness.operator, AlignedWindowOperator)
        for key, time in (("b", 15), ("c", 1), ("a", 12), ("b", 2), ("c", 3)):
            harness.process_element((key, time), time)
        harness.process_watermark(100)
        assert fired(harness) == [
            ("c", FIRST, [1, 3]),
            ("b", FIRST, [2]),
            ("b", SECOND, [15]),
            ("a", SECOND, [12]),
        ]


def test_a_watermark_is_forwarded_after_the_windows_that_it_fires(windows: Windows) -> None:
    with windows(TEN, reduce=lambda a, b: b) as harness:
        harness.process_element(("a", 1), 5)
        harness.process_watermark(9)
        assert harness.elements() == [(("a", 1), 9), (9,)]


def test_no_state_is_left_of_expired_windows(windows: Windows) -> None:
    for lateness, over in ((0, 9), (5, 14)):
        with windows(TEN, allowed_lateness_ms=lateness) as harness:
            harness.process_element(("a", 1), 5)
            harness.process_watermark(over - 1)
            assert harness.state_entry_count() == 1
            harness.process_watermark(over)
            assert harness.state_entry_count() == harness.event_time_timer_count() == 0
            assert harness.operator.panes == {}  # type: ignore[attr-defined]


def test_records_in_a_gap_between_windows_are_late_once_the_watermark_passes(
    windows: Windows,
) -> None:
    for trigger in (CHEAP, GENERAL):
        assigner = SlidingEventTimeWindows.of(3, 10)
        with windows(assigner, trigger, late_tag=None) as harness:
            harness.process_element(("a", 1), 5)
            harness.process_watermark(5)
            harness.process_element(("a", 2), 5)
            harness.end_input()
            assert fired(harness) == []
            assert harness.operator.late_records_dropped.get_count() == 1  # type: ignore[attr-defined]


def test_a_function_may_change_the_list_that_it_gets(windows: Windows) -> None:
    def take_all(_key: Any, _window: Any, records: list[Any]) -> list[int]:
        taken = len(records)
        records.clear()
        return [taken]

    with windows(TEN, function=take_all, allowed_lateness_ms=5) as harness:
        harness.process_element(("a", 1), 5)
        harness.process_watermark(9)
        harness.process_element(("a", 2), 5)
        assert fired(harness) == [1, 2]


def some_history(harness: KeyedOneInputOperatorHarness) -> None:
    """A window that fired and is kept, an open window, and a few keys."""
    for key in "abcdef":
        harness.process_element((key, 1), 5)
    harness.process_watermark(9)
    for key in "fedcba":
        harness.process_element((key, 2), 15)
    harness.process_element(("a", 3), 7)
    harness.clear_output()


@pytest.mark.parametrize("lateness", [0, 20])
@pytest.mark.parametrize("before", [CHEAP, GENERAL])
@pytest.mark.parametrize("after", [CHEAP, GENERAL])
def test_both_operators_restore_the_snapshots_of_each_other(
    windows: Windows, before: Any, after: Any, lateness: int
) -> None:
    with windows(TEN, before, allowed_lateness_ms=lateness) as harness:
        some_history(harness)
        snapshot = harness.snapshot()
        going_on = finished(harness)
    with windows(
        TEN, after, allowed_lateness_ms=lateness, harness={"snapshots": [snapshot]}
    ) as harness:
        harness.process_watermark(9)
        assert finished(harness) == going_on
    second = [(key, SECOND, [2, 4] if key == "b" else [2]) for key in "fedcba"]
    again = [("c", FIRST, [1, 5])] if lateness else []
    assert going_on == [*again, *second]


def finished(harness: KeyedOneInputOperatorHarness) -> list[Any]:
    assert isinstance(harness.operator, (AlignedWindowOperator, WindowOperator))
    harness.process_element(("b", 4), 12)
    harness.process_element(("c", 5), 8)
    harness.process_watermark(19)
    harness.end_input()
    assert harness.state_entry_count() == harness.event_time_timer_count() == 0
    return fired(harness)


def test_a_snapshot_has_the_same_timers_as_one_of_the_general_operator(windows: Windows) -> None:
    snapshots = []
    for trigger in (CHEAP, GENERAL):
        with windows(TEN, trigger, allowed_lateness_ms=20) as harness:
            some_history(harness)
            snapshots.append(harness.snapshot())
            assert harness.snapshot() == snapshots[-1]  # taking a snapshot changes nothing
    assert snapshots[0].keyed == snapshots[1].keyed
    counts = []
    for snapshot in snapshots:
        with windows(TEN, GENERAL, harness={"snapshots": [snapshot]}) as harness:
            counts.append(harness.event_time_timer_count())
    assert counts == [18, 18]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_after_rescaling_windows_fire_for_keys_of_the_slower_subtask_only(
    windows: Windows, parallelism: int
) -> None:
    """One of two subtasks has fired [0, 10), the other has not: each key continues where it was."""
    spec: dict[str, Any] = {"allowed_lateness_ms": 50}
    keys = "abcdefgh"
    snapshots = []
    fired_before = []
    for subtask in (0, 1):
        two = {"parallelism": 2, "subtask": subtask, "max_parallelism": 8}
        with windows(TEN, harness=two, **spec) as harness:
            for key in filter(harness.owns, keys):
                harness.process_element((key, 1), 5)
            if subtask == 0:
                harness.process_watermark(9)
            fired_before += fired(harness)
            snapshots.append(harness.snapshot())
    assert 0 < len(fired_before) < len(keys)
    for trigger in (CHEAP, GENERAL):
        fired_now = []
        for subtask in range(parallelism):
            settings = {
                "parallelism": parallelism,
                "subtask": subtask,
                "max_parallelism": 8,
                "snapshots": snapshots,
            }
            with windows(TEN, trigger, harness=settings, **spec) as harness:
                if harness.owns("a"):
                    harness.process_element(("a", 2), 6)
                harness.end_input()
                fired_now += fired(harness)
        had = {key for key, _, _ in fired_before}
        expected = [(key, FIRST, [1]) for key in keys if key not in had | {"a"}]
        assert sorted(fired_now, key=repr) == sorted([*expected, ("a", FIRST, [1, 2])], key=repr)


def test_restored_windows_of_another_size_fire_at_their_end(windows: Windows) -> None:
    with windows(TEN, allowed_lateness_ms=5) as harness:
        for key in "ab":
            harness.process_element((key, 1), 5)
        snapshot = harness.snapshot()
    for trigger in (CHEAP, GENERAL):
        with windows(
            TumblingEventTimeWindows.of(4),
            trigger,
            allowed_lateness_ms=5,
            harness={"snapshots": [snapshot]},
        ) as harness:
            harness.process_element(("a", 2), 5)
            second = harness.snapshot()
            harness.process_watermark(8)
            assert fired(harness) == [("a", TimeWindow(4, 8), [2])]
            harness.process_watermark(9)
            assert fired(harness) == [("a", FIRST, [1]), ("b", FIRST, [1])]
            assert harness.state_entry_count() == 3
            harness.process_watermark(14)
            assert harness.state_entry_count() == harness.event_time_timer_count() == 0
        with windows(TEN, trigger, harness={"snapshots": [second]}) as harness:
            harness.end_input()
            assert sorted(fired(harness), key=repr) == [
                ("a", FIRST, [1]),
                ("a", TimeWindow(4, 8), [2]),
                ("b", FIRST, [1]),
            ]
