"""Counts the words of some lines."""

# mode: STREAMING
# parallelism: 2
from pyflink.common import Duration, Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    AggregateFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ReduceFunction,
)
from pyflink.datastream.functions import (
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from pyflink.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from pyflink.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)


LINES = ["to be or not to be", "that is the question", "to sleep"]


def split(line):
    yield from line.split()


def build(env, out):
    words = env.from_collection(LINES, Types.STRING()).flat_map(split, output_type=Types.STRING())
    out(
        words.map(lambda w: (w, 1), output_type=Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda p: p[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1])),
        "counts",
    )
