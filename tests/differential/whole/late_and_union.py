"""Late records, the union of windows' results, and a count of them."""

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
late = OutputTag("late", Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]))


def build(env, out):
    k = timed(env.from_collection(EV + [("a", 100, 9), ("b", 5200, 10)], T3)).key_by(
        lambda v: v[0], Types.STRING()
    )
    a = (
        k.window(SlidingEventTimeWindows.of(Time.seconds(2), Time.seconds(1)))
        .allowed_lateness(100)
        .side_output_late_data(late)
        .reduce(lambda x, y: (x[0], min(x[1], y[1]), x[2] + y[2]))
    )
    b = k.window(EventTimeSessionWindows.with_gap(Time.milliseconds(600))).reduce(
        lambda x, y: (x[0], max(x[1], y[1]), x[2] * y[2])
    )
    out(a.map(lambda v: ("A",) + v).union(b.map(lambda v: ("B",) + v)), "u")
    out(a.get_side_output(late), "late")
    out(
        a.union(b)
        .key_by(lambda v: v[0])
        .count_window(3)
        .reduce(lambda x, y: (x[0], 0, x[2] + y[2]))
        .map(lambda v: v[0]),
        "cw",
    )
