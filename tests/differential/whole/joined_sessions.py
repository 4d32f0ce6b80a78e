"""Records that join sessions, and the order in which the window function gets them."""

# mode: STREAMING
# parallelism: 1
import random

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


class Elements(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        yield repr((key, window.start, window.end, [element[2] for element in elements]))


RECORD = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])


def build(env, out):
    for number in range(6):
        rng = random.Random(number)
        base = number % 2 * 1_700_000_000_000
        records = [("k", base + rng.randrange(12_000), place) for place in range(14)]
        out(
            env.from_collection(records, RECORD)
            .assign_timestamps_and_watermarks(late())
            .key_by(lambda record: record[0], Types.STRING())
            .window(EventTimeSessionWindows.with_gap(Time.seconds(1)))
            .process(Elements(), Types.STRING()),
            f"sessions {number}",
        )
