"""Sessions whose gap depends on the record."""

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


class Gap(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return 1000 if element[0] == "a" else 4000


class L(ProcessWindowFunction):
    def process(self, key, ctx, es):
        yield key, ctx.window().start, ctx.window().end, sorted(e[2] for e in es)


def build(env, out):
    s = timed(env, env.from_collection(sorted(EV, key=lambda v: v[1]), T3))
    k = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.LIST(Types.INT())])
    out(
        s.key_by(lambda v: v[0])
        .window(EventTimeSessionWindows.with_dynamic_gap(Gap()))
        .process(L(), k),
        "dyn",
    )
    out(
        s.key_by(lambda v: v[0])
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(2100)))
        .process(L(), k),
        "fix",
    )
