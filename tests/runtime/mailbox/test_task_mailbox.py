from __future__ import annotations

import sys
import threading
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.mailbox.task_mailbox import (
    MAX_PRIORITY,
    MIN_PRIORITY,
    Mail,
    MailboxClosedError,
    MailboxState,
    NotMailboxThreadError,
    TaskMailbox,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import OtherThreads, WatchedCondition


def mail(name: str, priority: int = 0, **options: Any) -> Mail:
    return Mail(list, priority, name, **options)


def filled(*names: str) -> TaskMailbox:
    mailbox = TaskMailbox()
    for name in names:
        mailbox.put(mail(name))
    return mailbox


def take_all(mailbox: TaskMailbox, priority: int = MIN_PRIORITY) -> list[str]:
    return [mail.description for mail in iter(lambda: mailbox.try_take(priority), None)]


def take_batch(mailbox: TaskMailbox) -> list[str]:
    return [mail.description for mail in iter(mailbox.try_take_from_batch, None)]


# The order of mail


def test_mail_is_taken_in_the_order_in_which_it_was_put() -> None:
    assert take_all(filled("a", "b", "c")) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("priority", "seen"),
    [
        (MIN_PRIORITY, ["task", "head", "tail", "any"]),
        (0, ["head", "tail", "any"]),
        (1, ["tail", "any"]),
        (2, ["tail", "any"]),
        (3, ["any"]),
        (MAX_PRIORITY, ["any"]),
    ],
)
@pytest.mark.parametrize("batched", [False, True])
def test_priority_filters_mail_and_does_not_order_it(
    priority: int, seen: list[str], batched: bool
) -> None:
    mailbox = TaskMailbox()
    mailbox.put(mail("task", MIN_PRIORITY))
    mailbox.put(mail("head", 0))
    mailbox.put(mail("tail", 2))
    mailbox.put(mail("any", MAX_PRIORITY))
    if batched:
        mailbox.create_batch()

    assert take_all(mailbox, priority) == seen
    assert mailbox.size() == 4 - len(seen)


@pytest.mark.parametrize("from_mailbox_thread", [True, False])
@pytest.mark.parametrize("batched", [True, False])
def test_mail_put_first_overtakes_all_other_mail(
    from_mailbox_thread: bool, batched: bool, other_threads: OtherThreads
) -> None:
    mailbox = filled(*(f"queued {i}" for i in range(100)))
    if batched:
        mailbox.create_batch()
    for name in ("poison", "later poison"):
        if from_mailbox_thread:
            mailbox.put_first(mail(name))
        else:
            other_threads.run(lambda name=name: mailbox.put_first(mail(name)))  # type: ignore[misc]

    assert take_all(mailbox)[:3] == ["later poison", "poison", "queued 0"]


def test_mail_put_first_overtakes_the_rest_of_the_batch() -> None:
    mailbox = filled("a", "b", "c")
    mailbox.create_batch()
    first = mailbox.try_take_from_batch()
    mailbox.put_first(mail("poison"))

    assert first is not None
    assert first.description == "a"
    assert take_batch(mailbox) == ["poison", "b", "c"]


def test_priority_filters_mail_put_first_too() -> None:
    mailbox = filled("a")
    mailbox.put_first(mail("task", MIN_PRIORITY))
    assert take_all(mailbox, 0) == ["a"]
    assert take_all(mailbox) == ["task"]


def test_a_batch_contains_mail_that_was_queued_at_its_creation() -> None:
    mailbox = filled("a", "b")
    assert mailbox.create_batch() == 2
    mailbox.put(mail("c"))

    assert take_batch(mailbox) == ["a", "b"]
    assert mailbox.create_batch() == 1
    assert take_batch(mailbox) == ["c"]
    assert mailbox.create_batch() == 0


def test_the_rest_of_a_batch_is_taken_before_the_next_one() -> None:
    mailbox = filled("a", "b")
    mailbox.create_batch()
    mailbox.try_take_from_batch()
    mailbox.put(mail("c"))

    assert mailbox.create_batch() == 2
    assert take_batch(mailbox) == ["b", "c"]


def test_a_batch_does_not_change_the_order_of_take() -> None:
    mailbox = filled("a", "b")
    mailbox.create_batch()
    mailbox.put(mail("c"))

    assert mailbox.take(0).description == "a"
    assert take_all(mailbox) == ["b", "c"]


def test_a_batch_is_taken_without_the_lock(other_threads: OtherThreads) -> None:
    mailbox = filled("a", "b")
    mailbox.create_batch()
    lock_is_held, may_release = threading.Event(), threading.Event()

    def hold_the_lock() -> None:
        def hold() -> None:
            lock_is_held.set()
            assert may_release.wait(60)

        mailbox.run_exclusively(hold)

    holder = other_threads.start(hold_the_lock)
    assert lock_is_held.wait(60)
    assert take_batch(mailbox) == ["a", "b"]  # would block forever on the lock
    may_release.set()
    holder.result(60)


# has_new_mail


def test_has_new_mail_is_an_attribute_and_not_a_property() -> None:
    assert type(TaskMailbox.__dict__["has_new_mail"]).__name__ == "member_descriptor"


FILLINGS: dict[str, Callable[[TaskMailbox], object]] = {
    "put": lambda m: m.put(mail("a")),
    "put first": lambda m: m.put_first(mail("a")),
    "batch": lambda m: (m.put(mail("a")), m.create_batch()),
}
EMPTYINGS: dict[str, Callable[[TaskMailbox], object]] = {
    "take": lambda m: m.take(0),
    "try take": lambda m: m.try_take(0),
    "batch": lambda m: (m.create_batch(), m.try_take_from_batch()),
    "drain": lambda m: m.drain(),
}


@pytest.mark.parametrize("fill", FILLINGS.values(), ids=FILLINGS.keys())
@pytest.mark.parametrize("empty", EMPTYINGS.values(), ids=EMPTYINGS.keys())
def test_has_new_mail_is_true_exactly_while_there_is_mail(
    fill: Callable[[TaskMailbox], object], empty: Callable[[TaskMailbox], object]
) -> None:
    mailbox = TaskMailbox()
    assert (mailbox.has_new_mail, mailbox.has_mail(), mailbox.size()) == (False, False, 0)
    fill(mailbox)
    assert (mailbox.has_new_mail, mailbox.has_mail(), mailbox.size()) == (True, True, 1)
    empty(mailbox)
    assert (mailbox.has_new_mail, mailbox.has_mail(), mailbox.size()) == (False, False, 0)


def test_has_new_mail_stays_true_for_mail_skipped_by_priority() -> None:
    mailbox = TaskMailbox()
    mailbox.put(mail("task", MIN_PRIORITY))
    mailbox.put(mail("tail", 1))
    assert take_all(mailbox, 1) == ["tail"]
    assert mailbox.has_new_mail


class QueueLookedAt(deque[Mail]):
    """Calls a function just before or just after the mailbox checks whether mail is queued."""

    before: Callable[[], object] | None = None
    after: Callable[[], object] | None = None

    def __bool__(self) -> bool:
        before, self.before = self.before, None
        after, self.after = self.after, None
        if before:
            before()
        is_filled = len(self) > 0
        if after:
            after()
        return is_filled


@pytest.mark.parametrize("moment", ["before", "after"])
def test_mail_put_while_has_new_mail_becomes_false_is_not_overlooked(
    moment: str, other_threads: OtherThreads
) -> None:
    mailbox = filled("a")
    mailbox.create_batch()
    queue = QueueLookedAt()
    mailbox._queue = queue
    setattr(queue, moment, lambda: other_threads.run(lambda: mailbox.put(mail("b"))))

    mailbox.try_take_from_batch()  # takes the last mail without the lock, and sets has_new_mail to False

    assert getattr(queue, moment) is None  # the put happened in that moment
    assert mailbox.has_new_mail
    assert take_all(mailbox) == ["b"]


def test_take_waits_for_mail_of_its_priority(
    other_threads: OtherThreads, watch: Callable[[Any], WatchedCondition]
) -> None:
    mailbox = TaskMailbox()
    not_empty = watch(mailbox)

    def put_once_the_mailbox_waits() -> None:
        assert not_empty.somebody_waits.wait(60)
        not_empty.somebody_waits.clear()
        mailbox.put(mail("upstream", 0))  # wakes the thread, but has too low a priority
        assert not_empty.somebody_waits.wait(60)
        mailbox.put(mail("own", 1))

    putter = other_threads.start(put_once_the_mailbox_waits)
    assert mailbox.take(1).description == "own"
    putter.result(60)
    assert not_empty.waits == 2
    assert take_all(mailbox) == ["upstream"]


@pytest.mark.parametrize("put", [TaskMailbox.put, TaskMailbox.put_first])
def test_wait_for_mail_takes_no_mail(
    put: Callable[[TaskMailbox, Mail], None],
    other_threads: OtherThreads,
    watch: Callable[[Any], WatchedCondition],
) -> None:
    mailbox = TaskMailbox()
    not_empty = watch(mailbox)

    def put_once_the_mailbox_waits() -> None:
        assert not_empty.somebody_waits.wait(60)
        put(mailbox, mail("a"))

    putter = other_threads.start(put_once_the_mailbox_waits)
    mailbox.wait_for_mail()
    putter.result(60)
    mailbox.wait_for_mail()  # there is still mail, so this returns at once
    assert take_all(mailbox) == ["a"]


# Threads

FOR_THE_MAILBOX_THREAD: dict[str, Callable[[TaskMailbox], object]] = {
    "take": lambda m: m.take(0),
    "try_take": lambda m: m.try_take(0),
    "create_batch": lambda m: m.create_batch(),
    "try_take_from_batch": lambda m: m.try_take_from_batch(),
    "wait_for_mail": lambda m: m.wait_for_mail(),
    "has_mail": lambda m: m.has_mail(),
    "drain": lambda m: m.drain(),
    "quiesce": lambda m: m.quiesce(),
    "close": lambda m: m.close(),
}


@pytest.mark.parametrize(
    "operation", FOR_THE_MAILBOX_THREAD.values(), ids=FOR_THE_MAILBOX_THREAD.keys()
)
def test_only_the_mailbox_thread_takes_mail(
    operation: Callable[[TaskMailbox], object], other_threads: OtherThreads
) -> None:
    mailbox = filled("a")
    with pytest.raises(NotMailboxThreadError, match=r"thread 'intruder' cannot .*'MainThread' can"):
        other_threads.run(lambda: operation(mailbox), name="intruder")
    assert mailbox.state is MailboxState.OPEN
    assert take_all(mailbox) == ["a"]


def test_any_thread_may_put_mail_and_check_for_it(other_threads: OtherThreads) -> None:
    mailbox = TaskMailbox()

    def put() -> tuple[int, MailboxState, bool]:
        mailbox.put(mail("b"))
        mailbox.put_first(mail("a"))
        return mailbox.size(), mailbox.state, mailbox.is_mailbox_thread()

    assert other_threads.run(put) == (2, MailboxState.OPEN, False)
    assert mailbox.is_mailbox_thread()
    assert take_all(mailbox) == ["a", "b"]


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("frequent_switches")
@pytest.mark.parametrize("taking", ["take", "batch"])
def test_mail_put_concurrently_is_neither_lost_nor_reordered(
    taking: str, other_threads: OtherThreads
) -> None:
    mailbox = TaskMailbox()
    threads, each = 4, 300
    all_ready = threading.Barrier(threads + 1)

    def put(thread: int) -> None:
        all_ready.wait(60)
        for number in range(each):
            mailbox.put(mail(f"{thread}:{number}"))

    putters = [other_threads.start(lambda t=t: put(t)) for t in range(threads)]  # type: ignore[misc]
    all_ready.wait(60)
    taken: list[str] = []
    while len(taken) < threads * each:
        if taking == "take":
            taken.append(mailbox.take(MIN_PRIORITY).description)
        else:
            mailbox.wait_for_mail()
            assert mailbox.has_new_mail  # else the loop would not look
            mailbox.create_batch()
            taken.extend(take_batch(mailbox))
    for putter in putters:
        putter.result(60)

    by_thread: list[list[int]] = [[] for _ in range(threads)]
    for name in taken:
        thread, number = map(int, name.split(":"))
        by_thread[thread].append(number)
    assert by_thread == [list(range(each))] * threads
    assert not mailbox.has_new_mail


def test_no_thread_puts_mail_while_run_exclusively_runs(other_threads: OtherThreads) -> None:
    mailbox = TaskMailbox()
    about_to_put = threading.Event()

    def put() -> None:
        about_to_put.set()
        mailbox.put(mail("from another thread"))

    def put_two() -> str:
        nonlocal putter
        putter = other_threads.start(put)
        assert about_to_put.wait(60)
        mailbox.put(mail("first"))
        mailbox.put(mail("second"))
        return "result"

    putter: Any = None
    assert mailbox.run_exclusively(put_two) == "result"
    putter.result(60)
    assert take_all(mailbox) == ["first", "second", "from another thread"]


def test_mail_is_timestamped_when_it_is_put() -> None:
    mailbox = TaskMailbox(clock_ns=count(100).__next__)
    mailbox.put(mail("a"))
    mailbox.put_first(mail("b"))
    assert [mail.put_at_ns for mail in mailbox.drain()] == [101, 100]


# Methods allowed while the mailbox is open, quiesced and closed

STATES: dict[str, Callable[[TaskMailbox], object]] = {
    "open": lambda _: None,
    "quiesced": TaskMailbox.quiesce,
    "closed": TaskMailbox.close,
}
PUTS: dict[str, Callable[[TaskMailbox], object]] = {
    "put": lambda m: m.put(mail("b")),
    "put_first": lambda m: m.put_first(mail("b")),
}
TAKES: dict[str, Callable[[TaskMailbox], object]] = {
    "take": lambda m: m.take(0),
    "try_take": lambda m: m.try_take(0),
    "try_take_from_batch": lambda m: (m.create_batch(), m.try_take_from_batch())[1],
}


@pytest.mark.parametrize("operation", PUTS.values(), ids=PUTS.keys())
@pytest.mark.parametrize(
    ("state", "allowed"), [("open", True), ("quiesced", False), ("closed", False)]
)
def test_mail_is_accepted_only_by_an_open_mailbox(
    state: str, allowed: bool, operation: Callable[[TaskMailbox], object]
) -> None:
    mailbox = filled("a")
    STATES[state](mailbox)
    assert mailbox.state is MailboxState(state)
    if allowed:
        operation(mailbox)
        assert mailbox.size() == 2
    else:
        with pytest.raises(
            MailboxClosedError, match=rf"cannot put mail 'b' \(priority 0\): the mailbox is {state}"
        ):
            operation(mailbox)
        assert mailbox.size() == (1 if state == "quiesced" else 0)


@pytest.mark.parametrize("operation", TAKES.values(), ids=TAKES.keys())
@pytest.mark.parametrize(
    ("state", "allowed"), [("open", True), ("quiesced", True), ("closed", False)]
)
def test_mail_can_be_taken_until_the_mailbox_is_closed(
    state: str, allowed: bool, operation: Callable[[TaskMailbox], Mail]
) -> None:
    mailbox = filled("a")
    STATES[state](mailbox)
    if allowed:
        assert operation(mailbox).description == "a"
    else:
        with pytest.raises(MailboxClosedError, match="cannot take mail: the mailbox is closed"):
            operation(mailbox)


@pytest.mark.parametrize("wait", [lambda m: m.take(0), lambda m: m.wait_for_mail()])
def test_waiting_for_mail_that_cannot_be_put_is_an_error(
    wait: Callable[[TaskMailbox], object],
) -> None:
    mailbox = TaskMailbox()
    mailbox.quiesce()
    with pytest.raises(MailboxClosedError, match="none is left and the mailbox is quiesced"):
        wait(mailbox)


@pytest.mark.parametrize("last", ["quiesced", "closed"])
def test_a_closed_mailbox_stays_closed(last: str) -> None:
    mailbox = filled("a")
    mailbox.close()
    assert not STATES[last](mailbox)  # no mail is dropped twice
    assert mailbox.state is MailboxState.CLOSED


def test_close_returns_the_queued_mail_in_order() -> None:
    mailbox = filled("a", "b")
    mailbox.create_batch()
    mailbox.put(mail("c"))
    mailbox.put_first(mail("poison"))
    assert [mail.description for mail in mailbox.close()] == ["poison", "a", "b", "c"]


def test_draining_empties_an_open_mailbox() -> None:
    mailbox = filled("a", "b")
    mailbox.create_batch()
    mailbox.put(mail("c"))
    assert [mail.description for mail in mailbox.drain()] == ["a", "b", "c"]
    mailbox.put(mail("d"))
    assert take_all(mailbox) == ["d"]
