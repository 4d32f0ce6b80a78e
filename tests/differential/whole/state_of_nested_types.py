"""State of nested declared types."""

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


class P(KeyedProcessFunction):
    def open(self, c):
        self.a = c.get_state(
            ValueStateDescriptor(
                "a",
                Types.ROW_NAMED(
                    ["n", "t"], [Types.INT(), Types.TUPLE([Types.STRING(), Types.DOUBLE()])]
                ),
            )
        )
        self.b = c.get_list_state(ListStateDescriptor("b", Types.MAP(Types.STRING(), Types.INT())))
        self.c = c.get_map_state(
            MapStateDescriptor(
                "c",
                Types.TUPLE([Types.STRING(), Types.INT()]),
                Types.LIST(Types.ROW([Types.INT()])),
            )
        )
        self.d = c.get_reducing_state(
            ReducingStateDescriptor(
                "d", lambda x, y: {**x, **y}, Types.MAP(Types.STRING(), Types.INT())
            )
        )
        self.e = c.get_state(ValueStateDescriptor("e", Types.SQL_TIMESTAMP()))
        self.f = c.get_state(ValueStateDescriptor("f", Types.BIG_DEC()))
        self.g = c.get_state(ValueStateDescriptor("g", Types.BASIC_ARRAY(Types.STRING())))
        self.h = c.get_state(ValueStateDescriptor("h", Types.INSTANT()))

    def process_element(self, v, ctx):
        old = self.a.value()
        self.a.update(Row(n=(old.n if old else 0) + 1, t=(v[0], v[1] * 1.5)))
        self.b.add({v[0]: v[1]})
        self.c.put((v[0], v[1] % 2), (self.c.get((v[0], v[1] % 2)) or []) + [Row(v[1])])
        self.d.add({v[0] + str(v[1]): v[1]})
        self.e.update(datetime.datetime(2020, 1, 1, 0, 0, 0) + datetime.timedelta(seconds=v[1]))
        self.f.update((self.f.value() or Decimal(0)) + Decimal(v[1]) / 4)
        self.g.update((self.g.value() or []) + [v[0]])
        self.h.update(Instant.of_epoch_milli(v[1]))
        yield repr(
            (
                self.a.value(),
                self.a.value().t[1],
                list(self.b),
                sorted(((k, [x[0] for x in l]) for k, l in self.c.items())),
                sorted(self.d.get().items()),
                self.e.value(),
                self.f.value(),
                self.g.value(),
                self.h.value(),
            )
        )


def build(env, out):
    s = env.from_collection(
        [("a", 1), ("b", 2), ("a", 3), ("a", 4)], Types.TUPLE([Types.STRING(), Types.INT()])
    )
    out(s.key_by(lambda v: v[0]).process(P()), "out")
