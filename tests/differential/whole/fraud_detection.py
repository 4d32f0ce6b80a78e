"""A small payment followed by a large one within a minute is an alert."""

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


PAYMENTS = [
    ("ann", 12.5, 1),
    ("ann", 0.4, 2),
    ("ann", 900.0, 3),
    ("bob", 0.2, 4),
    ("bob", 30.0, 70),
    ("eve", 0.9, 71),
    ("eve", 501.0, 72),
    ("ann", 0.1, 100),
    ("ann", 700.0, 200),
]
PAYMENT = Types.TUPLE([Types.STRING(), Types.DOUBLE(), Types.LONG()])


class FraudDetector(KeyedProcessFunction):
    def open(self, ctx):
        self.flag = ctx.get_state(ValueStateDescriptor("flag", Types.BOOLEAN()))
        self.timer = ctx.get_state(ValueStateDescriptor("timer", Types.LONG()))

    def process_element(self, value, ctx):
        if self.flag.value():
            if value[1] > 500:
                yield Row(value[0], value[1])
            self.reset(ctx)
        if value[1] < 1:
            self.flag.update(True)
            timer = ctx.timestamp() + 60000
            ctx.timer_service().register_event_time_timer(timer)
            self.timer.update(timer)

    def on_timer(self, timestamp, ctx):
        self.flag.clear()
        self.timer.clear()

    def reset(self, ctx):
        if self.timer.value() is not None:
            ctx.timer_service().delete_event_time_timer(self.timer.value())
        self.flag.clear()
        self.timer.clear()


def build(env, out):
    payments = env.from_collection(PAYMENTS, PAYMENT).assign_timestamps_and_watermarks(IN_ORDER)
    alerts = payments.key_by(lambda p: p[0], key_type=Types.STRING()).process(
        FraudDetector(),
        output_type=Types.ROW_NAMED(["account", "amount"], [Types.STRING(), Types.DOUBLE()]),
    )
    out(alerts, "alerts")
