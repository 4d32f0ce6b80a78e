"""Broadcast patterns of two actions are looked for in each user's actions."""

# mode: BATCH
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


ACTIONS = [
    ("u1", "login"),
    ("u2", "login"),
    ("u1", "pay"),
    ("u2", "out"),
    ("u1", "out"),
    ("u2", "login"),
    ("u2", "pay"),
]
PAIR = Types.TUPLE([Types.STRING(), Types.STRING()])
PATTERNS = MapStateDescriptor("patterns", Types.STRING(), Types.STRING())


class Find(KeyedBroadcastProcessFunction):
    def open(self, ctx):
        self.last = ctx.get_state(ValueStateDescriptor("last", Types.STRING()))

    def process_element(self, value, ctx):
        last = self.last.value()
        for first, second in ctx.get_broadcast_state(PATTERNS).items():
            if last == first and value[1] == second:
                yield "%s: %s, %s" % (ctx.get_current_key(), first, second)
        self.last.update(value[1])

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(PATTERNS).put(value[0], value[1])


def build(env, out):
    patterns = env.from_collection([("login", "pay"), ("pay", "out")], PAIR).broadcast(PATTERNS)
    actions = env.from_collection(ACTIONS, PAIR).key_by(lambda a: a[0], key_type=Types.STRING())
    out(actions.connect(patterns).process(Find(), output_type=Types.STRING()), "found")
