"""A limit per second, with a timer that resets it."""

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


class Limiter(KeyedProcessFunction):
    def open(self, ctx):
        self.count = ctx.get_state(ValueStateDescriptor("c", Types.LONG()))
        self.timer = ctx.get_state(ValueStateDescriptor("t", Types.LONG()))

    def process_element(self, v, ctx: "KeyedProcessFunction.Context"):
        n = self.count.value()
        if n is None:
            n = 0
        if n == 0:
            due = (ctx.timestamp() // 1000 + 1) * 1000
            ctx.timer_service().register_event_time_timer(due)
            self.timer.update(due)
        n += 1
        self.count.update(n)
        if n > 2:
            if n == 3:
                yield "drop", v[2]
            return
        yield "pass", v[2]

    def on_timer(self, ts, ctx):
        if ts != self.timer.value():
            return
        yield "reset %s" % ctx.get_current_key(), self.count.value()
        self.count.clear()
        self.timer.clear()


def build(env, out):
    s = timed(env, env.from_collection([("k%d" % (i % 2), 100 * i, i) for i in range(25)], T3))
    out(
        s.key_by(lambda v: v[0]).process(Limiter(), Types.TUPLE([Types.STRING(), Types.LONG()])),
        "limited",
    )
