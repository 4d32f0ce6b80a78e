"""Functions with overridden methods, super(), properties and class methods."""

# mode: STREAMING
# parallelism: 1
import collections, dataclasses, datetime, enum, functools, heapq, itertools, json, logging, math, operator, re, statistics, string, typing
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from datetime import timedelta
from decimal import Decimal
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple
from pyflink.common import (
    Configuration,
    Duration,
    Instant,
    Row,
    RowKind,
    Time,
    Types,
    WatermarkStrategy,
)
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
from pyflink.datastream.state import StateTtlConfig
from pyflink.datastream.window import *


class At(TimestampAssigner):
    def __init__(self, i=1):
        self.i = i

    def extract_timestamp(self, value, record_timestamp):
        return value[self.i]


def timed(env, stream, i=1, minutes=600):
    p = env.get_parallelism()
    env.set_parallelism(1)
    out = stream.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_minutes(minutes)
        ).with_timestamp_assigner(At(i))
    )
    env.set_parallelism(p)
    return out


T3 = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
EV = [
    ("a", 100, 1),
    ("b", 200, 2),
    ("a", 900, 3),
    ("a", 1500, 4),
    ("b", 5200, 5),
    ("c", 3000, 6),
    ("a", 7200, 7),
    ("c", 50, 8),
    ("b", 5100, 9),
    ("a", 12000, 10),
]


class Base(KeyedProcessFunction):
    NAME = "base"

    def __init__(self, start=1):
        self.start = start
        self.log = []

    def open(self, ctx):
        self.total = ctx.get_reducing_state(ReducingStateDescriptor("t", self.merge, Types.INT()))
        self.name = ctx.get_task_name() is not None

    def merge(self, a, b):
        return a + b

    def weight(self, v):
        return v[2]

    def process_element(self, v, ctx):
        self.total.add(self.weight(v) * self.start)
        yield from self.emit(v, ctx)

    def emit(self, v, ctx):
        yield f"{self.NAME} {ctx.get_current_key()} {self.total.get()}"


class Double(Base):
    NAME = "double"

    def weight(self, v):
        return 2 * super().weight(v)

    @property
    def twice(self):
        return self.start * 2

    @staticmethod
    def mark(x):
        return "<" + x + ">"

    @classmethod
    def label(cls, x):
        return cls.NAME.upper() + x

    def emit(self, v, ctx):
        for line in super().emit(v, ctx):
            yield self.mark(line) + str(self.twice) + self.label("!")


class Most(Double):
    def merge(self, a, b):
        return max(a, b)


def build(env, out):
    s = env.from_collection(EV, T3)
    for f, n in ((Base(), "base"), (Double(3), "double"), (Most(), "most")):
        out(s.key_by(lambda v: v[0]).process(f, Types.STRING()), n)
