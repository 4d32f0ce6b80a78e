"""Rules of dictionaries in broadcast state, read by timers."""

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


RULES = MapStateDescriptor("rules", Types.STRING(), Types.PICKLED_BYTE_ARRAY())


class Apply(KeyedBroadcastProcessFunction):
    def open(self, ctx):
        self.n = ctx.get_state(ValueStateDescriptor("n", Types.INT()))

    def process_element(self, v, ctx):
        self.n.update((self.n.value() or 0) + v[2])
        ctx.timer_service().register_event_time_timer(100000)

    def process_broadcast_element(self, rule, ctx):
        state = ctx.get_broadcast_state(RULES)
        name, low = rule
        if low < 0:
            if name in dict(state.items()):
                state.remove(name)
        else:
            state.put(name, {"low": low, "name": name})

    def on_timer(self, ts, ctx):
        rules = ctx.get_broadcast_state(RULES)
        for name, rule in sorted(rules.items()):
            if self.n.value() >= rule["low"]:
                yield f"{ctx.get_current_key()} {name} {self.n.value()}"


def build(env, out):
    s = timed(env, env.from_collection(EV, T3))
    rules = timed(
        env,
        env.from_collection(
            [("x", 3), ("y", 14), ("z", 1), ("z", -1), ("w", 20)],
            Types.TUPLE([Types.STRING(), Types.INT()]),
        ),
    )
    out(
        s.key_by(lambda v: v[0]).connect(rules.broadcast(RULES)).process(Apply(), Types.STRING()),
        "alerts",
    )
