"""sum, min, max, min_by and max_by of tuples, Rows, lists and numbers, by position and name."""

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
T = Types.TUPLE([Types.STRING(), Types.INT(), Types.DOUBLE(), Types.STRING()])
R = Types.ROW_NAMED(["k", "v"], [Types.STRING(), Types.FLOAT()])


def build(env, out):
    s = env.from_collection(
        [
            ("a", 3, 1.5, "x"),
            ("b", 1, 2.5, "z"),
            ("a", 1, -1.5, "a"),
            ("a", 1, 9.0, "q"),
            ("b", 5, 0.5, "b"),
        ],
        T,
    ).key_by(lambda v: v[0], Types.STRING())
    for i in (1, 2):
        out(s.sum(i), "sum%d" % i)
    for i in (1, 2, 3):
        out(s.min(i), "min%d" % i)
        out(s.max(i), "max%d" % i)
        out(s.min_by(i), "minby%d" % i)
        out(s.max_by(i), "maxby%d" % i)
    out(s.sum(), "sum")
    out(s.min(), "min")
    out(s.max_by(), "maxby")
    n = env.from_collection([5, 3, 8], Types.INT()).key_by(lambda v: v % 2)
    out(n.sum(), "n sum")
    out(n.min(), "n min")
    out(n.max(0), "n max0")
    out(n.max_by(), "n maxby")
    r = env.from_collection([Row("a", 1.5), Row("a", 0.25), Row("b", 7.0)], R).key_by(
        lambda r: r["k"]
    )
    out(r.sum("v"), "r sum")
    out(r.min_by("v"), "r minby")
    out(r.max(1), "r max1")
    out(r.min("k"), "r mink")
    l = env.from_collection([[1, 2], [1, 5], [2, 9]]).key_by(lambda v: v[0])
    out(l.sum(1), "l sum")
    out(l.max_by(1), "l maxby")
    d = env.from_collection(
        [("a", Decimal("1.1")), ("a", Decimal("2.2"))],
        Types.TUPLE([Types.STRING(), Types.BIG_DEC()]),
    ).key_by(lambda v: v[0])
    out(d.sum(1), "dec")
    b = env.from_collection([("a", True), ("a", True)]).key_by(lambda v: v[0])
    out(b.sum(1), "bool")
    w = timed(env.from_collection(EV, T3)).key_by(lambda v: v[0])
