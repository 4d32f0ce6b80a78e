"""Global and local names that generated code has, too."""

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
value = 100
values = [1]
key_1 = 7
timestamp = 5
op_1 = "x"
FROZEN = 3
private = lambda v: "mine%s" % v
index = 9
emit_1 = 4
ABSENT = 0
table_2 = {}
op_0 = 12
table_0 = 3
identify_0 = 4
context_2 = 1
time_of_1 = 2
self_1 = 9
is_tagged = 5
ranges = 3
user_map_1 = 1
add_1 = 2
NO_TIMESTAMP = 5


def process_0(v):
    return v + 1


def emit_2(v):
    return v * 2


class P(KeyedProcessFunction):
    def open(self, c):
        self.op_0 = c.get_state(ValueStateDescriptor("x", Types.INT()))
        self.value = 5

    def process_element(self, value_0, ctx):
        key_0 = ctx.get_current_key()
        table_0 = (self.op_0.value() or 0) + value_0 + self_1
        self.op_0.update(table_0)
        for value_1 in range(2):
            values = value_1 + self.value
            yield (key_0, table_0, values, op_1, [timestamp for timestamp in (1, 2)])


class Agg(AggregateFunction):
    def create_accumulator(self):
        return table_0

    def add(self, value, held_0):
        return held_0 + value[2] + op_0

    def get_result(self, pane_0):
        return (pane_0, ABSENT)

    def merge(self, a, b):
        return a + b


def build(env, out):
    s = env.from_collection([1, 2, 3], Types.INT())
    out(
        s.map(lambda v: [value_1 + v for value_1 in range(3)]).map(
            lambda w: [value_2 for value_2 in w if value_2 in w]
        ),
        "comp",
    )
    out(
        s.map(lambda v: {key_0: v for key_0 in "ab"}).map(lambda d: {value: d for value in "x"}),
        "dcomp",
    )
    out(
        s.map(
            lambda v: (
                v
                + op_0
                + table_0
                + identify_0
                + context_2
                + time_of_1
                + self_1
                + is_tagged
                + add_1
                + NO_TIMESTAMP
            )
        )
        .map(process_0)
        .map(emit_2),
        "g",
    )
    out(s.key_by(lambda v: v + self_1).map(lambda v: (v, table_0, op_1)), "km")
    out(s.key_by(lambda key_0: key_0 % 2).process(P()).map(lambda value_0: value_0 + (value,)), "p")
    out(
        timed(env.from_collection(EV, T3))
        .key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(2)))
        .aggregate(Agg())
        .map(lambda value: value + (FROZEN,)),
        "w",
    )
    out(
        s.key_by(lambda key: key % 2)
        .reduce(lambda previous, value: previous + value + ABSENT)
        .map(lambda sum_0: (sum_0, FROZEN, private(sum_0))),
        "r",
    )
    out(
        s.flat_map(lambda value_0: [value_1 for value_1 in range(value_0)])
        .filter(lambda value_2: value_2 != ABSENT)
        .map(lambda v: json.loads('{"a": %d}' % v))
        .map(lambda found: found["a"] + ABSENT),
        "f",
    )
