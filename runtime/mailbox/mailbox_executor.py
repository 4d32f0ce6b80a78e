"""Sends mail from any thread: an action that the task's thread will run.

An executor has the priority of an operator, or of the task, and its mail has the same. While an operator waits
(`yield_`, `try_yield`), only mail of its priority or above runs: its own mail and that of downstream operators.

Flink: MailboxExecutor. There `yield` wraps a checked exception. Here the exception of a mail leaves `yield_`
unchanged.
"""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from opchain.runtime.errors import StreamError
from opchain.runtime.mailbox.task_mailbox import NO_LOCK, Mail, TaskMailbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager


T = TypeVar("T")


class YieldNotAllowedError(StreamError, RuntimeError):
    """An operator waited for mail in a task whose operators must not.

    What to do: Start a new chain at the operator that the message names, with `start_new_chain()`.
    """


class MailboxExecutor:
    """Sends actions to one mailbox, and runs its mail while an operator waits.

    Args:
        mailbox: Where mail goes.
        priority: Index of the operator in its chain, or MIN_PRIORITY for the task.
        lock: Held while an action runs.
        run_mail: Runs a mail taken while waiting; MailboxProcessor counts it there.
        allow_yield: Whether an operator may wait. Not in a task with a legacy source, whose thread
            stands still while a mail holds the lock.
    """

    __slots__ = ("_allow_yield", "_lock", "_mailbox", "_run_mail", "priority")

    def __init__(
        self,
        mailbox: TaskMailbox,
        priority: int,
        lock: AbstractContextManager[Any] = NO_LOCK,
        *,
        run_mail: Callable[[Mail], None] = Mail.run,
        allow_yield: bool = True,
    ) -> None:
        self.priority = priority
        self._mailbox = mailbox
        self._lock = lock
        self._run_mail = run_mail
        self._allow_yield = allow_yield

    def execute(self, command: Callable[[], object], description: str) -> None:
        """Run a command in the task's thread, after the mail that is waiting now.

        An exception that it raises fails the task.

        Args:
            command: What to run; what it returns is ignored.
            description: Named by the error if the command fails.

        Raises:
            MailboxClosedError: The task is ending. Flink: RejectedExecutionException.
        """
        self._mailbox.put(Mail(command, self.priority, description, self._lock))

    def submit(self, command: Callable[[], T], description: str) -> Future[T]:
        """Run a command in the task's thread and get what it returns or raises through a future.

        An exception that it raises does not fail the task, so the future must be looked at. In the
        task's thread itself, wait for it with `yield_`: its `result()` would wait forever. If the
        task ends first, the future is cancelled.

        Raises:
            MailboxClosedError: The task is ending. Flink: RejectedExecutionException.
        """
        future: Future[T] = Future()
        self._mailbox.put(
            Mail(
                partial(_complete, future, command),
                self.priority,
                description,
                self._lock,
                on_drop=future.cancel,
            )
        )
        return future

    def yield_(self) -> None:
        """Run the next mail that this operator may run, waiting until there is one.

        Raises:
            NotMailboxThreadError: The caller is not the task's thread.
            MailboxClosedError: There is no such mail and none can come.
            YieldNotAllowedError: The task has a legacy source.
        """
        self._require_yield_allowed()
        self._run_mail(self._mailbox.take(self.priority))

    def try_yield(self) -> bool:
        """Run the next mail that this operator may run; False if there is none.

        Raises:
            NotMailboxThreadError: The caller is not the task's thread.
            MailboxClosedError: The mailbox is closed.
            YieldNotAllowedError: The task has a legacy source.
        """
        self._require_yield_allowed()
        mail = self._mailbox.try_take(self.priority)
        if mail is None:
            return False
        self._run_mail(mail)
        return True

    def _require_yield_allowed(self) -> None:
        if not self._allow_yield:
            raise YieldNotAllowedError(
                f"the operator at position {self.priority} of its chain waits for mail, which would "
                "block the legacy source in the same task: start a new chain at this operator"
            )


def _complete(future: Future[T], command: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = command()
    except Exception as error:  # noqa: BLE001 - the future raises it
        future.set_exception(error)
    except BaseException as error:
        # An exit or an interrupt is meant for the thread that it happened in.
        future.set_exception(error)
        raise
    else:
        future.set_result(result)
