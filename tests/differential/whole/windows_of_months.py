"""Windows of months, of day parts and of several sizes at once; triggers with state."""

# mode: STREAMING
# parallelism: 1
import calendar
from datetime import datetime, timezone

from pyflink.common import Duration, Types, WatermarkStrategy
from pyflink.common.serializer import TypeSerializer
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction
from pyflink.datastream.state import ReducingStateDescriptor, ValueStateDescriptor
from pyflink.datastream.window import (
    CountWindow,
    EventTimeTrigger,
    TimeWindow,
    TimeWindowSerializer,
    Trigger,
    TriggerResult,
    WindowAssigner,
    CountWindowSerializer,
)

DAY = 86_400_000
EVENTS = [
    ("a", datetime(2024, 1, 31, 23, tzinfo=timezone.utc), 1),
    ("b", datetime(2024, 2, 1, tzinfo=timezone.utc), 2),
    ("a", datetime(2024, 2, 29, 12, tzinfo=timezone.utc), 3),
    ("a", datetime(2024, 1, 1, tzinfo=timezone.utc), 4),
    ("b", datetime(2024, 2, 15, tzinfo=timezone.utc), 5),
    ("a", datetime(2023, 12, 31, 23, 59, 59, 999000, tzinfo=timezone.utc), 6),
    ("a", datetime(2024, 2, 29, 13, tzinfo=timezone.utc), 7),
]


def millis(moment):
    return int(moment.timestamp() * 1000)


class Months(WindowAssigner[tuple, TimeWindow]):
    def assign_windows(self, element, timestamp, context):
        moment = datetime.fromtimestamp(timestamp / 1000, timezone.utc)
        days = calendar.monthrange(moment.year, moment.month)[1]
        start = millis(datetime(moment.year, moment.month, 1, tzinfo=timezone.utc))
        return [TimeWindow(start, start + days * DAY)]

    def get_default_trigger(self, env):
        return EventTimeTrigger()

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        return TimeWindowSerializer()

    def is_event_time(self):
        return True


class DayAndWeek(Months):
    """Each record is in the window of its day, and of seven days."""

    def __init__(self, sizes=(1, 7)):
        self.sizes = sizes

    def assign_windows(self, element, timestamp, context):
        for size in self.sizes:
            start = timestamp // (size * DAY) * size * DAY
            yield TimeWindow(start, start + size * DAY)


class Remainders(WindowAssigner[tuple, CountWindow]):
    def assign_windows(self, element, timestamp, context):
        return [CountWindow(element[2] % 3), CountWindow(100)]

    def get_default_trigger(self, env):
        return EveryN(2)

    def get_window_serializer(self):
        return CountWindowSerializer()

    def is_event_time(self):
        return False


class EveryN(Trigger):
    def __init__(self, n):
        self.n = n
        self.count = ReducingStateDescriptor("count", lambda a, b: a + b, Types.INT())

    def on_element(self, element, timestamp, window, ctx):
        count = ctx.get_partitioned_state(self.count)
        count.add(1)
        if count.get() >= self.n:
            count.clear()
            return TriggerResult.FIRE_AND_PURGE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        ctx.merge_partitioned_state(self.count)

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.count).clear()


class Doubling(Trigger):
    """Fires at the 1st, 2nd, 4th, 8th record, and at the end of the window."""

    def __init__(self):
        self.next = ValueStateDescriptor("next", Types.INT())
        self.seen = ValueStateDescriptor("seen", Types.INT())

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp())
        seen, due = ctx.get_partitioned_state(self.seen), ctx.get_partitioned_state(self.next)
        seen.update((seen.value() or 0) + 1)
        if seen.value() >= (due.value() or 1):
            due.update((due.value() or 1) * 2)
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return (
            TriggerResult.FIRE_AND_PURGE
            if time == window.max_timestamp()
            else TriggerResult.CONTINUE
        )

    def on_merge(self, window, ctx):
        pass

    def clear(self, window, ctx):
        ctx.delete_event_time_timer(window.max_timestamp())
        ctx.get_partitioned_state(self.next).clear()
        ctx.get_partitioned_state(self.seen).clear()


class At(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return millis(value[1])


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        if isinstance(window, CountWindow):
            yield key, window.id, [value[2] for value in elements]
        else:
            yield key, window.start // 1000, window.end // 1000, [value[2] for value in elements]

    def clear(self, context):
        pass


def build(env, out):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_days(365))
    timed = env.from_collection(EVENTS).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(At())
    )
    keyed = timed.key_by(lambda v: v[0])
    out(keyed.window(Months()).process(Show()), "months")
    out(keyed.window(DayAndWeek()).process(Show()), "days and weeks")
    out(keyed.window(DayAndWeek((1, 1))).process(Show()), "twice")
    out(keyed.window(Months()).trigger(Doubling()).process(Show()), "doubling")
    out(keyed.window(Months()).trigger(EveryN(3)).process(Show()), "threes")
    out(keyed.window(Remainders()).process(Show()), "remainders")
    out(
        timed.window_all(Months())
        .reduce(lambda a, b: (a[0] + b[0], a[1], a[2] + b[2]))
        .map(lambda v: (v[0], v[2])),
        "all",
    )
    out(
        keyed.window(Months())
        .allowed_lateness(DAY)
        .reduce(lambda a, b: (a[0], b[1], a[2] * 10 + b[2]))
        .map(lambda v: (v[0], v[2])),
        "reduced",
    )
