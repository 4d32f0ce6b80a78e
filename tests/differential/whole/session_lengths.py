"""The number of pages and the length of each session, by an aggregate with a window function."""

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


class Pages(AggregateFunction):
    def create_accumulator(self):
        return 0, 2**62, -1

    def add(self, value, acc):
        return acc[0] + 1, min(acc[1], value[2]), max(acc[2], value[2])

    def get_result(self, acc):
        return acc[0], acc[2] - acc[1]

    def merge(self, a, b):
        return a[0] + b[0], min(a[1], b[1]), max(a[2], b[2])


class WithUser(ProcessWindowFunction):
    def process(self, key, context, elements):
        for pages, seconds in elements:
            yield Row(user=key, pages=pages, seconds=seconds)


def build(env, out):
    visits = env.from_collection(VISITS, VISIT).assign_timestamps_and_watermarks(IN_ORDER)
    lengths = (
        visits.key_by(lambda v: v[0], key_type=Types.STRING())
        .window(EventTimeSessionWindows.with_gap(Time.seconds(30)))
        .aggregate(
            Pages(),
            window_function=WithUser(),
            accumulator_type=Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()]),
            output_type=Types.ROW_NAMED(
                ["user", "pages", "seconds"], [Types.STRING(), Types.INT(), Types.LONG()]
            ),
        )
    )
    out(lengths, "lengths")
