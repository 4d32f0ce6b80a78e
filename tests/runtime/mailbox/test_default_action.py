"""The default action controls the loop: it suspends itself, is resumed, and completes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.errors import InternalError
from opchain.runtime.mailbox.mailbox_processor import Controller, MailboxProcessor, Suspension
from opchain.runtime.mailbox.task_mailbox import NotMailboxThreadError, TaskMailbox
from opchain.runtime.testing.operator_harness import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import OtherThreads, WatchedCondition

MS = 1_000_000


class Input:
    """A default action that suspends itself whenever it has no record to process."""

    def __init__(self, *records: str) -> None:
        self.records = list(records)
        self.trace: list[str] = []
        self.calls = 0
        self.suspension: Suspension | None = None

    def __call__(self, controller: Controller) -> None:
        self.calls += 1
        if not self.records:
            self.suspension = controller.suspend_default_action()
        elif (record := self.records.pop(0)) == "end":
            controller.all_actions_completed()
        else:
            self.trace.append(record)

    def resume(self) -> None:
        assert self.suspension is not None
        self.suspension.resume()


def test_the_loop_ends_when_all_actions_are_completed() -> None:
    records = Input("a", "b", "end", "after the end")
    processor = MailboxProcessor(records)
    while processor.turn():
        pass

    assert records.trace == ["a", "b"]
    assert processor.is_completed


def test_completion_overtakes_mail_which_is_left_for_draining() -> None:
    records = Input("end")
    processor = MailboxProcessor(records)
    records.records.insert(0, "a")
    ran: list[str] = []
    processor.turn()
    processor.turn()  # requests completion
    processor.mailbox_executor().execute(lambda: ran.append("mail"), "mail")
    while processor.turn():
        pass

    assert ran == []
    processor.prepare_close()
    processor.drain()
    assert ran == ["mail"]


def test_a_suspended_action_is_not_called_while_mail_runs() -> None:
    records = Input()
    processor = MailboxProcessor(records)
    mails: list[int] = []
    processor.turn()  # suspends
    for number in range(3):
        processor.mailbox_executor().execute(lambda n=number: mails.append(n), "mail")  # type: ignore[misc]
        assert processor.turn()

    assert mails == [0, 1, 2]
    assert records.calls == 1
    assert processor._suspension is not None


def test_a_turn_without_input_waits_for_mail_without_spinning(
    other_threads: OtherThreads, watch: Callable[[Any], WatchedCondition]
) -> None:
    mailbox = TaskMailbox()
    not_empty = watch(mailbox)
    records = Input()
    processor = MailboxProcessor(records, mailbox=mailbox)
    processor.turn()
    ran: list[str] = []

    def send_once_the_loop_waits() -> None:
        assert not_empty.somebody_waits.wait(60)
        processor.mailbox_executor().execute(lambda: ran.append("mail"), "mail")

    sender = other_threads.start(send_once_the_loop_waits)
    assert processor.turn()
    sender.result(60)

    assert ran == ["mail"]
    assert records.calls == 1
    assert not_empty.waits == 1


def test_another_thread_resumes_the_default_action_by_mail(
    other_threads: OtherThreads, watch: Callable[[Any], WatchedCondition]
) -> None:
    mailbox = TaskMailbox()
    not_empty = watch(mailbox)
    records = Input("a")
    processor = MailboxProcessor(records, mailbox=mailbox)

    def bring_input_once_the_loop_waits() -> None:
        assert not_empty.somebody_waits.wait(60)
        records.records += ["b", "end"]
        records.resume()

    bringer = other_threads.start(bring_input_once_the_loop_waits)
    while processor.turn():
        pass
    bringer.result(60)

    assert records.trace == ["a", "b"]
    assert records.calls == 4  # a, nothing, b, end


def test_a_resume_before_the_wait_is_not_lost(other_threads: OtherThreads) -> None:
    records = Input()
    processor = MailboxProcessor(records)
    processor.turn()
    records.records += ["a", "end"]
    other_threads.run(records.resume)
    while processor.turn():  # would wait forever if the resume were lost
        pass

    assert records.trace == ["a"]


def test_the_mailbox_thread_resumes_at_once() -> None:
    records = Input()
    processor = MailboxProcessor(records)
    processor.turn()
    records.resume()

    assert processor._suspension is None
    records.records += ["a"]
    processor.turn()
    assert records.trace == ["a"]


def test_after_mail_that_resumes_the_default_action_runs_in_the_same_turn() -> None:
    records = Input()
    processor = MailboxProcessor(records)
    processor.turn()
    records.records += ["a"]
    processor.mailbox_executor().execute(records.resume, "input has come")
    processor.turn()
    assert records.trace == ["a"]


@pytest.mark.parametrize("from_mailbox_thread", [True, False])
def test_only_the_first_resume_counts(
    from_mailbox_thread: bool, other_threads: OtherThreads
) -> None:
    records = Input()
    processor = MailboxProcessor(records)
    processor.turn()
    old = records.suspension
    assert old is not None
    old.resume()
    old.resume()
    processor.turn()  # suspends again

    if from_mailbox_thread:
        old.resume()
    else:
        other_threads.run(old.resume)
        processor.turn()
    assert processor._suspension is not None


def test_suspending_twice_is_an_error() -> None:
    processor = MailboxProcessor(list)  # type: ignore[arg-type]
    processor.suspend_default_action()
    with pytest.raises(InternalError, match="already suspended"):
        processor.suspend_default_action()


def test_another_thread_cannot_suspend(other_threads: OtherThreads) -> None:
    processor = MailboxProcessor(list)  # type: ignore[arg-type]
    with pytest.raises(NotMailboxThreadError, match="cannot suspend the default action"):
        other_threads.run(processor.suspend_default_action)
    assert processor._suspension is None


@pytest.mark.parametrize("end", [MailboxProcessor.prepare_close, MailboxProcessor.close])
def test_resuming_after_the_end_of_the_loop_does_nothing(
    end: Callable[[MailboxProcessor], object], other_threads: OtherThreads
) -> None:
    processor = MailboxProcessor(list)  # type: ignore[arg-type]
    suspension = processor.suspend_default_action()
    end(processor)
    other_threads.run(suspension.resume)
    assert processor._suspension is not None


def test_a_completed_loop_stays_completed_when_its_action_is_resumed() -> None:
    records = Input()
    processor = MailboxProcessor(records)
    processor.turn()
    processor.all_actions_completed()
    assert not processor.turn()
    records.resume()

    assert not processor.turn()
    assert records.calls == 1


def test_a_loop_completed_in_its_action_ends_although_the_action_suspends() -> None:
    def default_action(controller: Controller) -> None:
        controller.all_actions_completed()
        processor.mailbox_executor(0).yield_()
        controller.suspend_default_action()

    processor = MailboxProcessor(default_action)
    assert not processor.turn()
    assert not processor.turn()  # would wait forever otherwise


@pytest.mark.parametrize("missing", ["input", "output"])
def test_suspended_time_is_idle_or_back_pressured_by_its_timer(
    missing: str, other_threads: OtherThreads, watch: Callable[[Any], WatchedCondition]
) -> None:
    clock = ManualClock()
    mailbox = TaskMailbox(clock.now_ns)
    not_empty = watch(mailbox)

    def suspend(controller: Controller) -> None:
        metrics = processor.metrics
        controller.suspend_default_action(
            metrics.idle if missing == "input" else metrics.back_pressured
        )

    processor = MailboxProcessor(suspend, mailbox=mailbox)
    clock.advance(1)  # busy
    processor.turn()
    clock.advance(2)  # the thread is not in the loop between two turns

    def send_once_the_loop_waits() -> None:
        assert not_empty.somebody_waits.wait(60)
        clock.advance(30)
        processor.mailbox_executor().execute(lambda: clock.advance(400), "long mail")

    sender = other_threads.start(send_once_the_loop_waits)
    processor.turn()
    sender.result(60)

    statistics = processor.metrics.statistics()
    expected_idle, expected_back_pressured = (30, 0) if missing == "input" else (0, 30)
    assert statistics.idle_ns == expected_idle * MS
    assert statistics.back_pressured_ns == expected_back_pressured * MS
    assert statistics.busy_ns == 403 * MS


def test_suspended_time_without_a_timer_is_busy(
    other_threads: OtherThreads, watch: Callable[[Any], WatchedCondition]
) -> None:
    clock = ManualClock()
    mailbox = TaskMailbox(clock.now_ns)
    not_empty = watch(mailbox)
    processor = MailboxProcessor(Input(), mailbox=mailbox)
    processor.turn()

    def send_once_the_loop_waits() -> None:
        assert not_empty.somebody_waits.wait(60)
        clock.advance(30)
        processor.mailbox_executor().execute(list, "mail")

    sender = other_threads.start(send_once_the_loop_waits)
    processor.turn()
    sender.result(60)
    assert processor.metrics.statistics().busy_ns == 30 * MS
