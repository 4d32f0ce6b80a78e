"""Two inputs that share state and timers, which register timers."""

# mode: STREAMING
# parallelism: 1
import datetime, decimal, math, json, collections, functools, itertools
from decimal import Decimal
from pyflink.common import *
from pyflink.common import (
    Types,
    Row,
    RowKind,
    Time,
    Duration,
    Instant,
    WatermarkStrategy,
    Configuration,
)
from pyflink.common.typeinfo import TypeInformation
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import *
from pyflink.datastream.functions import *
from pyflink.datastream.functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from pyflink.datastream.state import *
from pyflink.datastream.window import *


class At(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def timed(s):
    env = s.get_execution_environment()
    parallelism = env.get_parallelism()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_hours(1))
    timed = s.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(At()))
    env.set_parallelism(parallelism)
    return timed


T3 = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
EV = [
    ("a", 100, 1),
    ("b", 200, 2),
    ("a", 900, 3),
    ("a", 1500, 4),
    ("b", 5200, 5),
    ("a", 3000, 6),
    ("a", 200, 7),
    ("c", -50, 8),
]


class Match(KeyedCoProcessFunction):
    def open(self, c):
        self.left = c.get_map_state(MapStateDescriptor("left", Types.LONG(), Types.STRING()))
        self.timer = c.get_state(ValueStateDescriptor("timer", Types.LONG()))
        self.cnt = c.get_aggregating_state(
            AggregatingStateDescriptor(
                "cnt",
                type(
                    "C",
                    (AggregateFunction,),
                    {
                        "create_accumulator": lambda s: 0,
                        "add": lambda s, v, a: a + 1,
                        "get_result": lambda s, a: a * 100,
                        "merge": lambda s, a, b: a + b,
                    },
                )(),
                Types.INT(),
            )
        )

    def process_element1(self, v, ctx):
        self.left.put(ctx.timestamp(), v[0])
        self.cnt.add(v)
        t = ctx.timestamp() + 500
        if self.timer.value() is None or self.timer.value() < t:
            if self.timer.value():
                ctx.timer_service().delete_event_time_timer(self.timer.value())
            ctx.timer_service().register_event_time_timer(t)
            self.timer.update(t)

    def process_element2(self, v, ctx):
        self.cnt.add(v)

    def on_timer(self, t, ctx):
        yield (
            ctx.get_current_key(),
            t,
            sorted(self.left.items()),
            self.cnt.get(),
            str(ctx.time_domain()),
        )
        self.left.clear()
        self.cnt.clear()
        if t < 10000:
            ctx.timer_service().register_event_time_timer(t + 20000)


def build(env, out):
    l = timed(env.from_collection(EV, T3))
    r = timed(env.from_collection([("a", 100, 0), ("z", 5, 1)], T3))
    out(
        l.connect(r)
        .key_by(lambda v: v[0], lambda v: v[0])
        .process(Match())
        .filter(lambda x: x[3] is not None or x[2] == []),
        "out",
    )
