from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from opchain.runtime.state.keyed.keyed_backend import VOID
from opchain.runtime.state.timers.keyed_timers import KeyedTimers


def drained(timers: KeyedTimers, until: int = 10**9) -> list[tuple[int, Any, Any]]:
    found = []
    while (timer := timers.pop_until(until)) is not None:
        found.append(timer)
    return found


def test_timers_are_returned_by_time_and_then_in_registration_order() -> None:
    timers = KeyedTimers()
    for time, key in ((5, "c"), (3, "b"), (5, "a"), (-1, "z"), (5, "b")):
        assert timers.add(time, None, key)
    assert list(timers) == [
        (-1, None, "z"),
        (3, None, "b"),
        (5, None, "c"),
        (5, None, "a"),
        (5, None, "b"),
    ]
    assert drained(timers, 4) == [(-1, None, "z"), (3, None, "b")]
    assert timers.next_time() == 5
    assert drained(timers, 5) == [(5, None, "c"), (5, None, "a"), (5, None, "b")]
    assert timers.next_time() is None


def test_no_memory_is_kept_for_a_time_without_timers() -> None:
    timers = KeyedTimers()
    for time in (5, 6):
        for key in ("a", "b"):
            timers.add(time, VOID, key)
        assert [timers.pop_until(time), timers.pop_until(time)] == [
            (time, VOID, key) for key in "ab"
        ]
        assert timers.next_time() is None
    assert not timers._walks
    for key in ("b", "a"):
        timers.add(5, VOID, key)
    assert drained(timers) == [(5, VOID, "b"), (5, VOID, "a")]


def test_a_timer_registered_twice_is_kept_once() -> None:
    timers = KeyedTimers()
    assert timers.add(5, "w", "a")
    assert not timers.add(5, "w", "a")
    assert timers.add(5, "v", "a")
    assert not timers.add(5, "w", "a")
    assert timers.add(6, "w", "a")
    assert len(timers) == 3


def test_timers_of_one_time_are_grouped_by_namespace() -> None:
    timers = KeyedTimers()
    for namespace, key in (("w", 1), ("v", 2), ("w", 3)):
        timers.add(5, namespace, key)
    assert drained(timers) == [(5, "w", 1), (5, "w", 3), (5, "v", 2)]


def test_discarded_timers_are_not_returned() -> None:
    timers = KeyedTimers()
    for key in "abc":
        timers.add(5, None, key)
    timers.discard(5, None, "b")
    timers.discard(5, None, "b")
    timers.discard(6, None, "a")
    timers.discard(5, "w", "a")
    assert len(timers) == 2
    assert drained(timers) == [(5, None, "a"), (5, None, "c")]
    timers.add(7, None, "a")
    timers.discard(7, None, "a")
    assert timers.next_time() is None
    assert timers.add(7, None, "a")
    assert drained(timers) == [(7, None, "a")]


def test_timers_of_a_time_may_change_while_they_are_returned() -> None:
    timers = KeyedTimers()
    for key in "abcd":
        timers.add(5, None, key)
    assert timers.pop_until(9) == (5, None, "a")
    timers.discard(5, None, "c")
    timers.add(5, None, "late")
    timers.add(5, None, "a")
    timers.add(3, None, "earlier")
    assert drained(timers, 9) == [
        (3, None, "earlier"),
        (5, None, "b"),
        (5, None, "d"),
        (5, None, "late"),
        (5, None, "a"),
    ]


def test_the_position_of_the_last_registration_is_forgotten_with_its_time() -> None:
    timers = KeyedTimers()
    namespace = object()
    for _ in range(3):
        assert timers.add(5, namespace, "a")
        assert drained(timers) == [(5, namespace, "a")]
    for key in ("a", "b"):
        timers.add(5, namespace, key)
    assert len(drained(timers)) == 2
    assert timers.add(5, namespace, "b")
    assert len(timers) == 1


@pytest.mark.parametrize("namespace", [None, VOID])
def test_repeatedly_moved_timers_do_not_accumulate(namespace: Any) -> None:
    timers = KeyedTimers()
    for time in range(10_000):
        timers.add(time + 1000, namespace, "a")
        timers.discard(time + 999, namespace, "a")
    assert len(timers) == 1
    assert len(timers._heap) < 200
    assert len(timers._by_time) < 200
    assert drained(timers, 10**6) == [(10_999, namespace, "a")]


@pytest.mark.parametrize("namespace", [None, VOID])
def test_repeatedly_registered_timers_do_not_accumulate(namespace: Any) -> None:
    timers = KeyedTimers()
    timers.add(7, namespace, "b")
    timers.discard(7, namespace, "b")
    for _ in range(10_000):
        timers.add(5, namespace, "a")
        timers.discard(5, namespace, "a")
    assert timers.add(5, namespace, "a")
    assert len(timers._heap) < 200
    assert timers.next_time() == 5
    assert drained(timers) == [(5, namespace, "a")]
    assert timers.next_time() is None
    assert not timers._heap


def test_sweeping_keeps_the_time_whose_timers_are_being_returned() -> None:
    timers = KeyedTimers()
    for key in range(3):
        timers.add(0, None, key)
    for time in range(1, 200):
        timers.add(time, None, "x")
    assert timers.pop_until(0) == (0, None, 0)
    for time in range(1, 200):
        timers.discard(time, None, "x")
    for key in (1, 2):
        timers.discard(0, None, key)
    timers.add(0, None, "new")
    assert drained(timers) == [(0, None, "new")]
    assert len(timers._heap) == 0


class TimersAgainstAList(RuleBasedStateMachine):
    """The model is a list of (time, namespace, key) in the order of registration."""

    def __init__(self) -> None:
        super().__init__()
        self.timers = KeyedTimers()
        self.model: list[tuple[int, Any, int]] = []

    @rule(
        time=st.integers(-3, 6), namespace=st.sampled_from(["v", "w", VOID]), key=st.integers(0, 3)
    )
    def add(self, time: int, namespace: Any, key: int) -> None:
        timer = (time, namespace, key)
        assert self.timers.add(*timer) is (timer not in self.model)
        if timer not in self.model:
            self.model.append(timer)

    @rule(
        time=st.integers(-3, 6), namespace=st.sampled_from(["v", "w", VOID]), key=st.integers(0, 3)
    )
    def discard(self, time: int, namespace: Any, key: int) -> None:
        self.timers.discard(time, namespace, key)
        if (time, namespace, key) in self.model:
            self.model.remove((time, namespace, key))

    @rule(until=st.integers(-3, 6))
    def pop(self, until: int) -> None:
        due = [timer for timer in self.model if timer[0] <= until]
        found = self.timers.pop_until(until)
        if not due:
            assert found is None
            return
        assert found is not None
        earliest = min(time for time, _, _ in due)
        assert found in self.model
        assert found[0] == earliest
        self.model.remove(found)

    @invariant()
    def the_same_timers_wait(self) -> None:
        assert len(self.timers) == len(self.model)
        assert sorted(self.timers, key=repr) == sorted(self.model, key=repr)
        assert self.timers.next_time() == min((time for time, _, _ in self.model), default=None)


TestTimersAgainstAList = TimersAgainstAList.TestCase
