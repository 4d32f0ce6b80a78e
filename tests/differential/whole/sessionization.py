"""Visits of a user with gaps below 30 seconds are a session."""

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


class Session(ProcessWindowFunction):
    def process(self, key, context, elements):
        pages = [page for _, page, _ in sorted(elements, key=lambda visit: visit[2])]
        yield key, context.window().start, context.window().end, " ".join(pages)


def build(env, out):
    visits = env.from_collection(VISITS, VISIT).assign_timestamps_and_watermarks(IN_ORDER)
    sessions = visits.key_by(lambda v: v[0], key_type=Types.STRING()).window(
        EventTimeSessionWindows.with_gap(Time.seconds(30))
    )
    out(
        sessions.process(
            Session(),
            output_type=Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.STRING()]),
        ),
        "sessions",
    )
