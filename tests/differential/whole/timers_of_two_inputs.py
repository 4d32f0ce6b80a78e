"""State and timers of two inputs, with timers that register timers."""

# mode: STREAMING
# parallelism: 1
import datetime
from decimal import Decimal

from pyflink.common import Duration, Instant, Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag
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


def late():
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(60))
    return strategy.with_timestamp_assigner(At())


class Join(KeyedCoProcessFunction):
    def open(self, ctx):
        self.l = ctx.get_map_state(MapStateDescriptor("l", Types.LONG(), Types.STRING()))
        self.r = ctx.get_list_state(ListStateDescriptor("r", Types.STRING()))
        self.t = ctx.get_state(ValueStateDescriptor("t", Types.LONG()))

    def process_element1(self, v, ctx):
        self.l.put(v[1], v[2])
        ctx.timer_service().register_event_time_timer(v[1] + 10)
        yield "L %s %s %s" % (v, ctx.timestamp(), ctx.get_current_key())

    def process_element2(self, v, ctx):
        self.r.add(v[2])
        if self.t.value() is not None:
            ctx.timer_service().delete_event_time_timer(self.t.value())
        self.t.update(v[1] + 100)
        ctx.timer_service().register_event_time_timer(v[1] + 100)
        yield "R %s" % (v,)

    def on_timer(self, ts, ctx):
        yield "T %s %s %s %s %s" % (
            ts,
            ctx.get_current_key(),
            sorted(self.l.items()),
            sorted(self.r.get()),
            ctx.time_domain(),
        )
        if ts < 200:
            ctx.timer_service().register_event_time_timer(ts + 1000)


def build(env, out):
    T3 = Types.TUPLE([Types.STRING(), Types.LONG(), Types.STRING()])
    a = env.from_collection(
        [("k", 1, "a"), ("j", 5, "b"), ("k", 50, "c")], T3
    ).assign_timestamps_and_watermarks(late())
    b = env.from_collection(
        [("k", 2, "x"), ("k", 60, "y"), ("z", 7, "z")], T3
    ).assign_timestamps_and_watermarks(late())
    out(
        a.connect(b)
        .key_by(lambda v: v[0], lambda v: v[0], Types.STRING())
        .process(Join(), Types.STRING()),
        "main1",
    )
