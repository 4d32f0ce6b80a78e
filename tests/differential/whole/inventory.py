"""Stock by item from deliveries and sales; negative stock is an alert."""

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


MOVES = [
    ("nut", 5, 1),
    ("bolt", 2, 2),
    ("nut", -3, 3),
    ("nut", -4, 4),
    ("bolt", -1, 5),
    ("nut", 10, 6),
]
MOVE = Types.TUPLE([Types.STRING(), Types.INT(), Types.LONG()])
ALERT = OutputTag("alert", Types.TUPLE([Types.STRING(), Types.INT()]))


class Stock(KeyedProcessFunction):
    def open(self, ctx):
        self.stock = ctx.get_state(ValueStateDescriptor("stock", Types.INT()))

    def process_element(self, value, ctx):
        stock = (self.stock.value() or 0) + value[1]
        self.stock.update(stock)
        if stock < 0:
            yield ALERT, (value[0], stock)
        yield value[0], stock


def build(env, out):
    stock = (
        env.from_collection(MOVES, MOVE)
        .key_by(lambda m: m[0], key_type=Types.STRING())
        .process(Stock(), output_type=Types.TUPLE([Types.STRING(), Types.INT()]))
    )
    out(stock, "stock")
    out(stock.get_side_output(ALERT), "alerts")
