"""Reduces and rich functions on keyed streams, one after the other."""

# mode: BATCH
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


class R(ReduceFunction):
    def open(self, c):
        self.n = 0

    def reduce(self, a, b):
        self.n += 1
        return (a[0], a[1] + b[1] * 10)


class CountFn(MapFunction):
    def open(self, ctx):
        self.st = ctx.get_state(ValueStateDescriptor("c", Types.LONG()))

    def map(self, v):
        n = (self.st.value() or 0) + 1
        self.st.update(n)
        return (v[0], n)


class DistinctF(FilterFunction):
    def open(self, ctx):
        self.st = ctx.get_map_state(MapStateDescriptor("d", Types.INT(), Types.BOOLEAN()))

    def filter(self, v):
        if self.st.contains(v[1] % 2):
            return False
        self.st.put(v[1] % 2, True)
        return True


class FM(FlatMapFunction):
    def open(self, ctx):
        self.l = ctx.get_list_state(ListStateDescriptor("l", Types.INT()))

    def flat_map(self, v):
        self.l.add(v[1])
        for i, x in enumerate(self.l.get()):
            yield (v[0], i, x)


def build(env, out):
    s = env.from_collection(
        [("a", 1), ("b", 2), ("a", 3), ("b", 5), ("a", -1)],
        Types.TUPLE([Types.STRING(), Types.INT()]),
    )
    k = s.key_by(lambda v: v[0])
    out(k.reduce(R()), "cls")
    out(k.reduce(lambda a, b: (a[0], max(a[1], b[1]))), "max")
    out(k.reduce(lambda a, b: a if a[1] > b[1] else b), "keep")
    out(k.map(lambda v: v[1], Types.INT()), "kmap")
    out(k.filter(lambda v: v[1] > 1), "kfilter")
    out(k.flat_map(lambda v: [v[1]] * 2), "kflat")
    out(
        k.reduce(lambda a, b: (a[0], a[1] + b[1]))
        .key_by(lambda v: v[1] % 2)
        .reduce(lambda a, b: (a[0] + b[0], a[1] + b[1])),
        "twice",
    )
    out(
        k.reduce(lambda a, b: (a[0], a[1] + b[1]))
        .filter(lambda v: v[1] > 2)
        .map(lambda v: {"k": v[0]})
        .map(lambda d: d["k"]),
        "chain",
    )
    out(k.map(CountFn()), "cm")
    out(k.filter(DistinctF()), "df")
    out(k.flat_map(FM()), "fm")
    out(k.sum(1).key_by(lambda v: v[0]).max(1), "summax")
