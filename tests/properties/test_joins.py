"""Joins against their definition: every pair that may meet, tried one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forms import run_form, seen
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.common import WatermarkStrategy
from opchain.common.time import Duration
from opchain.datastream.functions import CoGroupFunction, FlatJoinFunction, ProcessJoinFunction
from opchain.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from opchain.runtime.functions.co_grouping import (
    FIRST,
    SECOND,
    CoGroupWindowFunction,
    JoinCoGroupFunction,
    UnionKeySelector,
)
from opchain.runtime.program.operator_specs import IntervalJoinSpec, WindowSpec
from opchain.runtime.testing.operator_harness import (
    KeyedOneInputOperatorHarness,
    KeyedTwoInputOperatorHarness,
)
from opchain.runtime.types.output_tag import OutputTag

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LEFT_LATE, RIGHT_LATE, SIDE = OutputTag("left late"), OutputTag("right late"), OutputTag("side")
BEGINNING, END = -(2**63), 2**63 - 1
LEFT, RIGHT = 0, 1

Record = tuple[str, int, int]
"""Key, timestamp, number: each record is another one."""

Element = tuple[int, Record | int]
"""The input, and a record or a watermark."""


def key_of(record: Record) -> str:
    return record[0]


def time_of(record: Record) -> int:
    return record[1]


records = st.lists(st.tuples(st.sampled_from("aab"), st.integers(0, 40)), max_size=25).map(
    lambda pairs: [(*pair, number) for number, pair in enumerate(pairs)]
)


@st.composite
def two_streams(draw: st.DrawFn) -> list[Element]:
    """Records and watermarks of two inputs, as they come; both end with the end of time.

    Records lie around the watermark, so that late ones and those at the edge are many.
    """
    elements: list[Element] = []
    watermarks = [0, 0]
    record = st.tuples(st.sampled_from("aaab"), st.integers(-3, 9))
    steps = st.tuples(st.sampled_from((LEFT, RIGHT)), record | record | st.integers(1, 4))
    length = draw(st.integers(0, 40))
    for number, (side, step) in enumerate(draw(st.lists(steps, min_size=length, max_size=length))):
        if isinstance(step, tuple):
            elements.append((side, (step[0], min(watermarks) + step[1], number)))
        else:
            watermarks[side] = max(watermarks[side], min(watermarks) + step)
            elements.append((side, watermarks[side]))
    return [*elements, (LEFT, END), (RIGHT, END)]


# Interval join


@dataclass(frozen=True)
class Interval:
    lower: int
    upper: int
    lower_inclusive: bool
    upper_inclusive: bool

    def holds(self, left: int, right: int) -> bool:
        low = left + self.lower <= right if self.lower_inclusive else left + self.lower < right
        high = right <= left + self.upper if self.upper_inclusive else right < left + self.upper
        return low and high

    def spec(self, function: Any) -> IntervalJoinSpec:
        return IntervalJoinSpec(
            function,
            self.lower,
            self.upper,
            self.lower_inclusive,
            self.upper_inclusive,
            LEFT_LATE,
            RIGHT_LATE,
        )

    def waits_until(self, side: int, time: int) -> int:
        """The watermark at which a record is dropped: no partner may come any more."""
        if side == LEFT:
            highest = self.upper - (not self.upper_inclusive)
            return max(time, time + highest)
        return max(time, time - self.lower - (not self.lower_inclusive))


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    lower = draw(st.integers(-8, 8))
    upper = lower + draw(st.integers(0, 10))
    inclusive = draw(st.tuples(st.booleans(), st.booleans()))
    if upper - lower < 2 - sum(inclusive):  # nothing would be in it, and the DSL refuses it
        inclusive = (True, True)
    return Interval(lower, upper, *inclusive)


class Pairs(ProcessJoinFunction[Record, Record, Any]):
    """Emits each pair with its times; those of equal times on the side, too."""

    def process_element(self, left: Record, right: Record, ctx: Any) -> Iterator[Any]:
        assert (ctx.get_left_timestamp(), ctx.get_right_timestamp()) == (left[1], right[1])
        if left[1] == right[1]:
            yield SIDE, (left, right)
        yield (left, right), ctx.get_timestamp()


@dataclass
class Joined:
    """What came out after each element of the input, and what was late."""

    pairs: list[Counter[Any]] = field(default_factory=list)
    late: tuple[list[Any], list[Any]] = field(default_factory=lambda: ([], []))


def interval_model(elements: list[Element], interval: Interval) -> Joined:
    joined = Joined()
    watermarks, watermark = [BEGINNING, BEGINNING], BEGINNING
    waiting: tuple[list[Record], list[Record]] = ([], [])
    for side, element in elements:
        pairs: list[Any] = []
        if isinstance(element, int):
            watermarks[side] = element
            if min(watermarks) > watermark:
                watermark = min(watermarks)
                for of_side in (LEFT, RIGHT):
                    waiting[of_side][:] = [
                        record
                        for record in waiting[of_side]
                        if interval.waits_until(of_side, record[1]) > watermark
                    ]
        elif element[1] < watermark:
            joined.late[side].append(element)
        else:
            waiting[side].append(element)
            for other in waiting[1 - side]:
                left, right = (element, other) if side == LEFT else (other, element)
                if left[0] == right[0] and interval.holds(left[1], right[1]):
                    pairs.append(((left, right), max(left[1], right[1])))
        joined.pairs.append(Counter(pairs))
    return joined


@settings(max_examples=150)
@given(elements=two_streams(), interval=intervals())
def test_interval_join_emits_exactly_the_pairs_within_the_interval(
    elements: list[Element], interval: Interval
) -> None:
    expected, joined = interval_model(elements, interval), Joined()
    on_the_side: list[Any] = []
    with KeyedTwoInputOperatorHarness(interval.spec(Pairs()), key_of, key_of) as harness:
        for side, element in elements:
            if isinstance(element, int):
                (harness.process_watermark1, harness.process_watermark2)[side](element)
            else:
                (harness.process_element1, harness.process_element2)[side](element, element[1])
            emitted = harness.records()
            assert [time for _, time in emitted] == [value[1] for value, _ in emitted]
            # The partners of a record come by time.
            others = [value[0][1 - side][1] for value, _ in emitted]
            assert others == sorted(others)
            joined.pairs.append(Counter(harness.values()))
            on_the_side += harness.values(SIDE)
            for late, tag in zip(joined.late, (LEFT_LATE, RIGHT_LATE), strict=True):
                assert all(value[1] == time for value, time in harness.records(tag))
                late.extend(harness.values(tag))
            harness.clear_output()
        assert harness.state_entry_count() == harness.event_time_timer_count() == 0
    assert joined == expected
    pairs = sum(expected.pairs, Counter[Any]()).elements()
    assert Counter(on_the_side) == Counter(pair for pair, _ in pairs if pair[0][1] == pair[1][1])


# Window joins and co-groups


class Groups(CoGroupFunction[Record, Record, Any]):
    """Shows both sides."""

    def co_group(self, first: Iterable[Record], second: Iterable[Record]) -> Iterator[Any]:
        yield tuple(first), tuple(second)


class Twice(FlatJoinFunction[Record, Record, Any]):
    """Emits a pair once for each equal time, and twice otherwise."""

    def join(self, first: Record, second: Record) -> Iterator[Any]:
        yield first, second
        if first[1] != second[1]:
            yield first, second


@settings(max_examples=60)
@given(elements=two_streams(), size=st.integers(1, 12), lateness=st.sampled_from([0, 6]))
def test_co_group_and_join_get_the_records_of_each_window(
    elements: list[Element], size: int, lateness: int
) -> None:
    """Both inputs through one operator, as a union brings them; watermarks of either side count."""
    assigner = TumblingEventTimeWindows.of(size)
    results: dict[str, list[Any]] = {}
    for name, function in {
        "groups": CoGroupWindowFunction(Groups()),
        "pairs": CoGroupWindowFunction(JoinCoGroupFunction(lambda first, second: (first, second))),
    }.items():
        spec = WindowSpec(
            assigner=assigner,
            trigger=assigner.get_default_trigger(),
            allowed_lateness_ms=lateness,
            late_tag=LEFT_LATE,
            function=function,
        )
        selector = UnionKeySelector(key_of, key_of)
        with KeyedOneInputOperatorHarness(spec, selector.get_key) as harness:
            for side, element in elements:
                if isinstance(element, int):
                    if element > harness.operator.current_watermark:
                        harness.process_watermark(element)
                else:
                    tagged = ((FIRST, SECOND)[side], element)
                    harness.process_element(tagged, element[1])
            results[name] = harness.values()
            late = [record for _, record in harness.values(LEFT_LATE)]
    expected, expected_late = _window_model(elements, size, lateness)
    assert results["groups"] == expected
    assert results["pairs"] == [
        (one, other) for first, second in expected for one in first for other in second
    ]
    assert late == expected_late


def _window_model(
    elements: list[Element], size: int, lateness: int
) -> tuple[list[Any], list[Record]]:
    groups: list[Any] = []
    late: list[Record] = []
    watermark = BEGINNING
    windows: dict[tuple[int, str], tuple[list[Record], list[Record]]] = {}
    for side, element in elements:
        if isinstance(element, int):
            due = [
                place for place in windows if watermark < place[0] + size - 1 <= element
            ]  # places are in the order of arrival, and sorting by start keeps that
            groups += [
                tuple(map(tuple, windows[place])) for place in sorted(due, key=lambda item: item[0])
            ]
            for place in list(windows):
                if place[0] + size - 1 + lateness <= element:
                    del windows[place]
            watermark = max(watermark, element)
            continue
        start = element[1] // size * size
        if start + size - 1 + lateness <= watermark:
            late.append(element)
            continue
        sides = windows.setdefault((start, element[0]), ([], []))
        sides[side].append(element)
        if start + size - 1 <= watermark:
            groups.append(tuple(map(tuple, sides)))
    return groups, late


# Whole jobs, in process


@settings(max_examples=25)
@given(
    left=records,
    right=records,
    parallelism=st.integers(1, 4),
    batch_size=st.sampled_from([1, 3, 4096]),
    form=st.sampled_from(["interpreted", "inlined"]),
    mode=st.sampled_from(["STREAMING", "BATCH"]),
    interval=intervals(),
)
def test_jobs_with_joins_emit_all_pairs(
    left: list[Record],
    right: list[Record],
    parallelism: int,
    batch_size: int,
    form: str,
    mode: str,
    interval: Interval,
) -> None:
    def draw(env: Any) -> None:
        streams = [
            env.from_collection(side)
            .rebalance()
            .assign_timestamps_and_watermarks(
                WatermarkStrategy.for_bounded_out_of_orderness(
                    Duration.of_millis(100)
                ).with_timestamp_assigner(lambda record, _: record[1])
            )
            for side in (left, right)
        ]
        keyed = [stream.key_by(key_of) for stream in streams]
        between = keyed[0].interval_join(keyed[1]).between(interval.lower, interval.upper)
        if not interval.lower_inclusive:
            between = between.lower_bound_exclusive()
        if not interval.upper_inclusive:
            between = between.upper_bound_exclusive()
        seen(between.process(Pairs()), "interval")
        for name, assigner in ASSIGNERS.items():
            joined = streams[0].join(streams[1]).where(key_of).equal_to(key_of).window(assigner)
            seen(joined.apply(lambda first, second: (first, second)), name)
        flat = streams[0].join(streams[1]).where(key_of).equal_to(key_of)
        seen(flat.window(ASSIGNERS["tumbling"]).apply(Twice()), "flat")
        grouped = streams[0].co_group(streams[1]).where(key_of).equal_to(key_of)
        seen(grouped.window(ASSIGNERS["tumbling"]).apply(Groups()), "groups")

    ran = run_form(draw, form, parallelism=parallelism, batch_size=batch_size, mode=mode)
    all_pairs = [(one, other) for one in left for other in right if one[0] == other[0]]
    assert Counter(ran.records("interval")) == Counter(
        ((one, other), max(one[1], other[1]))
        for one, other in all_pairs
        if interval.holds(one[1], other[1])
    )
    assert Counter(ran.records("tumbling")) == Counter(
        pair for pair in all_pairs if pair[0][1] // 7 == pair[1][1] // 7
    )
    assert Counter(ran.records("flat")) == Counter(
        pair
        for pair in all_pairs
        if pair[0][1] // 7 == pair[1][1] // 7
        for _ in range(1 + (pair[0][1] != pair[1][1]))
    )
    assert Counter(ran.records("sliding")) == Counter(
        pair
        for pair in all_pairs
        for start in range(-9, 41)
        if start % 3 == 0 and all(start <= record[1] < start + 9 for record in pair)
    )
    session_of = _sessions([*left, *right], 4)
    assert Counter(ran.records("session")) == Counter(
        pair for pair in all_pairs if session_of[pair[0][:2]] == session_of[pair[1][:2]]
    )
    for name in ("tumbling", "sliding", "session"):
        ends = ran.timestamps(name)
        assert all(
            end is not None and end >= max(map(time_of, pair))
            for pair, end in zip(ran.records(name), ends, strict=True)
        )
    assert Counter(_sorted_sides(ran.records("groups"))) == Counter(
        _sorted_sides(
            (
                [record for record in left if (record[0], record[1] // 7) == place],
                [record for record in right if (record[0], record[1] // 7) == place],
            )
            for place in {(record[0], record[1] // 7) for record in (*left, *right)}
        )
    )


ASSIGNERS: dict[str, Any] = {
    "tumbling": TumblingEventTimeWindows.of(7),
    "sliding": SlidingEventTimeWindows.of(9, 3),
    "session": EventTimeSessionWindows.with_gap(4),
}


def _sorted_sides(groups: Iterable[Any]) -> list[Any]:
    return [(tuple(sorted(first)), tuple(sorted(second))) for first, second in groups]


def _sessions(all_records: list[Record], gap: int) -> dict[tuple[str, int], int]:
    """The number of the session of each key and time, by definition."""
    found: dict[tuple[str, int], int] = {}
    number, last = 0, ("", 0)
    for key, time in sorted({record[:2] for record in all_records}):
        if key != last[0] or time - last[1] > gap:
            number += 1
        found[key, time] = number
        last = (key, time)
    return found
