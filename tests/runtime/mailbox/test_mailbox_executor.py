from __future__ import annotations

import threading
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.mailbox.mailbox_executor import MailboxExecutor, YieldNotAllowedError
from opchain.runtime.mailbox.mailbox_processor import MailboxProcessor
from opchain.runtime.mailbox.task_mailbox import (
    MAX_PRIORITY,
    MIN_PRIORITY,
    MailboxClosedError,
    NotMailboxThreadError,
    TaskMailbox,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import OtherThreads, WatchedCondition


@pytest.fixture
def mailbox() -> TaskMailbox:
    return TaskMailbox()


def fail() -> None:
    raise ZeroDivisionError


# Sending mail


def test_any_thread_sends_mail_and_the_mailbox_thread_runs_it(
    mailbox: TaskMailbox, other_threads: OtherThreads
) -> None:
    executor = MailboxExecutor(mailbox, 0)
    ran_in: list[int] = []
    other_threads.run(lambda: executor.execute(lambda: ran_in.append(threading.get_ident()), "m"))

    assert ran_in == []
    executor.yield_()
    assert ran_in == [threading.get_ident()]


def test_mail_has_description_priority_and_lock_of_its_executor(mailbox: TaskMailbox) -> None:
    lock = threading.RLock()
    executor = MailboxExecutor(mailbox, 7, lock)
    executor.execute(fail, "first")
    executor.submit(fail, "second").cancel()

    assert [(mail.description, mail.priority, mail.lock) for mail in mailbox.drain()] == [
        ("first", 7, lock),
        ("second", 7, lock),
    ]


@pytest.mark.parametrize("send", [MailboxExecutor.execute, MailboxExecutor.submit])
@pytest.mark.parametrize("end", [TaskMailbox.quiesce, TaskMailbox.close])
def test_a_closed_mailbox_rejects_mail(
    mailbox: TaskMailbox,
    send: Callable[[MailboxExecutor, Any, str], object],
    end: Callable[[TaskMailbox], object],
) -> None:
    end(mailbox)
    with pytest.raises(MailboxClosedError, match="cannot put mail 'too late'"):
        send(MailboxExecutor(mailbox, 0), fail, "too late")


# Futures


def test_a_submitted_result_is_received_in_the_submitting_thread(
    mailbox: TaskMailbox, other_threads: OtherThreads
) -> None:
    executor = MailboxExecutor(mailbox, 0)
    answer = other_threads.start(
        lambda: executor.submit(threading.get_ident, "who runs this?").result(60)
    )
    executor.yield_()
    assert answer.result(60) == threading.get_ident()


def test_an_error_is_raised_by_the_future_and_not_in_the_task(mailbox: TaskMailbox) -> None:
    executor = MailboxExecutor(mailbox, 0)
    future = executor.submit(fail, "fails")
    executor.yield_()
    assert isinstance(future.exception(0), ZeroDivisionError)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_a_system_exit_is_raised_by_the_future_and_in_the_task(
    mailbox: TaskMailbox, error: type[BaseException]
) -> None:
    def leave() -> None:
        raise error

    executor = MailboxExecutor(mailbox, 0)
    future = executor.submit(leave, "leaves")
    with pytest.raises(error):
        executor.yield_()
    assert isinstance(future.exception(0), error)


def test_a_cancelled_command_does_not_run(mailbox: TaskMailbox) -> None:
    ran: list[str] = []
    executor = MailboxExecutor(mailbox, 0)
    future = executor.submit(lambda: ran.append("ran"), "cancelled")
    assert future.cancel()
    executor.yield_()
    assert ran == []
    with pytest.raises(CancelledError):
        future.result(0)


# Waiting for mail


def test_yield_runs_mail_of_the_operator_and_of_operators_downstream(mailbox: TaskMailbox) -> None:
    ran: list[int] = []
    for priority in (MIN_PRIORITY, 0, 1, 2, 3, MAX_PRIORITY):
        MailboxExecutor(mailbox, priority).execute(lambda p=priority: ran.append(p), "m")  # type: ignore[misc]

    waiting = MailboxExecutor(mailbox, 2)
    while waiting.try_yield():
        pass
    assert ran == [2, 3, MAX_PRIORITY]
    assert mailbox.size() == 3


def test_yield_waits_for_mail_queued_behind_other_mail() -> None:
    trace: list[str] = []
    processor = MailboxProcessor(lambda _: trace.append("default"))
    executor = processor.mailbox_executor(0)

    def a() -> None:
        trace.append("a begins")
        while "b" not in trace:
            executor.yield_()
        trace.append("a ends")

    executor.execute(a, "a")
    executor.execute(lambda: trace.append("b"), "b")
    processor.turn()
    assert trace == ["a begins", "b", "a ends", "default"]


def test_yield_waits_for_mail_of_another_thread(
    mailbox: TaskMailbox,
    other_threads: OtherThreads,
    watch: Callable[[Any], WatchedCondition],
) -> None:
    not_empty = watch(mailbox)
    executor = MailboxExecutor(mailbox, 0)
    free: list[str] = []

    def free_once_the_operator_waits() -> None:
        assert not_empty.somebody_waits.wait(60)
        executor.execute(lambda: free.append("free"), "free the resource")

    other = other_threads.start(free_once_the_operator_waits)
    while not free:
        executor.yield_()
    other.result(60)


def test_try_yield_without_mail_returns_false(mailbox: TaskMailbox) -> None:
    executor = MailboxExecutor(mailbox, 0)
    assert not executor.try_yield()
    MailboxExecutor(mailbox, MIN_PRIORITY).execute(fail, "for the task")
    assert not executor.try_yield()
    assert mailbox.size() == 1


@pytest.mark.parametrize("wait", [MailboxExecutor.yield_, MailboxExecutor.try_yield])
def test_an_error_in_mail_is_raised_by_yield_with_its_type(
    mailbox: TaskMailbox, wait: Callable[[MailboxExecutor], object]
) -> None:
    executor = MailboxExecutor(mailbox, 0)
    executor.execute(fail, "fails")
    with pytest.raises(ZeroDivisionError):
        wait(executor)


@pytest.mark.parametrize(
    "operation",
    [MailboxExecutor.yield_, MailboxExecutor.try_yield],
)
def test_only_the_mailbox_thread_may_yield(
    mailbox: TaskMailbox,
    operation: Callable[[MailboxExecutor], object],
    other_threads: OtherThreads,
) -> None:
    executor = MailboxExecutor(mailbox, 0)
    executor.execute(fail, "must not run")
    with pytest.raises(NotMailboxThreadError):
        other_threads.run(lambda: operation(executor))
    assert mailbox.size() == 1


@pytest.mark.parametrize("wait", [MailboxExecutor.yield_, MailboxExecutor.try_yield])
def test_a_task_can_forbid_yield(wait: Callable[[MailboxExecutor], object]) -> None:
    processor = MailboxProcessor(lambda _: None, allow_yield=False)
    executor = processor.mailbox_executor(2)
    executor.execute(fail, "must not run")
    with pytest.raises(YieldNotAllowedError, match="operator at position 2 of its chain"):
        wait(executor)


def test_a_yield_that_could_never_return_is_an_error(mailbox: TaskMailbox) -> None:
    mailbox.quiesce()
    with pytest.raises(MailboxClosedError, match="none can come"):
        MailboxExecutor(mailbox, 3).yield_()
