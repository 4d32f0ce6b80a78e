from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.functions.window import TimeWindow
from opchain.runtime.windows.triggers import Trigger, TriggerResult


class First(Trigger):  # type: ignore[type-arg]
    """Fires at the first element; written without type parameters."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.FIRE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def clear(self, window: Any, ctx: Any) -> None:
        pass


class Typed(First, Trigger[int, TimeWindow]):
    def can_merge(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("result", "is_fire", "is_purge"),
    [
        (TriggerResult.CONTINUE, False, False),
        (TriggerResult.FIRE, True, False),
        (TriggerResult.PURGE, False, True),
        (TriggerResult.FIRE_AND_PURGE, True, True),
    ],
)
def test_a_trigger_result_has_is_fire_and_is_purge(
    result: TriggerResult, is_fire: bool, is_purge: bool
) -> None:
    assert (result.is_fire(), result.is_purge()) == (is_fire, is_purge)


def test_a_users_trigger_works_with_and_without_type_parameters(panes: Any) -> None:
    for trigger in (First(), Typed()):
        assert panes(trigger).element(TimeWindow(0, 1)) is TriggerResult.FIRE
    assert not First().can_merge()
    assert repr(First()) == "First()"


@pytest.mark.parametrize(
    ("trigger", "reason"),
    [(First(), "can_merge\\(\\) is false"), (Typed(), "on_merge\\(\\) is missing")],
    ids=repr,
)
def test_on_merge_is_refused_if_a_trigger_cannot_merge(
    panes: Any, trigger: Any, reason: str
) -> None:
    with pytest.raises(NotImplementedError, match=f"'{type(trigger).__name__}' .*{reason}"):
        panes(trigger).merge(TimeWindow(0, 2), TimeWindow(0, 1))


def test_methods_of_trigger_are_abstract() -> None:
    class Silent(Trigger[Any, Any]):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Silent()  # type: ignore[abstract]
