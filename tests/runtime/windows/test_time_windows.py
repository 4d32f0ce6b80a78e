from __future__ import annotations

import pickle
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.functions.window import TimeWindowSerializer
from opchain.runtime.state.operator_state import SubtaskStateStore
from opchain.runtime.time import MIN_LONG_VALUE, Duration, Time
from opchain.runtime.windows.assigners import WindowAssigner
from opchain.runtime.windows.time_windows import (
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowStagger,
)
from opchain.runtime.windows.triggers import EventTimeTrigger, ProcessingTimeTrigger

if TYPE_CHECKING:
    from opchain.runtime.functions.window import TimeWindow


class At(WindowAssigner.WindowAssignerContext):
    def __init__(self, now: int) -> None:
        self.now = now

    def get_current_processing_time(self) -> int:
        return self.now

    def get_runtime_context(self) -> Any:
        raise NotImplementedError


def assigned(assigner: WindowAssigner[Any, TimeWindow], time: int) -> list[tuple[int, int]]:
    """The windows at a time on the clock of the assigner; the other clock is far away."""
    timestamp, now = (time, 10**9) if assigner.is_event_time() else (10**9, time)
    windows = assigner.assign_windows("record", timestamp, At(now))
    return [(window.start, window.end) for window in windows]


TUMBLING: list[Any] = [TumblingEventTimeWindows, TumblingProcessingTimeWindows]
SLIDING: list[Any] = [SlidingEventTimeWindows, SlidingProcessingTimeWindows]
SPANS: list[Any] = [10, Time.milliseconds(10), Duration.of_millis(10), timedelta(milliseconds=10)]


@pytest.mark.parametrize("kind", TUMBLING)
@pytest.mark.parametrize("span", SPANS, ids=repr)
def test_the_size_may_be_a_time_duration_or_timedelta(kind: Any, span: Any) -> None:
    assert assigned(kind.of(span), 25) == [(20, 30)]


@pytest.mark.parametrize("kind", TUMBLING)
@pytest.mark.parametrize(
    ("offset", "time", "window"),
    [(0, -1, (-10, 0)), (0, 0, (0, 10)), (3, 2, (-7, 3)), (3, 3, (3, 13)), (-4, 6, (6, 16))],
)
def test_tumbling_windows_are_shifted_by_their_offset(
    kind: Any, offset: int, time: int, window: tuple[int, int]
) -> None:
    assert assigned(kind.of(10, offset), time) == [window]


# The windows of Flink 2.3's SlidingEventTimeWindows for size 10, slide 3 and offset 1.
SLIDES = [
    (-7, [(-8, 2), (-11, -1), (-14, -4)]),
    (0, [(-2, 8), (-5, 5), (-8, 2)]),
    (7, [(7, 17), (4, 14), (1, 11), (-2, 8)]),
    (10, [(10, 20), (7, 17), (4, 14), (1, 11)]),
    (23, [(22, 32), (19, 29), (16, 26)]),
]


@pytest.mark.parametrize("kind", SLIDING)
@pytest.mark.parametrize(("time", "windows"), SLIDES)
def test_sliding_windows_are_those_of_flink(
    kind: Any, time: int, windows: list[tuple[int, int]]
) -> None:
    assert assigned(kind.of(10, 3, 1), time) == windows


@pytest.mark.parametrize("kind", SLIDING)
@pytest.mark.parametrize(
    ("time", "windows"), [(-7, []), (0, [(0, 2)]), (7, []), (10, [(10, 12)]), (12, [])]
)
def test_records_in_a_gap_between_sliding_windows_have_no_window(
    kind: Any, time: int, windows: list[tuple[int, int]]
) -> None:
    assert assigned(kind.of(2, 5), time) == windows


@given(
    size=st.integers(1, 30),
    slide=st.integers(1, 30),
    shift=st.floats(-1, 1, exclude_min=True, exclude_max=True),
    time=st.integers(-200, 200),
)
def test_sliding_windows_are_all_windows_that_contain_the_time(
    size: int, slide: int, shift: float, time: int
) -> None:
    offset = int(shift * slide)
    every = [(k * slide + offset, k * slide + offset + size) for k in range(-300, 300)]
    holding = [window for window in every if window[0] <= time < window[1]]
    for kind in SLIDING:
        assert assigned(kind.of(size, slide, offset), time) == sorted(holding, reverse=True)


ASSIGNERS: list[Any] = [kind.of(10) for kind in TUMBLING] + [kind.of(10, 3) for kind in SLIDING]


@pytest.mark.parametrize("assigner", ASSIGNERS, ids=repr)
def test_is_event_time_is_true_for_event_time_assigners_only(assigner: Any) -> None:
    is_event_time = "EventTime" in type(assigner).__name__
    assert assigner.is_event_time() is is_event_time
    trigger = EventTimeTrigger if is_event_time else ProcessingTimeTrigger
    assert type(assigner.get_default_trigger(None)) is trigger
    assert assigner.get_window_serializer() == TimeWindowSerializer()
    assert assigned(pickle.loads(pickle.dumps(assigner)), 5) == assigned(assigner, 5)


@pytest.mark.parametrize("assigner", [ASSIGNERS[0], ASSIGNERS[2]], ids=repr)
def test_event_time_windows_require_a_timestamp(assigner: Any) -> None:
    with pytest.raises(ValueError, match=r"'late!' has no timestamp; call assign_timestamps"):
        assigner.assign_windows("late!", MIN_LONG_VALUE, At(0))


@pytest.mark.parametrize("kind", TUMBLING)
@pytest.mark.parametrize(("size", "offset"), [(0, 0), (-10, 0), (10, 10), (10, -10), (10, 11)])
def test_invalid_sizes_and_offsets_of_tumbling_windows_are_refused(
    kind: Any, size: int, offset: int
) -> None:
    with pytest.raises(
        ValueError, match=rf"{kind.__name__}: size is {size} ms and offset {offset}"
    ):
        kind.of(size, offset)


@pytest.mark.parametrize("kind", SLIDING)
@pytest.mark.parametrize(
    ("size", "slide", "offset"),
    [(0, 3, 0), (-1, 3, 0), (5, 0, 0), (5, -3, 0), (5, 3, 3), (5, 3, -3)],
)
def test_invalid_sizes_slides_and_offsets_of_sliding_windows_are_refused(
    kind: Any, size: int, slide: int, offset: int
) -> None:
    with pytest.raises(ValueError, match=rf"{kind.__name__}: size is {size} ms, slide {slide} ms"):
        kind.of(size, slide, offset)


@pytest.mark.parametrize("span", [1.5, True, "10", None])
def test_a_size_that_is_not_a_span_of_time_is_refused(span: Any) -> None:
    with pytest.raises(TypeError, match="a span of time is"):
        TumblingEventTimeWindows.of(span)


def test_time_windows_are_printed_as_in_pyflink() -> None:
    assert [str(assigner) for assigner in ASSIGNERS] == [
        "TumblingEventTimeWindows(10, 0)",
        "TumblingProcessingTimeWindows(10, 0)",
        "SlidingEventTimeWindows(10, 3, 0)",
        "SlidingProcessingTimeWindows(10, 3, 0)",
    ]


class OfSubtask(At):
    """The context of one subtask, with a name and operator state."""

    def __init__(self, now: int, subtask: int) -> None:
        super().__init__(now)
        self._subtask = subtask
        self._store = SubtaskStateStore("'windows'")

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(
            get_task_name=lambda: "windows", get_index_of_this_subtask=lambda: self._subtask
        )

    def get_operator_state_store(self) -> SubtaskStateStore:
        return self._store


@pytest.mark.parametrize("kind", TUMBLING)
def test_random_window_stagger_is_different_per_subtask_and_kept_per_run(
    kind: Any,
) -> None:
    def starts() -> list[int]:
        found = []
        for subtask in range(4):
            assigner, context = kind.of(1000, 0, WindowStagger.RANDOM), OfSubtask(5300, subtask)
            first, second = (assigner.assign_windows("r", 5300, context)[0] for _ in range(2))
            assert first == second
            assert first.start <= 5300 < first.end == first.start + 1000
            found.append(first.start % 1000)
        return found

    assert len(set(starts())) == 4
    assert starts() == starts()


def test_natural_window_stagger_starts_with_the_first_record() -> None:
    assigner = TumblingEventTimeWindows.of(1000, window_stagger=WindowStagger.NATURAL)
    (window,) = assigner.assign_windows("r", 7100, OfSubtask(5300, 0))
    assert (window.start, window.end) == (6300, 7300)


def test_an_object_that_is_not_a_window_stagger_is_refused() -> None:
    with pytest.raises(TypeError, match="window_stagger is 'RANDOM'; use a WindowStagger"):
        TumblingEventTimeWindows.of(1000, 0, "RANDOM")  # type: ignore[arg-type]
