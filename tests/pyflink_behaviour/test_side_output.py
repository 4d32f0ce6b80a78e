"""Side outputs of every function that has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, run_form, seen

from opchain.common import Types, WatermarkStrategy
from opchain.common.watermark_strategy import TimestampAssigner
from opchain.datastream import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
)
from opchain.datastream.state import MapStateDescriptor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opchain.datastream import DataStream, StreamExecutionEnvironment

EVEN = OutputTag("even", Types.STRING())
BIG = OutputTag("big", Types.LONG())
RULES = MapStateDescriptor("rules", Types.STRING(), Types.STRING())


def split(value: int, suffix: str = "") -> Iterator[Any]:
    """To the main output its value, and to the sides what it is."""
    yield value
    if value % 2 == 0:
        yield EVEN, f"{value}{suffix}"
    if value > 3:
        yield BIG, value
        yield BIG, value * 10


class Split(ProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        return split(value)


class KeyedSplit(KeyedProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        ctx.timer_service().register_event_time_timer(1)
        return split(value)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield EVEN, f"timer of {ctx.get_current_key()}"


class CoSplit(CoProcessFunction):
    def process_element1(self, value: int, ctx: Any) -> Iterator[Any]:
        return split(value)

    def process_element2(self, value: str, ctx: Any) -> Iterator[Any]:
        yield EVEN, value


class KeyedCoSplit(KeyedCoProcessFunction):
    def process_element1(self, value: int, ctx: Any) -> Iterator[Any]:
        return split(value)

    def process_element2(self, value: str, ctx: Any) -> Iterator[Any]:
        yield EVEN, value


class BroadcastSplit(BroadcastProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        return split(value)

    def process_broadcast_element(self, value: str, ctx: Any) -> Iterator[Any]:
        yield EVEN, value


class KeyedBroadcastSplit(KeyedBroadcastProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        return split(value)

    def process_broadcast_element(self, value: str, ctx: Any) -> Iterator[Any]:
        yield EVEN, value


NUMBERS = range(1, 6)
FROM_NUMBERS = ["2", "4"]


def with_words(
    env: StreamExecutionEnvironment, numbers: Callable[[Any], Any], words: Callable[[Any], Any]
) -> Any:
    return numbers(env.from_collection(list(NUMBERS))).connect(words(env.from_collection(["w"])))


def as_is(stream: Any) -> Any:
    return stream


def keyed(stream: Any) -> Any:
    return stream.key_by(lambda value: len(str(value)))


def broadcast(stream: Any) -> Any:
    return stream.broadcast(RULES)


CASES: dict[str, tuple[Callable[[Any], DataStream[Any]], list[str]]] = {
    "process": (lambda env: env.from_collection(list(NUMBERS)).process(Split()), []),
    "keyed process": (
        lambda env: (
            env.from_collection(list(NUMBERS)).key_by(lambda n: n % 2).process(KeyedSplit())
        ),
        ["timer of 0", "timer of 1"],
    ),
    "co-process": (lambda env: with_words(env, as_is, as_is).process(CoSplit()), ["w"]),
    "keyed co-process": (lambda env: with_words(env, keyed, keyed).process(KeyedCoSplit()), ["w"]),
    "broadcast process": (
        lambda env: with_words(env, as_is, broadcast).process(BroadcastSplit()),
        ["w"],
    ),
    "keyed broadcast process": (
        lambda env: with_words(env, keyed, broadcast).process(KeyedBroadcastSplit()),
        ["w"],
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_every_process_function_has_side_outputs(case: str, form: str) -> None:
    make, besides = CASES[case]

    def draw(env: StreamExecutionEnvironment) -> None:
        main = make(env)
        seen(main, "main")
        seen(main.get_side_output(EVEN).map(str.upper), "even")
        seen(main.get_side_output(BIG), "big")

    ran = run_form(draw, form)
    assert sorted(ran.records("main")) == list(NUMBERS)
    assert sorted(ran.records("even")) == sorted(word.upper() for word in (*FROM_NUMBERS, *besides))
    assert sorted(ran.records("big")) == [4, 5, 40, 50]


@pytest.mark.parametrize("form", FORMS)
def test_a_side_output_may_be_read_twice_or_not_at_all(form: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        main = env.from_collection(list(NUMBERS)).process(Split())
        even = main.get_side_output(EVEN)
        seen(even, "one")
        seen(even.key_by(lambda text: text).map(lambda text: f"{text}!"), "two")

    ran = run_form(draw, form, parallelism=2)
    assert sorted(ran.records("one")) == ["2", "4"]
    assert sorted(ran.records("two")) == ["2!", "4!"]


@pytest.mark.parametrize("form", FORMS)
def test_side_outputs_of_chained_functions_are_separate(form: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        first = env.from_collection(list(NUMBERS)).process(Split())
        second = first.map(lambda n: n + 1).process(Split())
        seen(first.get_side_output(EVEN), "first")
        seen(second.get_side_output(EVEN), "second")
        seen(second.get_side_output(EVEN).union(first.get_side_output(EVEN)), "both")

    ran = run_form(draw, form)
    assert ran.records("first") == ["2", "4"]
    assert ran.records("second") == ["2", "4", "6"]
    assert sorted(ran.records("both")) == ["2", "2", "4", "4", "6"]


def test_records_of_a_side_output_keep_their_timestamps() -> None:
    class TenTimes(TimestampAssigner):
        def extract_timestamp(self, value: int, record_timestamp: int) -> int:
            return value * 10

    def draw(env: StreamExecutionEnvironment) -> None:
        times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TenTimes())
        numbers = env.from_sequence(1, 4).assign_timestamps_and_watermarks(times)
        seen(numbers.process(Split()).get_side_output(EVEN), "even")

    assert run_form(draw).timestamps("even") == [20, 40]
