from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from opchain.common import Duration, Time
from opchain.compiler.dsl.windowed_stream import WindowDefinition
from opchain.datastream import OutputTag, ReduceFunction, StreamExecutionEnvironment
from opchain.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    ProcessingTimeTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from opchain.runtime.errors import GraphError
from opchain.runtime.windows.global_windows import NeverTrigger


class Add(ReduceFunction[int]):
    def reduce(self, value1: int, value2: int) -> int:
        return value1 + value2


@pytest.fixture
def window(env: StreamExecutionEnvironment) -> WindowDefinition[int, Any]:
    return WindowDefinition(env, TumblingEventTimeWindows.of(Time.seconds(5)))


def test_a_window_without_settings_has_the_assigners_trigger(
    window: WindowDefinition[int, Any],
) -> None:
    spec = window.spec(reduce=max)
    assert isinstance(spec.trigger, EventTimeTrigger)
    assert (spec.evictor, spec.allowed_lateness_ms, spec.late_tag) == (None, 0, None)
    assert (spec.reduce, spec.aggregate, spec.function, spec.is_all) == (max, None, None, False)


def test_trigger_evictor_lateness_and_late_tag_are_in_the_window_spec(
    window: WindowDefinition[int, Any],
) -> None:
    trigger, evictor, tag = CountTrigger.of(3), CountEvictor.of(2), OutputTag[int]("late")
    returned = window.trigger(trigger).evictor(evictor).allowed_lateness(7)
    assert returned.side_output_late_data(tag) is window
    spec = window.spec(function=max)
    assert (spec.trigger, spec.evictor, spec.allowed_lateness_ms, spec.late_tag) == (
        trigger,
        evictor,
        7,
        tag,
    )


@pytest.mark.parametrize(
    "lateness", [2000, Time.seconds(2), Duration.of_seconds(2), timedelta(seconds=2)]
)
def test_allowed_lateness_takes_any_kind_of_duration(
    window: WindowDefinition[int, Any], lateness: Any
) -> None:
    assert window.allowed_lateness(lateness).spec().allowed_lateness_ms == 2000


def test_a_window_has_the_assigners_name_and_a_full_description(
    env: StreamExecutionEnvironment, window: WindowDefinition[int, Any]
) -> None:
    assert window.operator_name() == "TumblingEventTimeWindows"
    assert (
        window.description("Window", Add(), max)
        == "Window(TumblingEventTimeWindows(5000), EventTimeTrigger, Add, max)"
    )
    sliding: WindowDefinition[int, Any] = WindowDefinition(
        env, SlidingEventTimeWindows.of(Time.seconds(5), Time.seconds(1))
    )
    sliding.trigger(CountTrigger.of(1)).evictor(CountEvictor.of(2))
    assert (
        sliding.description("Window", lambda a, b: a)
        == "Window(SlidingEventTimeWindows(5000, 1000), CountTrigger, CountEvictor, lambda)"
    )


def test_take_over_copies_all_settings_except_the_assigner(
    env: StreamExecutionEnvironment, window: WindowDefinition[int, Any]
) -> None:
    window.trigger(CountTrigger.of(3)).allowed_lateness(7)
    other: WindowDefinition[int, Any] = WindowDefinition(
        env, TumblingEventTimeWindows.of(Time.seconds(1))
    )
    other.take_over(window)
    assert isinstance(other.spec().trigger, CountTrigger)
    assert other.spec().allowed_lateness_ms == 7
    assert str(other.spec().assigner) == "TumblingEventTimeWindows(1000, 0)"


def test_a_merging_window_needs_a_merging_trigger(env: StreamExecutionEnvironment) -> None:
    sessions: WindowDefinition[int, Any] = WindowDefinition(
        env, EventTimeSessionWindows.with_gap(Time.seconds(1))
    )
    assert sessions.trigger(EventTimeTrigger()).spec().trigger is not None

    class Stubborn(NeverTrigger):
        def can_merge(self) -> bool:
            return False

    with pytest.raises(
        GraphError, match="Stubborn cannot merge windows, but the windows of EventTimeSess"
    ):
        sessions.trigger(Stubborn())


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "trigger": (CountEvictor.of(1), TypeError, "the trigger is .* it must be a Trigger"),
    "evictor": (ProcessingTimeTrigger(), TypeError, "the evictor is .* it must be an Evictor"),
    "allowed_lateness": (-1, ValueError, "the lateness is -1 ms; it must not be negative"),
    "side_output_late_data": ("late", TypeError, "the tag is 'late' .* it must be an OutputTag"),
}


@pytest.mark.parametrize("setter", WRONG)
def test_setters_of_a_window_refuse_wrong_values(
    window: WindowDefinition[int, Any], setter: str
) -> None:
    value, error, message = WRONG[setter]
    with pytest.raises(error, match=message):
        getattr(window, setter)(value)


def test_allowed_lateness_refuses_a_value_that_is_not_a_duration(
    window: WindowDefinition[int, Any],
) -> None:
    with pytest.raises(TypeError, match="a span of time is"):
        window.allowed_lateness(1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("assigner", [5000, EventTimeTrigger(), TumblingEventTimeWindows])
def test_a_window_refuses_an_assigner_of_the_wrong_kind(
    env: StreamExecutionEnvironment, assigner: Any
) -> None:
    with pytest.raises(TypeError, match=r"the window is .* it must be a WindowAssigner"):
        WindowDefinition(env, assigner)
