"""Timestamps and timers are floats, or are missing."""

# mode: STREAMING
# parallelism: 1
from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, ProcessFunction
from pyflink.datastream.window import TumblingEventTimeWindows


class FloatTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value * 1000.7


class Timers(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield f"{value} at {ctx.timestamp()!r}"
        timers = ctx.timer_service()
        timers.register_event_time_timer(ctx.timestamp() + 0.9)
        timers.register_event_time_timer(value * 10.5)
        timers.register_event_time_timer(7000)
        timers.delete_event_time_timer(7000.4)

    def on_timer(self, timestamp, ctx):
        yield f"timer {timestamp!r} {ctx.timestamp()!r} {ctx.time_domain()}"


class Times(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


class KeyedTimes(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


def build(env, out):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_hours(1))
    numbers = env.from_collection([1, 2, 12, -3])
    timed = numbers.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(FloatTime()))
    out(timed.key_by(lambda v: v).process(Timers(), Types.STRING()), "timers")
    windows = timed.key_by(lambda v: 0).window(TumblingEventTimeWindows.of(Time.seconds(10)))
    out(windows.reduce(lambda a, b: a + b), "windows")
    out(numbers.process(Times()), "no time")
    out(numbers.key_by(lambda v: v).process(KeyedTimes()), "no time by key")
    out(numbers.process(KeyedTimes()), "no time without key")
