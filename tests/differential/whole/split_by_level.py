"""Readings by level, each to an output of its own."""

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

WARM, HOT = (
    OutputTag("warm", Types.TUPLE([Types.STRING(), Types.DOUBLE(), Types.LONG()])),
    OutputTag("hot", Types.ROW_NAMED(["sensor", "degrees"], [Types.STRING(), Types.INT()])),
)


class Level(ProcessFunction):
    def process_element(self, value, ctx):
        if value[1] > 30:
            yield HOT, Row(value[0], value[1])
        elif value[1] > 10:
            yield WARM, value
        else:
            yield value


def build(env, out):
    cold = env.from_collection(READINGS, READING).process(Level(), output_type=READING)
    out(cold, "cold")
    out(cold.get_side_output(WARM), "warm")
    out(cold.get_side_output(HOT).map(lambda r: (r.sensor, r["degrees"])), "hot")
