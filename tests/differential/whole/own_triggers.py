"""A trigger of the program, which counts and waits."""

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


class CountOrTime(Trigger):
    def __init__(self, n):
        self.n = n

    @staticmethod
    def of(n):
        return CountOrTime(n)

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp())
        c = ctx.get_partitioned_state(
            ReducingStateDescriptor("count", lambda a, b: a + b, Types.INT())
        )
        c.add(1)
        if c.get() >= self.n:
            c.clear()
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return (
            TriggerResult.FIRE_AND_PURGE
            if time == window.max_timestamp()
            else TriggerResult.CONTINUE
        )

    def can_merge(self):
        return True

    def on_merge(self, window, ctx):
        ctx.merge_partitioned_state(
            ReducingStateDescriptor("count", lambda a, b: a + b, Types.INT())
        )
        ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window, ctx):
        ctx.delete_event_time_timer(window.max_timestamp())
        ctx.get_partitioned_state(
            ReducingStateDescriptor("count", lambda a, b: a + b, Types.INT())
        ).clear()


class PW(ProcessWindowFunction):
    def process(self, key, ctx, elements):
        yield key, ctx.window().start, ctx.window().end, [e[2] for e in elements]


T3 = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
ev = [
    ("a", 100, 1),
    ("a", 900, 2),
    ("a", 2500, 3),
    ("a", 1800, 4),
    ("a", 2500, 5),
    ("b", 2600, 6),
    ("a", 4100, 7),
    ("a", 3300, 8),
    ("a", 9000, 9),
]


def build(env, out):
    k = (
        env.from_collection(ev, T3)
        .assign_timestamps_and_watermarks(late())
        .key_by(lambda v: v[0], Types.STRING())
    )
    out(
        k.window(TumblingEventTimeWindows.of(Time.seconds(3)))
        .trigger(CountOrTime(3))
        .process(PW()),
        "tumb",
    )
    out(
        k.window(EventTimeSessionWindows.with_gap(Time.seconds(1)))
        .trigger(CountOrTime(2))
        .process(PW()),
        "sess",
    )
    out(
        k.window(SlidingEventTimeWindows.of(Time.seconds(4), Time.seconds(2)))
        .trigger(CountOrTime(2))
        .process(PW()),
        "slid",
    )
    out(
        k.window(SlidingEventTimeWindows.of(Time.seconds(4), Time.seconds(2)))
        .trigger(PurgingTrigger.of(CountOrTime(2)))
        .process(PW()),
        "purg",
    )
    out(
        k.window(TumblingEventTimeWindows.of(Time.seconds(3)))
        .trigger(CountOrTime(2))
        .reduce(lambda a, b: (a[0], b[1], a[2] + b[2])),
        "red",
    )

    class NoMerge(CountOrTime):
        def can_merge(self):
            return False

    class Bad(CountOrTime):
        def on_element(self, *a):
            return None
