"""Records that are emitted, changed, and emitted again."""

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


class Append(FlatMapFunction):
    def flat_map(self, v):
        acc = []
        for i in range(v[2] % 4):
            acc.append(i)
            yield acc
        d = {}
        for i in range(2):
            d[i] = v[2]
            yield list(d.items())


class Reuse(MapFunction):
    def __init__(self):
        self.row = None

    def map(self, v):
        if self.row is None:
            self.row = Row(a=0, b="")
        self.row["a"] = v[2]
        self.row["b"] = v[0]
        return self.row


class Buffer(ProcessFunction):
    def __init__(self):
        self.buffer = []

    def process_element(self, v, ctx):
        self.buffer.append(v[2])
        if len(self.buffer) >= 3:
            yield self.buffer
            self.buffer.clear()


class Swap(MapFunction):
    def map(self, row):
        row["a"], row["b"] = row.a + 1, row.b * 2
        return row


def build(env, out):
    env.set_parallelism(1)
    s = env.from_collection(EV, T3)
    a = s.flat_map(Append(), Types.PICKLED_BYTE_ARRAY())
    out(a.map(lambda l: str(l), Types.STRING()), "append")
    r = s.map(Reuse(), Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()]))
    out(r, "reuse")
    out(r.map(Swap(), Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()])), "swapped")
    out(s.process(Buffer(), Types.LIST(Types.INT())), "buffer")
    out(s.process(Buffer()).map(lambda b: len(b), Types.INT()), "lens")
    k = r.key_by(lambda x: x.b)
    out(
        k.map(Swap()).map(lambda r: (r.a, r.b), Types.TUPLE([Types.INT(), Types.STRING()])), "keyed"
    )
