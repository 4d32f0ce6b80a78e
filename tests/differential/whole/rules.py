"""Rules that are broadcast decide which orders are held."""

# mode: BATCH
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

RULES = MapStateDescriptor("rules", Types.STRING(), Types.DOUBLE())


class Held(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        rules = ctx.get_broadcast_state(RULES)
        limit = rules.get(value[1]) if rules.contains(value[1]) else 50.0
        if value[2] > limit:
            yield value[0], value[1], limit

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value[0], value[1])


def build(env, out):
    rules = env.from_collection(
        [("ann", 20.0), ("bob", 11.5)], Types.TUPLE([Types.STRING(), Types.DOUBLE()])
    ).broadcast(RULES)
    out(
        env.from_collection(ORDERS, ORDER).connect(rules).process(Held(), output_type=ORDER), "held"
    )
