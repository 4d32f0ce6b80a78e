"""Duplicates dropped by process, flat_map and filter."""

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


class Dedup(KeyedProcessFunction):
    def __init__(self, ttl=60):
        self.ttl = ttl

    def open(self, ctx):
        d = ValueStateDescriptor("seen", Types.BOOLEAN())
        d.enable_time_to_live(
            StateTtlConfig.new_builder(Time.hours(self.ttl))
            .set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)
            .set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)
            .build()
        )
        self.seen = ctx.get_state(d)

    def process_element(self, v, ctx):
        if self.seen.value():
            return
        self.seen.update(True)
        yield v


class DedupFlat(FlatMapFunction):
    def open(self, ctx):
        self.seen = ctx.get_map_state(MapStateDescriptor("seen", Types.INT(), Types.STRING()))

    def flat_map(self, v):
        if not self.seen.contains(v[2] % 3):
            self.seen.put(v[2] % 3, v[0])
            yield v
        elif v[2] > 8:
            self.seen.remove(v[2] % 3)


class DedupFilter(FilterFunction):
    def open(self, ctx):
        self.seen = ctx.get_state(ValueStateDescriptor("seen", Types.INT()))

    def filter(self, v):
        if (self.seen.value() or 0) >= v[2]:
            return False
        self.seen.update(v[2] + 1)
        return v[0]


def build(env, out):
    s = env.from_collection(EV + EV, T3)
    out(s.key_by(lambda v: v[0] + str(v[2] % 2)).process(Dedup(), T3), "process")
    out(s.key_by(lambda v: v[0]).flat_map(DedupFlat(), T3), "flat")
    out(s.key_by(lambda v: v[0]).filter(DedupFilter()), "filter")
