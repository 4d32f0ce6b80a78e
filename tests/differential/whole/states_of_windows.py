"""State of windows and of keys, cleared with the window, under triggers that fire again."""

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


class PW(ProcessWindowFunction):
    def open(self, ctx):
        self.n = 0

    def process(self, key, ctx, it):
        self.n += 1
        w = ctx.window_state().get_state(ValueStateDescriptor("w", Types.INT()))
        g = ctx.global_state().get_map_state(MapStateDescriptor("g", Types.LONG(), Types.INT()))
        ws = ctx.window_state().get_reducing_state(
            ReducingStateDescriptor("r", lambda a, b: a + b, Types.INT())
        )
        for e in it:
            ws.add(e[2])
        w.update((w.value() or 0) + 1)
        g.put(ctx.window().start, w.value())
        yield (
            key,
            ctx.window().start,
            w.value(),
            sorted(g.items()),
            ws.get(),
            ctx.current_watermark() < 0,
        )

    def clear(self, ctx):
        ctx.window_state().get_state(ValueStateDescriptor("w", Types.INT())).clear()
        ctx.window_state().get_reducing_state(
            ReducingStateDescriptor("r", lambda a, b: a + b, Types.INT())
        ).clear()


def build(env, out):
    s = timed(env.from_collection(EV, T3)).key_by(lambda v: v[0], Types.STRING())
    out(
        s.window(TumblingEventTimeWindows.of(Time.seconds(2)))
        .trigger(CountTrigger.of(1))
        .process(PW()),
        "t",
    )
    out(s.window(SlidingEventTimeWindows.of(Time.seconds(2), Time.seconds(1))).process(PW()), "s")
    out(
        s.window(SlidingEventTimeWindows.of(Time.seconds(2), Time.seconds(1)))
        .trigger(PurgingTrigger.of(CountTrigger.of(2)))
        .process(PW()),
        "p",
    )
    out(
        s.window(EventTimeSessionWindows.with_gap(Time.seconds(2))).process(
            type(
                "Q",
                (PW,),
                {
                    "process": lambda self, k, c, it: [(k, str(c.window()), len(list(it)))],
                    "clear": lambda self, c: None,
                },
            )()
        ),
        "q",
    )
