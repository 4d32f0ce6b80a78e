"""How a loop fails, drains and closes."""

from __future__ import annotations

import threading
import traceback
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.mailbox import (
    Controller,
    MailboxClosedError,
    MailboxProcessor,
    MailboxState,
    TaskMailbox,
)

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


# Errors


class UserError(Exception):
    pass


def fail_far_away() -> None:
    raise UserError("lost connection")


def test_an_error_of_another_thread_fails_the_loop_before_any_other_mail(
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


def test_an_error_that_comes_too_late_is_not_lost(loop: Loop) -> None:
    loop.processor.close()
    error = UserError("too late")
    with pytest.raises(MailboxClosedError, match="error reported by thread 'MainThread'") as caught:
        loop.processor.report_error(error)
    assert caught.value.__cause__ is error


def test_mail_behind_a_failed_one_is_kept(loop: Loop) -> None:
    loop.send("fails", fail_far_away)
    loop.send("b")
    with pytest.raises(UserError):
        loop.processor.turn()
    assert loop.mailbox.has_new_mail
    assert loop.turns(1) == ["fails", "b", "default"]


def test_an_error_of_the_default_action_leaves_the_loop() -> None:
    processor = MailboxProcessor(lambda _: fail_far_away())
    with pytest.raises(UserError):
        list(iter(processor.turn, False))


# The end


def test_draining_runs_what_is_waiting_and_no_more(loop: Loop) -> None:
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


def test_draining_stops_when_a_mail_has_run_the_others(loop: Loop) -> None:
    loop.send("waits", loop.processor.mailbox_executor().yield_)
    loop.send("a")
    loop.processor.drain()
    assert loop.trace == ["waits", "a"]


def test_what_draining_did_not_reach_is_dropped_by_closing(loop: Loop) -> None:
    loop.send("fails", fail_far_away)
    future = loop.processor.mailbox_executor().submit(list, "submitted")
    loop.processor.prepare_close()
    with pytest.raises(UserError):
        loop.processor.drain()

    assert [mail.description for mail in loop.processor.close()] == ["submitted"]
    assert future.cancelled()
    assert loop.mailbox.state is MailboxState.CLOSED


def test_closing_drops_every_mail_whatever_one_of_them_raises(loop: Loop) -> None:
    futures = [loop.processor.mailbox_executor().submit(list, "submitted") for _ in range(3)]
    loop.mailbox._queue[1].on_drop = fail_far_away
    with pytest.raises(UserError):
        loop.processor.close()
    assert [future.cancelled() for future in futures] == [True, False, True]
    futures[1].cancel()


def test_closing_wakes_whoever_waits_for_a_submitted_result(
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
