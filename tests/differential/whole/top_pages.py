"""The two pages with most views per minute: a count per page, then a ranking per window."""

# mode: STREAMING
# parallelism: 1
from pyflink.common import Duration, Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    AggregateFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ReduceFunction,
)
from pyflink.datastream.functions import (
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from pyflink.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from pyflink.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)


class Seconds(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2] * 1000


IN_ORDER = WatermarkStrategy.for_bounded_out_of_orderness(
    Duration.of_minutes(60)
).with_timestamp_assigner(Seconds())


VISITS = [
    ("u1", "/", 0),
    ("u1", "/cart", 5),
    ("u2", "/", 7),
    ("u1", "/pay", 12),
    ("u2", "/help", 60),
    ("u1", "/", 100),
    ("u3", "/", 101),
    ("u2", "/", 66),
    ("u1", "/cart", 108),
]
VISIT = Types.TUPLE([Types.STRING(), Types.STRING(), Types.LONG()])


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, acc):
        return acc + 1

    def get_result(self, acc):
        return acc

    def merge(self, a, b):
        return a + b


class WithEnd(ProcessWindowFunction):
    def process(self, key, context, elements):
        for count in elements:
            yield context.window().end, key, count


class Top(KeyedProcessFunction):
    def open(self, ctx):
        self.pages = ctx.get_list_state(
            ListStateDescriptor("pages", Types.TUPLE([Types.LONG(), Types.STRING(), Types.LONG()]))
        )

    def process_element(self, value, ctx):
        self.pages.add(value)
        ctx.timer_service().register_event_time_timer(value[0] + 1)

    def on_timer(self, timestamp, ctx):
        ranked = sorted(self.pages.get(), key=lambda page: (-page[2], page[1]))
        self.pages.clear()
        yield "%d %s" % (ctx.get_current_key(), [(page, count) for _, page, count in ranked[:2]])


def build(env, out):
    counts = (
        env.from_collection(VISITS, VISIT)
        .assign_timestamps_and_watermarks(IN_ORDER)
        .key_by(lambda v: v[1], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.minutes(1)))
        .aggregate(
            Count(),
            window_function=WithEnd(),
            accumulator_type=Types.LONG(),
            output_type=Types.TUPLE([Types.LONG(), Types.STRING(), Types.LONG()]),
        )
    )
    out(
        counts.key_by(lambda c: c[0], key_type=Types.LONG()).process(
            Top(), output_type=Types.STRING()
        ),
        "top",
    )
