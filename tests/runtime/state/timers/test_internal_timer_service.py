"""Timers of both clocks, their keys, and batch mode."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from timer_operator import Operator

from opchain.runtime.errors import StateError
from opchain.runtime.state.keyed.keyed_backend import VOID
from opchain.runtime.state.timers import internal_timer_service
from opchain.runtime.time import MAX_LONG_VALUE, MIN_LONG_VALUE


@pytest.fixture(params=["event", "processing"], name="domain")
def a_domain(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


def test_timers_fire_up_to_and_including_their_time_with_their_key(domain: str) -> None:
    operator = Operator()
    for time, key in ((5, "a"), (5, True), (7, 1)):
        operator.register(domain, time, key)
    operator.backend.set_current_key("another")
    assert operator.reach(domain, 4) == []
    assert operator.reach(domain, 5) == [(domain, 5, "a"), (domain, 5, True)]
    assert operator.reach(domain, 100) == [(domain, 7, 1)]
    assert operator.reach(domain, 200) == []


def test_a_timer_registered_twice_fires_once(domain: str) -> None:
    operator = Operator()
    for _ in range(3):
        operator.register(domain, 5)
    assert len(operator.reach(domain, 5)) == 1


def test_deleted_timers_do_not_fire(domain: str) -> None:
    operator = Operator()
    operator.register(domain, 5, "a")
    operator.register(domain, 5, "b")
    operator.delete(domain, 5, "a")
    operator.delete(domain, 6, "b")
    assert operator.reach(domain, 10) == [(domain, 5, "b")]


def test_a_timer_registered_by_a_timer_fires_in_the_same_pass_if_due(domain: str) -> None:
    operator = Operator()
    operator.register(domain, 5)
    again = iter([("r", 6), ("r", 3), ("r", 12), ("r", 5)])

    def react(*_: Any) -> None:
        for _, time in again:
            operator.register(domain, time, operator.backend.current_key)

    operator.reaction = react
    # The earlier timer fires at once, although its time has passed; the later one waits.
    fired = [time for _, time, _ in operator.reach(domain, 10)]
    assert fired == [5, 3, 5, 6]
    assert operator.reach(domain, 12) == [(domain, 12, "k")]


@pytest.mark.parametrize("count", [4, 5])
def test_timers_that_go_on_after_the_end_of_the_input_cause_a_warning(
    count: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(internal_timer_service, "MANY_TIMERS", 4)
    operator = Operator()
    operator.register("event", 10)

    def react(_domain: str, time: int, _namespace: Any) -> None:
        if time < 10 + count:
            operator.register("event", time + 1, operator.backend.current_key)

    operator.reaction = react
    assert len(operator.reach("event", MAX_LONG_VALUE)) == 1 + count
    warned = "after the end of the input, timers have registered 4 further timers" in caplog.text
    assert warned == (count > 4)


def test_a_timer_may_delete_another_due_timer(domain: str) -> None:
    operator = Operator()
    for time in (5, 6, 7):
        operator.register(domain, time)
    operator.reaction = lambda _domain, time, _namespace: operator.delete(domain, time + 1)
    assert [time for _, time, _ in operator.reach(domain, 10)] == [5, 7]


def test_an_event_time_timer_in_the_past_fires_with_the_next_watermark() -> None:
    operator = Operator()
    operator.services.advance_watermark(100)
    operator.register("event", 50)
    operator.register("event", -(2**63))
    assert operator.fired == []
    assert operator.reach("event", 101) == [("event", -(2**63), "k"), ("event", 50, "k")]


def test_a_processing_time_timer_in_the_past_fires_with_the_next_mail() -> None:
    operator = Operator(now=100)
    operator.register("processing", 50)
    assert operator.fired == []
    operator.run_mail()
    assert operator.fired == [("processing", 50, "k")]


def test_only_the_first_processing_time_timer_is_registered_with_the_clock() -> None:
    operator = Operator()
    for time in (50, 20, 30, 10, 40):
        operator.register("processing", time)
    assert operator.clock.waiting_calls == 1
    assert [time for _, time, _ in operator.reach("processing", 35)] == [10, 20, 30]
    assert operator.clock.waiting_calls == 1
    operator.delete("processing", 40)
    assert operator.reach("processing", 45) == []
    assert [time for _, time, _ in operator.reach("processing", 60)] == [50]
    assert operator.clock.waiting_calls == 0


def test_a_timer_registered_by_another_does_not_delay_other_timers() -> None:
    operator = Operator()
    operator.register("processing", 40, "a")
    operator.register("processing", 50, "b")

    def react(_domain: str, time: int, _namespace: Any) -> None:
        if time == 40:
            operator.register("processing", 140, "a")

    operator.reaction = react
    assert operator.reach("processing", 45) == [("processing", 40, "a")]
    assert operator.clock.next_call_at() == 50
    assert operator.clock.waiting_calls == 1
    assert operator.reach("processing", 60) == [("processing", 50, "b")]
    assert operator.reach("processing", 140) == [("processing", 140, "a")]


def test_processing_time_timers_fire_when_their_mail_runs() -> None:
    operator = Operator()
    operator.register("processing", 10)
    operator.clock.advance_to(10)
    assert operator.fired == []
    operator.run_mail()
    assert operator.fired == [("processing", 10, "k")]


def test_the_current_watermark_is_that_of_the_firing_timers() -> None:
    operator = Operator()
    assert operator.timers.current_watermark == MIN_LONG_VALUE
    seen: list[int] = []
    operator.reaction = lambda *_: seen.append(operator.timers.current_watermark)
    operator.register("event", 5)
    operator.services.advance_watermark(9)
    assert seen == [9]
    assert operator.timers.current_processing_time() == 0


def test_the_last_watermark_fires_all_timers() -> None:
    operator = Operator()
    for time in (5, MAX_LONG_VALUE, 10**15):
        operator.register("event", time)
    assert [time for _, time, _ in operator.reach("event", MAX_LONG_VALUE)] == [
        5,
        10**15,
        MAX_LONG_VALUE,
    ]


def test_timers_require_a_current_key() -> None:
    operator = Operator()
    with pytest.raises(StateError, match="without a current key"):
        operator.timers.register_event_time_timer(VOID, 5)


def test_timers_of_both_clocks_are_counted() -> None:
    operator = Operator()
    operator.register("event", 1)
    operator.register("event", 2)
    operator.register("processing", 1)
    assert operator.timers.event_time_timer_count() == 2
    assert operator.timers.processing_time_timer_count() == 1
    assert operator.services.event_time_timer_count() == 2
    assert operator.services.processing_time_timer_count() == 1


def test_in_batch_mode_timers_wait_for_the_end_of_the_key() -> None:
    operator = Operator(is_batch=True)
    operator.register("processing", 3)
    operator.register("event", 7)
    operator.register("event", 5)
    operator.services.advance_watermark(100)
    operator.advance_to(100)
    assert operator.fired == []
    assert operator.timers.current_watermark == MIN_LONG_VALUE
    operator.services.end_key()
    assert [timer[:2] for timer in operator.fired] == [
        ("event", 5),
        ("event", 7),
        ("processing", 3),
    ]
    assert operator.timers.current_watermark == MIN_LONG_VALUE


def test_in_batch_mode_the_last_watermark_ends_the_current_key() -> None:
    operator = Operator(is_batch=True)
    operator.register("event", 7)
    assert operator.reach("event", MAX_LONG_VALUE) == [("event", 7, "k")]


def test_in_batch_mode_on_timer_cannot_register_timers() -> None:
    operator = Operator(is_batch=True)
    operator.register("event", 7)
    operator.register("processing", 8)
    seen: list[int] = []

    def react(domain: str, time: int, _namespace: Any) -> None:
        seen.append(operator.timers.current_watermark)
        operator.register(domain, time + 1)

    operator.reaction = react
    operator.services.end_key()
    assert seen == [MAX_LONG_VALUE] * 2
    operator.fired.clear()
    operator.services.end_key()
    assert operator.fired == []


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["register", "delete", "watermark"]),
            st.integers(0, 8),
            st.sampled_from("ab"),
        ),
        max_size=30,
    )
)
def test_event_time_timers_fire_as_in_a_model(actions: list[tuple[str, int, str]]) -> None:
    operator = Operator()
    model: list[tuple[int, str]] = []
    watermark = -1
    for action, time, key in actions:
        if action == "register":
            operator.register("event", time, key)
            if (time, key) not in model:
                model.append((time, key))
        elif action == "delete":
            operator.delete("event", time, key)
            if (time, key) in model:
                model.remove((time, key))
        else:
            watermark += time
            due = sorted((timer for timer in model if timer[0] <= watermark), key=lambda t: t[0])
            model = [timer for timer in model if timer[0] > watermark]
            assert [(t, k) for _, t, k in operator.reach("event", watermark)] == due
