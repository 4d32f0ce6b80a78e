"""Windows of the results of windows, and the top of each."""

# mode: STREAMING
# parallelism: 2
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


class Top(KeyedProcessFunction):
    def open(self, c):
        self.b = c.get_list_state(
            ListStateDescriptor("b", Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]))
        )

    def process_element(self, v, ctx):
        self.b.add(v)
        ctx.timer_service().register_event_time_timer(ctx.get_current_key() + 1)

    def on_timer(self, t, ctx):
        top = sorted(self.b.get(), key=lambda v: -v[2])[:2]
        self.b.clear()
        yield ("%d %s" % (ctx.get_current_key(), [x[0] + str(x[2]) for x in top]))


def build(env, out):
    k = timed(env.from_collection(EV, T3)).key_by(lambda v: v[0], Types.STRING())
    w1 = k.window(TumblingEventTimeWindows.of(Time.seconds(1))).reduce(
        lambda a, b: (a[0], max(a[1], b[1]), a[2] + b[2]), output_type=T3
    )
    out(
        w1.key_by(lambda v: "all")
        .window(TumblingEventTimeWindows.of(Time.seconds(4)))
        .reduce(lambda a, b: ("all", max(a[1], b[1]), a[2] + b[2])),
        "w2",
    )
    out(
        w1.window_all(TumblingEventTimeWindows.of(Time.seconds(4))).process(
            type(
                "A",
                (ProcessAllWindowFunction,),
                {"process": lambda self, ctx, it: [(ctx.window().start, sorted(it))]},
            )()
        ),
        "wa",
    )
    out(
        w1.map(lambda v: (v[0], v[2]), Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda v: v[0])
        .sum(1),
        "sum",
    )
    out(
        k.window(SlidingEventTimeWindows.of(Time.seconds(4), Time.seconds(2)))
        .aggregate(
            type(
                "C",
                (AggregateFunction,),
                {
                    "create_accumulator": lambda s: 0,
                    "add": lambda s, v, a: a + v[2],
                    "get_result": lambda s, a: a,
                    "merge": lambda s, a, b: a + b,
                },
            )(),
            type(
                "P",
                (ProcessWindowFunction,),
                {"process": lambda self, k, c, it: [(k, c.window().end, next(iter(it)))]},
            )(),
            Types.INT(),
            T3,
        )
        .key_by(lambda v: v[1], Types.LONG())
        .process(Top(), Types.STRING()),
        "top",
    )
