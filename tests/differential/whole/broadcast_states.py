"""Two broadcast states, which timers read."""

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


D = MapStateDescriptor("rules", Types.STRING(), Types.INT())
D2 = MapStateDescriptor("other", Types.INT(), Types.STRING())


class B(KeyedBroadcastProcessFunction):
    def open(self, ctx):
        self.pending = ctx.get_list_state(ListStateDescriptor("p", Types.INT()))

    def process_element(self, v, ctx):
        st = ctx.get_broadcast_state(D)
        self.pending.add(v[1])
        ctx.timer_service().register_event_time_timer(10**12)
        try:
            st.put("x", 1)
            yield "writable"
        except Exception as error:
            yield type(error).__name__

    def process_broadcast_element(self, v, ctx):
        st = ctx.get_broadcast_state(D)
        st.put(v[0], v[1])
        ctx.get_broadcast_state(D2).put(v[1], v[0])
        if v[1] == 3:
            st.remove("b")
        yield "bc", ctx.timestamp()

    def on_timer(self, ts, ctx):
        st = ctx.get_broadcast_state(D)
        yield (
            ts,
            ctx.get_current_key(),
            sorted(self.pending.get()),
            sorted(st.items()),
            sorted(st.keys()),
            sorted(st.values()),
            st.contains("a"),
            st.get("b"),
            st.is_empty(),
            sorted(ctx.get_broadcast_state(D2).items()),
            str(ctx.time_domain()),
        )


def build(env, out):
    a = env.from_collection(
        [("x", 1), ("y", 2), ("x", 3)], Types.TUPLE([Types.STRING(), Types.LONG()])
    ).assign_timestamps_and_watermarks(late())
    b = env.from_collection(
        [("a", 1), ("b", 2), ("c", 3)], Types.TUPLE([Types.STRING(), Types.INT()])
    ).assign_timestamps_and_watermarks(late())
    out(a.key_by(lambda v: v[0]).connect(b.broadcast(D, D2)).process(B()), "main1")

    class U(BroadcastProcessFunction):
        def process_element(self, v, ctx):
            yield "e", v, ctx.timestamp()

        def process_broadcast_element(self, v, ctx):
            ctx.get_broadcast_state(MapStateDescriptor("nope", Types.STRING(), Types.INT()))
