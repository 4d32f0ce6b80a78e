"""Side outputs of functions, timers and windows."""

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


A, B = OutputTag("a", Types.INT()), OutputTag("b", Types.STRING())


class S(ProcessFunction):
    def process_element(self, v, ctx):
        yield A, v
        yield B, str(v)
        yield v


def build(env, out):
    s = env.from_collection([1, 2, 3], Types.INT()).process(S(), Types.INT())
    a, b = s.get_side_output(A), s.get_side_output(B)
    out(a, "a")
    out(b.map(lambda v: v * 2, Types.STRING()), "b")
    out(a.union(s), "ab")
    out(a.process(S(), Types.INT()).get_side_output(B), "chain")
    out(s.get_side_output(OutputTag("zzz", Types.INT())), "none")
    out(env.from_collection([1], Types.INT()).get_side_output(A), "from source")

    class SK(KeyedProcessFunction):
        def process_element(self, v, ctx):
            ctx.timer_service().register_event_time_timer(5)
            yield B, "e%s" % v

        def on_timer(self, ts, ctx):
            yield B, "t%s" % ts
            yield 7

    p = env.from_collection([1, 2], Types.INT()).key_by(lambda v: 0).process(SK(), Types.INT())
    out(p.get_side_output(B), "timer side")
    out(p, "timer main")

    class SW(ProcessWindowFunction):
        def process(self, key, ctx, el):
            yield A, len(list(el))
            yield "x"

    w = (
        env.from_collection([1, 2, 3], Types.INT())
        .key_by(lambda v: 0)
        .count_window(2)
        .process(SW(), Types.STRING())
    )
    out(w.get_side_output(A), "win side")
