"""JSON with lines that are not JSON, handled in many ways."""

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
lines = [
    '{"id": 1, "name": "Flink", "tel": 123, "tags": ["a", "b"]}',
    '{"id": 2, "name": "hello", "tel": 135}',
    "bad",
    '{"id": 3, "name": "world", "tel": null, "tags": []}',
]


def parse(line):
    try:
        return json.loads(line)
    except json.JSONDecodeError as e:
        return {"id": -1, "error": str(e)[:20]}


def build(env, out):
    ds = env.from_collection(lines, Types.STRING())
    p = ds.map(parse)
    out(
        p.filter(lambda d: d["id"] > 0).map(
            lambda d: (d["id"], d.get("name", "?").upper(), len(d.get("tags", [])))
        ),
        "ok",
    )
    out(p.filter(lambda d: "error" in d).map(lambda d: json.dumps(d, sort_keys=True)), "bad")
    out(
        p.map(lambda d: {**d, "tel": (d.get("tel") or 0) + 1}).map(
            lambda d: json.dumps(d), Types.STRING()
        ),
        "upd",
    )
    out(
        p.flat_map(
            lambda d: [(d["id"], t) for t in d.get("tags") or ["none"]],
            Types.TUPLE([Types.INT(), Types.STRING()]),
        )
        .key_by(lambda t: t[1])
        .map(lambda t: t),
        "tags",
    )
    out(
        p.map(
            lambda d: Row(id=d["id"], name=d.get("name")),
            Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()]),
        ).filter(lambda r: r.name is not None),
        "rows",
    )
    out(p.key_by(lambda d: d["id"] % 2 == 0).reduce(lambda a, b: {"id": a["id"] + b["id"]}), "red")
    out(
        ds.map(lambda l: l.strip("{}").split(",")[0])
        .map(lambda x: x.partition(":"))
        .map(lambda t: t[2] or t[0]),
        "text",
    )
    out(
        ds.map(lambda l: sum(map(ord, l)) % 97)
        .map(lambda n: divmod(n, 10))
        .map(lambda t: "%d-%d" % t),
        "num",
    )
    out(ds.map(len).key_by(lambda n: n > 10).sum(), "sum")
