"""A set of timers with its changes restores the timers in the order in which they fire."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from opchain.runtime.state.keys.key_identity import key_identity
from opchain.runtime.state.keys.key_router import KeyRouter
from opchain.runtime.state.timers.keyed_timers import (
    KeyedTimers,
    TimerChanges,
    apply_changes,
    by_key_group,
    journaled,
)

ROUTER, IDENTITY = KeyRouter(8, 1), key_identity()

TIMER = st.tuples(st.integers(0, 3), st.sampled_from("xyz"), st.integers(0, 5))
STEP = st.one_of(
    st.tuples(st.just("add"), TIMER),
    st.tuples(st.just("add"), TIMER),
    st.tuples(st.just("discard"), TIMER),
    st.tuples(st.just("fire"), TIMER),
)


def run(timers: KeyedTimers, steps: list[Any]) -> None:
    for what, (time, namespace, key) in steps:
        if what == "add":
            timers.add(time, namespace, key)
        elif what == "discard":
            timers.discard(time, namespace, key)
        else:
            while timers.pop_until(time) is not None:
                pass


@given(st.lists(st.lists(STEP, max_size=12), max_size=5))
@example(
    [
        [("add", (2, "x", 0)), ("add", (2, "y", 1))],
        [("add", (2, "x", 1)), ("add", (2, "y", 0)), ("discard", (2, "y", 0))],
    ]
)
@settings(max_examples=150)
def test_changes_restore_the_same_timers_in_the_same_order(epochs: list[Any]) -> None:
    live, again = KeyedTimers(), KeyedTimers()
    for steps in epochs:
        live.journal = {}
        run(live, steps)
        changes = by_key_group(journaled(live), ROUTER)
        apply_changes(again, sorted(changes.items()), IDENTITY, ROUTER)
        assert list(again) == list(live)
        assert len(again) == len(live)


def test_a_timer_that_was_added_and_removed_is_not_written() -> None:
    timers = KeyedTimers()
    timers.journal = {}
    timers.add(1, "x", "a")
    timers.add(2, "x", "a")
    assert timers.pop_until(1) == (1, "x", "a")
    assert journaled(timers) == TimerChanges(added=[(0, 2, "x", "a")])


def test_a_timer_that_is_registered_again_is_last() -> None:
    timers = KeyedTimers()
    for key in "ab":
        timers.add(1, "x", key)
    timers.journal = {}
    timers.discard(1, "x", "a")
    timers.add(1, "x", "a")
    again = KeyedTimers()
    for key in "ab":
        again.add(1, "x", key)
    apply_changes(again, list(by_key_group(journaled(timers), ROUTER).items()), IDENTITY, ROUTER)
    assert [key for _, _, key in again] == ["b", "a"]


def test_timers_of_one_time_and_namespace_are_split_by_key_group() -> None:
    timers = KeyedTimers()
    for key in range(20):
        timers.add(1, "x", key)
        timers.add(1, "y", key)
    groups = dict(zip(range(20), ROUTER.key_groups_of(list(range(20))), strict=True))
    changes = TimerChanges(dropped=[(1, "x", [groups[3]])])
    apply_changes(timers, list(by_key_group(changes, ROUTER).items()), IDENTITY, ROUTER)
    left = [key for _, namespace, key in timers if namespace == "x"]
    assert left == [key for key in range(20) if groups[key] != groups[3]]
    assert len(timers) == 20 + len(left)
