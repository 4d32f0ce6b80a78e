"""Amounts are converted by the rate of their currency that holds at their time."""

# mode: STREAMING
# parallelism: 2
import bisect

from pyflink.common import Duration, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedCoProcessFunction
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor

RATES = [("EUR", 0, 1.1), ("GBP", 0, 1.3), ("EUR", 5000, 1.25), ("EUR", 9000, 1.0)]
AMOUNTS = [
    ("o1", "EUR", 100, 4999),
    ("o2", "EUR", 100, 5000),
    ("o3", "GBP", 20, 8000),
    ("o4", "YEN", 5, 100),
    ("o5", "EUR", 3, 20000),
]


class TimeOf(TimestampAssigner):
    def __init__(self, field):
        self.field = field

    def extract_timestamp(self, value, record_timestamp):
        return value[self.field]


class Convert(KeyedCoProcessFunction):
    def open(self, runtime_context):
        self.rates = runtime_context.get_map_state(
            MapStateDescriptor("rates", Types.LONG(), Types.DOUBLE())
        )
        self.waiting = runtime_context.get_list_state(
            ListStateDescriptor(
                "waiting",
                Types.TUPLE([Types.STRING(), Types.STRING(), Types.INT(), Types.LONG()]),
            )
        )

    def process_element1(self, value, ctx):
        self.waiting.add(value)
        ctx.timer_service().register_event_time_timer(ctx.timestamp())

    def process_element2(self, value, ctx):
        self.rates.put(value[1], value[2])

    def on_timer(self, timestamp, ctx):
        starts = sorted(self.rates.keys())
        later = []
        for order in self.waiting.get():
            if order[3] > timestamp:
                later.append(order)
                continue
            at = bisect.bisect_right(starts, order[3])
            if at == 0:
                yield order[0], None
            else:
                yield order[0], round(order[2] * self.rates.get(starts[at - 1]), 6)
        self.waiting.update(later)


def build(env, out):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(60))
    rates = env.from_collection(
        RATES, Types.TUPLE([Types.STRING(), Types.LONG(), Types.DOUBLE()])
    ).assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(TimeOf(1)))
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(60))
    amounts = env.from_collection(
        AMOUNTS, Types.TUPLE([Types.STRING(), Types.STRING(), Types.INT(), Types.LONG()])
    ).assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(TimeOf(3)))
    converted = amounts.connect(rates).key_by(lambda a: a[1], lambda r: r[0]).process(Convert())
    out(converted, "converted")
