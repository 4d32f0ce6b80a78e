"""How a task runs an action: at once, or under the lock that it shares with a legacy source.

A task that has its thread to itself needs no lock, and runs every mail as it is. A legacy source
blocks in its `run` on a thread of its own, so mail and source must exclude each other: every mail of
such a task runs under one lock, and so does every element that the source collects.

Flink: StreamTaskActionExecutor.IMMEDIATE and SynchronizedStreamTaskActionExecutor. There the lock is
any object, and re-entrant as every Java monitor; here it is an RLock.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class TaskActionExecutor(Protocol):
    """Decides how the actions of one task are run."""

    def call(self, action: Callable[[], T]) -> T:
        """Run an action in the calling thread and return what it returns."""


class ImmediateTaskActionExecutor:
    """Runs every action as it is."""

    __slots__ = ()

    def call(self, action: Callable[[], T]) -> T:
        """Run the action."""
        return action()


class SynchronizedTaskActionExecutor:
    """Runs every action under one lock.

    Attributes:
        lock: What Flink calls the checkpoint lock. Whoever holds it sees the task between two actions.
    """

    __slots__ = ("lock",)

    def __init__(self, lock: threading.RLock | None = None) -> None:
        self.lock = threading.RLock() if lock is None else lock

    def call(self, action: Callable[[], T]) -> T:
        """Run the action while holding the lock; an action may itself call another."""
        with self.lock:
            return action()


IMMEDIATE = ImmediateTaskActionExecutor()
"""The executor of every task without a legacy source."""
