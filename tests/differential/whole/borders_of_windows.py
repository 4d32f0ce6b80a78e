"""Times at the borders of windows, before 1970, and with offsets."""

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
E = [
    ("a", t, i)
    for i, t in enumerate(
        [-1, 0, 1, 999, 1000, 1001, -1000, -1001, 1999, 2000, 86400000, -86400000]
    )
]


class PW(ProcessWindowFunction):
    def process(self, key, ctx, it):
        yield (ctx.window().start, ctx.window().end, sorted((e[2] for e in it)))


def build(env, out):
    k = timed(env.from_collection(E, T3)).key_by(lambda v: v[0])
    for n, w in [
        ("t", TumblingEventTimeWindows.of(Time.seconds(1))),
        ("to", TumblingEventTimeWindows.of(Time.seconds(1), Time.milliseconds(999))),
        ("tn", TumblingEventTimeWindows.of(Time.seconds(1), Time.milliseconds(-1))),
        ("s", SlidingEventTimeWindows.of(Time.seconds(2), Time.milliseconds(1500))),
        ("s2", SlidingEventTimeWindows.of(Time.milliseconds(500), Time.seconds(1))),
        ("s3", SlidingEventTimeWindows.of(Time.seconds(3), Time.seconds(2), Time.milliseconds(1))),
        ("g", EventTimeSessionWindows.with_gap(Time.milliseconds(1))),
        ("g2", EventTimeSessionWindows.with_gap(Time.milliseconds(1000))),
        ("day", TumblingEventTimeWindows.of(Time.days(1), Time.hours(-8))),
    ]:
        out(k.window(w).process(PW()), n)
