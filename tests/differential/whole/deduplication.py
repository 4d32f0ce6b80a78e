"""Only the first of several equal orders passes."""

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


ORDERS = [
    (1, "ann", 30.5),
    (2, "bob", 12.0),
    (1, "ann", 30.5),
    (3, "ann", 7.25),
    (2, "bob", 12.0),
    (4, "eve", 99.0),
]
ORDER = Types.TUPLE([Types.INT(), Types.STRING(), Types.DOUBLE()])


class First(FilterFunction):
    def open(self, ctx):
        self.seen = ctx.get_state(ValueStateDescriptor("seen", Types.BOOLEAN()))

    def filter(self, value):
        if self.seen.value():
            return False
        self.seen.update(True)
        return True


def build(env, out):
    out(
        env.from_collection(ORDERS, ORDER)
        .key_by(lambda o: o[0], key_type=Types.INT())
        .filter(First()),
        "first",
    )
