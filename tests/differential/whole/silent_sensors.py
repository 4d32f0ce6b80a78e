"""A sensor that sends nothing for 20 seconds is reported."""

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


READINGS = [
    ("s1", 20.0, 1),
    ("s1", 21.5, 2),
    ("s2", 5.0, 3),
    ("s1", 35.0, 4),
    ("s2", 4.0, 30),
    ("s1", 36.5, 31),
    ("s1", 37.0, 32),
    ("s2", 50.5, 90),
    ("s1", 20.0, 95),
]
READING = Types.TUPLE([Types.STRING(), Types.DOUBLE(), Types.LONG()])


class Silence(KeyedProcessFunction):
    def open(self, ctx):
        self.last = ctx.get_state(ValueStateDescriptor("last", Types.LONG()))

    def process_element(self, value, ctx):
        if self.last.value() is not None:
            ctx.timer_service().delete_event_time_timer(self.last.value() + 20000)
        self.last.update(ctx.timestamp())
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 20000)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp


def build(env, out):
    silent = (
        env.from_collection(READINGS, READING)
        .assign_timestamps_and_watermarks(IN_ORDER)
        .key_by(lambda r: r[0], key_type=Types.STRING())
        .process(Silence(), output_type=Types.TUPLE([Types.STRING(), Types.LONG()]))
    )
    out(silent, "silent")
