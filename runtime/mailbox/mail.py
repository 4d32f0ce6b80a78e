"""One piece of mail: an action for the task's thread, and who may run it while waiting.

A priority is a filter and never an order. An operator's mail carries the operator's index in its
chain, counted from the head; an operator that waits takes only mail of its own priority or above,
so that nothing upstream of it runs in the middle of a record that it has not finished.

Flink: Mail. Here the description is a finished string, and the exception that a
mail raises keeps its type and gains a note with that description.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from opchain.runtime.errors import add_note
from opchain.runtime.mailbox.task_action_executor import IMMEDIATE

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.mailbox.task_action_executor import TaskActionExecutor

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
