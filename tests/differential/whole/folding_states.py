"""Reducing, aggregating and map state, read before and after each write."""

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


class Mx(AggregateFunction):
    def create_accumulator(self):
        return (0, -(10**9))

    def add(self, v, a):
        return (a[0] + 1, max(a[1], v))

    def get_result(self, a):
        return "%d/%d" % a

    def merge(self, a, b):
        return (a[0] + b[0], max(a[1], b[1]))


class P(KeyedProcessFunction):
    def open(self, c):
        self.r = c.get_reducing_state(
            ReducingStateDescriptor("r", lambda a, b: a * 10 + b, Types.INT())
        )
        self.a = c.get_aggregating_state(
            AggregatingStateDescriptor("a", Mx(), Types.TUPLE([Types.INT(), Types.INT()]))
        )
        self.m = c.get_map_state(MapStateDescriptor("m", Types.STRING(), Types.LIST(Types.INT())))

    def process_element(self, v, ctx):
        before = (self.r.get(), self.a.get(), self.m.is_empty())
        self.r.add(v[2])
        self.a.add(v[2])
        l = self.m.get("x") or []
        l.append(v[2])
        self.m.put("x", l)
        self.m.put("n%d" % v[2], [v[2]])
        yield str(
            (
                v[0],
                before,
                self.r.get(),
                self.a.get(),
                sorted(self.m.keys()),
                sorted(self.m.values()),
                sorted(self.m.items()),
                self.m.contains("x"),
                "y" in self.m if hasattr(self.m, "__contains__") else None,
            )
        )
        if v[2] % 4 == 0:
            self.r.clear()
            self.a.clear()
            self.m.remove("x")
        if v[2] % 5 == 0:
            self.m.clear()


def build(env, out):
    s = env.from_collection(EV, T3).key_by(lambda v: v[0], Types.STRING())
    out(s.process(P()), "m")
