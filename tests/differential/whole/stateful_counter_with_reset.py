"""A counter per key that a command resets; two inputs of one key."""

# mode: BATCH
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


EVENTS = [("k", 1), ("k", 1), ("l", 1)]


class Total(CoFlatMapFunction):
    def flat_map1(self, value):
        yield value[0], value[1] * 10

    def flat_map2(self, value):
        yield value[0], -value[1]


def build(env, out):
    typed = Types.TUPLE([Types.STRING(), Types.INT()])
    events = env.from_collection(EVENTS, typed)
    resets = env.from_collection([("k", 7)], typed)
    both = events.connect(resets).flat_map(Total(), output_type=typed)
    out(
        both.key_by(lambda v: v[0], key_type=Types.STRING())
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .filter(lambda v: v[1] in (13, 10)),
        "last",
    )
