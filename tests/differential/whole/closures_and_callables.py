"""Closures, default arguments, partials, callable objects and bound methods."""

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


LIMITS = {"a": 3, "b": 4}


def scaled(factor, offset=1):
    total = [0]

    def inner(v):
        total[0] += v[2]
        return v[0], v[2] * factor + offset, total[0]

    return inner


def with_default(v, factor=3, *rest, key="k", **more):
    return f"{key}{v[2] * factor}{rest}{more}"


class Callable:
    calls = 0

    def __init__(self, n):
        self.n = n

    def __call__(self, v):
        self.n += 1
        return v[0] + str(self.n)


def build(env, out):
    s = env.from_collection(EV, T3)
    env.set_parallelism(1)
    out(s.map(scaled(2), Types.TUPLE([Types.STRING(), Types.INT(), Types.INT()])), "scaled")
    out(s.map(with_default, Types.STRING()), "defaults")
    out(s.map(functools.partial(with_default, factor=5, key="p", z=1), Types.STRING()), "partial")
    out(s.map(Callable(7), Types.STRING()), "callable")
    out(s.filter(lambda v: v[2] > LIMITS.get(v[0], 7)), "limits")
    out(
        s.map(operator.itemgetter(2), Types.INT())
        .map((3).__mul__, Types.INT())
        .map(str, Types.STRING()),
        "operators",
    )
    for i in range(3):
        out(s.map(lambda v, i=i: v[2] + i, Types.INT()), "loop%d" % i)
    fs = [lambda v, n=n: v[2] ** n for n in (1, 2)]
    out(s.map(lambda v: [f(v) for f in fs], Types.LIST(Types.INT())), "fs")
