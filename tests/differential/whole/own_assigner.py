"""An assigner and a trigger of the program."""

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


class Three(WindowAssigner):
    def assign_windows(self, element, timestamp, context):
        return [
            TimeWindow(timestamp // 3000 * 3000, timestamp // 3000 * 3000 + 3000),
            TimeWindow(0, 10000),
        ]

    def get_default_trigger(self, env):
        return EventTimeTrigger.create()

    def get_window_serializer(self):
        return TimeWindowSerializer()

    def is_event_time(self):
        return True


class Every2(Trigger):
    def on_element(self, element, timestamp, window, ctx):
        st = ctx.get_partitioned_state(ValueStateDescriptor("n", Types.INT()))
        n = (st.value() or 0) + 1
        st.update(n)
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.FIRE if n % 2 == 0 else TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        pass

    def clear(self, window, ctx):
        ctx.get_partitioned_state(ValueStateDescriptor("n", Types.INT())).clear()
        ctx.delete_event_time_timer(window.max_timestamp())


class PW(ProcessWindowFunction):
    def process(self, key, ctx, it):
        yield (key, ctx.window().start, ctx.window().end, [e[2] for e in it])

    def clear(self, ctx):
        pass


def build(env, out):
    k = timed(env.from_collection(EV, T3)).key_by(lambda v: v[0])
    out(k.window(Three()).process(PW()), "own")
    out(k.window(Three()).trigger(Every2()).process(PW()), "every")
    out(k.window(Three()).trigger(PurgingTrigger.of(Every2())).process(PW()), "purge")
    out(
        k.window(TumblingEventTimeWindows.of(Time.seconds(3)))
        .trigger(Every2())
        .aggregate(
            type(
                "C",
                (AggregateFunction,),
                {
                    "create_accumulator": lambda s: 0,
                    "add": lambda s, v, a: a + 1,
                    "get_result": lambda s, a: a,
                    "merge": lambda s, a, b: a + b,
                },
            )()
        ),
        "agg",
    )
    out(
        k.window(TumblingEventTimeWindows.of(Time.seconds(2)))
        .trigger(ContinuousEventTimeTrigger.of(Time.milliseconds(10000)))
        .process(PW()),
        "cet",
    )
