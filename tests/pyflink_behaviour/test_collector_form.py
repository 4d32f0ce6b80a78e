"""Functions of Flink's Java form, which hand their results to a collector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, run_form, seen

from opchain.common import Types, WatermarkStrategy
from opchain.datastream import (
    AllWindowFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoGroupFunction,
    CoProcessFunction,
    FlatJoinFunction,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from opchain.datastream.state import MapStateDescriptor
from opchain.datastream.window import TumblingEventTimeWindows

if TYPE_CHECKING:
    from collections.abc import Callable

PETS = [("cat", 1), ("dog", 2), ("cat", 3)]
TIMES: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda pet, _: pet[1]
)
SIDE: OutputTag[Any] = OutputTag("side")
RULES = MapStateDescriptor("rules", Types.STRING(), Types.STRING())


def first(pet: Any) -> Any:
    return pet[0]


class Twice(FlatMapFunction):
    def flat_map(self, value: Any, out: Any) -> None:  # type: ignore[override]
        out.collect(value)
        out.collect(value)


class Process(ProcessFunction):
    def process_element(self, value: Any, ctx: Any, out: Any) -> None:  # type: ignore[override]
        out.collect(value)
        out.collect((SIDE, value))


class AlsoYields(ProcessFunction):
    def process_element(self, value: Any, ctx: Any, out: Any) -> Any:  # type: ignore[override]
        yield value
        out.collect("collected")


class Timed(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any, out: Any) -> None:  # type: ignore[override]
        ctx.timer_service().register_event_time_timer(value[1] + 10)
        out.collect(value)

    def on_timer(self, timestamp: int, ctx: Any, out: Any) -> None:  # type: ignore[override]
        out.collect((ctx.get_current_key(), timestamp))


class Both(CoFlatMapFunction):
    def flat_map1(self, value: Any, out: Any) -> None:  # type: ignore[override]
        out.collect(value)

    def flat_map2(self, value: Any) -> Any:
        return [value]


class CoProcess(CoProcessFunction):
    def process_element1(self, value: Any, ctx: Any, out: Any) -> None:  # type: ignore[override]
        out.collect(value)

    def process_element2(self, value: Any, ctx: Any, out: Any) -> None:  # type: ignore[override]
        out.collect(value)


class KeyedCo(KeyedCoProcessFunction):
    process_element1 = CoProcess.process_element1  # type: ignore[assignment]
    process_element2 = CoProcess.process_element2  # type: ignore[assignment]


class Broadcasts(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any, out: Any) -> None:  # type: ignore[override]
        out.collect(value)

    def process_broadcast_element(self, value: Any, ctx: Any, out: Any) -> None:  # type: ignore[override]
        out.collect(value)


class KeyedBroadcasts(KeyedBroadcastProcessFunction):
    process_element = Broadcasts.process_element  # type: ignore[assignment]
    process_broadcast_element = Broadcasts.process_broadcast_element  # type: ignore[assignment]


class Counts(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any, out: Any) -> None:  # type: ignore[override]
        out.collect((key, len(list(elements))))


class CountsAll(ProcessAllWindowFunction):
    def process(self, context: Any, elements: Any, out: Any) -> None:  # type: ignore[override]
        out.collect(len(list(elements)))


class Applies(WindowFunction):
    def apply(self, key: Any, window: Any, inputs: Any, out: Any) -> None:  # type: ignore[override]
        out.collect((key, len(list(inputs))))


class AppliesAll(AllWindowFunction):
    def apply(self, window: Any, inputs: Any, out: Any) -> None:  # type: ignore[override]
        out.collect(len(list(inputs)))


class Pairs(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any, out: Any) -> None:  # type: ignore[override]
        out.collect((left, right))


class Groups(CoGroupFunction):
    def co_group(self, first: Any, second: Any, out: Any) -> None:  # type: ignore[override]
        out.collect((len(list(first)), len(list(second))))


class Joins(FlatJoinFunction):
    def join(self, first: Any, second: Any, out: Any) -> None:  # type: ignore[override]
        out.collect((first[1], second[1]))


def windowed(stream: Any, *, by_key: bool = True) -> Any:
    windows = TumblingEventTimeWindows.of(100)
    return stream.key_by(first).window(windows) if by_key else stream.window_all(windows)


def grouped(pets: Any, how: str) -> Any:
    both = getattr(pets, how)(pets).where(first).equal_to(first)
    return both.window(TumblingEventTimeWindows.of(100))


CASES: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
    "flat map": (lambda pets: pets.flat_map(Twice()), PETS + PETS),
    "process": (lambda pets: pets.process(Process()), PETS),
    "yields too": (lambda pets: pets.process(AlsoYields()), [*PETS, *["collected"] * 3]),
    "side": (lambda pets: pets.process(Process()).get_side_output(SIDE), PETS),
    "timers": (
        lambda pets: pets.key_by(first).process(Timed()),
        [*PETS, ("cat", 11), ("dog", 12), ("cat", 13)],
    ),
    "co flat map": (lambda pets: pets.connect(pets).flat_map(Both()), PETS + PETS),
    "co process": (lambda pets: pets.connect(pets).process(CoProcess()), PETS + PETS),
    "keyed co process": (
        lambda pets: pets.connect(pets).key_by(first, first).process(KeyedCo()),
        PETS + PETS,
    ),
    "broadcast": (
        lambda pets: pets.connect(pets.broadcast(RULES)).process(Broadcasts()),
        PETS + PETS,
    ),
    "keyed broadcast": (
        lambda pets: pets.key_by(first).connect(pets.broadcast(RULES)).process(KeyedBroadcasts()),
        PETS + PETS,
    ),
    "window": (lambda pets: windowed(pets).process(Counts()), [("cat", 2), ("dog", 1)]),
    "all windows": (lambda pets: windowed(pets, by_key=False).process(CountsAll()), [3]),
    "window apply": (lambda pets: windowed(pets).apply(Applies()), [("cat", 2), ("dog", 1)]),
    "all windows apply": (lambda pets: windowed(pets, by_key=False).apply(AppliesAll()), [3]),
    "interval join": (
        lambda pets: (
            pets.key_by(first).interval_join(pets.key_by(first)).between(0, 0).process(Pairs())
        ),
        [(pet, pet) for pet in PETS],
    ),
    "co group": (lambda pets: grouped(pets, "co_group").apply(Groups()), [(2, 2), (1, 1)]),
    "join": (
        lambda pets: grouped(pets, "join").apply(Joins()),
        [(1, 1), (1, 3), (2, 2), (3, 1), (3, 3)],
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_records_passed_to_a_collector_are_emitted(form: str, case: str) -> None:
    draw, expected = CASES[case]

    def drawn(env: Any) -> None:
        pets = env.from_collection(PETS).assign_timestamps_and_watermarks(TIMES)
        seen(draw(pets), "out")

    records = run_form(drawn, form).records("out")
    assert sorted(records, key=repr) == sorted(expected, key=repr)
