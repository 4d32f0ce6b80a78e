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
    """An operator waited for mail in a task in which operators must not wait.

    What to do: Start a new chain at the operator that the message names, with `start_new_chain()`.
    """


class MailboxExecutor:
    """Sends actions to one mailbox, and runs its mail while an operator waits.

    Args:
        mailbox: The mailbox.
        priority: The index of the operator in its chain, or MIN_PRIORITY for the task.
        lock: Held while an action runs.
        run_mail: Runs a mail that was taken while waiting. MailboxProcessor counts it there.
        allow_yield: Whether an operator may wait. Not in a task with a legacy source, whose thread is blocked while a
            mail holds the lock.
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
        """Runs a command in the task's thread, after the mail that is waiting now.

        An exception of the command fails the task.

        Args:
            command: The command. Its result is ignored.
            description: The name of the command in errors.

        Raises:
            MailboxClosedError: The task is ending. Flink: RejectedExecutionException.
        """
        self._mailbox.put(Mail(command, self.priority, description, self._lock))

    def submit(self, command: Callable[[], T], description: str) -> Future[T]:
        """Runs a command in the task's thread. The future gets its result or exception.

        An exception does not fail the task, so check the future. In the task's thread, wait for it with `yield_`: its
        `result()` would wait forever. If the task ends first, the future is cancelled.

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
        """Runs the next mail that this operator may run. Waits until there is one.

        Raises:
            NotMailboxThreadError: The caller is not the task's thread.
            MailboxClosedError: There is no such mail, and none can arrive.
            YieldNotAllowedError: The task has a legacy source.
        """
        self._require_yield_allowed()
        self._run_mail(self._mailbox.take(self.priority))

    def try_yield(self) -> bool:
        """Runs the next mail that this operator may run. Returns False if there is none.

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
        # An exit or an interrupt is meant for the current thread.
        future.set_exception(error)
        raise
    else:
        future.set_result(result)
