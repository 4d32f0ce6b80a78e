"""A job resumes from a checkpoint whose states differ from those of the program."""

from __future__ import annotations

import sys
import types
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun, given
from forms import seen
from state_backends import BACKENDS

from opchain.common import Time, Types, WatermarkStrategy
from opchain.datastream.functions import (
    KeyedProcessFunction,
    MapFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
)
from opchain.datastream.state import ListStateDescriptor, ValueStateDescriptor
from opchain.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from opchain.runtime.checkpoint.restore_plan import match_state
from opchain.runtime.errors import CheckpointError, StateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

LONG: Any = ValueStateDescriptor("held", Types.LONG())
STRING: Any = ValueStateDescriptor("held", Types.STRING())
ELEMENTS: Any = ListStateDescriptor("held", Types.LONG())
ANYTHING: Any = ValueStateDescriptor("held")
OTHER: Any = ValueStateDescriptor("other", Types.STRING())


class Keep(KeyedProcessFunction[Any, Any, Any]):
    """Keeps something under each key."""

    def __init__(self, descriptor: Any, make: Any) -> None:
        self.descriptor = descriptor
        self.make = make

    def open(self, runtime_context: Any) -> None:
        is_list = isinstance(self.descriptor, ListStateDescriptor)
        get = runtime_context.get_list_state if is_list else runtime_context.get_state
        self.state = get(self.descriptor)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.state.update(self.make(value))
        yield value


def run_of(folder: Path, backend: str, descriptor: Any, make: Any) -> EpochRun:
    def draw(env: Any) -> None:
        keyed = given(env, "values").key_by(lambda value: value)
        seen(keyed.process(Keep(descriptor, make)).uid("keep"), "kept")

    return EpochRun(draw, folder, settings={"state_backend": backend})


def saved(folder: Path, backend: str, descriptor: Any, make: Any) -> Any:
    with closing(run_of(folder, backend, descriptor, make)) as run:
        run.run(values=[1, 2])
        return run.latest


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("descriptor", "make", "problem"),
    [
        (STRING, str, r"'KeyedProcess' \(.*\): state 'held' was saved with type .* and has "),
        (
            ELEMENTS,
            lambda value: [value],
            r"state 'held' is registered as .*requested as ListStateDescriptor",
        ),
        (OTHER, str, None),
        (LONG, int, None),
    ],
    ids=["another type", "another kind", "another name", "the same"],
)
def test_an_incompatible_change_of_a_state_is_refused(
    tmp_path: Path, backend: str, descriptor: Any, make: Any, problem: str | None
) -> None:
    latest = saved(tmp_path, backend, LONG, int)
    with closing(run_of(tmp_path, backend, descriptor, make)) as run:
        run.latest = latest
        if problem is None:
            assert run.run(values=[1]) is not None
            return
        with pytest.raises(StateError, match=problem):
            run.run(values=[1])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("change", ["gone", "moved", "another form"])
def test_a_changed_class_of_state_values_is_named_with_its_state(
    tmp_path: Path, backend: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = types.ModuleType("their_module")

    class Order:
        def __init__(self, number: int) -> None:
            self.number = number

        def __setstate__(self, state: dict[str, Any]) -> None:
            self.number = state["number"]

    Order.__module__, Order.__qualname__ = "their_module", "Order"
    module.Order = Order  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "their_module", module)
    latest = saved(tmp_path, backend, ANYTHING, Order)
    if change == "gone":
        monkeypatch.delitem(sys.modules, "their_module")
    elif change == "moved":
        del module.Order
    else:
        monkeypatch.setattr(Order, "__setstate__", lambda self, state: state["price"])
    with closing(run_of(tmp_path, backend, ANYTHING, int)) as run:
        run.latest = latest
        with pytest.raises(
            StateError,
            match=r"of state 'held' are of the class their_module\.Order, which can't be loaded",
        ):
            run.run(values=[1])


class All(ProcessWindowFunction[Any, Any, Any, Any]):
    """Emits the records of a window."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        yield list(elements)


TEN, SIX = Time.milliseconds(10), Time.milliseconds(6)
STRATEGY: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda value, _: value
)
WINDOWS: dict[str, tuple[str, Any]] = {
    "tumbling": (
        "event-time windows",
        lambda keyed: keyed.window(TumblingEventTimeWindows.of(TEN)),
    ),
    "sliding": (
        "event-time windows",
        lambda keyed: keyed.window(SlidingEventTimeWindows.of(TEN, SIX)).allowed_lateness(5),
    ),
    "sessions": (
        "event-time windows that merge",
        lambda keyed: keyed.window(EventTimeSessionWindows.with_gap(TEN)),
    ),
    "by the clock": (
        "processing-time windows",
        lambda keyed: keyed.window(TumblingProcessingTimeWindows.of(TEN)),
    ),
    "sessions by the clock": (
        "processing-time windows that merge",
        lambda keyed: keyed.window(ProcessingTimeSessionWindows.with_gap(TEN)),
    ),
    "count": ("count windows", lambda keyed: keyed.count_window(3)),
    "global": (
        "global windows",
        lambda keyed: keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(3)),
    ),
    "evicted": (
        "event-time windows with an evictor",
        lambda keyed: keyed.window(TumblingEventTimeWindows.of(TEN)).evictor(CountEvictor.of(2)),
    ),
}


@pytest.mark.parametrize("now", WINDOWS)
@pytest.mark.parametrize("before", WINDOWS)
def test_windows_of_another_kind_are_refused(tmp_path: Path, before: str, now: str) -> None:
    name = before

    def draw(env: Any) -> None:
        keyed = given(env, "times", STRATEGY).key_by(lambda _: "k")
        seen(WINDOWS[name][1](keyed).process(All()).uid("all"), "all")

    with closing(EpochRun(draw, tmp_path)) as run:
        run.run(times=[1])
    name = now
    with closing(run.restarted()) as changed:
        old, new = WINDOWS[before][0], WINDOWS[now][0]
        if old == new:
            changed.run(times=[2])
            return
        with pytest.raises(StateError, match=f"was saved with type {old} and has {new}; "):
            changed.run(times=[2])


def test_a_window_that_was_purged_continues_with_the_default_trigger(tmp_path: Path) -> None:
    purges = True

    def draw(env: Any) -> None:
        keyed = given(env, "records", PAIRS).key_by(lambda value: value[0])
        windows = keyed.window(TumblingEventTimeWindows.of(TEN))
        if purges:
            windows = windows.trigger(PurgingTrigger.of(CountTrigger.of(2)))
        seen(windows.process(All()).uid("all"), "all")

    with closing(EpochRun(draw, tmp_path)) as run:
        ran = run.run(records=[("a", 1), ("a", 2), ("b", 3)])
        assert ran.records("all") == [[("a", 1), ("a", 2)]]
    purges = False
    with closing(run.restarted()) as changed:
        ran = changed.run(records=[("a", 4), ("a", 40)])
        assert sorted(ran.records("all")) == [[("a", 4)], [("b", 3)]]


class Waiting(KeyedProcessFunction[Any, Any, Any]):
    """Sets a timer for each record."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        ctx.timer_service().register_event_time_timer(value[1] + 100)
        yield value


class Doubled(MapFunction[Any, Any]):
    """Has keyed state, and no timers."""

    def open(self, runtime_context: Any) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("doubled"))

    def map(self, value: Any) -> Any:
        self.state.update(2 * value[1])
        return value


class Both(ProcessJoinFunction[Any, Any, Any]):
    """Emits both records."""

    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterator[Any]:
        yield left, right


PAIRS: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda value, _: value[1]
)
KEYED: dict[str, tuple[str, Any]] = {
    "map": ("a function", lambda keyed: keyed.map(Doubled())),
    "process": ("a function", lambda keyed: keyed.process(Waiting())),
    "reduce": ("a reduce", lambda keyed: keyed.reduce(lambda _, right: right)),
    "sum": ("a reduce", lambda keyed: keyed.sum(1)),
    "window": (
        "a window",
        lambda keyed: keyed.window(TumblingEventTimeWindows.of(TEN)).process(All()),
    ),
    "count window": ("a window", lambda keyed: keyed.count_window(3).process(All())),
    "join": (
        "an interval join",
        lambda keyed: keyed.interval_join(keyed).between(TEN, TEN).process(Both()),
    ),
}


@pytest.mark.parametrize("now", KEYED)
@pytest.mark.parametrize("before", KEYED)
def test_state_of_another_kind_of_operator_is_refused(
    tmp_path: Path, before: str, now: str
) -> None:
    name = before

    def draw(env: Any) -> None:
        keyed = given(env, "records", PAIRS).key_by(lambda value: value[0])
        seen(KEYED[name][1](keyed).uid("same"), "all")

    with closing(EpochRun(draw, tmp_path)) as run:
        run.run(records=[("a", 1)])
    name = now
    old, new = KEYED[before][0], KEYED[now][0]
    with closing(run.restarted()) as changed:
        assert changed.latest is not None
        if old != new:
            with pytest.raises(
                CheckpointError,
                match=rf"was saved by {old}, and the operator is now {new}, which can't use it: give",
            ):
                match_state(changed.latest, changed.job)
            return
        match_state(changed.latest, changed.job)
        if (before, now) == ("process", "map"):
            with pytest.raises(StateError, match=r"1 of the saved timers .* would never fire"):
                changed.run(records=[("a", 2)])
        elif old == "a window" and before != now:
            with pytest.raises(StateError, match="was saved with type"):
                changed.run(records=[("a", 2)])
        else:
            changed.run(records=[("a", 2)])
