"""Payments above a limit per day and account go to a side output."""

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

OVER = OutputTag("over", Types.TUPLE([Types.STRING(), Types.DOUBLE(), Types.LONG()]))


class Limit(KeyedProcessFunction):
    def open(self, ctx):
        self.spent = ctx.get_map_state(MapStateDescriptor("spent", Types.LONG(), Types.DOUBLE()))

    def process_element(self, value, ctx):
        minute = value[2] // 60
        spent = (self.spent.get(minute) if self.spent.contains(minute) else 0.0) + value[1]
        if spent > 800:
            yield OVER, value
        else:
            self.spent.put(minute, spent)
            yield value[0], spent, value[2]


def build(env, out):
    checked = (
        env.from_collection(PAYMENTS, PAYMENT)
        .key_by(lambda p: p[0], key_type=Types.STRING())
        .process(Limit(), output_type=PAYMENT)
    )
    out(checked, "accepted")
    out(checked.get_side_output(OVER), "over")
