"""Orders are gathered into batches of two per customer, and into batches of three over all."""

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


class Ids(WindowFunction):
    def apply(self, key, window, inputs):
        yield key, sorted(order[0] for order in inputs)


class All(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield [order[0] for order in elements]


def build(env, out):
    orders = env.from_collection(ORDERS, ORDER)
    out(
        orders.key_by(lambda o: o[1], key_type=Types.STRING())
        .count_window(2)
        .apply(Ids(), output_type=Types.TUPLE([Types.STRING(), Types.LIST(Types.INT())])),
        "batches",
    )
    out(
        orders.window_all(GlobalWindows.create())
        .trigger(PurgingTrigger.of(CountTrigger.of(3)))
        .process(All(), output_type=Types.LIST(Types.INT())),
        "threes",
    )
