"""Views of each user in the last 20 seconds, every 10 seconds."""

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


class Views(WindowFunction):
    def apply(self, key, window, inputs):
        yield key, window.end, len(list(inputs))


def build(env, out):
    visits = env.from_collection(VISITS, VISIT).assign_timestamps_and_watermarks(IN_ORDER)
    out(
        visits.key_by(lambda v: v[0])
        .window(SlidingEventTimeWindows.of(Time.seconds(20), Time.seconds(10)))
        .apply(Views(), output_type=Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])),
        "views",
    )
