"""Keys of odd types, and keys whose class is not that of their declared type."""

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


class Enumed(enum.Enum):
    X = 1
    Y = 2


class Count(MapFunction):
    def open(self, ctx):
        self.n = ctx.get_state(ValueStateDescriptor("n", Types.LONG()))

    def map(self, v):
        n = (self.n.value() or 0) + 1
        self.n.update(n)
        return f"{v[2]}:{n}"


def build(env, out):
    s = env.from_collection(EV, T3)

    def go(f, name, t=None):
        k = s.key_by(f, t) if t else s.key_by(f)
        out(k.map(Count(), Types.STRING()), name)

    go(lambda v: (v[0], v[2] % 2), "tuple")
    go(lambda v: [v[0]], "list")
    go(lambda v: Decimal(v[2] % 3), "decimal")
    go(lambda v: datetime.date(2020, 1, 1 + v[2] % 3), "date")
    go(lambda v: v[2] % 3 / 2, "float")
    go(lambda v: v[2] > 4, "bool")
    go(lambda v: None if v[2] > 4 else v[0], "none")
    go(lambda v: v[0].encode(), "bytes")
    go(lambda v: {"k": v[0]}, "dict")
    go(lambda v: Row(v[0], v[2] % 2), "row", Types.ROW([Types.STRING(), Types.INT()]))
    go(lambda v: (v[0], v[2] % 2), "ttuple", Types.TUPLE([Types.STRING(), Types.INT()]))
    go(lambda v: v[2] / 3, "floatint", Types.INT())
    go(lambda v: v[2] % 3, "intdouble", Types.DOUBLE())
    go(lambda v: v[2] % 2, "boolint", Types.BOOLEAN())
    go(lambda v: "" if v[2] < 4 else "é€" + v[0], "unicode", Types.STRING())
    go(lambda v: 2**70 * (v[2] % 2), "big")
    go(lambda v: range(v[2] % 2), "range")
    go(lambda v: (v[0], None, (1, [2.5])), "nested")
