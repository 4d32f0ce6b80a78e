from __future__ import annotations

from datetime import datetime, timedelta
from io import BytesIO
from typing import Any
from unittest.mock import ANY

import pytest

from opchain.runtime.functions.window import TimeWindow
from opchain.runtime.windows.assigners import MergingWindowAssigner, WindowAssigner
from opchain.runtime.windows.data_triggers import CountTrigger
from opchain.runtime.windows.table_windows import CumulativeEventTimeWindows, WindowsOfRows


class PerDecade(WindowAssigner):  # type: ignore[type-arg]
    """Written as in PyFlink: without type parameters and without a serializer."""

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> Any:
        start = element - element % 10
        return [TimeWindow(start, start + 10)]

    def get_default_trigger(self, env: Any) -> Any:
        return CountTrigger(1)

    def is_event_time(self) -> bool:
        return True


class Typed(PerDecade, WindowAssigner[int, TimeWindow]):
    pass


@pytest.mark.parametrize("kind", [PerDecade, Typed])
def test_a_users_assigner_works_with_and_without_type_parameters(kind: Any) -> None:
    assert kind().assign_windows(1987, 0, None) == [TimeWindow(1980, 1990)]


def test_windows_are_pickled_unless_the_assigner_has_a_serializer() -> None:
    stream = BytesIO()
    PerDecade().get_window_serializer().serialize(TimeWindow(1, 2), stream)
    stream.seek(0)
    assert PerDecade().get_window_serializer().deserialize(stream) == TimeWindow(1, 2)


@pytest.mark.parametrize(
    "contract",
    [
        WindowAssigner,
        WindowAssigner.WindowAssignerContext,
        MergingWindowAssigner,
        MergingWindowAssigner.MergeCallback,
    ],
)
def test_window_assigners_and_their_contexts_are_abstract(contract: Any) -> None:
    with pytest.raises(TypeError, match="abstract"):
        contract()


def test_cumulative_windows_start_together() -> None:
    windows = CumulativeEventTimeWindows.of(60_000, 20_000, 5_000)
    found = windows.assign_windows("a record", 30_000, ANY)
    assert found == [TimeWindow(5_000, end) for end in (65_000, 45_000)]
    assert windows.assign_windows("a record", 4_999, ANY) == [TimeWindow(-55_000, 5_000)]
    with pytest.raises(ValueError, match="the size must be a multiple of the step"):
        CumulativeEventTimeWindows.of(60_000, 7_000)


def test_rows_may_name_their_windows() -> None:
    day = datetime(1970, 1, 2)  # noqa: DTZ001 - TIMESTAMP has no zone
    row = ("x", day, day + timedelta(seconds=1))
    assert WindowsOfRows(1, 2).assign_windows(row, 0, ANY) == [TimeWindow(86_400_000, 86_401_000)]
