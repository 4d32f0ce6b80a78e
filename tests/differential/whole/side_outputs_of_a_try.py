"""Side outputs from all parts of a try statement."""

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


BIG = OutputTag("big", Types.STRING())
BAD = OutputTag("bad", Types.ROW_NAMED(["why", "n"], [Types.STRING(), Types.INT()]))
ANY = OutputTag("any")


class Split(ProcessFunction):
    def process_element(self, v, ctx):
        try:
            if v[2] == 5:
                raise ValueError("five")
            r = 12 // (v[2] - 3)
        except ZeroDivisionError as e:
            yield BAD, Row(why=str(e), n=v[2])
        except ValueError as e:
            yield BAD, Row(str(e), 5)
            return
        else:
            if r > 3:
                yield BIG, "r%d" % r
            else:
                yield r
        finally:
            if v[2] == 7:
                yield ANY, {"seven": v}


def build(env, out):
    m = env.from_collection(EV, T3).process(Split(), Types.INT())
    out(m, "main")
    out(m.get_side_output(BIG), "big")
    out(m.get_side_output(BAD), "bad")
    out(m.get_side_output(ANY).map(lambda d: str(d), Types.STRING()), "any")
    out(m.get_side_output(BAD).map(lambda r: r.why + str(r[1]), Types.STRING()), "why")
    out(m.get_side_output(BIG).union(m.map(lambda r: "m%d" % r, Types.STRING())), "union")
