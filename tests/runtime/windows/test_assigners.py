from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest

from opchain.runtime.functions.window import TimeWindow
from opchain.runtime.windows.assigners import MergingWindowAssigner, WindowAssigner
from opchain.runtime.windows.data_triggers import CountTrigger


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
