"""The best score of each player and how often it was beaten."""

# mode: STREAMING
# parallelism: 3
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


SCORES = [("p1", 10), ("p2", 7), ("p1", 12), ("p1", 11), ("p2", 9), ("p3", 3), ("p2", 9)]


class Best(MapFunction):
    def open(self, ctx):
        self.best = ctx.get_reducing_state(
            ReducingStateDescriptor("best", lambda a, b: max(a, b), Types.INT())
        )
        self.beaten = ctx.get_state(ValueStateDescriptor("beaten", Types.INT()))

    def map(self, value):
        before = self.best.get()
        self.best.add(value[1])
        if before is not None and value[1] > before:
            self.beaten.update((self.beaten.value() or 0) + 1)
        return value[0], self.best.get(), self.beaten.value() or 0


def build(env, out):
    scores = env.from_collection(SCORES, Types.TUPLE([Types.STRING(), Types.INT()]))
    out(
        scores.key_by(lambda s: s[0], key_type=Types.STRING()).map(
            Best(), output_type=Types.TUPLE([Types.STRING(), Types.INT(), Types.INT()])
        ),
        "best",
    )
