"""Threads for the tests; a test that blocks fails instead of hanging."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")
GUARD_S = 180


@pytest.fixture(autouse=True)
def _fail_instead_of_hanging() -> Iterator[None]:
    def fail(*_: object) -> None:
        raise TimeoutError(f"the test blocked for {GUARD_S} s")

    previous = signal.signal(signal.SIGALRM, fail)
    signal.alarm(GUARD_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


class OtherThreads:
    """Runs functions on other threads."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []

    def start(self, action: Callable[[], T], name: str | None = None) -> Future[T]:
        """Starts the function; returns a future of its result."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(action())
            except BaseException as error:  # noqa: BLE001 - raised by the future
                future.set_exception(error)

        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()
        return future

    def run(self, action: Callable[[], T], name: str | None = None) -> T:
        """Runs the function to its end, and raises its error here."""
        return self.start(action, name).result(GUARD_S)

    def join(self) -> None:
        for thread in self._threads:
            thread.join(GUARD_S)
            assert not thread.is_alive(), f"thread '{thread.name}' did not end"


@pytest.fixture
def other_threads() -> Iterator[OtherThreads]:
    threads = OtherThreads()
    yield threads
    threads.join()


class WatchedCondition(threading.Condition):
    """A condition that sets an event when a thread begins to wait."""

    def __init__(self, lock: Any) -> None:
        super().__init__(lock)
        self.somebody_waits = threading.Event()
        self.waits = 0

    def wait(self, timeout: float | None = None) -> bool:
        self.waits += 1
        self.somebody_waits.set()
        return super().wait(timeout)


@pytest.fixture
def watch() -> Callable[[Any], WatchedCondition]:
    """Replaces the condition of a mailbox by a WatchedCondition."""

    def watch(mailbox: Any) -> WatchedCondition:
        condition = WatchedCondition(mailbox._lock)
        mailbox._not_empty = condition
        return condition

    return watch
