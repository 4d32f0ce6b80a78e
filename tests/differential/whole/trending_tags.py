"""The two most frequent tags of each sliding window."""

# mode: STREAMING
# parallelism: 1
import re
from collections import Counter

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction
from pyflink.datastream.functions import AggregateFunction, ProcessWindowFunction
from pyflink.datastream.state import MapStateDescriptor
from pyflink.datastream.window import SlidingEventTimeWindows

POSTS = [
    (0, "good #morning #World"),
    (1200, "more #coffee please"),
    (4000, "#world of #coffee"),
    (5500, "#Coffee #coffee #tea"),
    (9800, "nothing to say"),
    (12000, "#tea"),
]
TAG = re.compile(r"#(\w+)")


class PostTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[0]


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        return a + b


class Name(ProcessWindowFunction):
    def process(self, key, context, elements):
        return [(context.window().end, key, next(iter(elements)))]


class Top(KeyedProcessFunction):
    def open(self, runtime_context):
        self.counts = runtime_context.get_map_state(
            MapStateDescriptor("counts", Types.STRING(), Types.LONG())
        )

    def process_element(self, value, ctx):
        self.counts.put(value[1], value[2])
        ctx.timer_service().register_event_time_timer(value[0])

    def on_timer(self, timestamp, ctx):
        counts = Counter(dict(self.counts.items()))
        self.counts.clear()
        best = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:2]
        yield f"{ctx.get_current_key()}: {best}"


def build(env, out):
    tags = (
        env.from_collection(POSTS, Types.TUPLE([Types.LONG(), Types.STRING()]))
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(PostTime())
        )
        .flat_map(lambda p: [tag.lower() for tag in TAG.findall(p[1])], Types.STRING())
    )
    counts = (
        tags.key_by(lambda tag: tag)
        .window(SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(5)))
        .aggregate(
            Count(),
            Name(),
            accumulator_type=Types.LONG(),
            output_type=Types.TUPLE([Types.LONG(), Types.STRING(), Types.LONG()]),
        )
    )
    out(counts.key_by(lambda c: c[0], key_type=Types.LONG()).process(Top(), Types.STRING()), "top")
