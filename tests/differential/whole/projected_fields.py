"""Some fields of each record, projected."""

# mode: STREAMING
# parallelism: 1
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


def build(env, out):
    record = Types.TUPLE([Types.INT(), Types.STRING(), Types.DOUBLE()])
    records = env.from_collection([(1, "a", 2.0), (2, "b", 0.5)], record)
    out(records.project(2, 0), "two")
    out(records.project(1).map(lambda v: repr(v), Types.STRING()), "one")
    swapped = records.map(lambda v: (v[0], v[1], v[2] + 1), record).project(1, 2, 0)
    out(swapped.key_by(lambda v: v[0]).sum(1), "sums")
