"""Three readings above 30 degrees in a row are an alert."""

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


class Hot(FlatMapFunction):
    def open(self, ctx):
        self.streak = ctx.get_state(ValueStateDescriptor("streak", Types.INT()))

    def flat_map(self, value):
        streak = (self.streak.value() or 0) + 1 if value[1] > 30 else 0
        self.streak.update(streak)
        if streak >= 3:
            yield "%s %.1f" % (value[0], value[1])


def build(env, out):
    out(
        env.from_collection(READINGS, READING)
        .key_by(lambda r: r[0], key_type=Types.STRING())
        .flat_map(Hot(), output_type=Types.STRING()),
        "alerts",
    )
