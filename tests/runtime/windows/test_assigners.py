from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest

from opchain.runtime.functions.window import TimeWindow
from opchain.runtime.windows.assigners import MergingWindowAssigner, WindowAssigner
from opchain.runtime.windows.data_triggers import CountTrigger


class PerDecade(WindowAssigner):  # type: ignore[type-arg]
    """As a PyFlink program writes one: no type parameters, no serializer of its own."""

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
def test_an_assigner_of_a_user_works_with_and_without_type_parameters(kind: Any) -> None:
    assert kind().assign_windows(1987, 0, None) == [TimeWindow(1980, 1990)]


def test_windows_are_pickled_unless_an_assigner_says_how() -> None:
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
def test_contracts_are_abstract(contract: Any) -> None:
    with pytest.raises(TypeError, match="abstract"):
        contract()
