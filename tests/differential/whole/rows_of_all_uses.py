"""Rows with row kinds, as dictionaries, nested, and in aggregations."""

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


KIND = Types.ROW_NAMED(
    ["id", "name", "score", "at"],
    [Types.LONG(), Types.STRING(), Types.DOUBLE(), Types.SQL_TIMESTAMP()],
)


def make(v):
    r = Row(
        id=v[2], name=v[0], score=v[2] / 3, at=datetime.datetime(2024, 1, 1, 0, 0, v[2], 123456)
    )
    return r


def late(r):
    r.set_row_kind(RowKind.UPDATE_AFTER if r.id % 2 else RowKind.DELETE)
    return r


def build(env, out):
    s = env.from_collection(EV, T3)
    r = s.map(make, KIND)
    out(r, "rows")
    out(r.map(late, KIND), "kinds")
    out(r.key_by(lambda r: r.name).max_by("score"), "max_by")
    out(
        r.key_by(lambda r: r["name"]).sum("id").map(lambda r: f"{r.name}{r.id}", Types.STRING()),
        "sum",
    )
    out(
        r.map(lambda r: r.as_dict(), Types.PICKLED_BYTE_ARRAY()).map(
            lambda d: str(d["score"]) + str(d["at"]), Types.STRING()
        ),
        "dict",
    )
    out(r.map(lambda r: [*r][:2], Types.PICKLED_BYTE_ARRAY()).map(str, Types.STRING()), "iter")
    out(
        r.map(
            lambda r: Row(r.id, Row(r.name, [r.score, None])),
            Types.ROW(
                [Types.LONG(), Types.ROW([Types.STRING(), Types.LIST(Types.PICKLED_BYTE_ARRAY())])]
            ),
        )
        if False
        else r.map(
            lambda r: Row(r.id, Row(r.name, r.score)),
            Types.ROW([Types.LONG(), Types.ROW_NAMED(["n", "s"], [Types.STRING(), Types.FLOAT()])]),
        ),
        "nested",
    )
    out(
        r.map(
            lambda r: (
                len(r),
                r == Row(id=r.id, name=r.name, score=r.score, at=r.at),
                r.get_row_kind().name,
            ),
            Types.TUPLE([Types.INT(), Types.BOOLEAN(), Types.STRING()]),
        ),
        "len",
    )
