from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.mailbox.mailbox_executor import MailboxExecutor
from opchain.runtime.mailbox.mailbox_processor import MailboxProcessor
from opchain.runtime.mailbox.processing_time_service import ProcessingTimeService, TimerHandle
from opchain.runtime.mailbox.task_mailbox import TaskMailbox
from opchain.runtime.mailbox.timer_service import SystemTimerService
from opchain.runtime.testing.operator_harness import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import OtherThreads, WatchedCondition


class Operator:
    """An operator with timers on a manual clock, whose mail runs when the test calls run_mail."""

    def __init__(
        self,
        mailbox: TaskMailbox | None = None,
        clock: ManualClock | None = None,
        priority: int = 0,
    ) -> None:
        self.mailbox = mailbox or TaskMailbox()
        self.executor = MailboxExecutor(self.mailbox, priority)
        self.clock = clock or ManualClock(100)
        self.service = ProcessingTimeService(self.clock, self.executor)
        self.fired: list[tuple[str, int, int]] = []

    def callback(self, name: str) -> Callable[[int], None]:
        return lambda at_ms: self.fired.append(
            (name, at_ms, self.service.current_processing_time())
        )

    def run_mail(self) -> list[tuple[str, int, int]]:
        while self.executor.try_yield():
            pass
        return self.fired


@pytest.fixture
def operator() -> Operator:
    return Operator()


# One timer


def test_a_callback_is_mail_that_runs_later(operator: Operator) -> None:
    operator.service.register_timer(110, operator.callback("t"))
    operator.clock.advance_to(109)
    assert operator.mailbox.size() == 0
    operator.clock.advance_to(110)
    assert operator.fired == []
    operator.clock.advance_to(113)

    assert [str(mail) for mail in operator.mailbox._queue] == [
        "'processing-time timer at 110' (priority 0)"
    ]
    assert operator.run_mail() == [("t", 110, 113)]
    operator.clock.advance_to(1000)
    assert operator.run_mail() == [("t", 110, 113)]


@pytest.mark.parametrize("at_ms", [99, 100])
def test_a_timer_for_the_present_or_the_past_fires_soon(operator: Operator, at_ms: int) -> None:
    operator.service.register_timer(at_ms, operator.callback("t"))
    assert operator.run_mail() == [("t", at_ms, 100)]


def test_timers_fire_in_the_order_of_time_and_registration(operator: Operator) -> None:
    for name, at_ms in [("c", 120), ("a", 110), ("d", 120), ("b", 115)]:
        operator.service.register_timer(at_ms, operator.callback(name))
    operator.clock.advance_to(130)
    assert [name for name, *_ in operator.run_mail()] == ["a", "b", "c", "d"]


def test_an_error_of_a_callback_keeps_its_type_and_names_the_timer(operator: Operator) -> None:
    operator.service.register_timer(100, lambda _: {}["key"])
    with pytest.raises(KeyError) as caught:
        operator.executor.yield_()
    assert caught.value.__notes__ == ["while running mail 'processing-time timer at 100'"]


def test_a_timer_that_registers_itself_again_does_not_starve_the_default_action() -> None:
    clock = ManualClock()
    trace: list[str] = []
    processor = MailboxProcessor(lambda _: trace.append("record"))
    service = ProcessingTimeService(clock, processor.mailbox_executor(0))

    def fire(_: int) -> None:
        trace.append("timer")
        service.register_timer(clock.current_processing_time(), fire)

    service.register_timer(0, fire)
    for _ in range(3):
        processor.turn()
    assert trace == ["timer", "record"] * 3


def test_operators_of_one_task_share_a_clock_but_not_a_priority() -> None:
    mailbox, clock = TaskMailbox(), ManualClock(0)
    upstream = Operator(mailbox, clock, priority=0)
    downstream = Operator(mailbox, clock, priority=1)
    upstream.service.register_timer(1, upstream.callback("up"))
    downstream.service.register_timer(2, downstream.callback("down"))
    clock.advance_to(2)

    downstream.run_mail()
    assert (upstream.fired, downstream.fired) == ([], [("down", 2, 2)])
    upstream.run_mail()
    assert upstream.fired == [("up", 1, 2)]


# Cancelling


def test_a_cancelled_timer_does_not_fire(operator: Operator) -> None:
    timer = operator.service.register_timer(110, operator.callback("t"))
    assert not timer.is_cancelled
    assert timer.cancel()
    assert timer.is_cancelled
    assert operator.clock.waiting_calls == 0
    operator.clock.advance_to(200)
    assert operator.run_mail() == []
    assert not timer.cancel()


def test_a_timer_can_be_cancelled_after_its_mail_was_put(operator: Operator) -> None:
    timer = operator.service.register_timer(110, operator.callback("t"))
    operator.clock.advance_to(110)
    assert operator.mailbox.size() == 1
    assert timer.cancel()
    assert operator.run_mail() == []


def test_a_timer_that_has_fired_cannot_be_cancelled(operator: Operator) -> None:
    timer = operator.service.register_timer(100, operator.callback("t"))
    operator.run_mail()
    assert not timer.cancel()
    assert not timer.is_cancelled


# Repeating


def test_a_fixed_rate_catches_up_missed_periods_in_order(operator: Operator) -> None:
    operator.service.schedule_at_fixed_rate(operator.callback("rate"), 5, 10)
    operator.service.register_timer(120, operator.callback("t"))
    operator.clock.advance_to(126)
    assert operator.run_mail() == [
        ("rate", 105, 126),
        ("rate", 115, 126),
        ("t", 120, 126),
        ("rate", 125, 126),
    ]
    operator.clock.advance_to(135)
    assert operator.run_mail()[4:] == [("rate", 135, 135)]


def test_a_fixed_delay_counts_from_the_end_of_the_callback(operator: Operator) -> None:
    def slow(at_ms: int) -> None:
        operator.callback("delay")(at_ms)
        operator.clock.advance(7)

    operator.service.schedule_with_fixed_delay(slow, 5, 10)
    operator.clock.advance_to(126)
    assert operator.run_mail() == [("delay", 105, 126)]
    operator.clock.advance_to(142)
    assert operator.run_mail() == [("delay", 105, 126)]
    operator.clock.advance_to(143)
    assert operator.run_mail() == [("delay", 105, 126), ("delay", 143, 143)]


SCHEDULES = [
    ProcessingTimeService.schedule_at_fixed_rate,
    ProcessingTimeService.schedule_with_fixed_delay,
]


def schedule(operator: Operator, kind: Callable[..., TimerHandle], *args: object) -> TimerHandle:
    handle: TimerHandle = getattr(operator.service, kind.__name__)(*args)
    return handle


@pytest.mark.parametrize("kind", SCHEDULES)
def test_a_repeated_timer_may_fire_at_once(
    operator: Operator, kind: Callable[..., TimerHandle]
) -> None:
    timer = schedule(operator, kind, operator.callback("t"), 0, 10)
    assert operator.run_mail() == [("t", 100, 100)]
    assert operator.clock.waiting_calls == 1
    assert timer.cancel()
    assert operator.clock.waiting_calls == 0


@pytest.mark.parametrize("kind", SCHEDULES)
def test_a_repeated_timer_can_cancel_itself(
    operator: Operator, kind: Callable[..., TimerHandle]
) -> None:
    def fire_twice(at_ms: int) -> None:
        operator.callback("t")(at_ms)
        if len(operator.fired) == 2:
            assert timer.cancel()

    timer = schedule(operator, kind, fire_twice, 10, 10)
    for _ in range(5):
        operator.clock.advance(10)
        operator.run_mail()
    assert len(operator.fired) == 2
    assert operator.clock.waiting_calls == 0


@pytest.mark.parametrize("kind", SCHEDULES)
@pytest.mark.parametrize("period_ms", [0, -1])
def test_a_period_must_be_positive(
    operator: Operator, kind: Callable[..., TimerHandle], period_ms: int
) -> None:
    with pytest.raises(ValueError, match=f"the period of a timer is {period_ms} ms"):
        schedule(operator, kind, operator.callback("t"), 10, period_ms)


# Quiescing and closing


def test_a_quiesced_service_fires_no_timers_except_mail_already_put(operator: Operator) -> None:
    operator.service.register_timer(110, operator.callback("put"))
    operator.service.register_timer(120, operator.callback("registered"))
    operator.service.schedule_with_fixed_delay(operator.callback("repeated"), 10, 5)
    operator.clock.advance_to(110)
    operator.service.quiesce()
    waiting = operator.clock.waiting_calls
    operator.service.register_timer(150, operator.callback("too late"))
    assert operator.clock.waiting_calls == waiting
    operator.clock.advance_to(200)

    assert [name for name, *_ in operator.run_mail()] == ["put", "repeated"]
    operator.clock.advance_to(300)
    assert len(operator.run_mail()) == 2
    assert operator.service.current_processing_time() == 300


@pytest.mark.parametrize("kind", SCHEDULES)
def test_a_timer_of_a_closed_mailbox_does_not_fire(
    operator: Operator, kind: Callable[..., TimerHandle]
) -> None:
    schedule(operator, kind, operator.callback("t"), 10, 10)
    operator.mailbox.close()
    operator.clock.advance(100)
    assert operator.clock.waiting_calls == 0


# With the system clock


class SystemTimers:
    """A processor whose timers fire in another thread, on a clock set by hand."""

    def __init__(self) -> None:
        self.now_ms = 100
        self.timers = SystemTimerService(lambda: self.now_ms)
        self.mailbox = TaskMailbox()
        self.executor = MailboxExecutor(self.mailbox, 0)
        self.service = ProcessingTimeService(self.timers, self.executor)
        self.fired: list[tuple[int, int]] = []

    def callback(self, at_ms: int) -> None:
        self.fired.append((at_ms, threading.get_ident()))


@pytest.fixture
def system() -> Iterator[SystemTimers]:
    system = SystemTimers()
    yield system
    system.timers.shutdown()


def test_the_timer_thread_puts_mail_and_the_mailbox_thread_runs_it(
    system: SystemTimers, watch: Callable[[TaskMailbox], WatchedCondition]
) -> None:
    watch(system.mailbox)
    system.service.register_timer(50, system.callback)
    system.executor.yield_()
    assert system.fired == [(50, threading.get_ident())]


def test_timers_can_be_registered_from_any_thread(
    system: SystemTimers, other_threads: OtherThreads
) -> None:
    other_threads.run(lambda: system.service.register_timer(50, system.callback))
    system.executor.yield_()
    assert system.fired == [(50, threading.get_ident())]


def test_the_timer_thread_keeps_a_fixed_rate(system: SystemTimers) -> None:
    system.now_ms = 131
    system.service.schedule_at_fixed_rate(system.callback, -30, 10)
    for _ in range(3):
        system.executor.yield_()
    assert [at_ms for at_ms, _ in system.fired] == [101, 111, 121]
