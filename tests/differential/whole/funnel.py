"""Users who paid within ten seconds of filling the cart, and those who did not."""

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


VISITS = [
    ("u1", "/", 0),
    ("u1", "/cart", 5),
    ("u2", "/", 7),
    ("u1", "/pay", 12),
    ("u2", "/help", 60),
    ("u1", "/", 100),
    ("u3", "/", 101),
    ("u2", "/", 66),
    ("u1", "/cart", 108),
]
VISIT = Types.TUPLE([Types.STRING(), Types.STRING(), Types.LONG()])

LEFT = OutputTag("left", Types.STRING())


class Funnel(KeyedProcessFunction):
    def open(self, ctx):
        self.cart = ctx.get_state(ValueStateDescriptor("cart", Types.LONG()))

    def process_element(self, value, ctx):
        if value[1] == "/cart":
            self.cart.update(value[2])
            ctx.timer_service().register_event_time_timer((value[2] + 10) * 1000)
        elif value[1] == "/pay" and self.cart.value() is not None:
            yield "%s paid after %d s" % (value[0], value[2] - self.cart.value())
            self.cart.clear()

    def on_timer(self, timestamp, ctx):
        if self.cart.value() is not None:
            yield LEFT, ctx.get_current_key()
            self.cart.clear()


def build(env, out):
    funnel = (
        env.from_collection(VISITS, VISIT)
        .assign_timestamps_and_watermarks(IN_ORDER)
        .key_by(lambda v: v[0], key_type=Types.STRING())
        .process(Funnel(), output_type=Types.STRING())
    )
    out(funnel, "paid")
    out(funnel.get_side_output(LEFT), "left")
