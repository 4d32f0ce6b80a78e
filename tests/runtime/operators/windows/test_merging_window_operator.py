from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.errors import StateError, StreamError
from opchain.runtime.functions.record_functions import AggregateFunction
from opchain.runtime.functions.state_descriptors import ValueStateDescriptor
from opchain.runtime.functions.window import ProcessWindowFunction, TimeWindow
from opchain.runtime.operators.windows import merging_window_operator, session_window_operator
from opchain.runtime.operators.windows.merging_window_operator import WINDOWS, MergingWindowOperator
from opchain.runtime.windows.data_triggers import CountTrigger, PurgingTrigger
from opchain.runtime.windows.time_windows import (
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SessionWindowTimeGapExtractor,
)
from opchain.runtime.windows.triggers import ContinuousEventTimeTrigger, EventTimeTrigger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from opchain.runtime.testing.operator_harness import KeyedOneInputOperatorHarness
    from opchain.runtime.types.output_tag import OutputTag

    Windows = Callable[..., KeyedOneInputOperatorHarness]

SESSIONS = EventTimeSessionWindows.with_gap(10)


class SameTrigger(EventTimeTrigger):
    """The default trigger in a subclass, for which MergingWindowOperator is chosen."""


def fired(harness: KeyedOneInputOperatorHarness) -> list[Any]:
    values = [(key, window.start, window.end, numbers) for key, window, numbers in harness.values()]
    harness.clear_output()
    return values


def records(*times: int) -> list[tuple[tuple[str, int], int]]:
    """A record of key a for each time, with the time as its number."""
    return [(("a", time), time) for time in times]


def active_windows(harness: KeyedOneInputOperatorHarness) -> dict[Any, Any]:
    return harness.operator.context.keyed_state.table(WINDOWS)  # type: ignore[no-any-return]


def test_sessions_grow_until_the_gap_is_over(windows: Windows) -> None:
    with windows(SESSIONS) as harness:
        assert isinstance(harness.operator, MergingWindowOperator)
        harness.process_elements(records(0, 8, 30, 15))
        harness.process_watermark(24)
        assert fired(harness) == [("a", 0, 25, [0, 8, 15])]
        harness.process_watermark(39)
        assert fired(harness) == [("a", 30, 40, [30])]
        assert harness.state_entry_count() == harness.event_time_timer_count() == 0
        assert active_windows(harness) == {}


@pytest.mark.parametrize("lateness", [0, 50_000])
@pytest.mark.parametrize("order", [1, -1])
def test_a_new_session_is_compared_with_few_others(
    windows: Windows, order: int, lateness: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[Any] = []

    def counted(session: Any) -> Any:
        compared.append(session)
        return session.start

    for module in (session_window_operator, merging_window_operator):
        monkeypatch.setattr(module, "START", counted)
    times = range(0, 10_000, 20)
    with windows(SESSIONS, allowed_lateness_ms=lateness) as harness:
        harness.process_elements(records(*times[::order]))
        harness.process_watermark(20_000)
        assert fired(harness) == [("a", at, at + 10, [at]) for at in times]
    assert len(compared) <= 40 * len(times)


def test_a_record_is_only_compared_with_the_sessions_that_it_touches(
    windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[int] = []
    merge = TimeWindow.merge_windows

    def counted(windows: Any, callback: Any) -> None:
        compared.append(len(windows))
        merge(windows, callback)

    monkeypatch.setattr(TimeWindow, "merge_windows", staticmethod(counted))
    with windows(SESSIONS, SameTrigger()) as harness:
        harness.process_elements(records(*range(2000, 0, -20), *range(0, 2000, 20)))
        harness.process_watermark(3000)
        assert len(fired(harness)) == 101
    assert max(compared[20:]) <= 3


def test_a_session_has_one_timer_even_if_it_grows(windows: Windows) -> None:
    with windows(SESSIONS, SameTrigger()) as harness:
        harness.process_elements(records(0, 8, 15, 15, 3))
        assert harness.event_time_timer_count() == 1
    with windows(SESSIONS, SameTrigger(), allowed_lateness_ms=5) as harness:
        harness.process_elements(records(0, 8, 15, 15, 3))
        assert harness.event_time_timer_count() == 2  # one timer to fire, one to drop


def test_a_record_between_two_sessions_merges_them(windows: Windows) -> None:
    with windows(SESSIONS, SameTrigger()) as harness:
        harness.process_elements(records(20, 0, 21, 10))
        assert harness.state_entry_count() == 2  # the contents, and the windows in flight
        harness.end_input()
        assert fired(harness) == [("a", 0, 31, [20, 21, 0, 10])]


class Sum(AggregateFunction[Any, tuple[str, int], tuple[str, int]]):
    """Adds numbers, and marks merged accumulators by an x."""

    def create_accumulator(self) -> tuple[str, int]:
        return "", 0

    def add(self, value: tuple[str, int], accumulator: tuple[str, int]) -> tuple[str, int]:
        return accumulator[0] + value[0], accumulator[1] + value[1]

    def get_result(self, accumulator: tuple[str, int]) -> tuple[str, int]:
        return accumulator

    def merge(self, acc_a: tuple[str, int], acc_b: tuple[str, int]) -> tuple[str, int]:
        return f"{acc_a[0]}x{acc_b[0]}", acc_a[1] + acc_b[1]


@pytest.mark.parametrize(
    ("shape", "result"),
    [
        ({"aggregate": Sum()}, ("aaxaa", 51)),
        ({"reduce": lambda a, b: (a[0] + b[0], a[1] + b[1])}, ("aaaa", 51)),
    ],
)
def test_aggregates_of_merged_windows_are_merged(
    windows: Windows, shape: dict[str, Any], result: tuple[str, int]
) -> None:
    with windows(SESSIONS, **shape) as harness:
        harness.process_elements(records(20, 0, 21, 10))
        harness.end_input()
        assert harness.records() == [(result, 30)]


def test_a_fired_session_that_grows_fires_again_at_its_new_end(windows: Windows) -> None:
    with windows(SESSIONS, allowed_lateness_ms=20) as harness:
        harness.process_elements(records(0))
        harness.process_watermark(9)
        assert fired(harness) == [("a", 0, 10, [0])]
        harness.process_elements(records(5))
        assert fired(harness) == []
        harness.process_watermark(14)
        assert fired(harness) == [("a", 0, 15, [0, 5])]
        harness.process_elements(records(4))
        assert fired(harness) == [("a", 0, 15, [0, 5, 4])]
        harness.process_watermark(34)
        assert harness.state_entry_count() == harness.event_time_timer_count() == 0


def test_a_late_record_is_accepted_if_it_extends_an_open_session(
    windows: Windows, late: OutputTag[Any]
) -> None:
    with windows(SESSIONS) as harness:
        harness.process_elements(records(10))
        harness.process_watermark(15)
        harness.process_elements(records(3, 5))  # late on their own
        harness.process_watermark(19)
        assert fired(harness) == [("a", 3, 20, [10, 3, 5])]
        harness.process_elements(records(9))
        assert harness.records(late) == [(("a", 9), 9)]
        assert active_windows(harness) == {}


def test_processing_time_sessions_follow_the_clock(windows: Windows) -> None:
    with windows(ProcessingTimeSessionWindows.with_gap(10)) as harness:
        for now, number in ((0, 1), (7, 2)):
            harness.set_processing_time(now)
            harness.process_element(("a", number))
        harness.set_processing_time(16)
        assert fired(harness) == [("a", 0, 17, [1, 2])]
        harness.process_element(("a", 3))
        harness.set_processing_time(100)
        assert fired(harness) == [("a", 16, 26, [3])]
        assert harness.state_entry_count() == harness.processing_time_timer_count() == 0


class GapOfRecord(SessionWindowTimeGapExtractor[tuple[str, int]]):
    def extract(self, element: tuple[str, int]) -> int:
        return element[1]


def test_session_gaps_may_depend_on_the_record(windows: Windows) -> None:
    with windows(EventTimeSessionWindows.with_dynamic_gap(GapOfRecord())) as harness:
        harness.process_elements([(("a", 3), 0), (("a", 9), 2), (("a", 2), 12), (("a", 1), 11)])
        harness.end_input()
        assert fired(harness) == [("a", 0, 14, [2, 3, 9, 1])]


def test_a_window_equal_to_a_grown_one_keeps_its_contents(windows: Windows) -> None:
    """Flink loses the first record here."""
    with windows(EventTimeSessionWindows.with_dynamic_gap(lambda record: record[1])) as harness:
        harness.process_elements([(("a", 2), 0), (("a", 3), 1), (("a", 4), 0)])
        harness.end_input()
        assert fired(harness) == [("a", 0, 4, [2, 3, 4])]


def test_counts_of_count_triggers_are_added_when_windows_merge(windows: Windows) -> None:
    with windows(SESSIONS, PurgingTrigger(CountTrigger(4))) as harness:
        harness.process_elements(records(0, 20, 21))
        assert fired(harness) == []
        harness.process_elements(records(10))
        assert fired(harness) == [("a", 0, 31, [20, 21, 0, 10])]
        harness.end_input()
        assert fired(harness) == []
        assert harness.state_entry_count() == harness.event_time_timer_count() == 0


def test_after_a_merge_a_continuous_trigger_fires_at_the_earliest_time(windows: Windows) -> None:
    with windows(SESSIONS, ContinuousEventTimeTrigger.of(7)) as harness:
        harness.process_elements(records(8, 1))
        harness.process_watermark(13)
        assert fired(harness) == []
        harness.process_watermark(14)
        assert fired(harness) == [("a", 1, 18, [8, 1])]
        harness.end_input()
        assert fired(harness) == [("a", 1, 18, [8, 1])]
        assert harness.state_entry_count() == harness.event_time_timer_count() == 0


class AsksForWindowState(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        count = context.global_state().get_state(ValueStateDescriptor("windows"))
        count.update((count.value() or 0) + 1)
        yield key, count.value()
        if count.value() > 1:
            context.window_state().get_state(ValueStateDescriptor("of the window"))


def test_merging_windows_refuse_window_state(windows: Windows) -> None:
    with windows(SESSIONS, function=AsksForWindowState()) as harness:
        harness.process_elements(records(0, 50))
        harness.process_watermark(20)
        assert harness.values() == [("a", 1)]
        with pytest.raises(
            StateError, match="'of the window', but merging windows have no per-window state"
        ):
            harness.process_watermark(100)


class Shrinks(EventTimeSessionWindows):
    """Merges wrongly: the result ends before its parts."""

    def merge_windows(self, windows: Iterable[TimeWindow], callback: Any) -> None:
        found = sorted(windows)
        if len(found) > 1:
            callback.merge(found, TimeWindow(found[0].start, found[0].start + 1))


def test_a_merge_into_an_expired_window_is_refused(windows: Windows) -> None:
    with windows(Shrinks(10), EventTimeTrigger()) as harness:
        harness.process_elements(records(0))
        harness.process_watermark(5)
        with pytest.raises(StreamError, match=r"has already ended \(the watermark is 5\)"):
            harness.process_elements(records(1))


@pytest.mark.parametrize("parallelism", [1, 2])
def test_sessions_survive_a_restart(windows: Windows, parallelism: int) -> None:
    keys = ["a", "b", "c", "d"]
    with windows(SESSIONS, harness={"max_parallelism": 8}) as harness:
        for key in keys:
            harness.process_element((key, 1), 0)
            harness.process_element((key, 2), 8)
            harness.process_element((key, 3), 40)
        snapshot = harness.snapshot()
    found = []
    for subtask in range(parallelism):
        settings = {
            "max_parallelism": 8,
            "parallelism": parallelism,
            "subtask": subtask,
            "snapshots": [snapshot],
        }
        with windows(SESSIONS, harness=settings) as harness:
            for key in filter(harness.owns, keys):
                harness.process_element((key, 4), 12)
            harness.end_input()
            found += fired(harness)
    assert sorted(found) == sorted(
        firing for key in keys for firing in ((key, 0, 22, [1, 2, 4]), (key, 40, 50, [3]))
    )
