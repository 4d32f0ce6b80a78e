"""Windows: offsets and negative times, lateness, own triggers with timers and state, accumulators of many kinds."""

# mode: STREAMING
# parallelism: 1
from collections import Counter, deque

from pyflink.common import Duration, Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, OutputTag, ProcessWindowFunction, ReduceFunction
from pyflink.datastream.functions import AllWindowFunction, ProcessAllWindowFunction, WindowFunction
from pyflink.datastream.state import (
    ListStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from pyflink.datastream.window import (
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    CountWindow,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    GlobalWindow,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TimeWindow,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
)

EVENTS = [
    ("a", -1500, 1),
    ("b", -1, 2),
    ("a", 0, 3),
    ("a", 999, 4),
    ("b", 1000, 5),
    ("a", 1001, 6),
    ("a", -1500, 7),
    ("c", 10**12, 8),
    ("b", 2999, 9),
]
EVENT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
BIG = OutputTag("big", Types.INT())


def event():
    return Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])


LATE = OutputTag("late", event())


class At(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Words(AggregateFunction):
    """A Counter."""

    def create_accumulator(self):
        return Counter()

    def add(self, value, accumulator):
        accumulator[value[0]] += value[2]
        return accumulator

    def get_result(self, accumulator):
        return accumulator.most_common()

    def merge(self, a, b):
        return a + b


class LastTwo(AggregateFunction):
    """A deque."""

    def create_accumulator(self):
        return deque(maxlen=2)

    def add(self, value, accumulator):
        accumulator.append(value[2])
        return accumulator

    def get_result(self, accumulator):
        return list(accumulator)

    def merge(self, a, b):
        a.extend(b)
        return a


class Text(AggregateFunction):
    """An immutable accumulator, and None as a result."""

    def create_accumulator(self):
        return ""

    def add(self, value, accumulator):
        return accumulator + str(value[2])

    def get_result(self, accumulator):
        return accumulator if len(accumulator) > 1 else "short"

    def merge(self, a, b):
        return "".join(sorted(a + b))


class Early(Trigger):
    """Fires each time when a value is even, and at the end of the window."""

    def on_element(self, element, timestamp, window, ctx):
        if ctx.get_current_watermark() >= window.max_timestamp():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        evens = ctx.get_partitioned_state(ValueStateDescriptor("evens", Types.INT()))
        if element[2] % 2 == 0:
            evens.update((evens.value() or 0) + 1)
            return TriggerResult.FIRE if evens.value() % 2 else TriggerResult.FIRE_AND_PURGE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        raise NotImplementedError

    def clear(self, window, ctx):
        ctx.delete_event_time_timer(window.max_timestamp())
        ctx.get_partitioned_state(ValueStateDescriptor("evens", Types.INT())).clear()


class Show(ProcessWindowFunction):
    def __init__(self, is_split=False):
        self.is_split = is_split

    def open(self, ctx):
        self.subtask = ctx.get_index_of_this_subtask()

    def process(self, key, context, elements):
        window = context.window()
        found = [
            element[2] if isinstance(element, tuple) and len(element) == 3 else element
            for element in elements
        ]
        if self.is_split and len(found) > 2:
            yield BIG, len(found)
        yield (
            key,
            repr(window)
            if isinstance(window, CountWindow)
            else (window.start, window.end)
            if isinstance(window, TimeWindow)
            else "global",
            found,
        )

    def clear(self, context):
        pass


class Calls(ProcessWindowFunction):
    def process(self, key, context, elements):
        calls = context.global_state().get_reducing_state(
            ReducingStateDescriptor("all", lambda a, b: a + b, Types.INT())
        )
        calls.add(1)
        here = context.window_state().get_list_state(ListStateDescriptor("here", Types.INT()))
        here.add(calls.get())
        yield Row(key, calls.get(), list(here.get()), sum(e[2] for e in elements))

    def clear(self, context):
        context.window_state().get_list_state(ListStateDescriptor("here", Types.INT())).clear()


class AllOfThem(ProcessAllWindowFunction):
    def process(self, context, elements):
        count = context.global_state().get_state(ValueStateDescriptor("n", Types.INT()))
        count.update((count.value() or 0) + 1)
        yield count.value(), context.window().start, sorted(e[2] for e in elements)


class Longest(ReduceFunction):
    def reduce(self, value1, value2):
        return value1 if value1[2] >= value2[2] else value2


def build(env, out):
    events = env.from_collection(EVENTS, EVENT).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_days(20_000)
        ).with_timestamp_assigner(At())
    )
    keyed = events.key_by(lambda v: v[0], Types.STRING())
    second = TumblingEventTimeWindows.of(Time.seconds(1))
    shifted = TumblingEventTimeWindows.of(Time.seconds(2), Time.milliseconds(-300))
    sliding = SlidingEventTimeWindows.of(
        Time.seconds(2), Time.milliseconds(700), Time.milliseconds(100)
    )
    big = []
    for name, assigner in {
        "second": second,
        "shifted": shifted,
        "sliding": sliding,
        "gaps": EventTimeSessionWindows.with_gap(Time.milliseconds(1001)),
    }.items():
        windows = keyed.window(assigner)
        shown = windows.process(Show(is_split=True))
        out(shown, name)
        big.append((name, shown))
        out(keyed.window(assigner).aggregate(Words(), Show()), f"words {name}")
        out(
            keyed.window(assigner).aggregate(
                LastTwo(), accumulator_type=Types.PICKLED_BYTE_ARRAY()
            ),
            f"last {name}",
        )
        out(keyed.window(assigner).aggregate(Text(), Show(), Types.STRING()), f"text {name}")
        out(keyed.window(assigner).reduce(Longest(), Show()), f"longest {name}")
        out(events.window_all(assigner).process(AllOfThem()), f"all {name}")
        out(events.window_all(assigner).aggregate(Words()), f"all words {name}")
    late = keyed.window(second).allowed_lateness(1000).side_output_late_data(LATE)
    out(late.process(Calls()), "calls")
    out(late.reduce(Longest()).get_side_output(LATE), "late")
    out(keyed.window(shifted).trigger(Early()).process(Show()), "early")
    out(keyed.window(sliding).trigger(Early()).aggregate(Text(), Show()), "early text")
    out(
        keyed.window(shifted)
        .trigger(PurgingTrigger.of(EventTimeTrigger.create()))
        .process(Calls()),
        "purged",
    )
    out(keyed.window(second).trigger(CountTrigger.of(2)).process(Calls()), "counted calls")
    out(keyed.window(CountTumblingWindowAssigner.of(2)).process(Show()), "count")
    out(keyed.window(CountSlidingWindowAssigner.of(3, 2)).process(Show()), "count sliding")
    out(keyed.count_window(3, 1).process(Show()), "count window")
    out(keyed.count_window(2).aggregate(LastTwo()), "count aggregate")
    out(keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(2)).process(Show()), "global")
    for name, shown in big:
        out(shown.get_side_output(BIG), f"big {name}")
