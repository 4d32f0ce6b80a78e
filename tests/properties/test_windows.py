"""Compares window operators with a simple, slow model of their definition.

Streams are out of order, with watermarks at any place, and lateness may be allowed. The model finds the windows of each
record and whether they have ended. The operators emit the same records in the same order. The order of windows that
fire at the same watermark is defined if their ends differ, or if all keys have the same windows. Sessions with the same
end may fire in any order.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.runtime.functions.record_functions import AggregateFunction
from opchain.runtime.functions.window import ProcessWindowFunction
from opchain.runtime.operators.windows.aligned_window_operator import AlignedWindowOperator
from opchain.runtime.operators.windows.merging_window_operator import MergingWindowOperator
from opchain.runtime.operators.windows.session_window_operator import SessionWindowOperator
from opchain.runtime.operators.windows.window_operator import (
    CountWindowOperator,
    ProcessingTimeWindowOperator,
    WindowOperator,
)
from opchain.runtime.program.operator_specs import WindowSpec
from opchain.runtime.testing.operator_harness import KeyedOneInputOperatorHarness
from opchain.runtime.types.output_tag import OutputTag
from opchain.runtime.windows.data_triggers import CountTrigger, PurgingTrigger
from opchain.runtime.windows.global_windows import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
)
from opchain.runtime.windows.time_windows import (
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from opchain.runtime.windows.triggers import EventTimeTrigger, ProcessingTimeTrigger

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LATE = OutputTag("late")
_PAIR = 2
BEGINNING, END = -(2**63), 2**63 - 1

Record = tuple[str, int, int]
"""Key, timestamp, number: each record is another one."""


@dataclass(frozen=True)
class Pace:
    size: int
    slide: int
    offset: int

    def assigner(self) -> Any:
        if self.slide == self.size:
            return TumblingEventTimeWindows.of(self.size, self.offset)
        return SlidingEventTimeWindows.of(self.size, self.slide, self.offset)

    def windows(self, time: int) -> list[tuple[int, int]]:
        """All windows that hold a time, the latest first: tried one by one."""
        return [
            (start, start + self.size)
            for start in range(time, time - self.size, -1)
            if (start - self.offset) % self.slide == 0
        ]


# Inputs


@st.composite
def paces(draw: st.DrawFn) -> Pace:
    size, slide = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    return Pace(size, slide, draw(st.integers(1 - slide, slide - 1)))


@st.composite
def streams(draw: st.DrawFn) -> list[Record | int]:
    """Records and, as plain numbers, watermarks, which only rise; the last one is the end of time."""
    elements: list[Record | int] = []
    watermark = -30
    steps = st.tuples(st.sampled_from("aaabbc"), st.integers(-20, 60)) | st.integers(1, 25)
    for number, step in enumerate(draw(st.lists(steps, max_size=40))):
        if isinstance(step, tuple):
            elements.append((*step, number))
        else:
            watermark += step
            elements.append(watermark)
    return [*elements, END]


LATENESS = st.sampled_from([0, 0, 3, 20])


# Functions


class Everything(ProcessWindowFunction[Any, Any, str, Any]):
    """Shows which window fired with which elements, and when."""

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        window = context.window()
        yield key, (window.start, window.end), context.current_watermark(), tuple(elements)


class Gather(AggregateFunction[Record, tuple[Record, ...], tuple[Record, ...]]):
    """Keeps all records, as an aggregate."""

    def create_accumulator(self) -> tuple[Record, ...]:
        return ()

    def add(self, value: Record, accumulator: tuple[Record, ...]) -> tuple[Record, ...]:
        return (*accumulator, value)

    def get_result(self, accumulator: tuple[Record, ...]) -> tuple[Record, ...]:
        return accumulator

    def merge(self, acc_a: tuple[Any, ...], acc_b: tuple[Any, ...]) -> tuple[Record, ...]:
        return acc_a + acc_b


SHAPES: dict[str, dict[str, Any]] = {
    "all records": {"function": Everything()},
    "aggregate": {"aggregate": Gather(), "function": Everything()},
    "reduce": {"reduce": lambda a, b: (*a, *b), "function": Everything()},
}


class SameTrigger(EventTimeTrigger):
    """The default trigger under another name, so that the general operator runs."""


@dataclass
class Seen:
    """What came out: the firings between two elements of the input, late records, and their number."""

    fired: list[list[Any]] = field(default_factory=list)
    late: list[Any] = field(default_factory=list)
    dropped: int = 0
    entries_left: int = 0


def run(
    elements: list[Record | int], assigner: Any, lateness: int, shape: str, **changes: Any
) -> tuple[type, Seen]:
    """An operator over a stream; reduced records are wrapped, so that they can be strung together."""
    settings_of = {"trigger": EventTimeTrigger(), "late_tag": LATE, **SHAPES[shape], **changes}
    spec = WindowSpec(assigner=assigner, allowed_lateness_ms=lateness, **settings_of)
    seen = Seen()
    is_wrapped = shape == "reduce"
    with KeyedOneInputOperatorHarness(
        spec, lambda record: (record[0] if is_wrapped else record)[0]
    ) as harness:
        for element in elements:
            if isinstance(element, int):
                harness.process_watermark(element)
            else:
                harness.process_element((element,) if is_wrapped else element, element[1])
            late_at = None if isinstance(element, int) else element[1]
            seen.fired.append(
                [
                    _unwrapped(fired, timestamp, shape, late_at)
                    for fired, timestamp in harness.records()
                ]
            )
            late = harness.records(LATE)
            seen.late += [value[0] if is_wrapped else value for value, _ in late]
            assert all((value[0] if is_wrapped else value)[1] == time for value, time in late)
            harness.clear_output()
        operator = harness.operator
        assert isinstance(operator, (AlignedWindowOperator, WindowOperator))
        seen.dropped = operator.late_records_dropped.get_count()
        seen.entries_left = harness.state_entry_count() + harness.event_time_timer_count()
        return type(operator), seen


def _unwrapped(fired: Any, timestamp: int | None, shape: str, late_at: int | None) -> Any:
    """The result without the wrapping. A record that fires a window gives the result its time, as in PyFlink."""
    key, window, watermark, elements = fired
    assert timestamp == (window[1] - 1 if late_at is None else late_at)
    if shape != "all records":
        (elements,) = elements
    return key, window, watermark, elements


# Windows that are the same for all keys


def model(elements: list[Record | int], pace: Pace, lateness: int) -> Seen:
    """The results by the definition."""
    seen = Seen()
    watermark = BEGINNING
    contents: dict[tuple[int, int], dict[str, list[Record]]] = {}
    for element in elements:
        fired: list[Any] = []
        if isinstance(element, int):
            for window in sorted(contents, key=lambda window: window[1]):
                if watermark < window[1] - 1 <= element:
                    fired += [
                        (key, window, element, tuple(records))
                        for key, records in contents[window].items()
                    ]
                if window[1] - 1 + lateness <= element:
                    del contents[window]
            watermark = element
        else:
            key, time, _ = element
            is_taken = False
            for window in pace.windows(time):
                if window[1] - 1 + lateness <= watermark:
                    continue
                is_taken = True
                records = contents.setdefault(window, {}).setdefault(key, [])
                records.append(element)
                if window[1] - 1 <= watermark:
                    fired.append((key, window, watermark, tuple(records)))
            if not is_taken and time + lateness <= watermark:
                seen.late.append(element)
        seen.fired.append(fired)
    return seen


@settings(max_examples=100)
@given(elements=streams(), pace=paces(), lateness=LATENESS, shape=st.sampled_from(sorted(SHAPES)))
def test_tumbling_and_sliding_windows_equal_their_definition(
    elements: list[Record | int], pace: Pace, lateness: int, shape: str
) -> None:
    expected = model(elements, pace, lateness)
    kind, seen = run(elements, pace.assigner(), lateness, shape)
    assert kind is AlignedWindowOperator
    assert seen == expected
    kind, seen = run(elements, pace.assigner(), lateness, shape, trigger=SameTrigger())
    assert kind is WindowOperator
    assert seen == expected


@settings(max_examples=100)
@given(elements=streams(), pace=paces(), lateness=LATENESS)
def test_late_records_without_a_side_output_are_counted(
    elements: list[Record | int], pace: Pace, lateness: int
) -> None:
    expected = model(elements, pace, lateness)
    for trigger in (EventTimeTrigger(), SameTrigger()):
        _, seen = run(
            elements, pace.assigner(), lateness, "aggregate", late_tag=None, trigger=trigger
        )
        assert seen.dropped == len(expected.late)
        assert seen.late == []
        assert seen.fired == expected.fired


# Sessions


@dataclass
class Session:
    start: int
    end: int
    records: list[Record]

    def touches(self, other: Session) -> bool:
        return self.start <= other.end and other.start <= self.end


def gap_of(record: Record) -> int:
    return 1 + record[1] % 7


def session_model(elements: list[Record | int], lateness: int, gap: Any) -> Seen:
    """The results by the definition. Elements of a session are a sorted tuple."""
    seen = Seen()
    watermark = BEGINNING
    sessions: dict[str, list[Session]] = {}
    for element in elements:
        fired: list[Any] = []
        if isinstance(element, int):
            for key, of_key in sessions.items():
                fired += [
                    _of_session(key, session, element)
                    for session in of_key
                    if watermark < session.end - 1 <= element
                ]
                of_key[:] = [item for item in of_key if item.end - 1 + lateness > element]
            watermark = element
        else:
            key, time, _ = element
            of_key = sessions.setdefault(key, [])
            session = Session(time, time + gap(element), [element])
            for other in [item for item in of_key if item.touches(session)]:
                of_key.remove(other)
                session = Session(
                    min(session.start, other.start),
                    max(session.end, other.end),
                    other.records + session.records,
                )
            if session.end - 1 + lateness > watermark:
                of_key.append(session)
                if session.end - 1 <= watermark:
                    fired.append(_of_session(key, session, watermark))
            elif time + lateness <= watermark:
                seen.late.append(element)
        seen.fired.append(fired)
    return seen


def _of_session(key: str, session: Session, watermark: int) -> Any:
    return key, (session.start, session.end), watermark, tuple(sorted(session.records))


@settings(max_examples=100)
@given(
    elements=streams(),
    gap=st.integers(1, 8) | st.none(),
    lateness=LATENESS,
    shape=st.sampled_from(sorted(SHAPES)),
)
def test_session_windows_equal_their_definition(
    elements: list[Record | int], gap: int | None, lateness: int, shape: str
) -> None:
    """A gap of None is one that differs by record."""
    if gap is None:
        expected = session_model(elements, lateness, gap_of)
        is_wrapped = shape == "reduce"
        assigner: Any = DynamicEventTimeSessionWindows(
            (lambda record: gap_of(record[0])) if is_wrapped else gap_of
        )
    else:
        expected = session_model(elements, lateness, lambda _: gap)
        assigner = EventTimeSessionWindows.with_gap(gap)
    kind, seen = run(elements, assigner, lateness, shape)
    assert kind is SessionWindowOperator
    kind, general = run(elements, assigner, lateness, shape, trigger=SameTrigger())
    assert kind is MergingWindowOperator
    assert seen == general
    for fired in seen.fired:
        ends = [window[1] for _, window, _, _ in fired]
        assert ends == sorted(ends)
    found = [
        Counter((*firing[:3], tuple(sorted(firing[3]))) for firing in fired) for fired in seen.fired
    ]
    assert found == [Counter(fired) for fired in expected.fired]
    assert seen.late == expected.late
    assert seen.entries_left == 0


@pytest.mark.parametrize("lateness", [0, 5])
def test_records_of_a_session_keep_their_order(lateness: int) -> None:
    elements: list[Record | int] = [("a", 10, 0), ("a", 12, 1), ("a", 9, 2), ("a", 14, 3), END]
    _, seen = run(elements, EventTimeSessionWindows.with_gap(3), lateness, "all records")
    assert [fired[3] for fired in seen.fired[-1]] == [tuple(elements[:-1])]


# Processing time


class SameClockTrigger(ProcessingTimeTrigger):
    """The default trigger under another name, so that the general operator runs."""


@settings(max_examples=100)
@given(
    steps=st.lists(st.sampled_from("aaabbc") | st.integers(1, 9), max_size=40),
    pace=paces(),
    shape=st.sampled_from(sorted(SHAPES)),
    cut=st.integers(0, 40),
)
def test_processing_time_windows_equal_those_of_the_general_operator(
    steps: list[str | int], pace: Pace, shape: str, cut: int
) -> None:
    """A number lets the clock go on; the job starts again at the cut."""
    spans = (
        (pace.size, pace.offset)
        if pace.slide == pace.size
        else (pace.size, pace.slide, pace.offset)
    )
    kind: Any = (
        TumblingProcessingTimeWindows if len(spans) == _PAIR else SlidingProcessingTimeWindows
    )

    def fired(triggers: list[Any]) -> list[Any]:
        found: list[Any] = []
        snapshots, now, number = None, 0, 0
        for trigger, part in zip(triggers, (steps[:cut], [*steps[cut:], 50]), strict=True):
            spec = WindowSpec(assigner=kind.of(*spans), trigger=trigger, **SHAPES[shape])
            is_general = isinstance(trigger, SameClockTrigger)
            with KeyedOneInputOperatorHarness(
                spec, lambda value: value[0][0], snapshots=snapshots
            ) as harness:
                assert type(harness.operator) is (
                    WindowOperator if is_general else ProcessingTimeWindowOperator
                )
                harness.set_processing_time(now)
                for step in part:
                    if isinstance(step, int):
                        now += step
                        harness.set_processing_time(now)
                    else:
                        harness.process_element(((step, number),), None)
                        number += 1
                    found.append(harness.values())
                    harness.clear_output()
                snapshots = [harness.snapshot()]
        assert harness.processing_time_timer_count() == harness.state_entry_count() == 0
        return found

    fast, general = ProcessingTimeTrigger(), SameClockTrigger()
    expected = fired([general, general])
    assert fired([fast, fast]) == fired([general, fast]) == fired([fast, general]) == expected
    if "a" in steps and pace.slide <= pace.size:
        assert any(expected)


class Numbered(ProcessWindowFunction[Any, Any, str, Any]):
    """Shows which window of a key fired with which elements."""

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        yield key, context.window().id, tuple(elements)


class SamePurgingTrigger(PurgingTrigger[Any, Any]):
    """The default trigger of count windows under another name, so that the general operator runs."""


@settings(max_examples=100)
@given(
    keys=st.lists(st.sampled_from("aaabbc"), max_size=40),
    windows=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 5)), min_size=2, max_size=2),
    is_tumbling=st.booleans(),
    shape=st.sampled_from(sorted(SHAPES)),
    cut=st.integers(0, 40),
)
def test_count_windows_equal_those_of_the_general_operator(
    keys: list[str], windows: list[tuple[int, int]], is_tumbling: bool, shape: str, cut: int
) -> None:
    """The job starts again at the cut with other windows, and with the state that either operator left."""

    def fired(*kinds: type[PurgingTrigger[Any, Any]]) -> list[Any]:
        found: list[Any] = []
        snapshots, number = None, 0
        for kind, part, (size, slide) in zip(kinds, (keys[:cut], keys[cut:]), windows, strict=True):
            trigger = kind(CountTrigger(size))
            assigner = (
                CountTumblingWindowAssigner.of(size)
                if is_tumbling
                else CountSlidingWindowAssigner.of(size, slide)
            )
            arguments = {**SHAPES[shape], "function": Numbered()}
            spec = WindowSpec(assigner=assigner, trigger=trigger, **arguments)
            is_general = isinstance(trigger, SamePurgingTrigger)
            with KeyedOneInputOperatorHarness(
                spec, lambda value: value[0][0], snapshots=snapshots
            ) as harness:
                has_gaps = slide > size and not is_tumbling
                assert type(harness.operator) is (
                    WindowOperator if is_general or has_gaps else CountWindowOperator
                )
                for key in part:
                    harness.process_element(((key, number),), None)
                    number += 1
                    found.append(harness.values())
                    harness.clear_output()
                snapshots = [harness.snapshot()]
                found.append(harness.state_entry_count())
        return found

    fast, general = PurgingTrigger, SamePurgingTrigger
    expected = fired(general, general)
    assert fired(fast, fast) == fired(general, fast) == fired(fast, general) == expected
    if windows[0] == (1, 1) and cut and keys:
        assert any(isinstance(item, list) and item for item in expected)


# Restarts


def harnesses(
    assigner: Any, trigger: Any, lateness: int, parallelism: int, snapshots: Any
) -> list[KeyedOneInputOperatorHarness]:
    spec = WindowSpec(
        assigner=assigner,
        trigger=trigger,
        allowed_lateness_ms=lateness,
        late_tag=LATE,
        function=Everything(),
    )
    return [
        KeyedOneInputOperatorHarness(
            spec,
            lambda record: record[0],
            parallelism=parallelism,
            subtask=subtask,
            max_parallelism=4,
            snapshots=snapshots,
        )
        for subtask in range(parallelism)
    ]


@settings(max_examples=60)
@given(
    elements=streams(),
    cuts=st.lists(st.integers(0, 40), max_size=3).map(sorted),
    windows=paces() | st.integers(1, 8),
    lateness=LATENESS,
    data=st.data(),
)
def test_restarts_at_any_time_and_parallelism_change_no_window(
    elements: list[Record | int],
    cuts: list[int],
    windows: Pace | int,
    lateness: int,
    data: st.DataObject,
) -> None:
    """Each life of the job may run another of the two operators; a number is a session's gap."""
    assigner = (
        windows.assigner()
        if isinstance(windows, Pace)
        else EventTimeSessionWindows.with_gap(windows)
    )
    _, expected = run(elements, assigner, lateness, "all records")
    found = Seen()
    snapshots: Any = None
    watermark = BEGINNING
    for start, end in zip([0, *cuts], [*cuts, len(elements)], strict=True):
        parallelism = data.draw(st.integers(1, 3), "parallelism")
        trigger = data.draw(st.sampled_from([EventTimeTrigger(), SameTrigger()]), "trigger")
        subtasks = harnesses(assigner, trigger, lateness, parallelism, snapshots)
        for subtask in subtasks:
            subtask.open()
            if watermark > BEGINNING:
                subtask.process_watermark(watermark)
            assert subtask.values() == []
        for element in elements[start:end]:
            if isinstance(element, int):
                watermark = element
                for subtask in subtasks:
                    subtask.process_watermark(element)
            else:
                (owner,) = (subtask for subtask in subtasks if subtask.owns(element[0]))
                owner.process_element(element, element[1])
            found.fired.append([value for subtask in subtasks for value in subtask.values()])
            found.late += [value for subtask in subtasks for value in subtask.values(LATE)]
            for subtask in subtasks:
                subtask.clear_output()
        snapshots = [subtask.snapshot() for subtask in subtasks]
        for subtask in subtasks:
            subtask.close()
    assert [Counter(fired) for fired in found.fired] == [Counter(fired) for fired in expected.fired]
    assert found.late == expected.late
