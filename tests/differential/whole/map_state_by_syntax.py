"""A map state in subscripts, tests and loops."""

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


class Graph(KeyedProcessFunction):
    def open(self, ctx):
        self.m = ctx.get_map_state(MapStateDescriptor("m", Types.STRING(), Types.LIST(Types.INT())))

    def process_element(self, v, ctx):
        k = "x%d" % (v[2] % 3)
        l = self.m.get(k) or []
        l.append(v[2])
        self.m.put(k, l)
        if v[2] == 9:
            for key in list(self.m.keys()):
                if key != "x0":
                    self.m.remove(key)
        if v[2] == 7:
            self.m.clear()
        self.m["last"] = [v[2]] if not self.m.contains("last") else self.m["last"] + [v[2]]
        yield (
            str(sorted((k, l) for k, l in self.m.items()))
            + str(self.m.is_empty())
            + str(sorted(self.m))
            + str(len(list(self.m.values())))
            + str("x1" in self.m)
        )


def build(env, out):
    s = env.from_collection(EV, T3)
    out(s.key_by(lambda v: v[0]).process(Graph(), Types.STRING()), "m")
