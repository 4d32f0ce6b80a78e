"""A strategy gets its assigner by a call whose result is ignored. Types of streams, and times of a collection."""

# mode: STREAMING
# parallelism: 1
import datetime

from pyflink.common import Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessFunction
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.datastream.window import TumblingEventTimeWindows


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Times(ProcessFunction):
    def process_element(self, value, ctx):
        yield value[0], ctx.timestamp()


def build(env, out):
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    strategy.with_timestamp_assigner(Second())
    pairs = env.from_collection(
        [("a", 1000), ("b", 2500), ("a", 9000), ("b", 12000)],
        Types.TUPLE([Types.STRING(), Types.LONG()]),
    )
    timed = pairs.assign_timestamps_and_watermarks(strategy)
    out(timed.process(Times()), "times")
    windows = timed.key_by(lambda pair: pair[0]).window(
        TumblingEventTimeWindows.of(Time.seconds(5))
    )
    out(windows.reduce(lambda left, right: (left[0], left[1] + right[1])), "windows")

    numbers = env.from_source(NumberSequenceSource(1, 3), WatermarkStrategy.no_watermarks(), "n")
    rows = pairs.map(lambda pair: Row(*pair), Types.ROW([Types.STRING(), Types.LONG()]))
    types = [str(stream.get_type()) for stream in (numbers, numbers.filter(bool), rows, pairs)]
    out(numbers.map(lambda number: (number, types[number])), "types")

    moment = datetime.datetime(2024, 5, 6, 7, 8, 9, 123456)
    fields = Types.ROW([Types.SQL_TIMESTAMP(), Types.SQL_TIME()])
    out(env.from_collection([Row(moment, moment.time())], fields), "moments")
