"""Keyed process functions in a harness: keys, state, timers, contexts, side outputs and rescaling."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.common import Types
from opchain.datastream import (
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    TimeDomain,
)
from opchain.runtime.errors import StateError
from opchain.runtime.functions.state_descriptors import ListStateDescriptor, ValueStateDescriptor
from opchain.runtime.time import MAX_LONG_VALUE, MIN_LONG_VALUE
from opchain.testing import (
    EmittedRecord,
    EmittedWatermark,
    KeyedOneInputOperatorHarness,
    KeyedTwoInputOperatorHarness,
)

if TYPE_CHECKING:
    from opchain.runtime.functions.function import RuntimeContext

COUNT: ValueStateDescriptor[int] = ValueStateDescriptor("count", Types.LONG())
SIDE = OutputTag("side")


class CountUntilTimer(KeyedProcessFunction[Any, Any, Any]):
    """Counts per key; a record (key, time) sets a timer of each clock for that time."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(COUNT)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context[Any]) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(value[1])
        ctx.timer_service().register_processing_time_timer(value[1])
        yield "in", ctx.get_current_key(), ctx.timestamp()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext[Any]) -> Any:
        yield ctx.time_domain(), timestamp, ctx.get_current_key(), self.count.value()
        yield SIDE, ctx.timestamp()
        self.count.clear()


def count_harness(**settings: Any) -> KeyedOneInputOperatorHarness:
    return KeyedOneInputOperatorHarness(CountUntilTimer(), itemgetter(0), **settings)


def test_records_and_timers_use_the_state_of_their_key() -> None:
    with count_harness() as harness:
        for key, time in (("a", 5), ("b", 7), ("a", 5)):
            harness.process_element((key, time), 1)
        harness.clear_output()
        harness.process_watermark(6)
        assert harness.elements() == [
            EmittedRecord((TimeDomain.EVENT_TIME, 5, "a", 2), 5),
            EmittedWatermark(6),
        ]
        assert harness.event_time_timer_count() == 1
        assert list(harness.keys("count")) == ["b"]


def test_results_of_processing_time_timers_have_timestamps_in_side_outputs_only() -> None:
    with count_harness() as harness:
        harness.process_element(("a", 5), 1)
        harness.clear_output()
        harness.set_processing_time(9)
        assert harness.records() == [((TimeDomain.PROCESSING_TIME, 5, "a", 1), None)]
        assert harness.records(SIDE) == [(5, 5)]


def test_results_keep_the_timestamp_of_their_record() -> None:
    with count_harness() as harness:
        harness.process_element(("a", 5), 42)
        harness.process_element(("a", 5))
        assert harness.records() == [(("in", "a", 42), 42), (("in", "a", MIN_LONG_VALUE), None)]


def test_at_the_end_of_input_event_time_timers_fire_and_others_do_not() -> None:
    with count_harness() as harness:
        harness.process_element(("a", 5), 1)
        harness.clear_output()
        harness.end_input()
        assert [value[:2] for value in harness.values()] == [(TimeDomain.EVENT_TIME, 5)]
        harness.set_processing_time(100)
        assert len(harness.records()) == 1


def test_time_domain_exists_in_timer_contexts_only() -> None:
    class Asks(KeyedProcessFunction[Any, Any, Any]):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield ctx.time_domain()

    with (
        KeyedOneInputOperatorHarness(Asks(), itemgetter(0)) as harness,
        pytest.raises(RuntimeError, match="only available in on_timer"),
    ):
        harness.process_element(("a", 1))


def test_an_event_time_timer_for_the_past_fires_with_the_next_watermark() -> None:
    with count_harness() as harness:
        harness.process_watermark(100)
        harness.process_element(("a", 5), 1)
        harness.clear_output()
        assert harness.records() == []
        harness.process_watermark(101)
        assert harness.records()[0].timestamp == 5


def test_process_element_and_on_timer_may_return_none_or_lists() -> None:
    class Returns(KeyedProcessFunction[Any, Any, Any]):
        def process_element(self, value: Any, ctx: Any) -> Any:
            ctx.timer_service().register_event_time_timer(1)
            return None if value == "nothing" else [value, (SIDE, value)]

        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            return None

    with KeyedOneInputOperatorHarness(Returns(), str) as harness:
        harness.process_element("nothing")
        harness.process_element("something")
        harness.end_input()
        assert harness.values() == ["something"]
        assert harness.values(SIDE) == ["something"]


def test_state_cannot_be_used_in_open() -> None:
    class TooEarly(CountUntilTimer):
        def open(self, runtime_context: RuntimeContext) -> None:
            runtime_context.get_state(COUNT).value()

    with pytest.raises(
        StateError, match=r"'KeyedProcess' \(test harness\) .* without a current key.*open"
    ):
        KeyedOneInputOperatorHarness(TooEarly(), itemgetter(0)).open()


def test_the_timer_service_returns_both_times_and_deletes_timers() -> None:
    seen: list[Any] = []

    class Looks(KeyedProcessFunction[Any, Any, Any]):
        def process_element(self, value: Any, ctx: Any) -> Any:
            timers = ctx.timer_service()
            seen.append((timers.current_watermark(), timers.current_processing_time()))
            if value[1] == "set":
                timers.register_event_time_timer(50)
                timers.register_processing_time_timer(50)
            else:
                timers.delete_event_time_timer(50)
                timers.delete_processing_time_timer(50)

    with KeyedOneInputOperatorHarness(Looks(), itemgetter(0)) as harness:
        for key in "ab":
            harness.process_element((key, "set"))
        harness.process_watermark(3)
        harness.set_processing_time(4)
        harness.process_element(("a", "unset"))
        assert seen[0] == (MIN_LONG_VALUE, 0)
        assert seen[-1] == (3, 4)
        assert harness.event_time_timer_count() == harness.processing_time_timer_count() == 1


@pytest.mark.parametrize("time", ["7", None])
def test_the_time_of_a_timer_must_be_a_number(time: Any) -> None:
    with count_harness() as harness, pytest.raises(TypeError):
        harness.process_element(("a", time), 1)


def test_timers_registered_in_on_timer_fire_in_the_same_pass_if_due() -> None:
    class CountsDown(KeyedProcessFunction[Any, Any, Any]):
        def process_element(self, value: Any, ctx: Any) -> Any:
            ctx.timer_service().register_event_time_timer(value[1])

        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            yield timestamp
            if timestamp < 5:
                ctx.timer_service().register_event_time_timer(timestamp + 1)

    with KeyedOneInputOperatorHarness(CountsDown(), itemgetter(0)) as harness:
        harness.process_element(("a", 1))
        harness.process_watermark(4)
        assert harness.values() == [1, 2, 3, 4]
        harness.process_watermark(MAX_LONG_VALUE)
        assert harness.values() == [1, 2, 3, 4, 5]


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("record"), st.sampled_from("abcdef"), st.integers(0, 20)),
        st.tuples(st.just("watermark"), st.just(""), st.integers(0, 6)),
    ),
    max_size=25,
)


@given(ACTIONS, st.integers(0, 25), st.integers(1, 3), st.integers(1, 3))
def test_a_restart_at_another_parallelism_gives_the_same_results(
    actions: list[tuple[str, str, int]], stop: int, before: int, after: int
) -> None:
    def run(parts: list[KeyedOneInputOperatorHarness], todo: list[Any], start: int) -> list[Any]:
        found: list[Any] = []
        watermark = start
        for part in parts:
            part.open()
        for kind, key, number in todo:
            if kind == "watermark":
                watermark += number
                for part in parts:
                    part.process_watermark(watermark)
            else:
                (owner,) = [part for part in parts if part.owns(key)]
                owner.process_element((key, number), number)
        for part in parts:
            found += [value for value in part.values() if value[0] != "in"]
        return found

    def harnesses(count: int, snapshots: Any = None) -> list[KeyedOneInputOperatorHarness]:
        return [
            count_harness(parallelism=count, subtask=n, max_parallelism=16, snapshots=snapshots)
            for n in range(count)
        ]

    actions = [*actions, ("watermark", "", 1000)]
    undisturbed = run(harnesses(1), actions, 0)
    first = harnesses(before)
    found = run(first, actions[:stop], 0)
    reached = sum(number for kind, _, number in actions[:stop] if kind == "watermark")
    second = harnesses(after, [part.snapshot() for part in first])
    found += run(second, actions[stop:], reached)
    assert sorted(map(repr, found)) == sorted(map(repr, undisturbed))


class Joins(KeyedCoProcessFunction[Any, Any, Any, Any]):
    """Keeps records of the left input, which records of the right one read. Both set a timer."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.kept = runtime_context.get_list_state(ListStateDescriptor("kept"))

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context[Any]) -> Any:
        self.kept.add(value)
        ctx.timer_service().register_event_time_timer(10)

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context[Any]) -> Any:
        ctx.timer_service().register_event_time_timer(20)
        yield ctx.get_current_key(), ctx.timestamp(), list(self.kept.get())
        yield SIDE, value

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext[Any]) -> Any:
        yield ctx.time_domain(), timestamp, ctx.get_current_key()


def test_both_inputs_share_state_and_timers_of_a_key() -> None:
    with KeyedTwoInputOperatorHarness(Joins(), itemgetter(0), itemgetter("key")) as harness:
        harness.process_element1(("a", 1), 1)
        harness.process_element1(("b", 2), 1)
        harness.process_element2({"key": "a"}, 3)
        assert harness.records() == [(("a", 3, [("a", 1)]), 3)]
        assert harness.records(SIDE) == [({"key": "a"}, 3)]
        harness.clear_output()
        harness.process_watermark1(30)
        assert harness.elements() == []
        harness.process_watermark2(15)
        assert harness.elements() == [
            ((TimeDomain.EVENT_TIME, 10, "a"), 10),
            ((TimeDomain.EVENT_TIME, 10, "b"), 10),
            EmittedWatermark(15),
        ]


def test_the_key_of_a_failing_record_is_known() -> None:
    class Fails(KeyedProcessFunction[Any, Any, Any]):
        def process_element(self, value: Any, ctx: Any) -> Any:
            raise ValueError("no")

    with KeyedOneInputOperatorHarness(Fails(), itemgetter(0)) as harness:
        with pytest.raises(ValueError, match="no"):
            harness.process_element(("a", 1))
        assert harness.operator.current_key == "a"
