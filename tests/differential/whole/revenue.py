"""Revenue per customer and overall, by rolling sums."""

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


ORDERS = [
    (1, "ann", 30.5),
    (2, "bob", 12.0),
    (1, "ann", 30.5),
    (3, "ann", 7.25),
    (2, "bob", 12.0),
    (4, "eve", 99.0),
]
ORDER = Types.TUPLE([Types.INT(), Types.STRING(), Types.DOUBLE()])


def build(env, out):
    orders = env.from_collection(ORDERS, ORDER)
    out(orders.key_by(lambda o: o[1], key_type=Types.STRING()).sum(2), "by customer")
    total = orders.map(
        lambda o: ("all", o[2]), output_type=Types.TUPLE([Types.STRING(), Types.FLOAT()])
    ).key_by(lambda o: o[0])
    out(total.reduce(lambda a, b: ("all", a[1] + b[1])), "total")
