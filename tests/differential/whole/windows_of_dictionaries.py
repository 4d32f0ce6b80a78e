"""Dictionaries in tumbling, sliding and session windows."""

# mode: STREAMING
# parallelism: 1
import datetime, decimal, math, json, collections, functools, itertools
from decimal import Decimal
from pyflink.common import *
from pyflink.common import (
    Types,
    Row,
    RowKind,
    Time,
    Duration,
    Instant,
    WatermarkStrategy,
    Configuration,
)
from pyflink.common.typeinfo import TypeInformation
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
from pyflink.datastream.window import *


class At(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def timed(s):
    env = s.get_execution_environment()
    parallelism = env.get_parallelism()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_hours(1))
    timed = s.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(At()))
    env.set_parallelism(parallelism)
    return timed


T3 = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
EV = [
    ("a", 100, 1),
    ("b", 200, 2),
    ("a", 900, 3),
    ("a", 1500, 4),
    ("b", 5200, 5),
    ("a", 3000, 6),
    ("a", 200, 7),
    ("c", -50, 8),
]
evs = [
    {"u": "a", "ts": 1000, "v": 1.5},
    {"u": "b", "ts": 1500, "v": 2.5},
    {"u": "a", "ts": 2500, "v": 0.5},
    {"u": "a", "ts": 9000, "v": 4.0},
]


class A2(TimestampAssigner):
    def extract_timestamp(self, value, rt):
        return value["ts"]


class Agg(AggregateFunction):
    def create_accumulator(self):
        return {"n": 0, "sum": 0.0, "max": None}

    def add(self, e, acc):
        acc["n"] += 1
        acc["sum"] += e["v"]
        acc["max"] = e["v"] if acc["max"] is None else max(acc["max"], e["v"])
        return acc

    def get_result(self, acc):
        return {**acc, "avg": acc["sum"] / acc["n"]}

    def merge(self, a, b):
        return {"n": a["n"] + b["n"], "sum": a["sum"] + b["sum"], "max": max(a["max"], b["max"])}


class WF(ProcessWindowFunction):
    def process(self, key, ctx, it):
        for r in it:
            yield {"k": key, "w": (ctx.window().start, ctx.window().end), **r}


def build(env, out):
    s = env.from_collection(evs).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_seconds(20)
        ).with_timestamp_assigner(A2())
    )
    k = s.key_by(lambda e: e["u"], key_type=Types.STRING())
    for n, w in [
        ("t", TumblingEventTimeWindows.of(Time.seconds(2))),
        ("s", SlidingEventTimeWindows.of(Time.seconds(4), Time.seconds(2))),
        ("g", EventTimeSessionWindows.with_gap(Time.seconds(3))),
    ]:
        out(k.window(w).aggregate(Agg()), n)
        out(k.window(w).aggregate(Agg(), WF()), n + "w")
        out(
            k.window(w).reduce(
                lambda a, b: {"u": a["u"], "ts": max(a["ts"], b["ts"]), "v": a["v"] + b["v"]}
            ),
            n + "r",
        )
        out(
            k.window(w).apply(
                type(
                    "Ap",
                    (WindowFunction,),
                    {"apply": lambda self, key, win, it: [(key, win.end, [e["v"] for e in it])]},
                )()
            ),
            n + "a",
        )
