"""A job that is stopped and restored has the results of a job that never stopped, at any parallelism."""

from __future__ import annotations

import tempfile
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun, given
from forms import seen
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from opchain.common import Duration, Time, Types, WatermarkStrategy
from opchain.datastream import OutputTag
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from opchain.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.slow

Record = tuple[int, int, int]
"""Key, event time, number."""


class Mixed(KeyedProcessFunction[int, Record, Any]):
    """Uses all kinds of state and both kinds of timers. Its results show the state."""

    def open(self, runtime_context: Any) -> None:
        get = runtime_context
        self.last = get.get_state(ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY()))
        self.all = get.get_list_state(ListStateDescriptor("all", Types.LONG()))
        self.by = get.get_map_state(MapStateDescriptor("by", Types.LONG(), Types.LONG()))
        self.sum = get.get_reducing_state(
            ReducingStateDescriptor("sum", lambda a, b: a + b, Types.LONG())
        )

    def process_element(self, value: Record, ctx: Any) -> Iterator[Any]:
        _, time, number = value
        self.sum.add(number)
        self.by.put(number % 3, number)
        if number % 4 == 0:
            self.all.clear()
            self.by.remove(1)
        self.all.add(number)
        timers = ctx.timer_service()
        timers.register_event_time_timer(time + 7)
        if number % 5 == 0 and self.last.value() is not None:
            timers.delete_event_time_timer(self.last.value()[1] + 7)
        if number % 3 == 0:
            timers.register_processing_time_timer(timers.current_processing_time() + 150)
        self.last.update(value)
        yield "seen", value, self.sum.get(), sorted(self.by.items()), timers.current_watermark()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield "timer", ctx.get_current_key(), timestamp, list(self.all.get()), self.last.value()


LATE = OutputTag("late")


def stream(env: Any) -> Any:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(10)
    ).with_timestamp_assigner(lambda value, _: value[1])
    return given(env, "events", strategy).key_by(lambda value: value[0])


def add(a: Any, b: Any) -> Any:
    return a[0], max(a[1], b[1]), a[2] + b[2]


def draw_all(env: Any) -> None:
    keyed = stream(env)
    seen(keyed.process(Mixed()).uid("mixed"), "mixed")
    tumbling = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(20)))
    tumbled = tumbling.allowed_lateness(15).side_output_late_data(LATE).reduce(add).uid("tumbling")
    seen(tumbled, "tumbling")
    seen(tumbled.get_side_output(LATE), "late")
    sliding = SlidingEventTimeWindows.of(Time.milliseconds(30), Time.milliseconds(10))
    seen(keyed.window(sliding).reduce(add).uid("sliding"), "sliding")
    sessions = EventTimeSessionWindows.with_gap(Time.milliseconds(8))
    seen(keyed.window(sessions).reduce(add).uid("sessions"), "sessions")
    counted = keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(3))
    seen(counted.reduce(add).uid("counted"), "counted")
    seen(keyed.reduce(add).uid("running"), "running")


SINKS = ("mixed", "tumbling", "late", "sliding", "sessions", "counted", "running")

epochs = st.lists(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 120)), max_size=8), min_size=1, max_size=6
)


def run_epochs(
    inputs: list[list[Record]],
    parallelisms: list[int],
    *,
    restarts: bool,
    form: str,
    backends: Sequence[str] = ("hashmap",),
    **more: Any,
) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        settings = {"max_parallelism": 8, "state_backend": backends[0]}
        run = EpochRun(draw_all, Path(folder), parallelisms[0], form, settings=settings, **more)
        results = []
        try:
            for number, records in enumerate(inputs):
                parallelism = parallelisms[number % len(parallelisms)]
                settings["state_backend"] = backends[number % len(backends)]
                if number and (restarts or parallelism != run.parallelism):
                    run = run.restarted(parallelism)
                ran = run.run(1_000 + 100 * number, events=records)
                results.append({name: ran.subtasks(name) for name in SINKS})
        finally:
            run.close()
        return results


def numbered(lists: list[list[tuple[int, int]]]) -> list[list[Record]]:
    number = iter(range(1_000))
    return [[(key, time, next(number)) for key, time in records] for records in lists]


@settings(max_examples=12)
@drawn(epochs, st.integers(1, 3), st.sampled_from(["interpreted", "generated", "inlined"]))
def test_a_run_that_restores_after_each_epoch_equals_an_uninterrupted_one(
    lists: list[list[tuple[int, int]]], parallelism: int, form: str
) -> None:
    inputs = numbered(lists)
    live = run_epochs(inputs, [parallelism], restarts=False, form=form)
    assert run_epochs(inputs, [parallelism], restarts=True, form=form) == live


@pytest.mark.skipif(find_spec("rocksdict") is None, reason="rocksdict is missing")
@pytest.mark.parametrize("backends", [["rocksdb"], ["rocksdb", "hashmap"]], ids="-".join)
@settings(max_examples=4, deadline=None)
@drawn(epochs, st.sampled_from(["interpreted", "inlined"]))
def test_state_on_disk_gives_the_same_results_as_state_in_memory(
    backends: list[str], lists: list[list[tuple[int, int]]], form: str
) -> None:
    inputs = numbered(lists)
    live = run_epochs(inputs, [2], restarts=False, form=form)
    on_disk = run_epochs(inputs, [2], restarts=len(backends) > 1, form=form, backends=backends)
    assert on_disk == live


@settings(max_examples=12)
@drawn(epochs, st.integers(1, 2), st.randoms(use_true_random=False))
def test_tasks_that_move_between_processes_give_the_same_results(
    lists: list[list[tuple[int, int]]], parallelism: int, random: Any
) -> None:
    inputs = numbered(lists)
    live = run_epochs(inputs, [parallelism], restarts=False, form="inlined")
    moving = run_epochs(
        inputs,
        [parallelism],
        restarts=False,
        form="inlined",
        processes=3,
        process_of=lambda _: random.randrange(3),
    )
    assert moving == live


def in_order(lists: list[list[tuple[int, int]]]) -> list[list[Record]]:
    """The same records with increasing times, so the result does not depend on the order of reading."""
    times = iter(sorted(time for records in lists for _, time in records))
    return numbered([[(key, next(times)) for key, _ in records] for records in lists])


@settings(max_examples=12)
@drawn(epochs, st.lists(st.integers(1, 4), min_size=2, max_size=4))
def test_rescaled_gives_the_same_windows(
    lists: list[list[tuple[int, int]]], parallelisms: list[int]
) -> None:
    inputs = [*in_order(lists), [(key, 10_000, 0) for key in range(4) for _ in range(8)]]

    def closed(results: list[dict[str, Any]]) -> dict[str, Counter[Any]]:
        return {
            name: Counter(
                record
                for result in results
                for records in result[name].values()
                for record in records
            )
            for name in ("tumbling", "sliding", "sessions")
        }

    one = closed(run_epochs(inputs, [1], restarts=False, form="inlined"))
    assert closed(run_epochs(inputs, parallelisms, restarts=False, form="inlined")) == one
