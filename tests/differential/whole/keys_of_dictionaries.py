"""Keys selected from dictionaries, one after the other."""

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


class KS(KeySelector):
    def get_key(self, v):
        return v["k"]


import operator


def build(env, out):
    s = (
        env.from_collection(
            [{"k": "a", "n": 1}, {"k": "b", "n": 2}, {"k": "a", "n": 3}],
            Types.MAP(Types.STRING(), Types.PICKLED_BYTE_ARRAY()),
        )
        if False
        else env.from_collection([{"k": "a", "n": 1}, {"k": "b", "n": 2}, {"k": "a", "n": 3}])
    )
    out(s.key_by(KS()).map(lambda v: v["n"]), "1")
    out(
        s.key_by(KS(), key_type=Types.STRING()).reduce(lambda a, b: {**a, "n": a["n"] + b["n"]}),
        "2",
    )
    out(
        s.key_by(KS())
        .key_by(lambda v: v["n"] % 2)
        .reduce(lambda a, b: {"k": a["k"] + b["k"], "n": 0}),
        "3",
    )
    out(
        s.key_by(lambda v: v.get("missing")).reduce(lambda a, b: {"k": "x", "n": a["n"] + b["n"]}),
        "4",
    )
    out(s.map(lambda v: (v["k"], v["n"])).key_by(operator.itemgetter(0)).max_by(1), "6")
    out(s.map(lambda v: [v["k"], v["n"], 0]).key_by(lambda v: v[0]).sum(1), "7")
    out(s.map(lambda v: Row(k=v["k"], n=v["n"])).key_by(lambda r: r.k).sum("n"), "8")
    out(
        s.map(lambda v: Row(k=v["k"], n=v["n"]))
        .key_by(lambda r: r["k"])
        .min_by("n")
        .map(lambda r: r.as_dict()),
        "9",
    )
    out(s.map(lambda v: v["n"] * 1.5).key_by(lambda v: "c").max(), "10")
    out(
        s.key_by(lambda v: v["k"]).process(
            type("P", (KeyedProcessFunction,), {"process_element": lambda self, v, ctx: None})()
        ),
        "12",
    )
    out(
        s.key_by(lambda v: v["k"])
        .process(
            type(
                "P",
                (KeyedProcessFunction,),
                {"process_element": lambda self, v, ctx: [v["n"], None, "x"]},
            )()
        )
        .map(lambda v: repr(v)),
        "13",
    )
