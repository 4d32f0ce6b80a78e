"""A window assigner of the program, and a trigger with state."""

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


class Odd(WindowAssigner):
    """Windows by whether the number is odd, of changing size."""

    def assign_windows(self, element, timestamp, context):
        size = 1000 if element[2] % 2 else 2500
        start = timestamp - timestamp % size
        found = [TimeWindow(start, start + size)]
        if element[2] > 5:
            found.append(TimeWindow(start - 500, start + size))
        return found

    def get_default_trigger(self, env):
        return EventTimeTrigger.create()

    def get_window_serializer(self):
        return TimeWindowSerializer()

    def is_event_time(self):
        return True


class AtCount(Trigger):
    def __init__(self, n):
        self.n = n

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp())
        seen = ctx.get_partitioned_state(ValueStateDescriptor("seen", Types.INT()))
        n = (seen.value() or 0) + 1
        seen.update(n)
        if n % self.n == 0:
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return (
            TriggerResult.FIRE_AND_PURGE
            if time == window.max_timestamp()
            else TriggerResult.CONTINUE
        )

    def on_merge(self, window, ctx):
        pass

    def clear(self, window, ctx):
        ctx.delete_event_time_timer(window.max_timestamp())
        ctx.get_partitioned_state(ValueStateDescriptor("seen", Types.INT())).clear()


class Listed(ProcessWindowFunction):
    def process(self, key, ctx, elements):
        w = ctx.window()
        yield f"{key} [{w.start},{w.end}) {[e[2] for e in elements]}"


def build(env, out):
    s = timed(env, env.from_collection(EV, T3))
    k = s.key_by(lambda v: v[0])
    out(k.window(Odd()).process(Listed(), Types.STRING()), "odd")
    out(k.window(Odd()).trigger(AtCount(2)).process(Listed(), Types.STRING()), "counted")
    out(
        k.window(GlobalWindows.create())
        .trigger(PurgingTrigger.of(CountTrigger.of(2)))
        .reduce(lambda a, b: (a[0], b[1], a[2] + b[2])),
        "global",
    )
