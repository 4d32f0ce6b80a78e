"""The average of each sensor per half minute."""

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


class Average(AggregateFunction):
    def create_accumulator(self):
        return 0.0, 0

    def add(self, value, acc):
        return acc[0] + value[1], acc[1] + 1

    def get_result(self, acc):
        return acc[0] / acc[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


def build(env, out):
    averages = (
        env.from_collection(READINGS, READING)
        .assign_timestamps_and_watermarks(IN_ORDER)
        .key_by(lambda r: r[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(30)))
        .aggregate(
            Average(),
            accumulator_type=Types.TUPLE([Types.DOUBLE(), Types.LONG()]),
            output_type=Types.FLOAT(),
        )
    )
    out(averages, "averages")
