"""What a window function gets: window, watermark, state of the window and of the key."""

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
        g = ctx.global_state().get_state(ValueStateDescriptor("g", Types.INT()))
        l = ctx.window_state().get_list_state(ListStateDescriptor("l", Types.INT()))
        g.update((g.value() or 0) + 1)
        l.add(len(list(elements)))
        yield (
            key,
            w.start,
            w.end,
            [e[2] for e in elements],
            ctx.current_watermark(),
            g.value(),
            list(l.get()),
        )

    def clear(self, ctx):
        ctx.window_state().get_list_state(ListStateDescriptor("l", Types.INT())).clear()


T3 = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
ev = [
    ("a", 1, 1),
    ("b", 2, 2),
    ("a", 1500, 3),
    ("a", 900, 4),
    ("b", 5200, 5),
    ("a", 3000, 6),
    ("a", 200, 7),
]


def build(env, out):
    s = env.from_collection(ev, T3).assign_timestamps_and_watermarks(late())
    k = s.key_by(lambda v: v[0], Types.STRING())
    for n, w in [
        ("tumb", TumblingEventTimeWindows.of(Time.seconds(1))),
        ("off", TumblingEventTimeWindows.of(Time.seconds(1), Time.milliseconds(300))),
        ("slide", SlidingEventTimeWindows.of(Time.seconds(2), Time.seconds(1))),
        ("slide2", SlidingEventTimeWindows.of(Time.seconds(1), Time.seconds(2))),
    ]:
        out(k.window(w).process(PW()), n)
