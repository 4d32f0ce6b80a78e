"""The broadcast state pattern: rules that all subtasks know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, run_form, seen

from opchain.common import Types, WatermarkStrategy
from opchain.common.watermark_strategy import TimestampAssigner
from opchain.datastream import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from opchain.datastream.state import MapStateDescriptor, ValueStateDescriptor
from opchain.runtime.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.datastream import RuntimeContext, StreamExecutionEnvironment

LIMITS = MapStateDescriptor("limits", Types.STRING(), Types.INT())
NAMES = MapStateDescriptor("names", Types.STRING(), Types.STRING())


class AboveLimit(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        limits = ctx.get_broadcast_state(LIMITS)
        if value[0] in limits and value[1] > limits.get(value[0]):
            yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        limits = ctx.get_broadcast_state(LIMITS)
        limits.put(*value)
        yield "limits", sorted(limits.items())


@pytest.mark.parametrize("form", FORMS)
def test_in_batch_mode_broadcast_records_are_processed_first(form: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        readings = env.from_collection([("a", 5), ("b", 5), ("a", 1), ("c", 9)]).rebalance()
        limits = env.from_collection([("a", 3), ("b", 7)]).broadcast(LIMITS)
        seen(readings.connect(limits).process(AboveLimit()), "out")

    found = run_form(draw, form, parallelism=2, mode="BATCH").records("out")
    rules = [each for each in found if each[0] == "limits"]
    # Each of the two subtasks took both rules in their order.
    assert sorted(rules) == [
        *[("limits", [("a", 3)])] * 2,
        *[("limits", [("a", 3), ("b", 7)])] * 2,
    ]
    assert [each for each in found if each[0] != "limits"] == [("a", 5)]


class Named(KeyedBroadcastProcessFunction):
    """Greets with the newest name of the key, and says at the end how often it did."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        key = ctx.get_current_key()
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        ctx.timer_service().register_event_time_timer(1_000)
        yield f"{ctx.get_broadcast_state(NAMES).get(key) or key} {count}"

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        ctx.get_broadcast_state(NAMES).put(*value)
        return iter(())

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        name = ctx.get_broadcast_state(NAMES).get(ctx.get_current_key())
        yield f"{name}: {self.count.value()} at {timestamp}"


class ByLength(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return len(str(value))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("parallelism", [1, 3])
def test_keyed_broadcast_functions_have_keyed_and_broadcast_state_and_timers(
    form: str, parallelism: int
) -> None:
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByLength())

    def draw(env: StreamExecutionEnvironment) -> None:
        keys = env.from_collection(["x", "y", "x"]).assign_timestamps_and_watermarks(times)
        names = env.from_collection([("x", "Xenia"), ("y", "Yann")])
        joined = keys.key_by(lambda key: key).connect(names.broadcast(NAMES)).process(Named())
        seen(joined, "out")

    found = run_form(draw, form, parallelism=parallelism, mode="BATCH").records("out")
    assert sorted(found) == [
        *("Xenia 1", "Xenia 2", "Xenia: 2 at 1000", "Yann 1", "Yann: 1 at 1000")
    ]


def test_several_broadcast_states_have_the_same_content_on_all_subtasks() -> None:
    class Two(BroadcastProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield ctx.get_broadcast_state(LIMITS).get("a"), ctx.get_broadcast_state(NAMES).get("a")

        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            ctx.get_broadcast_state(LIMITS).put("a", value)
            ctx.get_broadcast_state(NAMES).put("a", str(value))

    def draw(env: StreamExecutionEnvironment) -> None:
        rules = env.from_collection([1, 2]).broadcast(LIMITS, NAMES)
        seen(env.from_collection(["record"]).connect(rules).process(Two()), "out")

    assert run_form(draw, mode="BATCH").records("out") == [(2, "2")]


def test_the_side_that_is_not_broadcast_cannot_write_broadcast_state() -> None:
    class Writes(BroadcastProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            ctx.get_broadcast_state(LIMITS).put("a", 1)

        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            return ()

    def draw(env: StreamExecutionEnvironment) -> None:
        rules = env.from_collection([1]).broadcast(LIMITS)
        seen(env.from_collection(["record"]).connect(rules).process(Writes()), "out")

    with pytest.raises(AttributeError):
        run_form(draw, mode="BATCH")


class Undeclared(BroadcastProcessFunction):
    """Uses a state that `broadcast()` did not get."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value, ctx.get_broadcast_state(NAMES).get(value)

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        state = MapStateDescriptor("names", Types.STRING(), Types.STRING())
        ctx.get_broadcast_state(state).put(value, value.upper())
        return iter(())


@pytest.mark.parametrize("form", FORMS)
def test_a_broadcast_state_need_not_be_passed_to_broadcast(form: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        words = env.from_collection(["a", "b", "c"])
        known = env.from_collection(["a", "c"]).broadcast(LIMITS)
        seen(words.connect(known).process(Undeclared()), "out")

    found = run_form(draw, form, mode="BATCH").records("out")
    assert found == [("a", "A"), ("b", None), ("c", "C")]


class OtherType(Undeclared):
    """Uses a name for another type."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield ctx.get_broadcast_state(MapStateDescriptor("limits", Types.INT(), Types.INT()))


def test_a_broadcast_state_cannot_be_read_with_another_type() -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        words = env.from_collection(["a"])
        words.connect(words.broadcast(LIMITS)).process(OtherType()).print()

    with pytest.raises(StateError, match="but this state is declared as MapStateDescriptor"):
        run_form(draw)
