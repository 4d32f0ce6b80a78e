"""State with a time to live, on a clock that the records move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, job_of, run_job, seen

from opchain.common import Time, Types
from opchain.datastream import AggregateFunction, KeyedProcessFunction, ReduceFunction
from opchain.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from opchain.runtime.task.stream_task import TaskEnvironment
from opchain.runtime.testing.operator_harness import ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.datastream import RuntimeContext, StreamExecutionEnvironment

TTL_MS = 1000
clock = ManualClock()
"""The clock of the job that runs now; functions advance it."""

UpdateType, Visibility = StateTtlConfig.UpdateType, StateTtlConfig.StateVisibility


def ttl(
    update_type: Any = UpdateType.OnCreateAndWrite,
    visibility: Any = Visibility.NeverReturnExpired,
) -> StateTtlConfig:
    return (
        StateTtlConfig.new_builder(Time.milliseconds(TTL_MS))
        .set_update_type(update_type)
        .set_state_visibility(visibility)
        .build()
    )


def run(function: KeyedProcessFunction, steps: list[Any], form: str = "inlined") -> list[Any]:
    """What a function yields for steps that have one key."""
    global clock  # noqa: PLW0603 - functions are copied, and find the clock by its name
    clock = ManualClock(1_000_000)

    def draw(env: StreamExecutionEnvironment) -> None:
        seen(env.from_collection(steps).key_by(lambda step: 0).process(function), "out")

    return run_job(job_of(draw, form), TaskEnvironment(timers=clock)).records("out")


class Value(KeyedProcessFunction):
    """Steps: a number to wait, "read", or ("write", value)."""

    def __init__(self, config: StateTtlConfig) -> None:
        self.config = config

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("value", Types.STRING())
        descriptor.enable_time_to_live(self.config)
        self.state = runtime_context.get_state(descriptor)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        if isinstance(value, int):
            clock.advance(value)
        elif value == "read":
            yield self.state.value()
        else:
            self.state.update(value[1])


class ValueByKeyword(Value):
    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("value", Types.STRING())
        descriptor.enable_time_to_live(self.config)
        self.state = runtime_context.get_state(state_descriptor=descriptor)


@pytest.mark.parametrize("form", FORMS)
def test_the_descriptor_may_be_a_keyword_argument(form: str) -> None:
    steps = [("write", "a"), "read", TTL_MS, "read"]
    assert run(ValueByKeyword(ttl()), steps, form) == ["a", None]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("update_type", "expected"),
    [
        (UpdateType.OnCreateAndWrite, ["a", "a", None]),
        (UpdateType.OnReadAndWrite, ["a", "a", "a"]),
        (UpdateType.Disabled, ["a", "a", "a"]),
    ],
)
def test_the_update_type_of_state_ttl_decides_which_accesses_extend_it(
    form: str, update_type: Any, expected: list[Any]
) -> None:
    steps = [("write", "a"), 600, "read", 300, "read", 600, "read"]
    assert run(Value(ttl(update_type)), steps, form) == expected


def test_writing_a_state_restarts_its_ttl() -> None:
    steps = [("write", "a"), 900, ("write", "b"), 900, "read", 100, "read"]
    assert run(Value(ttl()), steps) == ["b", None]


def test_an_expired_value_can_be_visible_until_its_cleanup() -> None:
    steps = [("write", "a"), TTL_MS, "read", "read"]
    cleaned = ttl(visibility=Visibility.ReturnExpiredIfNotCleanedUp)
    # Reading it once is what cleans it up, where nothing does in the background.
    shown = (
        StateTtlConfig.new_builder(Time.milliseconds(TTL_MS))
        .set_state_visibility(Visibility.ReturnExpiredIfNotCleanedUp)
        .disable_cleanup_in_background()
        .build()
    )
    assert run(Value(shown), steps) == ["a", None]
    assert run(Value(cleaned), steps) == [None, None]
    assert run(Value(ttl()), steps) == [None, None]


class Collections(KeyedProcessFunction):
    """Steps: a number to wait, ("add", element), or "read"."""

    def open(self, runtime_context: RuntimeContext) -> None:
        elements = ListStateDescriptor("elements", Types.STRING())
        elements.enable_time_to_live(ttl())
        self.elements = runtime_context.get_list_state(elements)
        entries = MapStateDescriptor("entries", Types.STRING(), Types.INT())
        entries.enable_time_to_live(ttl())
        self.entries = runtime_context.get_map_state(entries)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        if isinstance(value, int):
            clock.advance(value)
        elif value == "read":
            yield list(self.elements.get() or ()), sorted(self.entries.items())
        else:
            self.elements.add(value[1])
            self.entries.put(value[1], len(value[1]))


@pytest.mark.parametrize("form", FORMS)
def test_each_list_element_and_map_entry_expires_separately(form: str) -> None:
    steps = [("add", "a"), 600, ("add", "bb"), 300, "read", 100, "read", 600, "read"]
    assert run(Collections(), steps, form) == [
        (["a", "bb"], [("a", 1), ("bb", 2)]),
        (["bb"], [("bb", 2)]),
        ([], []),
    ]


class Totals(KeyedProcessFunction):
    """Steps: ("wait", milliseconds) or a number to add; yields sum and mean."""

    def open(self, runtime_context: RuntimeContext) -> None:
        class Add(ReduceFunction):
            def reduce(self, value1: int, value2: int) -> int:
                return value1 + value2

        class Mean(AggregateFunction):
            def create_accumulator(self) -> list[int]:
                return []

            def add(self, value: int, accumulator: list[int]) -> list[int]:
                return [*accumulator, value]

            def get_result(self, accumulator: list[int]) -> float:
                return sum(accumulator) / len(accumulator)

            def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
                return acc_a + acc_b

        total = ReducingStateDescriptor("total", Add(), Types.INT())
        total.enable_time_to_live(ttl())
        self.total = runtime_context.get_reducing_state(total)
        mean = AggregatingStateDescriptor("mean", Mean(), Types.PICKLED_BYTE_ARRAY())
        mean.enable_time_to_live(ttl())
        self.mean = runtime_context.get_aggregating_state(mean)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        if isinstance(value, tuple):
            clock.advance(value[1])
        else:
            self.total.add(value)
            self.mean.add(value)
            yield self.total.get(), self.mean.get()


@pytest.mark.parametrize("form", FORMS)
def test_an_expired_reducing_or_aggregating_state_starts_empty(form: str) -> None:
    steps = [1, 2, ("wait", 999), 3, ("wait", 1000), 10, 20]
    assert run(Totals(), steps, form) == [(1, 1.0), (3, 1.5), (6, 2.0), (10, 10.0), (30, 15.0)]
