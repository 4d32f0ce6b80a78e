"""The mailbox: any thread puts mail, and the thread that owns the mailbox takes it.

A mail is an action with a priority. The priority filters mail, and does not order it. An operator's mail has the
operator's index in its chain, counted from the head. An operator that waits takes only mail of its own priority or
above. So nothing upstream runs in the middle of a record that the operator has not finished.

Mail is taken in this order: mail that was put first (`put_first`), then the batch, then the queue. The queue is shared
and locked. The batch belongs to the mailbox thread: `create_batch` moves the waiting mail into it, and taking from it
needs no lock. Later mail never joins a batch, so the mail of one turn is bounded.

A task with a single thread needs no lock for its actions. A legacy source blocks in its `run` on a second thread, so
its elements and the mail exclude each other by one re-entrant lock. Flink: StreamTaskActionExecutor.

The loop only reads `has_new_mail` in a turn without mail, so it is a plain attribute. It is set after a mail was put,
and cleared before the queue is checked for more mail. So a put from another thread is either found by this check or
sets the flag again, and no mail is overlooked.

Flink: TaskMailboxImpl. Differences:

- Mail that is put first is always taken next. In Flink it joins the batch or the queue, depending on the thread.
- `take` on a quiesced, empty mailbox raises, as no mail can come. In Flink it waits forever.
- An exception of a mail keeps its type, and gets a note with the mail's description.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeVar

from opchain.runtime.errors import StreamError, add_note

if TYPE_CHECKING:
    from collections.abc import Callable


T = TypeVar("T")


NO_LOCK: AbstractContextManager[None] = nullcontext()
"""For tasks without a legacy source."""

MIN_PRIORITY: Final = -1
"""The priority of the task's own mail, which no waiting operator runs."""

MAX_PRIORITY: Final = 2**31 - 1
"""The priority of mail that every waiting operator may run. It does not overtake other mail."""


@dataclass(slots=True, eq=False)
class Mail:
    """An action, and the condition under which it may run.

    Attributes:
        command: The command to run in the task's thread.
        priority: The index of the operator in its chain, or MIN_PRIORITY, or MAX_PRIORITY.
        description: The name of the mail in errors.
        lock: Held while the command runs.
        on_drop: Called instead of `command` if the mailbox closes before the mail has run.
        put_at_ns: The time when the mail was put, by the mailbox's clock.
    """

    command: Callable[[], object]
    priority: int
    description: str
    lock: AbstractContextManager[Any] = NO_LOCK
    on_drop: Callable[[], object] | None = None
    put_at_ns: int = field(default=0, init=False)

    def run(self) -> None:
        """Runs the command.

        Raises:
            BaseException: The exception of the command, with a note that names the mail.
        """
        try:
            with self.lock:
                self.command()
        except BaseException as error:
            add_note(error, f"while running mail '{self.description}'")
            raise

    def drop(self) -> None:
        """Drops the mail, so that waiting callers are notified."""
        if self.on_drop is not None:
            self.on_drop()

    def __str__(self) -> str:
        return f"'{self.description}' (priority {self.priority})"


class MailboxClosedError(StreamError, RuntimeError):
    """The task is ending, so its mailbox no longer accepts or returns mail.

    Flink: MailboxClosedException, which its MailboxExecutor turns into a RejectedExecutionException.

    What to do: Stop your own threads in `close()`, before the task ends.
    """


class NotMailboxThreadError(StreamError, RuntimeError):
    """A thread called a method that only the mailbox's own thread may call.

    Flink: IllegalStateException.

    What to do: Use state, timers and collectors only in the thread that calls your function.
    """


class MailboxState(Enum):
    """The state of a mailbox. It only moves down this list."""

    OPEN = "open"
    """Mail can be put and taken."""
    QUIESCED = "quiesced"
    """Mail can only be taken."""
    CLOSED = "closed"
    """Mail can neither be put nor taken."""


class TaskMailbox:
    """The mail of one task, bound to the thread that creates it.

    Other threads may use only `put`, `put_first`, `run_exclusively`, `size` and `state`. All other methods raise
    NotMailboxThreadError there.

    Args:
        clock_ns: The clock of the time stamps of mail, in nanoseconds from any origin.

    Attributes:
        has_new_mail: False only if there is no mail. Only the mailbox thread may read it, and only this class sets it.
        clock_ns: See the argument.
    """

    __slots__ = (
        "_batch",
        "_first",
        "_lock",
        "_not_empty",
        "_queue",
        "_state",
        "_thread_id",
        "_thread_name",
        "clock_ns",
        "has_new_mail",
    )

    def __init__(self, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.clock_ns = clock_ns
        self.has_new_mail = False
        self._thread_id = threading.get_ident()
        self._thread_name = threading.current_thread().name
        self._state = MailboxState.OPEN
        # Re-entrant, because the action of run_exclusively may put mail.
        self._lock = threading.RLock()
        self._not_empty = threading.Condition(self._lock)
        self._first: deque[Mail] = deque()  # filled under the lock, emptied by the mailbox thread
        self._batch: deque[Mail] = deque()  # touched by the mailbox thread alone
        self._queue: deque[Mail] = deque()  # touched under the lock alone

    @property
    def state(self) -> MailboxState:
        """Whether mail may be put and taken."""
        return self._state

    def is_mailbox_thread(self) -> bool:
        """Whether the caller is the thread that may take mail."""
        return threading.get_ident() == self._thread_id

    def has_mail(self) -> bool:
        """Whether mail of any priority is waiting."""
        self.require_mailbox_thread("look for mail")
        return bool(self._first or self._batch or self._queue)

    def size(self) -> int:
        """The number of waiting mails, including the batch."""
        with self._lock:
            return len(self._first) + len(self._batch) + len(self._queue)

    # Putting, from any thread

    def put(self, mail: Mail) -> None:
        """Adds mail after all other mail.

        Raises:
            MailboxClosedError: The mailbox is quiesced or closed.
        """
        with self._lock:
            self._accept(mail)
            self._queue.append(mail)
            self._announce()

    def put_first(self, mail: Mail) -> None:
        """Adds mail before all other mail.

        Raises:
            MailboxClosedError: The mailbox is quiesced or closed.
        """
        with self._lock:
            self._accept(mail)
            self._first.appendleft(mail)
            self._announce()

    def run_exclusively(self, action: Callable[[], T]) -> T:
        """Runs an action, and returns its result. Until it returns, no other thread can put mail or change the state.

        So an action can check the state and then put mail.
        """
        with self._lock:
            return action()

    # Taking, from the mailbox thread

    def take(self, priority: int) -> Mail:
        """Removes and returns the oldest mail of at least this priority. Waits until there is one.

        Raises:
            MailboxClosedError: The mailbox is closed; or it is quiesced and has no such mail, so none can come.
        """
        self._check_may_take()
        with self._lock:
            while (mail := self._remove_oldest(priority)) is None:
                self._wait(f"mail of priority {priority} or above")
            return mail

    def try_take(self, priority: int) -> Mail | None:
        """Removes and returns the oldest mail of at least this priority; None if there is none.

        Raises:
            MailboxClosedError: The mailbox is closed.
        """
        self._check_may_take()
        if not self.has_new_mail:
            return None
        with self._lock:
            return self._remove_oldest(priority)

    def create_batch(self) -> int:
        """Moves all waiting mail to the end of the batch. Returns the size of the batch (Flink: a boolean).

        The order of mail for `take` and `try_take` does not change.
        """
        self.require_mailbox_thread("create a batch")
        if not self.has_new_mail:
            return 0
        with self._lock:
            self._batch.extend(self._queue)
            self._queue.clear()
            self._lower_flag_if_empty()
            return len(self._first) + len(self._batch)

    def try_take_from_batch(self) -> Mail | None:
        """Removes and returns mail that was put first, or else the next mail of the batch; None if there is neither.

        Raises:
            MailboxClosedError: The mailbox is closed.
        """
        self._check_may_take()
        if self._first:
            mail = self._first.popleft()
        elif self._batch:
            mail = self._batch.popleft()
        else:
            return None
        if not self._batch:
            self._lower_flag_if_empty()
        return mail

    def wait_for_mail(self) -> None:
        """Waits until there is mail, without taking it.

        Raises:
            MailboxClosedError: No mail is waiting and none can come, because the mailbox is not open.
        """
        self._check_may_take()
        with self._lock:
            while not self.has_mail():
                self._wait("mail")

    # The end

    def drain(self) -> list[Mail]:
        """Removes and returns all mail, in order."""
        self.require_mailbox_thread("drain the mailbox")
        with self._lock:
            mails = [*self._first, *self._batch, *self._queue]
            self._first.clear()
            self._batch.clear()
            self._queue.clear()
            self.has_new_mail = False
            return mails

    def quiesce(self) -> None:
        """Accepts no more mail. Waiting mail can still be taken. Has no effect on a closed mailbox."""
        self.require_mailbox_thread("quiesce the mailbox")
        with self._lock:
            if self._state is MailboxState.OPEN:
                self._state = MailboxState.QUIESCED

    def close(self) -> list[Mail]:
        """Accepts no more mail, and lets none be taken. Returns the mail that was waiting."""
        self.require_mailbox_thread("close the mailbox")
        with self._lock:
            self._state = MailboxState.CLOSED
            return self.drain()

    # What the methods above share

    def require_mailbox_thread(self, purpose: str) -> None:
        """Raises an error if the caller is not the mailbox thread.

        Args:
            purpose: The purpose of the caller, for the message.

        Raises:
            NotMailboxThreadError: The caller is another thread.
        """
        if threading.get_ident() != self._thread_id:
            raise NotMailboxThreadError(
                f"thread '{threading.current_thread().name}' cannot {purpose}: only the task's thread "
                f"'{self._thread_name}' can. Send the work there with MailboxExecutor.execute"
            )

    def _check_may_take(self) -> None:
        self.require_mailbox_thread("take mail")
        if self._state is MailboxState.CLOSED:
            raise MailboxClosedError("cannot take mail: the mailbox is closed, its task has ended")

    def _accept(self, mail: Mail) -> None:
        if self._state is not MailboxState.OPEN:
            raise MailboxClosedError(
                f"cannot put mail {mail}: the mailbox is {self._state.value}, its task is ending"
            )
        mail.put_at_ns = self.clock_ns()

    def _announce(self) -> None:
        self.has_new_mail = True
        self._not_empty.notify()

    def _wait(self, awaited: str) -> None:
        # Only the mailbox thread changes the state, so it cannot change while this thread waits.
        if self._state is not MailboxState.OPEN:
            raise MailboxClosedError(
                f"cannot wait for {awaited}: none is left and the mailbox is {self._state.value}, "
                "so none can come"
            )
        self._not_empty.wait()

    def _remove_oldest(self, priority: int) -> Mail | None:
        for line in (self._first, self._batch, self._queue):
            for position, mail in enumerate(line):
                if mail.priority >= priority:
                    del line[position]
                    self._lower_flag_if_empty()
                    return mail
        return None

    def _lower_flag_if_empty(self) -> None:
        # In this order, also without the lock: see the module's docstring.
        self.has_new_mail = False
        if self._first or self._batch or self._queue:
            self.has_new_mail = True
