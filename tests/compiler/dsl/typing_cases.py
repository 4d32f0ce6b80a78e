"""Programs as users write them; mypy --strict must accept them and infer what `assert_type` says.

A line with `error:` behind it must be refused with that code. Read by test_typing.py, never run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import assert_type

from opchain.common import Duration, Row, Time, Types, WatermarkStrategy
from opchain.compiler.dsl.collected import CloseableIterator
from opchain.compiler.dsl.connected_streams import multiple_input
from opchain.datastream import (
    AggregateFunction,
    AsyncDataStream,
    AsyncFunction,
    BroadcastConnectedStream,
    BroadcastProcessFunction,
    BroadcastStream,
    ConnectedStreams,
    CoProcessFunction,
    DataStream,
    DataStreamSink,
    KeyedProcessFunction,
    KeyedStream,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    WindowedStream,
)
from opchain.datastream.connectors import NumberSequenceSource
from opchain.datastream.data_stream import DataStreamUtils
from opchain.datastream.state import MapStateDescriptor, ValueStateDescriptor
from opchain.datastream.window import TimeWindow, TumblingEventTimeWindows

if TYPE_CHECKING:
    from collections.abc import Iterable

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2).disable_operator_chaining().enable_checkpointing(1000)


class Parse(MapFunction[str, int]):
    def map(self, value: str) -> int:
        return int(value)


class Untyped(MapFunction):
    def map(self, value: Any) -> Any:
        return value


class Split(ProcessFunction[str, str]):
    def process_element(self, value: str, ctx: ProcessFunction.Context) -> Iterable[str]:
        yield from value.split()


class CountPerKey(KeyedProcessFunction[str, str, tuple[str, int]]):
    def process_element(
        self, value: str, ctx: KeyedProcessFunction.Context[str]
    ) -> Iterable[tuple[str, int]]:
        yield ctx.get_current_key(), len(value)


class Mean(AggregateFunction[int, tuple[int, int], float]):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Report(ProcessWindowFunction[int, str, int, TimeWindow]):
    def process(
        self,
        key: int,
        context: ProcessWindowFunction.Context[TimeWindow],
        elements: Iterable[int],
    ) -> Iterable[str]:
        yield f"{key} {context.window().start} {sum(elements)}"


class Merge(CoProcessFunction[int, str, str]):
    def process_element1(self, value: int, ctx: CoProcessFunction.Context) -> Iterable[str]:
        yield str(value)

    def process_element2(self, value: str, ctx: CoProcessFunction.Context) -> Iterable[str]:
        yield value


class Check(BroadcastProcessFunction[int, str, bool]):
    def process_element(
        self, value: int, ctx: BroadcastProcessFunction.ReadOnlyContext
    ) -> Iterable[bool]:
        yield value > 0

    def process_broadcast_element(
        self, value: str, ctx: BroadcastProcessFunction.Context
    ) -> Iterable[bool]:
        return ()


class Pair(ProcessJoinFunction[int, str, str]):
    def process_element(
        self, left: int, right: str, ctx: ProcessJoinFunction.Context
    ) -> Iterable[str]:
        yield f"{left}{right}"


class Lookup(AsyncFunction[int, str]):
    async def async_invoke(self, value: int) -> list[str]:
        return [str(value)]


def digits(number: int) -> list[str]:
    return list(str(number))


# Sources and operators of one record.
lines = env.from_collection(["1", "2"])
assert_type(lines, DataStream[str])
assert_type(env.from_sequence(1, 3), DataStream[int])
assert_type(env.read_text_file("a.txt"), DataStream[str])
assert_type(
    env.from_collection([("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()])),
    DataStream[tuple[str, int]],
)
assert_type(
    env.from_source(NumberSequenceSource(1, 3), WatermarkStrategy.no_watermarks(), "numbers"),
    DataStream[int],
)
numbers = lines.map(Parse()).name("parse").uid("parse").set_parallelism(3)
assert_type(numbers, DataStream[int])
assert_type(lines.map(int), DataStream[int])
assert_type(lines.map(len), DataStream[int])
assert_type(lines.map(Untyped()), DataStream[Any])
assert_type(lines.flat_map(lambda line: line.split()), DataStream[str])
assert_type(lines.filter(lambda line: line != ""), DataStream[str])
assert_type(lines.process(Split()), DataStream[str])
assert_type(lines.map(Row, output_type=Types.ROW([Types.STRING()])), DataStream[Row])
assert_type(lines.rebalance().shuffle().global_(), DataStream[str])
assert_type(lines.union(lines, lines.rescale()), DataStream[str])
assert_type(lines.get_side_output(OutputTag[int]("late")), DataStream[int])
assert_type(
    lines.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    ),
    DataStream[str],
)

# Keys.
by_length = lines.key_by(len)
assert_type(by_length, KeyedStream[int, str])
assert_type(by_length.reduce(lambda one, other: one + other), DataStream[str])
assert_type(by_length.max(), DataStream[str])
assert_type(lines.key_by(lambda line: line).process(CountPerKey()), DataStream[tuple[str, int]])
assert_type(DataStreamUtils.reinterpret_as_keyed_stream(lines, len), KeyedStream[int, str])

# Windows.
window = TumblingEventTimeWindows.of(Time.seconds(5))
keyed_numbers = numbers.key_by(lambda number: number % 10)
windowed = keyed_numbers.window(window)
assert_type(windowed, WindowedStream[int, int, TimeWindow])
assert_type(windowed.allowed_lateness(5).reduce(max), DataStream[int])
assert_type(windowed.reduce(lambda one, other: one + other, Report()), DataStream[str])
assert_type(windowed.aggregate(Mean()), DataStream[float])
assert_type(windowed.process(Report()), DataStream[str])
assert_type(windowed.apply(lambda key, window, inputs: [key]), DataStream[int])
assert_type(numbers.window_all(window).reduce(max), DataStream[int])
assert_type(
    numbers.window_all(window).apply(lambda window, inputs: [window.start]), DataStream[int]
)

# Two streams.
words = env.from_collection(["a"])
assert_type(numbers.connect(words), ConnectedStreams[int, str])
assert_type(numbers.connect(words).process(Merge()), DataStream[str])
assert_type(numbers.connect(words).key_by(abs, len), ConnectedStreams[int, str])
rules = words.broadcast(MapStateDescriptor("rules", Types.STRING(), Types.LONG()))
assert_type(rules, BroadcastStream[str])
assert_type(numbers.connect(rules), BroadcastConnectedStream[int, str])
assert_type(numbers.connect(rules).process(Check()), DataStream[bool])
assert_type(words.broadcast(), DataStream[str])
joined = numbers.join(words).where(lambda number: number).equal_to(len)
assert_type(joined.window(window).apply(lambda number, word: f"{number}{word}"), DataStream[str])
grouped = numbers.co_group(words).where(abs).equal_to(len).window(window)
assert_type(grouped.apply(lambda first, second: [sum(first)]), DataStream[int])
pairs = keyed_numbers.interval_join(words.key_by(len)).between(Time.seconds(-1), Time.seconds(1))
assert_type(pairs.upper_bound_exclusive().process(Pair()), DataStream[str])
assert_type(AsyncDataStream.unordered_wait(numbers, Lookup(), Time.seconds(1)), DataStream[str])
assert_type(
    numbers.full_window_partition().map_partition(lambda values: [sum(values)]), DataStream[int]
)
assert_type(multiple_input([numbers, numbers], [digits, digits]), DataStream[str])

# Ends.
assert_type(words.print("words").name("out").disable_chaining(), DataStreamSink[str])
assert_type(words.execute_and_collect(), CloseableIterator[str])
assert_type(words.execute_and_collect(limit=3), list[str])
assert_type(words.execute_and_collect("job", 3), list[str])

# Mistakes that a type checker finds.
numbers.map(Parse())  # error: arg-type
lines.map(lambda a, b: a)  # error: arg-type, misc
lines.filter(5)  # error: arg-type
lines.union(numbers)  # error: arg-type
lines.process(CountPerKey())  # error: arg-type
lines.reduce(lambda one, other: one)  # error: attr-defined
lines.set_parallelism("4")  # error: arg-type
lines.broadcast(ValueStateDescriptor("rules", Types.STRING()))  # error: call-overload
numbers.connect(words).process(Pair())  # error: arg-type
env.set_runtime_mode("BATCH")  # error: arg-type
