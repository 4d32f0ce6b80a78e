from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.mailbox.mailbox_processor import MailboxProcessor
from opchain.runtime.mailbox.task_mailbox import TaskMailbox
from opchain.runtime.task.input.legacy_source import LegacySourceContext as Context
from opchain.runtime.task.input.legacy_source import LegacySourceThread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class WatchedLock:
    """A re-entrant lock that sets an event when a thread has to wait for it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.somebody_waits = threading.Event()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.somebody_waits.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def is_owned(self) -> bool:
        return self._lock._is_owned()  # type: ignore[attr-defined, no-any-return]


class SourceTask:
    """A task whose only input is a legacy source."""

    def __init__(self, run: Callable[[Context], object], **options: Any) -> None:
        self.out: list[int] = []
        self.trace: list[str] = []
        self.mailbox = TaskMailbox()
        self.lock = WatchedLock()
        self.processor = MailboxProcessor(
            lambda controller: self.source.default_action(controller),  # noqa: PLW0108 - not yet
            mailbox=self.mailbox,
            lock=self.lock,
            allow_yield=False,
        )
        self.source = LegacySourceThread(
            "numbers",
            run,
            options.pop("deliver", lambda element: self.out.append(element[0])),
            processor=self.processor,
            lock=self.lock,  # type: ignore[arg-type]
            on_finished=lambda: self.trace.append("finished"),
            **options,
        )

    def send(self, command: Callable[[], object]) -> None:
        self.processor.mailbox_executor().execute(command, "mail")


@pytest.fixture
def tasks() -> Iterator[Callable[..., SourceTask]]:
    started: list[SourceTask] = []

    def start(run: Callable[[Context], object], **options: Any) -> SourceTask:
        started.append(SourceTask(run, **options))
        return started[-1]

    yield start
    for task in started:
        task.source.cancel()
        assert task.source.join(60), "the source did not end"


def test_the_source_runs_to_its_end_in_parallel_to_the_loop(
    tasks: Callable[..., SourceTask],
) -> None:
    threads: list[str] = []

    def run(ctx: Context) -> None:
        threads.append(threading.current_thread().name)
        for number in range(3):
            ctx.collect(number)

    task = tasks(run)
    while task.processor.turn():
        pass

    assert task.out == [0, 1, 2]
    assert task.trace == ["finished"]
    assert task.processor.is_completed
    assert threads == ["legacy source 'numbers'"]


def test_the_default_action_starts_the_source_once(tasks: Callable[..., SourceTask]) -> None:
    may_end = threading.Event()
    task = tasks(lambda _: may_end.wait(60))
    task.processor.turn()
    assert task.processor._suspension is not None
    for _ in range(3):
        task.send(lambda: task.trace.append("mail"))
        task.processor.turn()
    may_end.set()
    while task.processor.turn():
        pass
    assert task.trace == ["mail", "mail", "mail", "finished"]


def test_the_end_of_the_source_is_mail_that_runs_in_the_task_thread(
    tasks: Callable[..., SourceTask],
) -> None:
    ran: list[tuple[int, bool]] = []
    task = tasks(lambda _: None)
    task.source._on_finished = lambda: ran.append((threading.get_ident(), task.lock.is_owned()))
    while task.processor.turn():
        pass
    assert ran == [(threading.get_ident(), True)]


def test_elements_are_delivered_while_the_lock_is_held(tasks: Callable[..., SourceTask]) -> None:
    owned: list[bool] = []
    task = tasks(lambda ctx: ctx.collect(1), deliver=lambda _: owned.append(task.lock.is_owned()))
    while task.processor.turn():
        pass
    assert owned == [True]


def test_no_element_is_delivered_while_mail_runs(tasks: Callable[..., SourceTask]) -> None:
    mail_runs = threading.Event()
    seen: list[list[int]] = []

    def run(ctx: Context) -> None:
        assert mail_runs.wait(60)
        ctx.collect(1)

    def mail() -> None:
        mail_runs.set()
        assert task.lock.somebody_waits.wait(60)
        seen.append(list(task.out))

    task = tasks(run)
    task.processor.turn()
    task.send(mail)
    while task.processor.turn():
        pass
    assert seen == [[]]
    assert task.out == [1]


def test_a_snapshot_contains_an_element_and_its_offset_or_neither(
    tasks: Callable[..., SourceTask],
) -> None:
    offset = 0
    between = threading.Event()
    snapshots: list[tuple[int, int]] = []

    def run(ctx: Context) -> None:
        nonlocal offset
        for number in range(1, 101):
            with ctx.get_checkpoint_lock():
                ctx.collect(number)
                if number == 50:
                    between.set()
                    assert task.lock.somebody_waits.wait(60)  # the snapshot
                offset = number

    task = tasks(run)
    task.processor.turn()
    assert between.wait(60)
    task.send(lambda: snapshots.append((task.out[-1], offset)))
    while task.processor.turn():
        pass

    assert offset == 100
    [(last_element, offset_seen)] = snapshots
    assert last_element == offset_seen >= 50


def test_an_error_of_the_source_fails_the_loop_with_its_type(
    tasks: Callable[..., SourceTask],
) -> None:
    def run(ctx: Context) -> None:
        ctx.collect(1)
        raise ConnectionResetError("peer")

    task = tasks(run)
    with pytest.raises(ConnectionResetError, match="peer") as caught:
        list(iter(task.processor.turn, False))
    assert task.out == [1]
    assert task.trace == []
    assert caught.value is task.source.error
    assert caught.value.__notes__ == [
        "while running mail 'error reported by thread 'legacy source 'numbers'''"
    ]


def test_an_error_downstream_fails_the_loop(tasks: Callable[..., SourceTask]) -> None:
    task = tasks(lambda ctx: ctx.collect(1), deliver=lambda _: {}["key"])
    with pytest.raises(KeyError):
        list(iter(task.processor.turn, False))


class EndlessSource:
    """A source with several ways to notice a cancellation."""

    def __init__(self) -> None:
        self.has_started = threading.Event()
        self.cancelled = threading.Event()

    def meets_it_in_collect(self, ctx: Context) -> None:
        while True:
            ctx.collect(1)
            self.has_started.set()

    def is_told_by_its_cancel_function(self, _: Context) -> None:
        self.has_started.set()
        assert self.cancelled.wait(60)


@pytest.mark.parametrize(
    "run",
    [
        EndlessSource.meets_it_in_collect,
        EndlessSource.is_told_by_its_cancel_function,
    ],
)
def test_a_cancelled_source_ends_and_completes_the_loop(
    tasks: Callable[..., SourceTask], run: Callable[[EndlessSource, Context], None]
) -> None:
    source = EndlessSource()
    task = tasks(lambda ctx: run(source, ctx), cancel=source.cancelled.set)
    task.processor.turn()
    assert source.has_started.wait(60)
    task.source.cancel()
    while task.processor.turn():
        pass

    assert task.processor.is_completed
    assert task.trace == []  # not finished
    assert task.source.error is None


def test_a_source_waiting_for_the_lock_delivers_nothing_once_cancelled(
    tasks: Callable[..., SourceTask],
) -> None:
    task = tasks(lambda ctx: ctx.collect(1))
    with task.lock:
        task.processor.turn()
        assert task.lock.somebody_waits.wait(60)
        task.source.cancel()
    while task.processor.turn():
        pass
    assert task.out == []


def test_code_that_catches_every_exception_does_not_catch_the_cancellation(
    tasks: Callable[..., SourceTask],
) -> None:
    started = threading.Event()

    def run(ctx: Context) -> None:
        while True:
            with suppress(Exception):
                ctx.collect(1)
                started.set()

    task = tasks(run, deliver=lambda _: None)
    task.processor.turn()
    assert started.wait(60)
    task.source.cancel()
    while task.processor.turn():
        pass
    assert task.source.join(60)


def test_an_error_of_a_cancelled_source_is_kept_and_does_not_fail_the_task(
    tasks: Callable[..., SourceTask],
) -> None:
    socket_closed = threading.Event()

    def run(_: Context) -> None:
        assert socket_closed.wait(60)
        raise OSError("closed socket")

    task = tasks(run, cancel=socket_closed.set)
    task.processor.turn()
    task.source.cancel()
    while task.processor.turn():
        pass
    assert isinstance(task.source.error, OSError)


def test_the_cancel_function_is_called_once(tasks: Callable[..., SourceTask]) -> None:
    calls: list[str] = []
    task = tasks(EndlessSource().meets_it_in_collect, cancel=lambda: calls.append("cancel"))
    task.processor.turn()
    task.source.cancel()
    task.source.cancel()
    assert calls == ["cancel"]


def test_a_source_cancelled_before_its_start_never_runs(tasks: Callable[..., SourceTask]) -> None:
    ran: list[Context] = []
    task = tasks(ran.append)
    assert task.source.join(0)
    task.source.cancel()
    while task.processor.turn():
        pass
    assert task.source.join(60)
    assert ran == []
    assert task.processor.is_completed


@pytest.mark.parametrize("fails", [False, True])
def test_a_source_that_ends_after_its_task_has_no_effect(
    tasks: Callable[..., SourceTask], fails: bool
) -> None:
    task_is_closed = threading.Event()

    def run(_: Context) -> None:
        assert task_is_closed.wait(60)
        if fails:
            raise KeyError("late")

    task = tasks(run)
    task.processor.turn()
    task.processor.close()
    task_is_closed.set()
    assert task.source.join(60)
    assert isinstance(task.source.error, KeyError) == fails


def test_join_returns_whether_the_source_has_ended(tasks: Callable[..., SourceTask]) -> None:
    may_end = threading.Event()
    task = tasks(lambda _: may_end.wait(60))
    task.processor.turn()
    assert not task.source.join(0)
    may_end.set()
    assert task.source.join(60)
