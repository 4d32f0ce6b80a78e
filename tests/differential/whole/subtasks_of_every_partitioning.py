"""The subtasks of keys of every type, and of records behind every partitioning."""

# mode: STREAMING
# parallelism: 3
import datetime, decimal, math, json, collections
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
from pyflink.datastream.output_tag import OutputTag


class At(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def timed(s, late=0):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(late))
    return s.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(At()))


T3 = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
EV = [
    ("a", 100, 1),
    ("b", 200, 2),
    ("a", 900, 3),
    ("a", 1500, 4),
    ("b", 5200, 5),
    ("a", 3000, 6),
    ("a", 200, 7),
    ("c", 50, 8),
    ("b", 7000, 9),
    ("c", 6900, 10),
]


class P(Partitioner):
    def partition(self, key, n):
        return key % n


class Sub(MapFunction):
    def open(self, c):
        self.i = c.get_index_of_this_subtask()
        self.c = c

    def map(self, v):
        return self.i, v


class Sub2(Sub):
    def map(self, v):
        return (
            self.i,
            self.c.get_number_of_parallel_subtasks(),
            self.c.get_max_number_of_parallel_subtasks(),
            self.c.get_attempt_number(),
            v,
        )


def build(env, out):
    s = env.from_collection(list(range(20)), Types.INT())
    out(s.key_by(lambda v: v % 7, Types.INT()).map(Sub()), "int")
    out(s.key_by(lambda v: v % 7, Types.LONG()).map(Sub()), "long")
    out(s.key_by(lambda v: str(v % 7), Types.STRING()).map(Sub2()), "str")
    out(s.key_by(lambda v: v % 7).map(Sub()), "any")
    out(
        s.key_by(lambda v: (v % 7, "x"), Types.TUPLE([Types.INT(), Types.STRING()])).map(Sub()),
        "tuple",
    )
    out(s.key_by(lambda v: v / 4, Types.DOUBLE()).map(Sub()), "double")
    out(s.key_by(lambda v: v / 4, Types.FLOAT()).map(Sub()), "float")
    out(s.key_by(lambda v: v % 2 == 0, Types.BOOLEAN()).map(Sub()), "bool")
    out(s.key_by(lambda v: Decimal(v % 5) / 2, Types.BIG_DEC()).map(Sub()), "dec")
    out(
        s.key_by(lambda v: Row(v % 5, None), Types.ROW([Types.INT(), Types.STRING()])).map(Sub()),
        "row",
    )
    out(s.key_by(lambda v: [v % 5, 2], Types.LIST(Types.INT())).map(Sub()), "list")
    out(
        s.key_by(lambda v: datetime.date(2020, 1, 1 + v), Types.SQL_DATE()).map(lambda v: v), "date"
    )
    out(s.broadcast().map(Sub()), "bc")
    out(s.forward().map(lambda v: v), "fw") if False else None
    out(s.map(lambda v: v, Types.INT()).set_parallelism(1).rescale().map(Sub()), "resc")
