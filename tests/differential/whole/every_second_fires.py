"""A trigger of one's own: windows fire at every second record, and purge at their end."""

# mode: STREAMING
# parallelism: 1
from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import ProcessWindowFunction
from pyflink.datastream.state import ReducingStateDescriptor
from pyflink.datastream.window import (
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
)

READINGS = [("a", 1, 5), ("a", 2, 6), ("a", 3, 7), ("b", 3, 1), ("a", 12, 8), ("a", 13, 9)]


class ReadingTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1] * 1000


class EverySecond(Trigger):
    def __init__(self):
        self.count = ReducingStateDescriptor("count", lambda a, b: a + b, Types.LONG())

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp())
        count = ctx.get_partitioned_state(self.count)
        count.add(1)
        if count.get() % 2 == 0:
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        if time == window.max_timestamp():
            return TriggerResult.FIRE_AND_PURGE
        return TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        pass

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.count).clear()
        ctx.delete_event_time_timer(window.max_timestamp())


class Content(ProcessWindowFunction):
    def process(self, key, context, elements):
        values = [element[2] for element in elements]
        yield f"{key} {context.window().start} {values}"


def build(env, out):
    readings = env.from_collection(
        READINGS, Types.TUPLE([Types.STRING(), Types.INT(), Types.INT()])
    ).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_minutes(5)
        ).with_timestamp_assigner(ReadingTime())
    )
    out(
        readings.key_by(lambda r: r[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .trigger(EverySecond())
        .process(Content(), Types.STRING()),
        "windows",
    )
