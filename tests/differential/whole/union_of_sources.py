"""Orders of two shops are united, and counted by shop."""

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


A = [("a", 1), ("a", 2)]
B = [("b", 3), ("b", 4), ("b", 5)]
TYPE = Types.TUPLE([Types.STRING(), Types.INT()])


def build(env, out):
    united = env.from_collection(A, TYPE).union(env.from_collection(B, TYPE))
    out(united, "all")
    out(
        united.key_by(lambda o: o[0], key_type=Types.STRING()).reduce(
            lambda x, y: (x[0], x[1] + y[1])
        ),
        "sums",
    )
