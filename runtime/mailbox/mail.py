"""One piece of mail: an action for the task's thread, who may run it while waiting, and under which lock it runs.

A priority is a filter and never an order. An operator's mail carries the operator's index in its
chain, counted from the head; an operator that waits takes only mail of its own priority or above,
so that nothing upstream of it runs in the middle of a record that it has not finished.

Flink: Mail. Here the description is a finished string, and the exception that a
mail raises keeps its type and gains a note with that description.

A task that has its thread to itself needs no lock, and runs every mail as it is. A legacy source
blocks in its `run` on a thread of its own, so mail and source must exclude each other: every mail of
such a task runs under one lock, and so does every element that the source collects.

Flink: StreamTaskActionExecutor.IMMEDIATE and SynchronizedStreamTaskActionExecutor. There the lock is
any object, and re-entrant as every Java monitor; here it is an RLock.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from opchain.runtime.errors import add_note

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


MIN_PRIORITY: Final = -1
"""Mail of the task itself, which no waiting operator runs."""

MAX_PRIORITY: Final = 2**31 - 1
"""Mail that every waiting operator may run; it does not overtake other mail."""


@dataclass(slots=True, eq=False)
class Mail:
    """An action, and when it may run.

    Attributes:
        command: What to run in the task's thread.
        priority: Index of the operator in its chain, or MIN_PRIORITY, or MAX_PRIORITY.
        description: What an error says the task was doing.
        action_executor: Runs the command, perhaps under a lock.
        on_drop: Called instead of `command` when the mailbox closes before the mail has run.
        put_at_ns: When it entered the mailbox, by the mailbox's clock.
    """

    command: Callable[[], object]
    priority: int
    description: str
    action_executor: TaskActionExecutor = IMMEDIATE
    on_drop: Callable[[], object] | None = None
    put_at_ns: int = field(default=0, init=False)

    def run(self) -> None:
        """Run the command.

        Raises:
            BaseException: Whatever the command raises, with a note that names the mail.
        """
        try:
            self.action_executor.call(self.command)
        except BaseException as error:
            add_note(error, f"while running mail '{self.description}'")
            raise

    def drop(self) -> None:
        """Tell whoever waits for this mail that it will never run."""
        if self.on_drop is not None:
            self.on_drop()

    def __str__(self) -> str:
        return f"'{self.description}' (priority {self.priority})"
