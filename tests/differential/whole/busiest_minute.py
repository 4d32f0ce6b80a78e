"""The whole traffic of each minute, and the minutes in which it was largest so far."""

# mode: STREAMING
# parallelism: 2
from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import ProcessAllWindowFunction, ReduceFunction
from pyflink.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows

PACKETS = [
    ("a", 10, 100),
    ("b", 50, 20),
    ("a", 61, 5),
    ("c", 200, 400),
    ("a", 210, 1),
    ("b", 119, 7),
]


class PacketTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1] * 1000


class Traffic(ProcessAllWindowFunction):
    def process(self, context, elements):
        elements = list(elements)
        yield context.window().start // 60000, len(elements), sum(e[2] for e in elements)


class Larger(ReduceFunction):
    def reduce(self, value1, value2):
        return value1 if value1[2] >= value2[2] else value2


def build(env, out):
    packets = env.from_collection(
        PACKETS, Types.TUPLE([Types.STRING(), Types.INT(), Types.INT()])
    ).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_hours(1)
        ).with_timestamp_assigner(PacketTime())
    )
    minutes = packets.window_all(TumblingEventTimeWindows.of(Time.minutes(1))).process(Traffic())
    out(minutes, "minutes")
    out(minutes.key_by(lambda m: "all").reduce(Larger()), "busiest")
    out(
        packets.key_by(lambda p: p[0])
        .window(EventTimeSessionWindows.with_gap(Time.seconds(55)))
        .reduce(lambda a, b: (a[0], min(a[1], b[1]), a[2] + b[2])),
        "sessions",
    )
