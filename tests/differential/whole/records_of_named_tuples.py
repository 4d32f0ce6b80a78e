"""Named tuples with defaults and methods as records."""

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


class Tick(NamedTuple):
    symbol: str
    at: int
    price: float = 1.5

    def cents(self):
        return int(self.price * 100)


Pair = namedtuple("Pair", "left right")


def to_tick(v):
    return Tick(v[0], v[1], v[2] / 4) if v[2] % 2 else Tick(symbol=v[0], at=v[1])


def build(env, out):
    s = env.from_collection(EV, T3)
    t = s.map(to_tick)
    out(
        t.map(
            lambda t: (t.symbol, t.cents(), t._asdict()["at"]),
            Types.TUPLE([Types.STRING(), Types.INT(), Types.LONG()]),
        ),
        "cents",
    )
    out(
        t.map(lambda t: t._replace(price=2.0)).map(lambda t: str(tuple(t)), Types.STRING()),
        "replaced",
    )
    out(s.map(lambda v: Pair(v[0], v[2])).map(lambda p: p.left * p.right, Types.STRING()), "pair")
    out(
        s.map(lambda v: tuple(Pair(v[0], v[2])), Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda p: p[0])
        .reduce(lambda a, b: (a[0], max(a[1], b[1]))),
        "max",
    )
