from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from aggregates import Count

from opchain.runtime.windows.data_triggers import CountTrigger, PurgingTrigger
from opchain.runtime.windows.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor
from opchain.runtime.windows.global_windows import GlobalWindows
from opchain.runtime.windows.time_windows import EventTimeSessionWindows, TumblingEventTimeWindows

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.testing.operator_harness import KeyedOneInputOperatorHarness
    from opchain.runtime.windows.evictors import TimestampedValue

    Windows = Callable[..., KeyedOneInputOperatorHarness]

EVERYTHING, TEN = GlobalWindows.create(), TumblingEventTimeWindows.of(10)


def shown(harness: KeyedOneInputOperatorHarness) -> list[list[int]]:
    """The numbers of each firing."""
    return [numbers for _, _, numbers in harness.values()]


@pytest.mark.parametrize(
    ("evictor", "firings"),
    [
        (CountEvictor.of(3), [[0, 1], [1, 2, 3], [3, 4, 5]]),
        (CountEvictor.of(3, True), [[0, 1], [0, 1, 2, 3], [1, 2, 3, 4, 5]]),
        (CountEvictor.of(0, True), [[0, 1], [2, 3], [4, 5]]),
        (TimeEvictor.of(25), [[0, 1], [1, 2, 3], [3, 4, 5]]),
        (
            DeltaEvictor.of(3, lambda element, newest: newest[1] - element[1]),
            [[0, 1], [1, 2, 3], [3, 4, 5]],
        ),
    ],
)
def test_evicted_records_are_removed_from_the_window(
    windows: Windows, evictor: Any, firings: list[list[int]]
) -> None:
    with windows(EVERYTHING, CountTrigger(2), evictor=evictor) as harness:
        harness.process_elements((("a", number), 10 * number) for number in range(6))
        assert shown(harness) == firings


def test_evictors_are_used_in_tumbling_and_merging_windows(windows: Windows) -> None:
    for assigner in (TEN, EventTimeSessionWindows.with_gap(4)):
        with windows(assigner, evictor=CountEvictor.of(2)) as harness:
            harness.process_elements((("a", time), time) for time in (8, 2, 5, 3))
            harness.end_input()
            assert shown(harness) == [[5, 3]]
            assert harness.state_entry_count() == harness.event_time_timer_count() == 0


def add(a: tuple[str, int], b: tuple[str, int]) -> tuple[str, int]:
    return a[0], a[1] + b[1]


@pytest.mark.parametrize(
    ("shape", "results"),
    [
        ({"reduce": add}, [("a", 1), ("a", 6), ("a", 12)]),
        ({"aggregate": Count()}, [2, 3, 3]),
        ({"aggregate": Count(), "function": lambda _key, _window, counts: counts}, [2, 3, 3]),
    ],
)
def test_aggregating_functions_get_the_records_that_an_evictor_kept(
    windows: Windows, shape: dict[str, Any], results: list[Any]
) -> None:
    with windows(EVERYTHING, CountTrigger(2), evictor=CountEvictor.of(3), **shape) as harness:
        harness.process_elements((("a", number), number) for number in range(6))
        assert harness.values() == results


@pytest.mark.parametrize(
    ("shape", "results"), [({"reduce": add}, []), ({"aggregate": Count()}, [0])]
)
def test_evicting_all_records_emits_an_empty_aggregate_but_no_reduced_value(
    windows: Windows, shape: dict[str, Any], results: list[Any]
) -> None:
    with windows(TEN, evictor=CountEvictor.of(0), **shape) as harness:
        harness.process_element(("a", 1), 5)
        harness.end_input()
        assert harness.values() == results
        assert harness.state_entry_count() == 0


class Notes(Evictor[Any, Any]):
    """Records the arguments of its methods."""

    def __init__(self) -> None:
        self.notes: list[Any] = []

    def evict_before(
        self, elements: list[TimestampedValue[Any]], size: int, window: Any, evictor_context: Any
    ) -> None:
        context = evictor_context
        self.notes.append(
            (
                [(element.value, element.timestamp) for element in elements],
                size,
                window.max_timestamp(),
                context.get_current_watermark(),
                context.get_current_processing_time(),
                context.get_metric_group().get_scope_components()[-1],
            )
        )

    def evict_after(
        self, elements: list[TimestampedValue[Any]], size: int, window: Any, evictor_context: Any
    ) -> None:
        self.notes.append(size)


def test_an_evictor_gets_timestamps_watermark_and_processing_time(windows: Windows) -> None:
    notes = Notes()
    with windows(TEN, evictor=notes) as harness:
        harness.set_processing_time(77)
        harness.process_elements([(("a", 1), 5), (("a", 2), 3)])
        harness.process_watermark(12)
    records = [(("a", 1), 5), (("a", 2), 3)]
    assert notes.notes == [(records, 2, 9, 12, 77, "0"), 2]


def test_a_purge_drops_records_that_an_evictor_kept(windows: Windows) -> None:
    trigger = PurgingTrigger(CountTrigger(2))
    with windows(EVERYTHING, trigger, evictor=CountEvictor.of(1)) as harness:
        harness.process_elements((("a", number), number) for number in range(4))
        assert shown(harness) == [[1], [3]]
        assert harness.state_entry_count() == 0
