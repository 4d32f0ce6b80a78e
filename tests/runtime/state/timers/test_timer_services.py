"""All timers of an operator: several services, and snapshots."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from timer_operator import Operator

from opchain.runtime.errors import StateError
from opchain.runtime.state.keyed.keyed_backend import VOID
from opchain.runtime.state.keys.key_groups import key_group

TIMERS = st.lists(
    st.tuples(
        st.sampled_from(["event", "processing"]),
        st.integers(1, 5),
        st.sampled_from(["a", "b", 1, True, 2.0, "c"]),
    ),
    max_size=15,
)


@given(TIMERS, st.integers(1, 4))
def test_timers_survive_any_change_of_parallelism(timers: list[Any], after: int) -> None:
    operator = Operator()
    for timer in timers:
        operator.register(*timer)
    snapshot = operator.services.snapshot()
    for domain in ("event", "processing"):
        restored = [Operator(after, subtask, snapshots=[snapshot]) for subtask in range(after)]
        fired = [timer for part in restored for timer in part.reach(domain, 5)]
        expected = operator.reach(domain, 5)
        assert sorted(map(repr, fired)) == sorted(map(repr, expected))
        if after == 1:
            assert fired == expected


@given(TIMERS, TIMERS)
def test_timers_of_several_subtasks_are_merged_by_time(ones: list[Any], others: list[Any]) -> None:
    parts = [Operator(2, subtask) for subtask in range(2)]
    for domain, time, key in ones + others:
        for part in parts:
            part.backend.set_current_key(key)
            if _is_of(part, key):
                part.register(domain, time, key)
    united = Operator(snapshots=[part.services.snapshot() for part in parts])
    fired = united.reach("event", 5)
    assert [time for _, time, _ in fired] == sorted(time for _, time, _ in fired)
    assert len(fired) == sum(part.services.event_time_timer_count() for part in parts)


def _is_of(operator: Operator, key: Any) -> bool:

    return key_group(key, 16) in operator.backend.key_groups


def test_restored_processing_time_timers_are_registered_with_the_clock() -> None:
    operator = Operator()
    operator.register("processing", 30, namespace="w")
    restored = Operator(snapshots=[operator.services.snapshot()])
    assert restored.clock.waiting_calls == 1
    assert restored.reach("processing", 30) == [("processing", 30, "k")]


def test_timers_of_an_unused_service_are_kept_in_the_snapshot() -> None:
    operator = Operator()
    other = operator.services.service("others", operator)
    operator.backend.set_current_key("k")
    other.register_event_time_timer(VOID, 5)
    restored = Operator(snapshots=[operator.services.snapshot()])
    assert restored.services.snapshot() == operator.services.snapshot()


def test_without_timers_the_snapshot_is_empty() -> None:
    assert Operator().services.snapshot() == {}


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"garbage", "can't be read"), (pickle.dumps((7, {})), "has format 7")],
)
def test_a_damaged_or_foreign_snapshot_is_an_error(data: bytes, message: str) -> None:
    with pytest.raises(StateError, match=rf"'count' \(job.py:3\): a snapshot of timers {message}"):
        Operator(snapshots=[{0: data}])


def test_each_service_has_its_own_timers() -> None:
    operator = Operator()
    other = operator.services.service("others", operator)
    assert other is not operator.timers
    assert operator.services.service("others", operator) is other
    operator.register("event", 5)
    other.register_event_time_timer("w", 5)
    assert len(operator.reach("event", 5)) == 2
