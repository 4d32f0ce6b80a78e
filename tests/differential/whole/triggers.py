"""Triggers of all kinds on windows of all kinds."""

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


class PW(ProcessWindowFunction):
    def process(self, key, ctx, elements):
        w = ctx.window()
        yield (
            key,
            (w.start, w.end) if isinstance(w, TimeWindow) else type(w).__name__,
            [e[2] for e in elements],
        )


T3 = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
ev = [
    ("a", 100, 1),
    ("a", 900, 2),
    ("a", 1200, 3),
    ("a", 1300, 4),
    ("a", 2500, 5),
    ("b", 2600, 6),
    ("a", 4100, 7),
    ("a", 4200, 8),
]


def build(env, out):
    k = (
        env.from_collection(ev, T3)
        .assign_timestamps_and_watermarks(late())
        .key_by(lambda v: v[0], Types.STRING())
    )
    g, t5 = GlobalWindows.create(), TumblingEventTimeWindows.of(Time.seconds(5))
    out(k.window(g).process(PW()), "global default")
    out(k.window(g).trigger(CountTrigger.of(3)).process(PW()), "global count")
    out(
        k.window(g).trigger(PurgingTrigger.of(CountTrigger.of(3))).process(PW()),
        "global purge count",
    )
    out(k.window(t5).trigger(CountTrigger.of(2)).process(PW()), "tumb count")
    out(
        k.window(t5).trigger(PurgingTrigger.of(EventTimeTrigger.create())).process(PW()),
        "tumb purge",
    )
    out(
        k.window(t5)
        .trigger(PurgingTrigger.of(ContinuousEventTimeTrigger.of(Time.seconds(1))))
        .process(PW()),
        "tumb purge cont",
    )
    out(
        k.window(EventTimeSessionWindows.with_gap(Time.seconds(1)))
        .trigger(CountTrigger.of(2))
        .process(PW()),
        "sess count",
    )
    out(
        k.window(EventTimeSessionWindows.with_gap(Time.seconds(1)))
        .trigger(PurgingTrigger.of(EventTimeTrigger.create()))
        .process(PW()),
        "sess purge",
    )
    out(k.window(g).trigger(EventTimeTrigger.create()).process(PW()), "global event")
    out(k.window(t5).trigger(NeverTrigger()).process(PW()), "never")
    out(
        k.window(SlidingEventTimeWindows.of(Time.seconds(2), Time.seconds(1)))
        .trigger(CountTrigger.of(2))
        .process(PW()),
        "slide count",
    )
