"""Log lines are parsed, filtered and counted by level."""

# mode: STREAMING
# parallelism: 1
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


LINES = [
    "INFO start",
    "WARN disk 91%",
    "INFO job 1",
    "ERROR disk full",
    "WARN disk 95%",
    "",
    "ERROR stop",
]


def build(env, out):
    levels = (
        env.from_collection(LINES)
        .filter(lambda line: line != "")
        .map(lambda line: line.split(" ", 1), output_type=Types.LIST(Types.STRING()))
    )
    counts = (
        levels.map(
            lambda parts: (parts[0], 1), output_type=Types.TUPLE([Types.STRING(), Types.LONG()])
        )
        .key_by(lambda p: p[0], key_type=Types.STRING())
        .sum(1)
    )
    out(counts, "counts")
    out(levels.filter(lambda parts: parts[0] == "ERROR"), "errors")
