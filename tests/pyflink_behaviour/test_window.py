"""Windows in whole programs: every kind of assigner, trigger, evictor and function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, job_of, run_form, run_job, seen

from opchain.common import Time, Types, WatermarkStrategy
from opchain.common.watermark_strategy import TimestampAssigner
from opchain.datastream import (
    AggregateFunction,
    AllWindowFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from opchain.datastream.state import ReducingStateDescriptor, ValueStateDescriptor
from opchain.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    TimeEvictor,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from opchain.runtime.task.stream_task import TaskEnvironment
from opchain.runtime.testing.operator_harness import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from opchain.datastream import StreamExecutionEnvironment

LATE = OutputTag("late", Types.PICKLED_BYTE_ARRAY())


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


ASCENDING = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())


def timed(env: StreamExecutionEnvironment, data: Iterable[Any]) -> Any:
    """Records by key; a watermark after each, where batches are of one record."""
    stream = env.from_collection(list(data)).assign_timestamps_and_watermarks(ASCENDING)
    return stream.key_by(lambda pair: pair[0])


def pairs(*timestamps: int) -> list[tuple[str, int]]:
    return [("k", timestamp) for timestamp in timestamps]


class Bounds(ProcessWindowFunction):
    """Key, start, end and the timestamps of a window."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        window = context.window()
        yield key, window.start, window.end, sorted(pair[1] for pair in elements)


def run_windows(
    make: Callable[[Any], Any], data: Iterable[Any], form: str = "inlined", **settings: Any
) -> list[Any]:
    records = list(data)
    return run_form(lambda env: seen(make(timed(env, records)), "out"), form, **settings).records(
        "out"
    )


# Assigners


class GapOfKey(SessionWindowTimeGapExtractor):
    def extract(self, element: Any) -> int:
        return 3 if element[0] == "k" else 10


ASSIGNED: dict[str, tuple[Any, list[Any]]] = {
    "tumbling": (
        TumblingEventTimeWindows.of(Time.milliseconds(5)),
        [("k", 0, 5, [1, 4]), ("k", 5, 10, [5, 9]), ("k", 20, 25, [22])],
    ),
    "tumbling with an offset": (
        TumblingEventTimeWindows.of(Time.milliseconds(5), Time.milliseconds(2)),
        [("k", -3, 2, [1]), ("k", 2, 7, [4, 5]), ("k", 7, 12, [9]), ("k", 22, 27, [22])],
    ),
    "sliding": (
        SlidingEventTimeWindows.of(Time.milliseconds(6), Time.milliseconds(3)),
        [
            *(("k", -3, 3, [1]), ("k", 0, 6, [1, 4, 5]), ("k", 3, 9, [4, 5])),
            *(("k", 6, 12, [9]), ("k", 9, 15, [9]), ("k", 18, 24, [22]), ("k", 21, 27, [22])),
        ],
    ),
    "session": (
        EventTimeSessionWindows.with_gap(Time.milliseconds(4)),
        [("k", 1, 13, [1, 4, 5, 9]), ("k", 22, 26, [22])],
    ),
    "session of a dynamic gap": (
        EventTimeSessionWindows.with_dynamic_gap(GapOfKey()),
        [("k", 1, 8, [1, 4, 5]), ("k", 9, 12, [9]), ("k", 22, 25, [22])],
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("case", ASSIGNED)
def test_time_windows_of_each_kind_emit_pyflinks_results(form: str, mode: str, case: str) -> None:
    assigner, expected = ASSIGNED[case]
    data = pairs(1, 4, 5, 9, 22)
    found = run_windows(lambda s: s.window(assigner).process(Bounds()), data, form, mode=mode)
    assert found == expected


@pytest.mark.parametrize("form", FORMS)
def test_count_windows_emit_pyflinks_results(form: str) -> None:
    class Values(WindowFunction):
        def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterator[Any]:
            yield key, [pair[1] for pair in inputs]

    data = [("a", 1), ("b", 2), ("a", 3), ("a", 5), ("b", 6), ("a", 7)]
    found = run_windows(lambda s: s.count_window(2).apply(Values()), data, form)
    assert found == [("a", [1, 3]), ("b", [2, 6]), ("a", [5, 7])]
    found = run_windows(lambda s: s.count_window(3, 2).apply(Values()), data, form)
    # As in PyFlink a window is shown when it is full, where Java's shows whatever there is.
    assert found == [("a", [1, 3, 5])]


def test_open_processing_time_windows_do_not_fire_at_the_end() -> None:
    clock = ManualClock(100)

    def draw(env: StreamExecutionEnvironment) -> None:
        windows = timed(env, pairs(1, 2, 3)).window(
            TumblingProcessingTimeWindows.of(Time.milliseconds(50))
        )
        seen(windows.process(Bounds()), "out")

    # As in Flink, whose processing-time timers end with the input.
    assert run_job(job_of(draw), TaskEnvironment(timers=clock)).records("out") == []


@pytest.mark.parametrize("form", FORMS)
def test_processing_time_timers_that_are_due_fire_at_the_end_of_a_short_input(form: str) -> None:
    """The clock is held: it calls back after the input has ended, as a busy timer thread may do."""

    class Reminders(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            now = ctx.timer_service().current_processing_time()
            for time in (now + 1, now, value[1]):
                ctx.timer_service().register_processing_time_timer(time)
            yield value

        def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
            yield ctx.get_current_key(), timestamp

    def draw(env: StreamExecutionEnvironment) -> None:
        seen(timed(env, pairs(1, 2)).process(Reminders()), "out")

    environment = TaskEnvironment(timers=ManualClock(100, is_held=True))
    found = run_job(job_of(draw, form), environment).records("out")
    assert found == pairs(1, 2, 1, 2, 100)


# Functions


class Sum(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], value1[1] + value2[1]


class Count(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class WithStart(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        (only,) = elements
        yield context.window().start, only


class WithEnd(WindowFunction):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> list[Any]:
        return [(window.end, *inputs)]


FIVE = TumblingEventTimeWindows.of(Time.milliseconds(5))
COMPUTED: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
    "reduce": (lambda w: w.reduce(Sum()), [("k", 3), ("k", 6)]),
    "reduce and process": (
        lambda w: w.reduce(Sum(), window_function=WithStart()),
        [(0, ("k", 3)), (5, ("k", 6))],
    ),
    "aggregate": (lambda w: w.aggregate(Count()), [2, 1]),
    "aggregate and apply": (
        lambda w: w.aggregate(Count(), window_function=WithEnd()),
        [(5, 2), (10, 1)],
    ),
    "apply": (
        lambda w: w.apply(WithEnd()),
        [(5, ("k", 1), ("k", 2)), (10, ("k", 6))],
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", COMPUTED)
def test_each_window_function_emits_pyflinks_results(form: str, case: str) -> None:
    compute, expected = COMPUTED[case]
    assert run_windows(lambda s: compute(s.window(FIVE)), pairs(1, 2, 6), form) == expected


@pytest.mark.parametrize("form", FORMS)
def test_merging_session_windows_merges_reduced_values(form: str) -> None:
    sessions = EventTimeSessionWindows.with_gap(Time.milliseconds(5))
    # 20 and 28 are sessions of their own, until 24 comes between them.
    data = pairs(1, 3, 20, 28, 24)
    found = run_windows(
        lambda s: s.window(sessions).aggregate(Count(), window_function=Bounded()), data, form
    )
    assert found == [(1, 8, 2), (20, 33, 3)]


@pytest.mark.parametrize("form", FORMS)
def test_a_record_that_merges_two_sessions_combines_their_records_as_in_pyflink(form: str) -> None:
    sessions = EventTimeSessionWindows.with_gap(Time.seconds(1))
    data = pairs(100, 900, 2500, 1800)
    found = run_windows(lambda s: s.window(sessions).process(Timestamps()), data, form)
    assert found == [(2500, 100, 900, 1800)]


class Timestamps(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        yield tuple(element[1] for element in elements)


class Bounded(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        yield context.window().start, context.window().end, *elements


@pytest.mark.parametrize("form", FORMS)
def test_window_all_emits_pyflinks_results(form: str) -> None:
    class All(ProcessAllWindowFunction):
        def process(self, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
            yield context.window().end, len(list(elements))

    class AllApplied(AllWindowFunction):
        def apply(self, window: Any, inputs: Iterable[Any]) -> Iterator[Any]:
            yield window.end, len(list(inputs))

    def draw(env: StreamExecutionEnvironment) -> None:
        stream = env.from_collection([("a", 1), ("b", 2), ("a", 7)])
        times = stream.assign_timestamps_and_watermarks(ASCENDING)
        seen(times.window_all(FIVE).process(All()), "processed")
        seen(times.window_all(FIVE).apply(AllApplied()), "applied")
        seen(times.window_all(FIVE).reduce(lambda a, b: (a[0] + b[0], b[1])), "reduced")

    ran = run_form(draw, form, parallelism=2)
    assert ran.records("processed") == [(5, 2), (10, 1)]
    assert ran.records("applied") == [(5, 2), (10, 1)]
    assert sorted(ran.records("reduced")) == [("a", 7), ("ab", 2)]


def test_a_process_window_function_has_state_per_window_and_per_key() -> None:
    class Counting(ProcessWindowFunction):
        def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
            of_key = context.global_state().get_state(ValueStateDescriptor("windows", Types.INT()))
            of_window = context.window_state().get_state(ValueStateDescriptor("fires", Types.INT()))
            of_key.update((of_key.value() or 0) + 1)
            of_window.update((of_window.value() or 0) + 1)
            yield context.window().start, of_window.value(), of_key.value()

        def clear(self, context: Any) -> None:
            context.window_state().get_state(ValueStateDescriptor("fires", Types.INT())).clear()

    def make(stream: Any) -> Any:
        return stream.window(FIVE).trigger(CountTrigger.of(1)).process(Counting())

    assert run_windows(make, pairs(1, 2, 6)) == [(0, 1, 1), (0, 2, 2), (5, 1, 3)]


# Triggers, evictors, lateness


TRIGGERED: dict[str, tuple[Any, list[list[int]]]] = {
    "count": (CountTrigger.of(2), [[1, 2], [1, 2, 3, 4]]),
    "purging count": (PurgingTrigger.of(CountTrigger.of(2)), [[1, 2], [3, 4]]),
    "continuous event time": (
        ContinuousEventTimeTrigger.of(Time.milliseconds(3)),
        # At 3, at 6 and at the window's end; 4 brings the watermark 3.
        [[1, 2, 3, 4], [1, 2, 3, 4, 9], [1, 2, 3, 4, 9]],
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", TRIGGERED)
def test_triggers_decide_when_a_window_fires(form: str, case: str) -> None:
    trigger, expected = TRIGGERED[case]
    ten = TumblingEventTimeWindows.of(Time.milliseconds(10))
    data = pairs(1, 2, 3, 4) if "count" in case else pairs(1, 2, 3, 4, 9)

    def make(stream: Any) -> Any:
        return stream.window(ten).trigger(trigger).process(Bounds())

    assert [each[3] for each in run_windows(make, data, form, batch_size=1)] == expected


class Add(ReduceFunction):
    def reduce(self, value1: int, value2: int) -> int:
        return value1 + value2


class AtTen(Trigger):
    """Fires and purges when the values of a window come to 10."""

    def __init__(self) -> None:
        self.total = ReducingStateDescriptor("total", Add(), Types.INT())

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        total = ctx.get_partitioned_state(self.total)
        total.add(element[1])
        if total.get() < 10:
            return TriggerResult.CONTINUE
        total.clear()
        return TriggerResult.FIRE_AND_PURGE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: Any) -> None:
        pass

    def clear(self, window: Any, ctx: Any) -> None:
        ctx.get_partitioned_state(self.total).clear()


@pytest.mark.parametrize("form", FORMS)
def test_a_custom_trigger_can_keep_state(form: str) -> None:
    class Values(WindowFunction):
        def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterator[Any]:
            yield [pair[1] for pair in inputs]

    def make(stream: Any) -> Any:
        return stream.window(GlobalWindows.create()).trigger(AtTen()).apply(Values())

    assert run_windows(make, pairs(4, 5, 6, 10, 3), form) == [[4, 5, 6], [10]]


class AtEvenEnd(AtTen):
    """Fires at the end of a session, if the end is even. Has no `can_merge`, as many triggers for PyFlink."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        ctx.register_event_time_timer(window.end)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        is_even_end = time == window.end and time % 2 == 0
        return TriggerResult.FIRE if is_even_end else TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: Any) -> None:
        ctx.register_event_time_timer(window.end)


@pytest.mark.parametrize("form", FORMS)
def test_a_custom_trigger_of_sessions_needs_no_can_merge(form: str) -> None:
    def make(stream: Any) -> Any:
        sessions = EventTimeSessionWindows.with_gap(Time.milliseconds(2))
        return stream.window(sessions).trigger(AtEvenEnd()).allowed_lateness(5).process(Bounds())

    assert run_windows(make, pairs(1, 2, 5, 10, 11, 12), form) == [
        ("k", 1, 4, [1, 2]),
        ("k", 10, 14, [10, 11, 12]),
    ]


@pytest.mark.parametrize(
    ("evictor", "expected"),
    [
        (CountEvictor.of(2), [4, 9]),
        (TimeEvictor.of(Time.milliseconds(5)), [9]),
        (TimeEvictor.of(Time.milliseconds(6)), [4, 9]),
    ],
)
def test_evictors_remove_elements_before_a_window_fires(evictor: Any, expected: list[int]) -> None:
    ten = TumblingEventTimeWindows.of(Time.milliseconds(10))
    found = run_windows(
        lambda s: s.window(ten).evictor(evictor).process(Bounds()), pairs(1, 3, 4, 9)
    )
    assert [each[3] for each in found] == [expected]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("lateness_ms", "expected", "late"),
    [
        (0, [[1, 4], [12]], [2, 3]),
        (5, [[1, 4], [1, 2, 4], [12]], [3]),
        (100, [[1, 4], [1, 2, 4], [1, 2, 3, 4], [12]], []),
    ],
)
def test_late_records_fire_a_window_again_or_go_to_the_side_output(
    form: str, lateness_ms: int, expected: list[list[int]], late: list[int]
) -> None:
    # Watermarks behind each record: 0, 3, 5 (of 6), 5, 11, 11.
    data = pairs(1, 4, 6, 2, 12, 3)

    def draw(env: StreamExecutionEnvironment) -> None:
        windows = timed(env, data).window(FIVE).allowed_lateness(lateness_ms)
        main = windows.side_output_late_data(LATE).process(Bounds())
        seen(main, "out")
        seen(main.get_side_output(LATE), "late")

    ran = run_form(draw, form, batch_size=1)
    fired = [each[3] for each in ran.records("out")]
    assert [each for each in fired if each != [6]] == expected
    assert [timestamp for _, timestamp in ran.records("late")] == late


@pytest.mark.parametrize("form", FORMS)
def test_window_results_have_the_timestamp_of_the_record_or_timer_that_fires(form: str) -> None:
    """Under PyFlink 2.3; tests/differential/whole/times_of_results.py has more kinds."""
    data = [("a", 100), ("a", 2500), ("a", 1200), ("a", 1300)]

    def draw(env: StreamExecutionEnvironment) -> None:
        keyed = timed(env, data)
        early = keyed.window(TumblingEventTimeWindows.of(Time.seconds(2)))
        seen(early.trigger(CountTrigger.of(3)).reduce(lambda a, b: a), "early")
        pairs = keyed.count_window(2).reduce(lambda a, b: b)
        seen(pairs, "counted")
        seconds = pairs.key_by(lambda pair: pair[0]).window(TumblingEventTimeWindows.of(1000))
        seen(seconds.reduce(lambda a, b: a), "windows of counts")

    ran = run_form(draw, form)
    assert ran.timestamps("early") == [1300]
    assert ran.timestamps("counted") == [2500, 1300]
    assert ran.timestamps("windows of counts") == [1999, 2999]
