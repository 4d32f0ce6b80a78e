"""The average of the last three prices of each share."""

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


PRICES = [("A", 10.0), ("A", 12.0), ("B", 5.0), ("A", 14.0), ("A", 10.0), ("B", 6.0)]


class Moving(FlatMapFunction):
    def open(self, ctx):
        self.prices = ctx.get_list_state(ListStateDescriptor("prices", Types.DOUBLE()))

    def flat_map(self, value):
        prices = [*self.prices.get(), value[1]][-3:]
        self.prices.update(prices)
        yield value[0], sum(prices) / len(prices)


def build(env, out):
    prices = env.from_collection(PRICES, Types.TUPLE([Types.STRING(), Types.DOUBLE()]))
    out(
        prices.key_by(lambda p: p[0], key_type=Types.STRING()).flat_map(
            Moving(), output_type=Types.TUPLE([Types.STRING(), Types.FLOAT()])
        ),
        "averages",
    )
