"""The timestamps of the results of windows: at the end, early, by counts, by timers of triggers, and late."""

# mode: STREAMING
# parallelism: 1
from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    AggregateFunction,
    KeyedProcessFunction,
    ProcessFunction,
    ProcessWindowFunction,
)
from pyflink.datastream.window import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
)

EVENTS = [
    ("a", 1, 100),
    ("a", 2, 2500),
    ("b", 3, 700),
    ("a", 4, 1200),
    ("a", 5, 4100),
    ("b", 6, 900),
    ("a", 7, 300),
]
EVENT = Types.TUPLE([Types.STRING(), Types.INT(), Types.LONG()])


class At(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2]


class Stamp(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


class Middle(Trigger):
    """Fires in the middle of the window and at the end."""

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer((window.start + window.end) // 2)
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.FIRE

    def on_merge(self, window, ctx):
        pass

    def clear(self, window, ctx):
        pass


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, [value[1] for value in elements]


class Sum(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        return a + b


class Later(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[2] + 5000)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key()


def build(env, out):
    events = env.from_collection(EVENTS, EVENT).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_minutes(1)
        ).with_timestamp_assigner(At())
    )
    keyed = events.key_by(lambda v: v[0], Types.STRING())
    tumbling = TumblingEventTimeWindows.of(Time.seconds(2))
    sliding = SlidingEventTimeWindows.of(Time.seconds(2), Time.seconds(1))
    sessions = EventTimeSessionWindows.with_gap(Time.seconds(1))
    reducing = lambda a, b: (a[0], a[1] + b[1], max(a[2], b[2]))
    streams = {
        "end": keyed.window(tumbling).reduce(reducing),
        "sliding": keyed.window(sliding).aggregate(Sum()),
        "sessions": keyed.window(sessions).process(Show()),
        "counted": keyed.window(tumbling).trigger(CountTrigger.of(2)).process(Show()),
        "counted sums": keyed.window(sliding).trigger(CountTrigger.of(2)).aggregate(Sum()),
        "purged": keyed.window(tumbling)
        .trigger(PurgingTrigger.of(CountTrigger.of(1)))
        .reduce(reducing),
        "middle": keyed.window(tumbling).trigger(Middle()).process(Show()),
        "count window": keyed.count_window(2).reduce(reducing),
        "count window shown": keyed.count_window(2).process(Show()),
        "count sliding": keyed.count_window(3, 1).aggregate(Sum()),
        "global": keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(3)).process(Show()),
        "all": events.window_all(tumbling).reduce(reducing),
        "reduce": keyed.reduce(reducing),
        "timer": keyed.process(Later()),
        "flat map": keyed.flat_map(lambda v: [v[1]] * 2),
    }
    for name, stream in streams.items():
        out(stream.process(Stamp()), name)
    out(
        keyed.window(tumbling)
        .trigger(CountTrigger.of(1))
        .reduce(reducing)
        .key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .process(Show()),
        "windows after early results",
    )
    out(
        keyed.count_window(2)
        .reduce(reducing)
        .key_by(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .process(Show()),
        "windows after counts",
    )
