"""Timers that delete and register timers before the same watermark."""

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


class F(KeyedProcessFunction):
    def open(self, ctx):
        self.n = ctx.get_state(ValueStateDescriptor("n", Types.INT()))

    def process_element(self, v, ctx):
        ctx.timer_service().register_event_time_timer(5)
        ctx.timer_service().register_event_time_timer(10)
        yield "e"

    def on_timer(self, ts, ctx):
        n = (self.n.value() or 0) + 1
        self.n.update(n)
        if ts == 5:
            ctx.timer_service().delete_event_time_timer(10)
            ctx.timer_service().register_event_time_timer(7)
        yield "t%s at %s" % (n, ts)


def build(env, out):
    out(
        env.from_collection([("a", 1)], Types.TUPLE([Types.STRING(), Types.LONG()]))
        .assign_timestamps_and_watermarks(late())
        .key_by(lambda v: v[0])
        .process(F(), Types.STRING()),
        "rounds",
    )

    class Every(KeyedProcessFunction):
        def open(self, ctx):
            self.total = ctx.get_state(ValueStateDescriptor("t", Types.INT()))

        def process_element(self, v, ctx):
            if self.total.value() is None:
                ctx.timer_service().register_event_time_timer(1000)
                ctx.timer_service().register_event_time_timer(5000)
            self.total.update((self.total.value() or 0) + 1)

        def on_timer(self, ts, ctx):
            if ts >= 5000:
                self.total.clear()
                yield "cleared"
            else:
                yield "%s: %s" % (ts, self.total.value())
                ctx.timer_service().register_event_time_timer(ts + 1000)

    out(
        env.from_collection([("a", 1), ("a", 2)], Types.TUPLE([Types.STRING(), Types.LONG()]))
        .assign_timestamps_and_watermarks(late())
        .key_by(lambda v: v[0])
        .process(Every(), Types.STRING()),
        "every",
    )

    class E3(Every):
        def process_element(self, v, ctx):
            self.total.update((self.total.value() or 0) + 1)
            ctx.timer_service().register_event_time_timer(v[1] + 1000)

        def on_timer(self, ts, ctx):
            yield "%s: %s" % (ts, self.total.value())
            self.total.clear()

    out(
        env.from_collection(
            [("a", 1), ("a", 2), ("b", 5000)], Types.TUPLE([Types.STRING(), Types.LONG()])
        )
        .assign_timestamps_and_watermarks(late())
        .key_by(lambda v: v[0])
        .process(E3(), Types.STRING()),
        "clear",
    )
    windows = (
        env.from_collection([("a", 100, 1), ("a", 4200, 8)])
        .assign_timestamps_and_watermarks(late())
        .key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(5)))
    )
    fires = windows.trigger(ContinuousEventTimeTrigger.of(Time.seconds(1)))
    out(fires.reduce(lambda a, b: (a[0], a[1], a[2] + b[2])), "continuous")
