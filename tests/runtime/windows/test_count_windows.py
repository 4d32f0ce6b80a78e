from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.functions.window import CountWindow, CountWindowSerializer
from opchain.runtime.windows.assigners import WindowAssigner
from opchain.runtime.windows.global_windows import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
)


class OneKey(WindowAssigner.WindowAssignerContext):
    """The value state of one key, under the name of its descriptor."""

    def __init__(self) -> None:
        self.states: dict[str, OneKey.Value] = {}

    class Value:
        held: int | None = None

        def value(self) -> int | None:
            return self.held

        def update(self, value: int) -> None:
            self.held = value

    def get_current_processing_time(self) -> int:
        raise NotImplementedError

    def get_runtime_context(self) -> Any:
        return self

    def get_state(self, descriptor: Any) -> Value:
        return self.states.setdefault(descriptor.name, self.Value())


def windows_of(assigner: Any, records: int) -> list[list[int]]:
    context = OneKey()
    return [[w.id for w in assigner.assign_windows("r", 0, context)] for _ in range(records)]


def test_tumbling_count_windows_are_filled_one_after_the_other() -> None:
    assert windows_of(CountTumblingWindowAssigner.of(3), 7) == [[0], [0], [0], [1], [1], [1], [2]]


@given(st.integers(1, 9), st.integers(1, 9))
def test_sliding_count_windows_have_the_full_size(size: int, slide: int) -> None:
    records = 40
    got = windows_of(CountSlidingWindowAssigner.of(size, slide), records)
    for position, ids in enumerate(got):
        holding = [n for n in range(records) if n * slide <= position < n * slide + size]
        assert ids == sorted(holding, reverse=True)


ASSIGNERS: list[Any] = [CountTumblingWindowAssigner.of(3), CountSlidingWindowAssigner.of(3, 2)]


@pytest.mark.parametrize("assigner", ASSIGNERS, ids=repr)
def test_a_window_fires_when_it_is_full_and_drops_its_contents(panes: Any, assigner: Any) -> None:
    pane = panes(assigner.get_default_trigger(None))
    window = CountWindow(0)
    assert pane.elements(window, 1, 2, 3) == ["CONTINUE", "CONTINUE", "FIRE_AND_PURGE"]
    assert pane.is_clean()
    assert not assigner.is_event_time()
    assert assigner.get_window_serializer() == CountWindowSerializer()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CountTumblingWindowAssigner.of(0), "Tumbling.*window size is 0"),
        (lambda: CountSlidingWindowAssigner.of(-1, 2), "Sliding.*window size is -1"),
        (lambda: CountSlidingWindowAssigner.of(2, 0), "Sliding.*window slide is 0"),
    ],
)
def test_sizes_and_slides_must_be_positive(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_count_windows_are_printed_as_in_pyflink_and_can_be_pickled() -> None:
    assert [repr(pickle.loads(pickle.dumps(assigner))) for assigner in ASSIGNERS] == [
        "CountTumblingWindowAssigner(3)",
        "CountSlidingWindowAssigner(3, 2)",
    ]
