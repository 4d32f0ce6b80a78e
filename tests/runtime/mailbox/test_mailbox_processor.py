from __future__ import annotations

import threading
import traceback
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.mailbox.mailbox_processor import Controller, MailboxProcessor
from opchain.runtime.mailbox.task_mailbox import (
    MailboxClosedError,
    MailboxState,
    NotMailboxThreadError,
    TaskMailbox,
)
from opchain.runtime.testing.operator_harness import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import OtherThreads


class Loop:
    """A processor whose default action and mail write a trace."""

    def __init__(self) -> None:
        self.trace: list[str] = []
        self.mailbox = TaskMailbox()
        self.processor = MailboxProcessor(self.default_action, mailbox=self.mailbox)

    def default_action(self, _: Controller) -> None:
        self.trace.append("default")

    def send(self, name: str, then: Callable[[], object] | None = None) -> None:
        def command() -> None:
            self.trace.append(name)
            if then is not None:
                then()

        self.processor.mailbox_executor().execute(command, name)

    def turns(self, number: int) -> list[str]:
        for _ in range(number):
            assert self.processor.turn()
        return self.trace


@pytest.fixture
def loop() -> Loop:
    return Loop()


# Turns of the loop


def test_without_mail_a_turn_is_one_default_action(loop: Loop) -> None:
    assert loop.turns(3) == ["default"] * 3


def test_mail_runs_before_the_default_action(loop: Loop) -> None:
    loop.send("a")
    loop.send("b")
    assert loop.turns(2) == ["a", "b", "default", "default"]


def test_mail_that_sends_itself_does_not_starve_the_default_action(loop: Loop) -> None:
    def rearm() -> None:
        loop.send("timer", rearm)

    rearm()
    assert loop.turns(3) == ["timer", "default"] * 3


def test_a_turn_runs_only_mail_that_was_in_the_mailbox_at_its_start(loop: Loop) -> None:
    loop.send("a", lambda: loop.send("sent by a"))
    loop.send("b")
    assert loop.turns(2) == ["a", "b", "default", "sent by a", "default"]


def test_mail_run_by_yield_does_not_run_again(loop: Loop) -> None:
    executor = loop.processor.mailbox_executor()

    def wait_for_both() -> None:
        executor.yield_()
        executor.yield_()

    loop.send("waits", wait_for_both)
    loop.send("a")
    loop.send("b")
    assert loop.turns(2) == ["waits", "a", "b", "default", "default"]


def test_a_generator_can_run_the_loop_turn_by_turn(loop: Loop) -> None:
    def task() -> object:
        while loop.processor.turn():
            yield len(loop.trace)

    pulls = iter(task())  # type: ignore[call-overload]
    assert next(pulls) == 1
    loop.send("mail")
    assert next(pulls) == 3
    loop.processor.all_actions_completed()
    assert list(pulls) == []
    assert loop.trace == ["default", "mail", "default"]


def test_a_turn_must_run_in_the_mailbox_thread(loop: Loop, other_threads: OtherThreads) -> None:
    loop.send("a")
    with pytest.raises(NotMailboxThreadError, match="thread 'intruder' cannot create a batch"):
        other_threads.run(loop.processor.turn, name="intruder")
    assert loop.trace == []


def test_mail_runs_under_the_lock() -> None:
    lock = threading.RLock()
    held: dict[str, bool] = {}

    def note(name: str) -> None:
        held[name] = lock._is_owned()

    processor = MailboxProcessor(lambda _: note("default"), lock=lock)
    processor.mailbox_executor(3).execute(lambda: note("mail"), "mail")
    processor.turn()
    assert held == {"mail": True, "default": False}


# Ending and suspending the loop


@pytest.mark.parametrize("other_thread", [False, True])
def test_a_suspended_loop_continues_when_it_is_run_again(
    loop: Loop, other_thread: bool, other_threads: OtherThreads
) -> None:
    suspend = loop.processor.suspend
    for name in ("a", "b"):
        loop.send(name, lambda: other_threads.run(suspend) if other_thread else suspend())
    loop.send("c")

    while loop.processor.turn():
        pass
    assert loop.trace == ["a"]
    while loop.processor.turn():
        pass
    assert loop.trace == ["a", "b"]
    assert loop.turns(1) == ["a", "b", "c", "default"]
    assert not loop.processor.is_completed


def test_suspend_overtakes_queued_mail(loop: Loop) -> None:
    for number in range(100):
        loop.send(str(number))
    loop.processor.suspend()
    while loop.processor.turn():
        pass
    assert loop.trace == []
    assert loop.mailbox.size() == 100


def test_a_completed_loop_stays_completed(loop: Loop) -> None:
    loop.send("a")
    loop.processor.all_actions_completed()
    for _ in range(2):
        while loop.processor.turn():
            pass
        assert not loop.processor.turn()
        assert not loop.processor.run_mailbox_step()
    assert loop.trace == []
    assert loop.processor.is_completed


def test_a_completed_loop_without_mail_does_not_run_its_default_action(loop: Loop) -> None:
    loop.processor.all_actions_completed()
    assert not loop.processor.turn()
    assert not loop.mailbox.has_mail()
    assert not loop.processor.turn()
    assert loop.trace == []


@pytest.mark.parametrize("by", [MailboxProcessor.suspend, MailboxProcessor.all_actions_completed])
@pytest.mark.parametrize("waiting", ["default action", "mail"])
def test_the_loop_ends_when_yield_runs_the_control_mail(
    by: Callable[[MailboxProcessor], None], waiting: str
) -> None:
    trace: list[str] = []

    def operate(_: object = None) -> None:
        by(processor)
        processor.mailbox_executor(2).yield_()  # runs the control mail
        trace.append(waiting)

    def default_action(controller: Controller) -> None:
        if waiting == "default action":
            operate(controller)
        else:
            trace.append("default action that should not run")

    processor = MailboxProcessor(default_action)
    if waiting == "mail":
        processor.mailbox_executor().execute(operate, "waiting mail")
    while processor.turn():
        pass
    assert trace == [waiting]


def test_control_methods_after_the_end_do_nothing(loop: Loop) -> None:
    loop.processor.prepare_close()
    loop.processor.suspend()
    loop.processor.all_actions_completed()
    assert loop.mailbox.size() == 0


# Single steps of the loop


def test_a_step_runs_one_mail_or_one_default_action(loop: Loop) -> None:
    loop.send("a", lambda: loop.send("sent by a"))
    loop.send("b")
    traces = []
    for _ in range(4):
        assert loop.processor.run_mailbox_step()
        traces.append(loop.trace[-1])
    assert traces == ["a", "b", "sent by a", "default"]


def test_a_step_never_waits(loop: Loop) -> None:
    loop.processor.suspend_default_action()
    assert not loop.processor.run_mailbox_step()
    loop.send("a")
    assert loop.processor.run_mailbox_step()
    assert loop.trace == ["a"]


def test_steps_continue_after_a_suspension(loop: Loop) -> None:
    loop.processor.suspend()
    assert loop.processor.run_mailbox_step()
    assert loop.processor.run_mailbox_step()
    assert loop.trace == ["default"]
    assert loop.turns(1) == ["default", "default"]


def test_a_step_can_complete_the_loop(loop: Loop) -> None:
    loop.processor.all_actions_completed()
    assert loop.processor.run_mailbox_step()
    assert not loop.processor.run_mailbox_step()
    assert loop.trace == []


def test_a_step_must_run_in_the_mailbox_thread(loop: Loop, other_threads: OtherThreads) -> None:
    with pytest.raises(NotMailboxThreadError):
        other_threads.run(loop.processor.run_mailbox_step)


# Metrics


def test_mail_run_by_yield_is_counted_and_timed_too() -> None:
    clock = ManualClock()
    processor = MailboxProcessor(lambda _: None, mailbox=TaskMailbox(clock.now_ns))
    executor = processor.mailbox_executor(1)
    executor.execute(executor.yield_, "waits")
    clock.advance(2)
    executor.execute(lambda: clock.advance(100), "long")
    clock.advance(5)
    processor.turn()

    statistics = processor.metrics.statistics()
    assert statistics.mails_processed == 2
    assert [ns // 1_000_000 for ns in statistics.latencies_ns] == [5, 7]


# Errors


class UserError(Exception):
    pass


def fail_far_away() -> None:
    raise UserError("lost connection")


def test_an_error_reported_by_another_thread_fails_the_loop_before_other_mail(
    loop: Loop, other_threads: OtherThreads
) -> None:
    def work() -> None:
        try:
            fail_far_away()
        except UserError as error:
            loop.processor.report_error(error)

    loop.send("a")
    other_threads.run(work, name="async io")
    with pytest.raises(UserError, match="lost connection") as caught:
        list(iter(loop.processor.turn, False))

    assert loop.trace == []
    assert caught.value.__notes__ == ["while running mail 'error reported by thread 'async io''"]
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[-2:] == ["work", "fail_far_away"]  # the stack of the thread that failed
    assert "turn" in frames


@pytest.mark.parametrize("error", [KeyError("k"), SystemExit(3), KeyboardInterrupt()])
def test_a_reported_error_keeps_its_type(loop: Loop, error: BaseException) -> None:
    loop.processor.report_error(error)
    with pytest.raises(type(error)) as caught:
        loop.processor.turn()
    assert caught.value is error


def test_an_error_reported_after_close_is_raised_in_the_reporting_thread(loop: Loop) -> None:
    loop.processor.close()
    error = UserError("too late")
    with pytest.raises(MailboxClosedError, match="error reported by thread 'MainThread'") as caught:
        loop.processor.report_error(error)
    assert caught.value.__cause__ is error


def test_mail_behind_failed_mail_is_kept(loop: Loop) -> None:
    loop.send("fails", fail_far_away)
    loop.send("b")
    with pytest.raises(UserError):
        loop.processor.turn()
    assert loop.mailbox.has_new_mail
    assert loop.turns(1) == ["fails", "b", "default"]


def test_an_error_of_the_default_action_is_raised_by_the_loop() -> None:
    processor = MailboxProcessor(lambda _: fail_far_away())
    with pytest.raises(UserError):
        list(iter(processor.turn, False))


# Draining and closing


def test_drain_runs_the_queued_mail_only(loop: Loop) -> None:
    loop.send("a", lambda: loop.send("sent by a"))
    loop.send("b")
    loop.processor.drain()
    assert loop.trace == ["a", "b"]
    assert loop.mailbox.size() == 1


def test_a_quiesced_mailbox_is_drained(loop: Loop) -> None:
    loop.send("a")
    loop.processor.prepare_close()
    assert loop.mailbox.state is MailboxState.QUIESCED
    loop.processor.drain()
    assert loop.trace == ["a"]


def test_drain_stops_if_a_mail_has_run_the_others(loop: Loop) -> None:
    loop.send("waits", loop.processor.mailbox_executor().yield_)
    loop.send("a")
    loop.processor.drain()
    assert loop.trace == ["waits", "a"]


def test_mail_that_was_not_drained_is_dropped_by_close(loop: Loop) -> None:
    loop.send("fails", fail_far_away)
    future = loop.processor.mailbox_executor().submit(list, "submitted")
    loop.processor.prepare_close()
    with pytest.raises(UserError):
        loop.processor.drain()

    assert [mail.description for mail in loop.processor.close()] == ["submitted"]
    assert future.cancelled()
    assert loop.mailbox.state is MailboxState.CLOSED


def test_close_drops_all_mail_even_if_one_of_them_raises(loop: Loop) -> None:
    futures = [loop.processor.mailbox_executor().submit(list, "submitted") for _ in range(3)]
    loop.mailbox._queue[1].on_drop = fail_far_away
    with pytest.raises(UserError):
        loop.processor.close()
    assert [future.cancelled() for future in futures] == [True, False, True]
    futures[1].cancel()


def test_close_cancels_submitted_results_that_others_wait_for(
    loop: Loop, other_threads: OtherThreads
) -> None:
    submitted = threading.Event()

    def ask() -> bool:
        future = loop.processor.mailbox_executor().submit(list, "question")
        submitted.set()
        return future.exception(10) is None

    asked = other_threads.start(ask)
    assert submitted.wait(60)
    loop.processor.close()
    assert type(asked.exception(10)).__name__ == "CancelledError"
