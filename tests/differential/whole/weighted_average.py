"""The weighted average price of a share in each window, with an accumulator of two numbers."""

# mode: STREAMING
# parallelism: 2
from typing import Iterable, Tuple

from pyflink.common import Duration, Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import AggregateFunction, ProcessWindowFunction
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows

TRADES = [
    ("ACME", 1_000, 10.0, 100),
    ("ACME", 2_500, 11.0, 300),
    ("BOLT", 3_000, 99.5, 1),
    ("ACME", 9_999, 12.0, 100),
    ("ACME", 10_000, 20.0, 7),
    ("BOLT", 25_000, 101.25, 3),
    ("BOLT", 21_000, 100.75, 1),
]


class TradeTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp) -> int:
        return value[1]


class Average(AggregateFunction):
    def create_accumulator(self) -> Tuple[float, int]:
        return 0.0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[2] * value[3], accumulator[1] + value[3]

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class WithWindow(ProcessWindowFunction):
    def process(
        self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[float]
    ) -> Iterable[Row]:
        window: TimeWindow = context.window()
        yield Row(key, window.start, window.end, window.max_timestamp(), list(elements)[0])


def build(env, out):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_seconds(60)
    ).with_timestamp_assigner(TradeTime())
    trades = env.from_collection(
        TRADES, Types.TUPLE([Types.STRING(), Types.LONG(), Types.DOUBLE(), Types.INT()])
    ).assign_timestamps_and_watermarks(strategy)
    averages = (
        trades.key_by(lambda t: t[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .aggregate(
            Average(),
            window_function=WithWindow(),
            accumulator_type=Types.TUPLE([Types.DOUBLE(), Types.INT()]),
            output_type=Types.ROW(
                [Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG(), Types.FLOAT()]
            ),
        )
    )
    out(averages, "averages")
