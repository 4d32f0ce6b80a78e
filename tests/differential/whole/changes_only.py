"""A reading is passed on when it differs from the last one by more than a degree."""

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


class Changed(FilterFunction):
    def open(self, ctx):
        self.last = ctx.get_state(ValueStateDescriptor("last", Types.DOUBLE()))

    def filter(self, value):
        last = self.last.value()
        self.last.update(value[1])
        return last is None or abs(last - value[1]) > 1


def build(env, out):
    out(
        env.from_collection(READINGS, READING)
        .key_by(lambda r: r[0], key_type=Types.STRING())
        .filter(Changed()),
        "changes",
    )
