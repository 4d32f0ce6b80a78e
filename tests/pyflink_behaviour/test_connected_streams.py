"""Two streams in one function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, run_form, seen

from opchain.common import Types, WatermarkStrategy
from opchain.common.watermark_strategy import TimestampAssigner
from opchain.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
)
from opchain.datastream.state import MapStateDescriptor, ValueStateDescriptor
from opchain.runtime.time import MIN_LONG_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.datastream import RuntimeContext, StreamExecutionEnvironment


def connected(env: StreamExecutionEnvironment) -> Any:
    numbers, words = env.from_collection([1, 2, 3]), env.from_collection(["a b", "c"])
    return numbers.connect(words)


@pytest.mark.parametrize("form", FORMS)
def test_co_map_calls_a_method_for_each_stream(form: str) -> None:
    class Both(CoMapFunction):
        def map1(self, value: int) -> Any:
            return None if value == 2 else f"number {value}"

        def map2(self, value: str) -> Any:
            return f"word {value}"

    found = run_form(lambda env: seen(connected(env).map(Both()), "out"), form).records("out")
    assert sorted(found) == ["number 1", "number 3", "word a b", "word c"]


@pytest.mark.parametrize("form", FORMS)
def test_co_flat_map_calls_a_method_for_each_stream(form: str) -> None:
    class Both(CoFlatMapFunction):
        def flat_map1(self, value: int) -> Iterator[str]:
            yield from str(value) * value

        def flat_map2(self, value: str) -> Any:
            return value.split()

    found = run_form(lambda env: seen(connected(env).flat_map(Both()), "out"), form).records("out")
    assert sorted(found) == sorted("122333abc")


@pytest.mark.parametrize("form", FORMS)
def test_co_process_has_the_timestamps_of_both_streams(form: str) -> None:
    class Both(CoProcessFunction):
        def process_element1(self, value: int, ctx: Any) -> Iterator[Any]:
            yield value, ctx.timestamp()

        def process_element2(self, value: str, ctx: Any) -> Iterator[Any]:
            yield value, ctx.timestamp()

    class Size(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return len(str(value))

    def draw(env: StreamExecutionEnvironment) -> None:
        times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Size())
        numbers = env.from_collection([10]).assign_timestamps_and_watermarks(times)
        seen(numbers.connect(env.from_collection(["word"])).process(Both()), "out")

    assert sorted(run_form(draw, form).records("out"), key=str) == [
        ("word", MIN_LONG_VALUE),
        (10, 2),
    ]


class Join(KeyedCoProcessFunction):
    """Joins each order with its payment; says which orders were never paid."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.order = runtime_context.get_state(ValueStateDescriptor("order", Types.STRING()))
        self.payments = runtime_context.get_map_state(
            MapStateDescriptor("payments", Types.STRING(), Types.INT())
        )

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.order.update(value[1])
        ctx.timer_service().register_event_time_timer(500)
        for payment, amount in self.payments.items():
            yield ctx.get_current_key(), value[1], payment, amount

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.payments.put(value[1], value[2])
        if self.order.value() is not None:
            yield ctx.get_current_key(), self.order.value(), value[1], value[2]

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        if self.payments.is_empty():
            yield ctx.get_current_key(), self.order.value(), "unpaid", timestamp


class JoinByCoProcess(CoProcessFunction):
    """A CoProcessFunction has keyed state and timers too, if both streams are keyed."""

    open = Join.open
    process_element1 = Join.process_element1
    process_element2 = Join.process_element2
    on_timer = Join.on_timer


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("join", [Join, JoinByCoProcess])
def test_connected_keyed_streams_share_the_state_of_a_key(
    form: str, mode: str, parallelism: int, join: Any
) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        orders = env.from_collection([(1, "tea"), (2, "rice"), (3, "salt")])
        payments = env.from_collection([(2, "cash", 5), (1, "card", 7), (1, "coupon", 1)])
        keyed = orders.key_by(lambda order: order[0])
        seen(keyed.connect(payments.key_by(lambda payment: payment[0])).process(join()), "out")

    found = run_form(draw, form, parallelism=parallelism, mode=mode).records("out")
    assert sorted(found) == [
        *((1, "tea", "card", 7), (1, "tea", "coupon", 1), (2, "rice", "cash", 5)),
        (3, "salt", "unpaid", 500),
    ]


def test_connected_streams_can_be_keyed_by_one_key_by() -> None:
    class Seen(KeyedCoProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.INT()))

        def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
            self.seen.update((self.seen.value() or 0) + 1)
            yield ctx.get_current_key(), self.seen.value()

        process_element2 = process_element1

    def draw(env: StreamExecutionEnvironment) -> None:
        together = (
            env.from_collection(["x1", "y1"])
            .connect(env.from_collection(["2x", "3x"]))
            .key_by(lambda text: text[0], lambda text: text[1])
        )
        seen(together.process(Seen()), "out")

    assert sorted(run_form(draw, parallelism=2).records("out")) == [
        *(("x", 1), ("x", 2), ("x", 3), ("y", 1))
    ]
