"""Windows in whole jobs: any parallelism, watermarks anywhere, batches of any size, both modes, all forms.

Which records are late depends on the arrival of watermarks from all channels. Therefore a function before the window, in
the same task, adds the current watermark to each record. The model computes from it the windows of the record, and
whether it is late.
"""

from __future__ import annotations

from collections import Counter
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, Ran, job_of, run_form, run_job, seen
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.common import WatermarkStrategy
from opchain.common.watermark_strategy import TimestampAssigner, WatermarkGenerator
from opchain.compiler.dsl.keyed_stream import DataStreamUtils
from opchain.datastream import OutputTag
from opchain.datastream.functions import (
    AggregateFunction,
    KeyedProcessFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
)
from opchain.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from opchain.runtime.mailbox.timer_service import SteppedClock
from opchain.runtime.task.stream_task import TaskEnvironment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

pytestmark = pytest.mark.slow

LATE = OutputTag("late")

Record = tuple[str, int, int, "int | None"]
"""Key, timestamp, number, and the watermark that is emitted behind the record."""


def key_of(record: Record) -> str:
    return record[0]


class TimeOfRecord(TimestampAssigner):
    def extract_timestamp(self, value: Record, record_timestamp: int) -> int:
        return value[1]


class AsTheRecordSays(WatermarkGenerator):
    def on_event(self, event: Record, event_timestamp: int, output: Any) -> None:
        if event[3] is not None:
            output.emit_watermark(event[3])

    def on_periodic_emit(self, output: Any) -> None:
        pass


class WriteWatermark(KeyedProcessFunction):
    """Replaces the watermark in a record by the current watermark of the task."""

    def process_element(self, value: Record, ctx: Any) -> Iterator[Any]:
        yield (*value[:3], ctx.timer_service().current_watermark())


class Everything(ProcessWindowFunction):
    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        window = context.window()
        yield key, (window.start, window.end), tuple(elements)


class EverythingOfAll(ProcessAllWindowFunction):
    def process(self, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        window = context.window()
        yield (window.start, window.end), tuple(sorted(elements))


class Gather(AggregateFunction):
    """Keeps all records, as an aggregate; its `add` is written into the loop."""

    def create_accumulator(self) -> tuple[Any, ...]:
        return ()

    def add(self, value: Record, accumulator: tuple[Any, ...]) -> tuple[Any, ...]:
        return accumulator + (value,)  # noqa: RUF005 - a starred tuple is not written out

    def get_result(self, accumulator: tuple[Any, ...]) -> tuple[Any, ...]:
        return accumulator

    def merge(self, acc_a: tuple[Any, ...], acc_b: tuple[Any, ...]) -> tuple[Any, ...]:
        return acc_a + acc_b


class ShowGathered(ProcessWindowFunction):
    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        window = context.window()
        (gathered,) = elements
        yield key, (window.start, window.end), gathered


@st.composite
def streams(draw: st.DrawFn) -> list[Record]:
    records: list[Record] = []
    watermark = 0
    for number, (key, distance, step) in enumerate(
        draw(
            st.lists(
                st.tuples(
                    st.sampled_from("aabcde"),
                    st.integers(-15, 25),
                    st.none() | st.integers(1, 12),
                ),
                max_size=40,
            )
        ),
        1,
    ):
        watermark += step or 0
        records.append((key, watermark + distance, number, watermark if step else None))
    return records


JOBS = {
    "records": streams(),
    "parallelism": st.integers(1, 4),
    "batch_size": st.sampled_from([1, 3, 4096]),
    "form": st.sampled_from(FORMS),
}


def with_watermarks(env: Any, records: list[Record]) -> Any:
    """The stream keyed, with event time."""
    strategy = WatermarkStrategy.for_generator(lambda _: AsTheRecordSays())
    return (
        env.from_collection(records)
        .rebalance()
        .assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(TimeOfRecord()))
    )


def draw_windows(env: Any, records: list[Record], assigner: Any, lateness: int) -> None:
    """The same windows over lists and over aggregates, with late records and what they found."""
    written = with_watermarks(env, records).key_by(key_of).process(WriteWatermark())
    seen(written, "written")
    keyed = DataStreamUtils.reinterpret_as_keyed_stream(written, key_of)
    windowed = keyed.window(assigner).allowed_lateness(lateness).side_output_late_data(LATE)
    listed = windowed.process(Everything())
    seen(listed, "listed")
    seen(listed.get_side_output(LATE), "late")
    windowed = keyed.window(assigner).allowed_lateness(lateness)
    seen(windowed.aggregate(Gather(), ShowGathered()), "gathered")
    seen(windowed.aggregate(Gather()), "gathered alone")
    seen(windowed.reduce(fold), "folded")


def fold(one: Record, other: Record) -> Any:
    """Puts the numbers behind each other, as digits: which windows were merged first does not show, all else does."""
    place = 41
    while place <= other[2]:
        place *= 41
    return one[0], one[1] + other[1], one[2] * place + other[2], other[3]


def the_incremental_forms_agree(ran: Ran) -> None:
    """Functions that see records one by one see those that a list holds, in its order."""
    listed = ran.records("listed")
    assert ran.records("gathered") == listed
    assert ran.records("gathered alone") == [elements for _, _, elements in listed]
    assert ran.records("folded") == [reduce(fold, elements) for _, _, elements in listed]
    for name in ("listed", "gathered", "gathered alone", "folded"):
        assert ran.timestamps(name) == [time_of(window, elements) for _, window, elements in listed]


def time_of(window: tuple[int, int], elements: Any) -> int:
    """The time at which a window fires: its end, or that of a record that comes after its end."""
    _, time, _, watermark = elements[-1]
    last = window[1] - 1
    return last if watermark < last else time


def windows_of(size: int, slide: int, time: int) -> list[tuple[int, int]]:
    return [(start, start + size) for start in range(time, time - size, -1) if start % slide == 0]


@settings(max_examples=60)
@given(**JOBS, size=st.integers(1, 12), slide=st.integers(1, 12) | st.none())
def test_windows_of_a_job_have_exactly_the_records_that_are_not_late(
    records: list[Record],
    parallelism: int,
    batch_size: int,
    form: str,
    size: int,
    slide: int | None,
) -> None:
    assigner: Any = TumblingEventTimeWindows.of(size)
    if slide is not None:
        assigner = SlidingEventTimeWindows.of(size, slide)
    ran = run_form(
        lambda env: draw_windows(env, records, assigner, 0),
        form,
        parallelism=parallelism,
        batch_size=batch_size,
    )
    expected: dict[tuple[str, tuple[int, int]], list[Any]] = {}
    late = []
    written = ran.records("written")
    assert sorted(record[:3] for record in written) == sorted(record[:3] for record in records)
    for record in written:
        key, time, _, watermark = record
        mine = [
            window for window in windows_of(size, slide or size, time) if window[1] - 1 > watermark
        ]
        for window in mine:
            expected.setdefault((key, window), []).append(record)
        if not mine and time <= watermark:
            late.append(record)
    firings = [((key, window), list(elements)) for key, window, elements in ran.records("listed")]
    assert len(firings) == len(expected)
    assert dict(firings) == expected
    the_incremental_forms_agree(ran)
    assert ran.records("late") == late
    assert ran.timestamps("late") == [record[1] for record in late]


@settings(max_examples=40)
@given(**JOBS, size=st.integers(1, 12), lateness=st.integers(1, 20))
def test_windows_fire_again_within_the_allowed_lateness(
    records: list[Record],
    parallelism: int,
    batch_size: int,
    form: str,
    size: int,
    lateness: int,
) -> None:
    ran = run_form(
        lambda env: draw_windows(env, records, TumblingEventTimeWindows.of(size), lateness),
        form,
        parallelism=parallelism,
        batch_size=batch_size,
    )
    on_time: dict[tuple[str, int], int] = {}
    held: dict[tuple[str, int], list[Any]] = {}
    late, again = [], 0
    for record in ran.records("written"):
        key, time, _, watermark = record
        start = time // size * size
        if start + size - 1 + lateness <= watermark:
            late.append(record)
            continue
        held.setdefault((key, start), []).append(record)
        if start + size - 1 <= watermark:
            again += 1
        else:
            on_time[key, start] = 1
    firings = ran.records("listed")
    assert len(firings) == len(on_time) + again
    # The last firing of a window shows all of its records.
    assert {(key, window[0]): list(elements) for key, window, elements in firings} == held
    the_incremental_forms_agree(ran)
    assert ran.records("late") == late


@settings(max_examples=40)
@given(**JOBS, gap=st.integers(1, 8))
def test_each_record_is_in_exactly_one_session(
    records: list[Record], parallelism: int, batch_size: int, form: str, gap: int
) -> None:
    """Each record is late or in one session; no session could have been longer."""
    ran = run_form(
        lambda env: draw_windows(env, records, EventTimeSessionWindows.with_gap(gap), 0),
        form,
        parallelism=parallelism,
        batch_size=batch_size,
    )
    firings = ran.records("listed")
    in_sessions = [record for _, _, elements in firings for record in elements]
    assert Counter([*in_sessions, *ran.records("late")]) == Counter(ran.records("written"))
    for key, window, elements in firings:
        times = sorted(record[1] for record in elements)
        assert window == (times[0], times[-1] + gap)
        assert all(second - first <= gap for first, second in pairwise(times))
        assert {record[0] for record in elements} == {key}
    assert all(record[1] <= record[3] for record in ran.records("late"))
    the_incremental_forms_agree(ran)


def _unordered(firings: list[Any]) -> list[Any]:
    return [(key, window, tuple(sorted(elements))) for key, window, elements in firings]


@settings(max_examples=40)
@given(**JOBS, size=st.integers(1, 12))
def test_windows_in_batch_mode_have_every_record(
    records: list[Record], parallelism: int, batch_size: int, form: str, size: int
) -> None:
    """In batch mode nothing is late, and a list of records is in the order of time."""

    def draw(env: Any) -> None:
        stream = with_watermarks(env, records)
        for name, assigner in assigners.items():
            windowed = stream.key_by(key_of).window(assigner)
            seen(windowed.process(Everything()), f"listed {name}")
            seen(windowed.aggregate(Gather(), ShowGathered()), f"gathered {name}")
            seen(stream.window_all(assigner).process(EverythingOfAll()), f"all {name}")

    assigners: dict[str, Any] = {
        "tumbling": TumblingEventTimeWindows.of(size),
        "sessions": EventTimeSessionWindows.with_gap(size),
    }
    ran = run_form(draw, form, parallelism=parallelism, batch_size=batch_size, mode="BATCH")
    for name in assigners:
        listed = ran.records(f"listed {name}")
        for _, _, elements in listed:
            times = [record[1] for record in elements]
            assert times == sorted(times)
        assert Counter(_unordered(listed)) == Counter(
            _unordered(_partition(records, name, size, key_of))
        )
        assert Counter(_unordered(ran.records(f"gathered {name}"))) == Counter(_unordered(listed))
        assert Counter(ran.records(f"all {name}")) == Counter(
            (window, tuple(sorted(elements)))
            for _, window, elements in _partition(records, name, size, lambda _: "")
        )


def _partition(records: list[Record], name: str, size: int, key: Any) -> list[Any]:
    """The windows of all records, by definition."""
    found: list[Any] = []
    for of_key in sorted({key(record) for record in records}):
        end = None
        for record in sorted(
            (record for record in records if key(record) == of_key), key=lambda item: item[1]
        ):
            start = record[1] // size * size if name == "tumbling" else record[1]
            is_new = end is None or (start >= end if name == "tumbling" else record[1] > end)
            if is_new:
                found.append([of_key, [start, start + size], []])
            found[-1][1][1] = end = max(found[-1][1][1], start + size)
            found[-1][2].append(record)
    return [(of_key, tuple(window), elements) for of_key, window, elements in found]


@settings(max_examples=20)
@given(
    records=streams(),
    parallelism=st.integers(1, 4),
    size=st.integers(1, 4),
    slide=st.integers(0, 5),
)
def test_count_windows_fire_when_they_are_full(
    records: list[Record], parallelism: int, size: int, slide: int
) -> None:
    def draw(env: Any) -> None:
        written = env.from_collection(records).key_by(key_of).process(WriteWatermark())
        seen(written, "written")
        windows = written.key_by(key_of).count_window(size, slide)
        seen(windows.apply(lambda key, window, elements: [(key, tuple(elements))]), "counted")

    results: list[Ran] = [run_form(draw, form, parallelism=parallelism) for form in FORMS]
    expected = []
    for key in {record[0] for record in records}:
        mine = [record for record in results[0].records("written") if record[0] == key]
        starts = range(0, len(mine) - size + 1, slide or size)
        expected += [(key, tuple(mine[start : start + size])) for start in starts]
    for ran in results:
        assert sorted(ran.records("counted")) == sorted(expected)


class TickingClock(SteppedClock):
    """A clock that advances by one millisecond at each read."""

    def current_processing_time(self) -> int:
        self.advance(1)
        return super().current_processing_time()


@settings(max_examples=30)
@given(
    keys=st.lists(st.sampled_from(["a", "b", 1, 1.0, True, 0.0, -0.0]), max_size=40),
    batch_size=st.sampled_from([1, 3, 4096]),
    size=st.integers(1, 9),
    slide=st.integers(1, 12) | st.none(),
)
def test_processing_time_windows_of_a_job_are_the_same_in_all_forms(
    keys: list[Any], batch_size: int, size: int, slide: int | None
) -> None:
    assigner: Any = TumblingProcessingTimeWindows.of(size)
    if slide is not None:
        assigner = SlidingProcessingTimeWindows.of(size, slide)

    def draw(env: Any) -> None:
        numbered = env.from_collection(list(enumerate(keys)))
        keyed = numbered.key_by(lambda record: record[1])
        seen(keyed.window(assigner).process(Everything()), "listed", reads_timestamps=False)
        windowed = keyed.window(assigner)
        seen(windowed.aggregate(Gather(), ShowGathered()), "gathered", reads_timestamps=False)
        folded = keyed.window(assigner).reduce(lambda a, b: (a, b))
        seen(folded, "folded", reads_timestamps=False)

    runs = []
    for form in FORMS:
        job = job_of(draw, form, parallelism=1, batch_size=batch_size)
        runs.append(run_job(job, TaskEnvironment(timers=TickingClock())))
    for name in ("listed", "gathered", "folded"):
        expected, *others = [repr(ran.records(name)) for ran in runs]
        assert others == [expected] * len(others)
    has_gaps = slide is not None and slide > size
    assert has_gaps or batch_size > 1 or len(keys) <= size or runs[0].records("listed")
