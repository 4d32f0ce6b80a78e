"""Operators restored from a snapshot and incremental snapshots continue like operators that never stopped."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.datastream.state import StateTtlConfig
from opchain.runtime.functions.process_functions import KeyedProcessFunction
from opchain.runtime.functions.record_functions import ProcessJoinFunction
from opchain.runtime.functions.state_descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from opchain.runtime.functions.window import ProcessWindowFunction
from opchain.runtime.operators.windows.aligned_window_operator import AlignedWindowOperator
from opchain.runtime.operators.windows.session_window_operator import SessionWindowOperator
from opchain.runtime.operators.windows.window_operator import (
    CountWindowOperator,
    ProcessingTimeWindowOperator,
    WindowOperator,
)
from opchain.runtime.program.operator_specs import IntervalJoinSpec, WindowSpec
from opchain.runtime.state.operator_snapshot import with_changes
from opchain.runtime.testing.operator_harness import (
    KeyedOneInputOperatorHarness,
    KeyedTwoInputOperatorHarness,
)
from opchain.runtime.time import Duration
from opchain.runtime.windows.data_triggers import CountTrigger
from opchain.runtime.windows.global_windows import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
)
from opchain.runtime.windows.time_windows import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from opchain.runtime.windows.triggers import EventTimeTrigger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from opchain.runtime.state.operator_snapshot import OperatorSnapshot


class SameTrigger(EventTimeTrigger):
    """The default trigger under another name, so that the general operator runs."""


class Tell(ProcessWindowFunction[Any, Any, Any, Any]):
    """Tells all, and keeps a count per window and one per key."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        seen = context.global_state().get_state(ValueStateDescriptor("seen"))
        seen.update((seen.value() or 0) + 1)
        yield key, context.window(), list(elements), seen.value()


class Counting(Tell):
    """Has state per window as well, which it clears."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        fires = context.window_state().get_state(ValueStateDescriptor("fires"))
        fires.update((fires.value() or 0) + 1)
        yield fires.value()
        yield from super().process(key, context, elements)

    def clear(self, context: Any) -> None:
        context.window_state().get_state(ValueStateDescriptor("fires")).clear()


class Everything(KeyedProcessFunction):
    """State of all kinds, and timers of both clocks, by what the record says."""

    def open(self, context: Any) -> None:
        expiring: ValueStateDescriptor[Any] = ValueStateDescriptor("expiring")
        expiring.enable_time_to_live(StateTtlConfig.new_builder(Duration.of_millis(40)).build())
        self.value = context.get_state(ValueStateDescriptor("value"))
        self.list = context.get_list_state(ListStateDescriptor("list"))
        self.map = context.get_map_state(MapStateDescriptor("map"))
        self.sum = context.get_reducing_state(ReducingStateDescriptor("sum", lambda a, b: a + b))
        self.expiring = context.get_state(expiring)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        _, number = value
        timers = ctx.timer_service()
        turn = number % 8
        if turn == 0:
            self.value.update(number)
        elif turn == 1:
            self.list.add(number)
            timers.register_event_time_timer(number)
        elif turn == 2:
            self.map.put(number % 3, number)
            timers.delete_event_time_timer(number - 1)
        elif turn == 3:
            self.sum.add(number)
            timers.register_processing_time_timer(number)
        elif turn == 4:
            self.value.update(None)
            self.list.clear()
        elif turn == 5:
            self.expiring.update(number)
            timers.register_event_time_timer(number - number % 10)
        elif turn == 6:
            self.map.remove(number % 3)
            timers.delete_event_time_timer(number - number % 10)
        else:
            timers.delete_processing_time_timer(number - 4)
        yield self.all()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        self.sum.add(1)
        yield ctx.get_current_key(), timestamp, self.all()

    def all(self) -> Any:
        held = list(self.list.get()), list(self.map.items()), self.sum.get(), self.expiring.value()
        return self.value.value(), *held


def windows(assigner: Any, trigger: Any = None, **spec: Any) -> Callable[[], WindowSpec]:
    def make() -> WindowSpec:
        functions = {} if spec.keys() & {"reduce", "function"} else {"function": Tell()}
        used = trigger or assigner.get_default_trigger(None)
        return WindowSpec(assigner=assigner, trigger=used, **{**functions, **spec})

    return make


TEN, SLIDING = TumblingEventTimeWindows.of(10), SlidingEventTimeWindows.of(12, 5)
SESSIONS = EventTimeSessionWindows.with_gap(4)
OPERATORS: dict[str, Callable[[], Any]] = {
    "process": Everything,
    "aligned": windows(TEN),
    "aligned reduce": windows(TEN, reduce=lambda a, b: (a[0], a[1] + b[1])),
    "aligned late": windows(TEN, allowed_lateness_ms=15),
    "aligned sliding": windows(SLIDING, function=Counting()),
    "aligned sliding late": windows(SLIDING, allowed_lateness_ms=8),
    "general": windows(TEN, SameTrigger(), function=Counting(), allowed_lateness_ms=15),
    "general sliding": windows(SLIDING, SameTrigger()),
    "counting": windows(TEN, CountTrigger.of(2)),
    "sessions": windows(SESSIONS),
    "sessions late": windows(SESSIONS, allowed_lateness_ms=6),
    "merging": windows(SESSIONS, SameTrigger()),
    "processing time": windows(TumblingProcessingTimeWindows.of(10)),
    "processing time sliding": windows(SlidingProcessingTimeWindows.of(12, 5), function=Counting()),
    "count": windows(CountTumblingWindowAssigner.of(3)),
    "count sliding": windows(CountSlidingWindowAssigner.of(5, 2)),
}

ELEMENT = st.tuples(
    st.just("element"), st.sampled_from(["a", "b", "c", 1, 1.0]), st.integers(0, 80)
)
STEP = st.one_of(
    ELEMENT,
    ELEMENT,
    ELEMENT,
    st.tuples(st.just("watermark"), st.just(0), st.integers(1, 12)),
    st.tuples(st.just("clock"), st.just(0), st.integers(1, 12)),
)
STEPS = st.lists(STEP, max_size=12)


class Run:
    """One subtask, and how far its clocks have come."""

    def __init__(self, name: str, **settings: Any) -> None:
        self.harness = KeyedOneInputOperatorHarness(
            OPERATORS[name](), lambda record: record[0], tracks_changes=True, **settings
        )
        self.harness.open()
        self.watermark = 0

    def take(self, steps: list[Any]) -> list[Any]:
        """What comes out of some steps."""
        harness = self.harness
        harness.clear_output()
        for what, key, number in steps:
            if what == "element":
                if harness.owns(key):
                    harness.process_element((key, number), number)
            elif what == "watermark":
                self.watermark += number
                harness.process_watermark(self.watermark)
            else:
                harness.advance_processing_time(number)
        return harness.records()

    def goes_on_from(self, other: Run) -> None:
        self.watermark = other.watermark
        self.harness.set_processing_time(other.harness.clock.current_processing_time())
        self.harness.process_watermark(self.watermark)

    def fire_what_is_due(self) -> None:
        """Does what a task that starts again does with timers that were set in the past."""
        self.harness.run_mail()
        self.harness.process_watermark(self.watermark)

    def contents(self) -> Any:
        tables = self.harness.operator.context.keyed_state._tables
        return {
            (name, repr(namespace)): [(repr(key), repr(held)) for key, held in entries.items()]
            for name, table in tables.items()
            for namespace, entries in table.spaces.items()
            if entries
        }


def run_epochs(name: str, epochs: list[list[Any]]) -> tuple[Run, list[OperatorSnapshot]]:
    run = Run(name)
    chain = []
    for epoch in epochs:
        run.take(epoch)
        harness = run.harness
        chain.append(harness.snapshot_changes() if chain else harness.snapshot())
        run.fire_what_is_due()
    return run, chain


EPOCHS = st.lists(STEPS, min_size=1, max_size=4)


@pytest.mark.parametrize("name", OPERATORS)
@given(epochs=EPOCHS, rest=STEPS)
@settings(max_examples=30)
def test_a_restored_operator_continues_in_the_same_order(
    name: str, epochs: list[list[Any]], rest: list[Any]
) -> None:
    live, chain = run_epochs(name, epochs)
    again = Run(name, snapshots=[with_changes(chain)], clock=None)
    again.goes_on_from(live)
    assert again.contents() == live.contents()
    assert again.take(rest) == live.take(rest)
    assert again.contents() == live.contents()


@pytest.mark.parametrize("name", OPERATORS)
@given(epochs=EPOCHS, rest=STEPS, parallelism=st.integers(2, 8))
@settings(max_examples=12)
def test_a_restore_at_another_parallelism_gives_the_same_results(
    name: str, epochs: list[list[Any]], rest: list[Any], parallelism: int
) -> None:
    live, chain = run_epochs(name, epochs)
    found = []
    for subtask in range(parallelism):
        place = {"parallelism": parallelism, "subtask": subtask, "max_parallelism": 128}
        part = Run(name, snapshots=[with_changes(chain)], **place)
        part.goes_on_from(live)
        found += part.take(rest)
    assert sorted(found, key=repr) == sorted(live.take(rest), key=repr)


@pytest.mark.parametrize("name", OPERATORS)
@given(epochs=EPOCHS, more=EPOCHS, rest=STEPS)
@settings(max_examples=12)
def test_incremental_snapshots_continue_after_a_restore(
    name: str, epochs: list[list[Any]], more: list[list[Any]], rest: list[Any]
) -> None:
    live, chain = run_epochs(name, epochs)
    again = Run(name, snapshots=[with_changes(chain)])
    again.goes_on_from(live)
    for epoch in more:
        again.take(epoch)
        chain.append(again.harness.snapshot_changes())
        again.fire_what_is_due()
    last = Run(name, snapshots=[with_changes(chain)])
    last.goes_on_from(again)
    assert last.contents() == again.contents()
    assert last.take(rest) == again.take(rest)


def test_each_tested_operator_has_the_intended_class() -> None:
    for name, kind in (
        ("aligned late", AlignedWindowOperator),
        ("aligned sliding", AlignedWindowOperator),
        ("general", WindowOperator),
        ("counting", WindowOperator),
        ("sessions", SessionWindowOperator),
        ("processing time", ProcessingTimeWindowOperator),
        ("count", CountWindowOperator),
        ("count sliding", CountWindowOperator),
    ):
        assert type(Run(name).harness.operator) is kind


def test_incremental_snapshots_of_windows_have_only_changed_keys() -> None:
    run = Run("aligned late")
    for key in range(2000):
        run.harness.process_element((key, 1), 1)
    whole = run.harness.snapshot()
    run.harness.process_element((5, 2), 2)
    changes = run.harness.snapshot_changes()
    assert sum(map(len, whole.keyed.values())) > 50_000
    assert sum(map(len, changes.keyed.values())) < 500
    assert changes.timers == {}


class Pair(ProcessJoinFunction[Any, Any, Any]):
    """Tells both records and their times."""

    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterator[Any]:
        yield left, right, ctx.get_left_timestamp(), ctx.get_right_timestamp()


JOIN_STEP = st.one_of(
    st.tuples(st.integers(1, 2), st.sampled_from(["a", "b", 1]), st.integers(0, 40)),
    st.tuples(st.just(0), st.just(""), st.integers(1, 10)),
)


class Join:
    """Two inputs that are joined, and how far event time has come."""

    def __init__(self, **settings: Any) -> None:
        spec = IntervalJoinSpec(Pair(), -5, 5)
        select = itemgetter(0)
        self.harness = KeyedTwoInputOperatorHarness(
            spec, select, select, tracks_changes=True, **settings
        )
        self.harness.open()
        self.watermark = 0

    def take(self, steps: list[Any]) -> list[Any]:
        harness = self.harness
        harness.clear_output()
        for number, key, time in steps:
            if number == 1:
                harness.process_element1((key, time), time)
            elif number == 2:
                harness.process_element2((key, time), time)
            else:
                self.advance_to(self.watermark + time)
        return harness.records()

    def advance_to(self, watermark: int) -> None:
        self.watermark = watermark
        self.harness.process_watermark1(watermark)
        self.harness.process_watermark2(watermark)


@given(
    epochs=st.lists(st.lists(JOIN_STEP, max_size=12), min_size=1, max_size=4),
    rest=st.lists(JOIN_STEP, max_size=12),
)
@settings(max_examples=50)
def test_a_restored_interval_join_continues_in_the_same_order(
    epochs: list[Any], rest: list[Any]
) -> None:
    live, chain = Join(), []
    for epoch in epochs:
        live.take(epoch)
        chain.append(live.harness.snapshot_changes() if chain else live.harness.snapshot())
        live.advance_to(live.watermark)
    again = Join(snapshots=[with_changes(chain)])
    again.advance_to(live.watermark)
    assert again.harness.state_entry_count() == live.harness.state_entry_count()
    assert again.harness.event_time_timer_count() == live.harness.event_time_timer_count()
    assert again.take(rest) == live.take(rest)
