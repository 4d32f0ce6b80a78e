"""Side outputs of windows, of two inputs, of broadcast functions and of timers."""

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
tag = OutputTag("s", Types.STRING())


class PW(ProcessWindowFunction):
    def process(self, key, ctx, it):
        it = list(it)
        yield (tag, "%s@%s" % (key, ctx.window().start))
        yield len(it)


class KCo(KeyedCoProcessFunction):
    def process_element1(self, v, ctx):
        ctx.timer_service().register_event_time_timer(3)
        yield (tag, "1")
        yield v

    def process_element2(self, v, ctx):
        yield (tag, "2")
        yield v

    def on_timer(self, t, ctx):
        yield (tag, "t%d%s" % (t, ctx.get_current_key()))
        yield (t,)


d = MapStateDescriptor("d", Types.STRING(), Types.STRING())


class B(BroadcastProcessFunction):
    def process_element(self, v, ctx):
        yield (tag, "e")
        yield v

    def process_broadcast_element(self, v, ctx):
        yield (tag, "b")
        yield v


class KB(KeyedBroadcastProcessFunction):
    def process_element(self, v, ctx):
        ctx.timer_service().register_event_time_timer(7)
        yield (tag, "e%s" % ctx.get_current_key())
        yield v

    def process_broadcast_element(self, v, ctx):
        yield (tag, "b")
        yield v

    def on_timer(self, t, ctx):
        yield (tag, "t")
        yield (t, ctx.get_current_key())


class MP(MapFunction):
    def map(self, v):
        return (tag, "m")


def build(env, out):
    k = timed(env.from_collection(EV, T3)).key_by(lambda v: v[0])
    o = env.from_collection(["a", "z"], Types.STRING())
    for n, x in [
        ("w", k.window(TumblingEventTimeWindows.of(Time.seconds(2))).process(PW())),
        ("co", k.connect(o.key_by(lambda v: v)).process(KCo())),
        ("b", o.connect(o.broadcast(d)).process(B())),
        ("kb", k.connect(o.broadcast(d)).process(KB())),
        (
            "all",
            timed(env.from_collection(EV, T3))
            .window_all(TumblingEventTimeWindows.of(Time.seconds(2)))
            .process(
                type(
                    "A",
                    (ProcessAllWindowFunction,),
                    {"process": lambda self, ctx, it: iter([(tag, "all"), sum((1 for _ in it))])},
                )()
            ),
        ),
    ]:
        out(x, n)
        out(x.get_side_output(tag), n + " side")
