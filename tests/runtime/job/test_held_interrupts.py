from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.job.run import HeldInterrupts

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_S = 60


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def handler() -> Iterator[Any]:
    """Python's default handler before each test."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, previous)


def test_a_held_interrupt_is_raised_by_wait() -> None:
    went_on = False
    with HeldInterrupts() as interrupts:
        interrupt()
        went_on = True
        with pytest.raises(KeyboardInterrupt):
            interrupts.wait(threading.Event())
    assert went_on


def test_a_held_interrupt_is_raised_at_the_end_of_the_block_at_the_latest(handler: Any) -> None:
    log: list[str] = []

    def block() -> None:
        with HeldInterrupts():
            interrupt()
            log.append("went on")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert log == ["went on"]
    assert signal.getsignal(signal.SIGINT) is handler


def test_an_exception_of_the_block_takes_precedence_over_a_held_interrupt(handler: Any) -> None:
    def block() -> None:
        with HeldInterrupts():
            interrupt()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        block()
    assert signal.getsignal(signal.SIGINT) is handler


def test_each_interrupt_is_raised_once() -> None:
    with HeldInterrupts() as interrupts:
        interrupt()
        interrupt()
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                interrupts.wait(threading.Event())
        interrupts.wait(threading.Event(), longest_s=0)


def test_an_interrupt_ends_a_wait() -> None:
    def come_later() -> None:
        is_waited_for.acquire(timeout=PATIENCE_S)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    class Awaited(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            is_waited_for.release()
            return super().wait(timeout)

    is_waited_for = threading.Semaphore(0)
    other = threading.Thread(target=come_later)
    other.start()
    with HeldInterrupts() as interrupts, pytest.raises(KeyboardInterrupt):
        interrupts.wait(Awaited(), PATIENCE_S)
    other.join(PATIENCE_S)


@pytest.mark.parametrize("longest_s", [None, PATIENCE_S])
def test_a_wait_ends_when_its_event_is_set(longest_s: float | None) -> None:
    event = threading.Event()
    other = threading.Thread(target=event.set)
    with HeldInterrupts() as interrupts:
        other.start()
        interrupts.wait(event, longest_s)
    assert event.is_set()
    other.join(PATIENCE_S)


def test_a_users_handler_is_called_at_once_and_need_not_raise() -> None:
    called: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: called.append(number))
    with HeldInterrupts() as interrupts:
        interrupt()
        assert called == [signal.SIGINT]
        interrupts.wait(threading.Event(), longest_s=0)


def test_an_exception_of_a_users_handler_is_held() -> None:
    def leave(*_: Any) -> None:
        raise SystemExit(3)

    signal.signal(signal.SIGINT, leave)
    with HeldInterrupts() as interrupts:
        interrupt()
        with pytest.raises(SystemExit):
            interrupts.wait(threading.Event())


def test_ignored_interrupts_stay_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with HeldInterrupts() as interrupts:
        interrupt()
        interrupts.wait(threading.Event(), longest_s=0)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_other_threads_do_not_change_the_handler(handler: Any) -> None:
    found: list[Any] = []

    def look() -> None:
        with HeldInterrupts():
            found.append(signal.getsignal(signal.SIGINT))

    other = threading.Thread(target=look)
    other.start()
    other.join(PATIENCE_S)
    assert found == [handler]
