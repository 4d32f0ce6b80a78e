"""Orders and payments by id; what has no partner at the end is reported."""

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


class Seconds(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2] * 1000


IN_ORDER = WatermarkStrategy.for_bounded_out_of_orderness(
    Duration.of_minutes(60)
).with_timestamp_assigner(Seconds())


ORDERS = [(1, 10, 1), (2, 20, 2), (3, 30, 3)]
PAID = [(1, 10, 4), (3, 29, 5), (4, 5, 6)]
TYPE = Types.TUPLE([Types.INT(), Types.INT(), Types.LONG()])


class Match(KeyedCoProcessFunction):
    def open(self, ctx):
        self.order = ctx.get_state(ValueStateDescriptor("order", Types.INT()))
        self.paid = ctx.get_state(ValueStateDescriptor("paid", Types.INT()))

    def process_element1(self, value, ctx):
        self.order.update(value[1])
        ctx.timer_service().register_event_time_timer(100000)

    def process_element2(self, value, ctx):
        self.paid.update(value[1])
        ctx.timer_service().register_event_time_timer(100000)

    def on_timer(self, timestamp, ctx):
        yield repr((ctx.get_current_key(), self.order.value(), self.paid.value()))


def build(env, out):
    orders = env.from_collection(ORDERS, TYPE).assign_timestamps_and_watermarks(IN_ORDER)
    paid = env.from_collection(PAID, TYPE).assign_timestamps_and_watermarks(IN_ORDER)
    out(
        orders.connect(paid)
        .key_by(lambda o: o[0], lambda p: p[0], key_type=Types.INT())
        .process(Match(), output_type=Types.STRING()),
        "matched",
    )
