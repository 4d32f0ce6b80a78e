"""The top products of each window: counts by window, then a ranking by a KeyedProcessFunction with list state and timers."""

# mode: STREAMING
# parallelism: 2
import heapq

from pyflink.common import Duration, Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, KeyedProcessFunction, ProcessWindowFunction
from pyflink.datastream.state import ListStateDescriptor, ValueStateDescriptor
from pyflink.datastream.window import SlidingEventTimeWindows, TimeWindow, TumblingEventTimeWindows

VIEW = Types.TUPLE([Types.STRING(), Types.STRING(), Types.LONG()])


def count():
    return Types.ROW_NAMED(["item", "end", "count"], [Types.STRING(), Types.LONG(), Types.LONG()])


VIEWS = [(f"u{n % 3}", f"item-{n * n % 7}", n * 700 + (n % 4) * 300) for n in range(30)]


class ViewTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp: int) -> int:
        return value[2]


class CountAgg(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class WindowResult(ProcessWindowFunction):
    def process(self, key, context: "ProcessWindowFunction.Context", elements):
        window: TimeWindow = context.window()
        yield Row(item=key, end=window.end, count=next(iter(elements)))


class TopItems(KeyedProcessFunction):
    def __init__(self, size):
        self.size = size
        self.items = None

    def open(self, runtime_context):
        self.items = runtime_context.get_list_state(ListStateDescriptor("items", count()))
        self.fired = runtime_context.get_state(ValueStateDescriptor("fired", Types.INT()))

    def process_element(self, value, ctx):
        self.items.add(value)
        ctx.timer_service().register_event_time_timer(value.end + 1)

    def on_timer(self, timestamp, ctx):
        items = list(self.items.get())
        self.items.clear()
        self.fired.update((self.fired.value() or 0) + 1)
        best = heapq.nsmallest(self.size, items, key=lambda row: (-row.count, row.item))
        for place, row in enumerate(best, 1):
            yield ctx.get_current_key(), place, row.item, row["count"], self.fired.value()


def build(env, out):
    env.set_parallelism(1)
    views = env.from_collection(VIEWS, VIEW)
    timed = views.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_seconds(30)
        ).with_timestamp_assigner(ViewTime())
    )
    env.set_parallelism(2)
    for name, windows in {
        "tumbling": TumblingEventTimeWindows.of(Time.seconds(5)),
        "sliding": SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(5)),
        "offset": TumblingEventTimeWindows.of(Time.seconds(5), Time.milliseconds(1500)),
    }.items():
        counts = (
            timed.key_by(lambda view: view[1], Types.STRING())
            .window(windows)
            .aggregate(CountAgg(), WindowResult(), Types.LONG(), count())
        )
        out(counts, f"counts {name}")
        top = counts.key_by(lambda row: row.end, Types.LONG()).process(
            TopItems(2),
            Types.TUPLE([Types.LONG(), Types.INT(), Types.STRING(), Types.LONG(), Types.INT()]),
        )
        out(top, name)
