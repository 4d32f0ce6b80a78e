"""Timers at 0, at negative times, in the past, registered twice, deleted in on_timer, and chains of timers."""

# mode: STREAMING
# parallelism: 1
from pyflink.common import Duration, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, TimeDomain
from pyflink.datastream.state import ListStateDescriptor, ValueStateDescriptor


class At(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class AtZero(KeyedProcessFunction):
    def process_element(self, value, ctx):
        service = ctx.timer_service()
        for time in (0, -1, value[1], value[1] + 1, 0, -(10**12), 10**15):
            service.register_event_time_timer(time)
        yield "element", value[0], ctx.timestamp(), service.current_watermark()

    def on_timer(self, timestamp, ctx):
        yield "timer", ctx.get_current_key(), timestamp, ctx.time_domain() == TimeDomain.EVENT_TIME


class Chain(KeyedProcessFunction):
    """Each timer registers the next one, five in all."""

    def open(self, ctx):
        self.left = ctx.get_state(ValueStateDescriptor("left", Types.INT()))

    def process_element(self, value, ctx):
        if self.left.value() is None:
            self.left.update(5)
            ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp, ctx):
        left = self.left.value() - 1
        yield ctx.get_current_key(), timestamp, left, ctx.timestamp()
        if left:
            self.left.update(left)
            ctx.timer_service().register_event_time_timer(timestamp + 10)
        else:
            self.left.clear()


class AtTheEnd(KeyedProcessFunction):
    """Gathers all records of a key until the input ends."""

    def open(self, ctx):
        self.all = ctx.get_list_state(ListStateDescriptor("all", Types.LONG()))

    def process_element(self, value, ctx):
        self.all.add(value[1])
        ctx.timer_service().register_event_time_timer(2**63 - 1)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), sorted(self.all), timestamp == 2**63 - 1


class Deleted(KeyedProcessFunction):
    """Every timer but one is deleted before any fires."""

    def process_element(self, value, ctx):
        service = ctx.timer_service()
        service.delete_event_time_timer(12345)
        service.register_event_time_timer(value[1] + 1000)
        service.register_event_time_timer(value[1] + 2000)
        service.delete_event_time_timer(value[1] + 1000)
        service.register_processing_time_timer(10**17)
        service.delete_processing_time_timer(10**17)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp


class NoTimestamps(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(77)
        yield value[0], ctx.timer_service().current_watermark()

    def on_timer(self, timestamp, ctx):
        yield "timer", timestamp, ctx.timer_service().current_watermark()


def build(env, out):
    events = env.from_collection(
        [("a", 0), ("b", -5), ("a", 100), ("b", 7), ("a", -(2**40))],
        Types.TUPLE([Types.STRING(), Types.LONG()]),
    )
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_hours(1)
    ).with_timestamp_assigner(At())
    timed = events.assign_timestamps_and_watermarks(strategy).key_by(lambda v: v[0], Types.STRING())
    out(timed.process(AtZero()), "zero")
    out(timed.process(Chain()), "chain")
    out(timed.process(AtTheEnd()), "end")
    out(timed.process(Deleted()), "deleted")
    out(events.key_by(lambda v: v[0]).process(NoTimestamps()), "untimed")
