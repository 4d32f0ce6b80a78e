from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.mailbox.task_mailbox import (
    IMMEDIATE,
    SynchronizedTaskActionExecutor,
    TaskActionExecutor,
)

if TYPE_CHECKING:
    from conftest import OtherThreads

EXECUTORS = [IMMEDIATE, SynchronizedTaskActionExecutor()]


@pytest.mark.parametrize("executor", EXECUTORS, ids=["immediate", "synchronized"])
def test_runs_in_the_calling_thread_and_gives_back_the_result(executor: TaskActionExecutor) -> None:
    assert executor.call(threading.get_ident) == threading.get_ident()


@pytest.mark.parametrize("executor", EXECUTORS, ids=["immediate", "synchronized"])
def test_what_an_action_raises_is_raised(executor: TaskActionExecutor) -> None:
    with pytest.raises(ZeroDivisionError):
        executor.call(lambda: 1 / 0)
    assert executor.call(lambda: 1) == 1  # a lock is free again


def test_synchronized_actions_exclude_whoever_holds_the_lock(other_threads: OtherThreads) -> None:
    executor = SynchronizedTaskActionExecutor()
    trace: list[str] = []
    about_to_call = threading.Event()

    def act() -> None:
        about_to_call.set()
        executor.call(lambda: trace.append("action"))

    with executor.lock:
        action = other_threads.start(act)
        assert about_to_call.wait(60)
        trace.append("holder")
    action.result(60)

    assert trace == ["holder", "action"]


def test_a_synchronized_action_may_call_another() -> None:
    executor = SynchronizedTaskActionExecutor()
    assert executor.call(lambda: executor.call(lambda: "inner")) == "inner"


def test_uses_the_lock_that_it_is_given() -> None:
    lock = threading.RLock()
    assert SynchronizedTaskActionExecutor(lock).lock is lock
