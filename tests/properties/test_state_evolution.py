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
from opchain.datastream.functions import KeyedProcessFunction, ProcessWindowFunction
from opchain.datastream.state import ListStateDescriptor, ValueStateDescriptor
from opchain.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from opchain.runtime.errors import StateError

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
