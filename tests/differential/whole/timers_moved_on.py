"""Timers that each record moves on, and side outputs of timers."""

# mode: STREAMING
# parallelism: 2
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
tag = OutputTag("late", Types.TUPLE([Types.STRING(), Types.LONG()]))


class P(KeyedProcessFunction):
    def open(self, c):
        self.t = c.get_state(ValueStateDescriptor("t", Types.LONG()))
        self.seen = c.get_list_state(ListStateDescriptor("seen", Types.INT()))

    def process_element(self, v, ctx):
        ts = ctx.timer_service()
        old = self.t.value()
        if old is not None:
            ts.delete_event_time_timer(old)
        self.t.update(ctx.timestamp() + 1000)
        ts.register_event_time_timer(ctx.timestamp() + 1000)
        ts.register_event_time_timer(ctx.timestamp() + 1000)
        self.seen.add(v[2])
        yield ("el", ctx.get_current_key(), ctx.timestamp(), ts.current_watermark())

    def on_timer(self, t, ctx):
        yield (
            "tm",
            ctx.get_current_key(),
            t,
            list(self.seen.get()),
            ctx.timestamp(),
            ctx.time_domain().name,
            ctx.timer_service().current_watermark(),
        )
        yield (tag, (ctx.get_current_key(), t))
        self.seen.clear()


def build(env, out):
    s = timed(env.from_collection(EV, T3)).key_by(lambda v: v[0], Types.STRING())
    p = s.process(P())
    out(p, "m")
    out(p.get_side_output(tag), "side")
