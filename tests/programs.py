"""Twelve small programs that cover the DSL; PROGRAMS has them by name.

Each draws its job on a fresh environment and returns nothing. Data are in the program, bounded and the
same in every run, and results go to `print`, so that a program can be planned, run in process and run
on Spark, and the outputs compared as sorted lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.common import Types, WatermarkStrategy
from opchain.common.time import Duration, Time
from opchain.datastream import (
    AsyncDataStream,
    OutputTag,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from opchain.datastream.functions import (
    AsyncFunction,
    BroadcastProcessFunction,
    CoMapFunction,
    KeyedProcessFunction,
    ProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from opchain.datastream.state import MapStateDescriptor, ValueStateDescriptor
from opchain.datastream.window import EventTimeSessionWindows, TimeWindow, TumblingEventTimeWindows
from opchain.runtime.connectors.simple_sinks import DiscardingSink
from opchain.runtime.functions.sink import Committer, SinkWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from opchain.datastream import DataStream

LINES = ("to be or not to be", "that is the question", "to die to sleep")
CLICKS = [(user, 1_000 * second) for second, user in enumerate("abacabadabacaba") if second != 8]
ODD = OutputTag("odd", Types.LONG())
PRICES = MapStateDescriptor("prices", Types.STRING(), Types.LONG())


class CountingDiscardingSink(DiscardingSink):
    """Drops every record, and commits how many: the smallest sink that has a committer."""

    @property
    def has_committer(self) -> bool:
        return True

    def create_writer(self, context: RuntimeContext) -> SinkWriter[Any]:
        return _CountingWriter()

    def create_committer(self) -> Committer:
        return _NoCommit()


class _CountingWriter(SinkWriter[Any]):
    def __init__(self) -> None:
        self._count = 0

    def write(self, value: Any, timestamp: int | None) -> None:
        self._count += 1

    def prepare_commit(self) -> Sequence[int]:
        counted, self._count = self._count, 0
        return (counted,)


class _NoCommit(Committer):
    def commit(self, committables: Sequence[Any]) -> None:
        """Does nothing: the count itself is the message."""


def word_count(env: StreamExecutionEnvironment) -> None:
    """Two parallelisms and one key: the program of the README."""
    env.set_parallelism(2)
    words = env.from_collection(list(LINES)).name("lines").flat_map(split).name("split")
    counts = words.map(lambda word: (word, 1)).name("pair").key_by(first)
    counts.reduce(add_second).name("count").uid("count").set_parallelism(4).print()


def sessions(env: StreamExecutionEnvironment) -> None:
    """Event time: watermarks, session windows, and what comes too late."""
    env.set_parallelism(2)
    late = OutputTag("late", Types.TUPLE([Types.STRING(), Types.LONG()]))
    visits = (
        with_timestamps(env.from_collection(CLICKS).name("clicks"))
        .key_by(first)
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(2_500)))
        .side_output_late_data(late)
        .process(CountVisit())
        .name("visits")
    )
    visits.print()
    visits.get_side_output(late).print("late")


def join(env: StreamExecutionEnvironment) -> None:
    """Two streams that meet in windows, each with parallelism of its own."""
    env.set_parallelism(2)
    clicks = with_timestamps(env.from_collection(CLICKS).name("clicks"))
    names = env.from_collection([("a", "Ann", 0), ("b", "Bob", 4_000)]).name("names")
    named = names.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
            lambda name, _: name[2]
        )
    )
    (
        clicks.join(named)
        .where(first)
        .equal_to(first)
        .window(TumblingEventTimeWindows.of(Time.seconds(4)))
        .apply(lambda click, name: (name[1], click[1]))
        .name("named clicks")
        .print()
    )


def broadcast(env: StreamExecutionEnvironment) -> None:
    """Broadcast state: a small stream that every subtask of another knows."""
    env.set_parallelism(2)
    prices = env.from_collection([("tea", 2), ("coffee", 3)]).name("prices")
    orders = env.from_sequence(1, 6).name("orders").map(lambda n: ("tea", n)).name("order")
    orders.connect(prices.broadcast(PRICES)).process(KnowPrices()).name("known prices").print()


def side_outputs(env: StreamExecutionEnvironment) -> None:
    """Records that take another way, inside the chain and out of it."""
    env.set_parallelism(2)
    numbers = env.from_sequence(1, 10).name("numbers").process(SplitOdd()).name("split odd")
    odd = numbers.get_side_output(ODD)
    odd.map(lambda n: -n).name("negate").print("odd")
    odd.key_by(lambda n: n % 3).reduce(lambda a, b: a + b).name("sum odd").print("sums")
    numbers.print("even")


def async_lookup(env: StreamExecutionEnvironment) -> None:
    """Waiting outside: with a source of its own thread, so that the wait cannot be chained to it."""
    env.set_parallelism(1)
    numbers = env.from_collection([3, 1, 2]).name("numbers").map(lambda n: n + 1).name("add")
    squares = AsyncDataStream.ordered_wait(numbers, Square(), Time.seconds(10), capacity=2)
    squares.name("square").print()


def union(env: StreamExecutionEnvironment) -> None:
    """Streams as one: the operator behind a union heads a chain."""
    env.set_parallelism(2)
    low = env.from_sequence(1, 3).name("low")
    high = env.from_sequence(101, 103).name("high")
    few = env.from_collection([1_001]).name("few")
    all_of_them = low.union(high, few).map(lambda n: n * 2).name("double")
    all_of_them.filter(lambda n: n % 3 != 0).name("not by 3").print()


def diamond(env: StreamExecutionEnvironment) -> None:
    """One stream, two ways, and together again."""
    env.set_parallelism(2)
    numbers = env.from_sequence(1, 4).name("numbers").map(lambda n: n).name("same")
    left = numbers.map(lambda n: n + 1).name("left")
    right = numbers.filter(lambda n: n > 2).name("right")
    left.connect(right.rebalance()).map(NameSides()).name("sides").print()


def rescale(env: StreamExecutionEnvironment) -> None:
    """Every partitioner, between operators of unequal parallelism."""
    env.set_parallelism(2)
    numbers = env.from_sequence(1, 8).name("numbers")
    wide = numbers.rescale().map(lambda n: n).name("rescaled").set_parallelism(4)
    mixed = wide.rebalance().map(lambda n: n).name("rebalanced").set_parallelism(2)
    chosen = mixed.partition_custom(lambda key, channels: key % channels, lambda n: n)
    picked = chosen.map(lambda n: n).name("chosen").forward().map(lambda n: n).name("kept")
    picked.global_().map(lambda n: n).name("gathered").print()


def batch(env: StreamExecutionEnvironment) -> None:
    """Batch mode: blocking exchanges, keyed operators that head their chains, open parallelism."""
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.set_parallelism(2)
    clicks = env.from_collection(CLICKS).name("clicks").map(lambda c: (c[0], 1)).name("one")
    counts = clicks.key_by(first).reduce(add_second).name("count").set_max_parallelism(64)
    counts.key_by(lambda count: count[1]).reduce(lambda a, b: (a[0] + b[0], a[1])).name(
        "same count"
    ).print()


def two_sinks(env: StreamExecutionEnvironment) -> None:
    """A sink that commits beside one that prints, in slot sharing groups of their own."""
    env.set_parallelism(2)
    numbers = env.from_sequence(1, 6).name("numbers").map(lambda n: n).name("same")
    numbers.sink_to(CountingDiscardingSink()).name("archive").uid("archive")
    heavy = numbers.map(lambda n: n * n).name("square").slot_sharing_group("heavy")
    heavy.start_new_chain().filter(bool).name("keep").disable_chaining().print()


def deep_chain(env: StreamExecutionEnvironment) -> None:
    """One task with many operators, keyed state and a timer at its end."""
    env.set_parallelism(2)
    numbers = with_timestamps(env.from_collection(CLICKS).name("clicks").set_parallelism(1))
    keyed = numbers.rebalance().map(lambda click: click).name("step 0").key_by(first)
    stream = keyed.process(CountUntilTimer()).name("count").uid("count")
    for step in range(1, 9):
        stream = stream.map(add_one).name(f"step {step}")
    stream.filter(bool).name("any").print()


PROGRAMS: dict[str, Callable[[StreamExecutionEnvironment], None]] = {
    program.__name__: program
    for program in (
        word_count,
        sessions,
        join,
        broadcast,
        side_outputs,
        async_lookup,
        union,
        diamond,
        rescale,
        batch,
        two_sinks,
        deep_chain,
    )
}


def drawn(name: str) -> StreamExecutionEnvironment:
    """A fresh environment with one of the programs on it."""
    env = StreamExecutionEnvironment.get_execution_environment()
    PROGRAMS[name](env)
    return env


def split(line: str) -> list[str]:
    return line.split()


def first(record: tuple[str, Any] | tuple[str, str, int]) -> str:
    return record[0]


def add_second(a: tuple[str, int], b: tuple[str, int]) -> tuple[str, int]:
    return a[0], a[1] + b[1]


def add_one(n: int) -> int:
    return n + 1


def with_timestamps(clicks: DataStream[tuple[str, int]]) -> DataStream[tuple[str, int]]:
    return clicks.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_millis(500)
        ).with_timestamp_assigner(lambda click, _: click[1])
    )


class CountVisit(ProcessWindowFunction[Any, tuple[str, int, int], str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[Any]
    ) -> Iterator[tuple[str, int, int]]:
        yield key, context.window().start, len(list(elements))


class KnowPrices(BroadcastProcessFunction[Any, Any, tuple[int, bool]]):
    def process_element(
        self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext
    ) -> Iterator[tuple[int, bool]]:
        price = ctx.get_broadcast_state(PRICES).get(value[0])
        yield value[1], price in (None, 2)

    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> None:
        ctx.get_broadcast_state(PRICES).put(*value)


class SplitOdd(ProcessFunction[int, int]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[Any]:
        yield (ODD, value) if value % 2 else value


class Square(AsyncFunction[int, int]):
    async def async_invoke(self, value: int) -> list[int]:
        return [value * value]


class NameSides(CoMapFunction[int, int, tuple[str, int]]):
    def map1(self, value: int) -> tuple[str, int]:
        return "left", value

    def map2(self, value: int) -> tuple[str, int]:
        return "right", value


class CountUntilTimer(KeyedProcessFunction[str, Any, int]):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context[str]) -> None:
        if self.count.value() is None:
            ctx.timer_service().register_event_time_timer(value[1] + 4_000)
        self.count.update((self.count.value() or 0) + 1)

    def on_timer(
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext[str]
    ) -> Iterator[int]:
        yield self.count.value() or 0
        self.count.clear()
