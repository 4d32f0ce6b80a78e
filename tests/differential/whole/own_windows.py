"""Window assigners of the program."""

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


class Daily(TumblingEventTimeWindows):
    pass


class Fixed(WindowAssigner):
    def assign_windows(self, element, timestamp, ctx):
        return [TimeWindow(0, 1000 * element[2]), TimeWindow(0, 5000)]

    def get_default_trigger(self, env):
        return EventTimeTrigger()

    def get_window_serializer(self):
        return TimeWindowSerializer()

    def is_event_time(self):
        return True


class Counted(WindowAssigner):
    def assign_windows(self, element, timestamp, ctx):
        return [CountWindow(element[2] // 2)]

    def get_default_trigger(self, env):
        return CountTrigger.of(2)

    def get_window_serializer(self):
        return CountWindowSerializer()

    def is_event_time(self):
        return False


class PW(ProcessWindowFunction):
    def process(self, key, ctx, elements):
        yield key, str(ctx.window()), [e[2] for e in elements]


T3 = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
ev = [("a", 100, 1), ("a", 900, 2), ("a", 2500, 3), ("a", 1800, 4)]


def build(env, out):
    k = (
        env.from_collection(ev, T3)
        .assign_timestamps_and_watermarks(late())
        .key_by(lambda v: v[0], Types.STRING())
    )
    out(k.window(Daily(1000, 0)).process(PW()), "daily")
    out(k.window(Fixed()).process(PW()), "fixed")
    out(k.window(Counted()).process(PW()), "counted")
