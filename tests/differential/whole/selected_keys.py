"""Keys of all types, selected from rows and tuples."""

# mode: STREAMING
# parallelism: 1
import datetime
from decimal import Decimal

from pyflink.common import Duration, Instant, Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag
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


def late():
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(60))
    return strategy.with_timestamp_assigner(At())


class KS(KeySelector):
    def get_key(self, value):
        return value[1]


class C(MapFunction):
    def open(self, ctx):
        self.c = ctx.get_state(ValueStateDescriptor("c", Types.INT()))

    def map(self, v):
        n = (self.c.value() or 0) + 1
        self.c.update(n)
        return repr((v, n))


def build(env, out):
    src = [("a", 1, Row(x=1, y="q")), ("b", 1, Row(x=1, y="q")), ("a", 2, Row(x=2, y="q"))]
    ty = Types.TUPLE(
        [Types.STRING(), Types.INT(), Types.ROW_NAMED(["x", "y"], [Types.INT(), Types.STRING()])]
    )
    s = env.from_collection(src, ty)
    for n, k, kt in [
        ("cls", KS(), None),
        ("row", lambda v: v[2], None),
        ("rowt", lambda v: v[2], Types.ROW_NAMED(["x", "y"], [Types.INT(), Types.STRING()])),
        ("name", lambda v: v[2].x, Types.INT()),
        ("name2", lambda v: v[2]["y"], Types.STRING()),
        ("tup", lambda v: (v[0], v[1]), Types.TUPLE([Types.STRING(), Types.INT()])),
        ("list", lambda v: [v[0]], Types.LIST(Types.STRING())),
        ("date", lambda v: datetime.date(2020, 1, v[1]), Types.SQL_DATE()),
        ("dec", lambda v: Decimal(v[1]), Types.BIG_DEC()),
        ("map", lambda v: {v[0]: 1}, Types.MAP(Types.STRING(), Types.INT())),
        ("float", lambda v: v[1] / 3, Types.FLOAT()),
        ("inst", lambda v: Instant.of_epoch_milli(v[1]), Types.INSTANT()),
        ("ts", lambda v: datetime.datetime(2020, 1, v[1]), Types.SQL_TIMESTAMP()),
    ]:
        out(s.key_by(k, kt).map(C(), Types.STRING()), n)
