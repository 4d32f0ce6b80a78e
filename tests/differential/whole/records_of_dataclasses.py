"""Dataclasses as records inside a chain."""

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


@dataclasses.dataclass
class Ride:
    ride: int
    taxi: str
    fare: float = 0.0
    tags: list = dataclasses.field(default_factory=list)

    def tip(self) -> float:
        return round(self.fare * 0.1, 2)


class Parse(MapFunction):
    def map(self, line: str) -> Ride:
        parts: List[str] = line.split(",")
        ride: Ride
        ride = Ride(int(parts[0]), parts[1])
        if len(parts) > 2 and parts[2]:
            ride.fare = float(parts[2])
        ride.tags.append(parts[-1])
        return ride


def build(env, out):
    s = env.from_collection(["1,x,10.5", "2,y", "3,x,7,z", "4,y,", "5,,1"], Types.STRING())
    rides = s.map(Parse())
    out(
        rides.map(lambda r: f"{r.ride}|{r.taxi}|{r.fare}|{r.tags}|{r.tip()}", Types.STRING()),
        "rides",
    )
    tips = (
        s.map(Parse())
        .filter(lambda r: r.taxi != "")
        .map(lambda r: (r.taxi, r.tip()), Types.TUPLE([Types.STRING(), Types.DOUBLE()]))
    )
    out(tips.key_by(lambda t: t[0]).reduce(lambda a, b: (a[0], a[1] + b[1])), "tips")
