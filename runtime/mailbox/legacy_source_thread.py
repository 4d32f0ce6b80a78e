"""Runs a source whose `run(ctx)` blocks in its own thread, synchronized with the mailbox by a lock.

Such a source cannot be asked for its next buffer, so it cannot be the default action. The default action starts the
thread and suspends itself. From then on the task's thread only runs mail, under the lock. The source emits each
element under the same lock. If it changes something together with an element, such as its offset, it holds
`ctx.lock` for both. So a snapshot, which is mail, sees both or neither.

The end of the source, its error or its cancellation also arrive as mail.

Flink: SourceStreamTask and its LegacySourceFunctionThread, which is interrupted when the task is cancelled. Python
cannot interrupt a thread: a cancelled source gets a SourceCancelledError when it emits its next element.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

from opchain.runtime.mailbox.task_mailbox import MailboxClosedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.mailbox.mailbox_processor import Controller, MailboxProcessor

E = TypeVar("E")


class SourceCancelledError(BaseException):
    """The task of a source was cancelled; leaves `run`, past any `except Exception` in it."""


class LegacySourceContext(Generic[E]):
    """The context of `run`.

    Attributes:
        lock: The task is blocked while this lock is held. Flink: getCheckpointLock.
    """

    __slots__ = ("_deliver", "_is_cancelled", "lock")

    def __init__(
        self, lock: threading.RLock, deliver: Callable[[E], object], is_cancelled: threading.Event
    ) -> None:
        self.lock = lock
        self._deliver = deliver
        self._is_cancelled = is_cancelled

    @property
    def is_cancelled(self) -> bool:
        """Whether the source should return from `run`."""
        return self._is_cancelled.is_set()

    def collect(self, element: E) -> None:
        """Delivers one element while holding the lock.

        Raises:
            SourceCancelledError: The task was cancelled. The element is not delivered.
        """
        with self.lock:
            # Checked under the lock: a source that was waiting for the lock delivers no more elements.
            if self._is_cancelled.is_set():
                raise SourceCancelledError
            self._deliver(element)


class LegacySourceThread(Generic[E]):
    """Runs one source on a thread beside its task.

    Args:
        name: The name in the thread and in the mail.
        run: The source's loop. It returns at its end, or after a cancellation.
        deliver: Receives each element, in the source's thread and under the lock.
        processor: The task's loop. Its default action is `default_action`, or calls it.
        lock: The lock under which the processor runs its mail.
        cancel: Makes `run` return. Called at most once, in the thread that cancels.
        on_finished: Runs as mail when `run` has returned without a cancellation, before the loop is completed. Flink:
            endInput.

    Attributes:
        error: The exception of `run`, if any. It is also set if the task was cancelled or had ended before, so that the
            loop does not raise it.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[LegacySourceContext[E]], object],
        deliver: Callable[[E], object],
        *,
        processor: MailboxProcessor,
        lock: threading.RLock,
        cancel: Callable[[], object] | None = None,
        on_finished: Callable[[], object] | None = None,
    ) -> None:
        self.error: BaseException | None = None
        self._name = name
        self._run = run
        self._processor = processor
        self._executor = processor.mailbox_executor()
        self._cancel = cancel
        self._on_finished = on_finished
        self._is_cancelled = threading.Event()
        self._cancel_once = threading.Lock()
        self._context = LegacySourceContext(lock, deliver, self._is_cancelled)
        self._thread = threading.Thread(
            target=self._run_to_the_end, name=f"legacy source '{name}'", daemon=True
        )

    def default_action(self, controller: Controller) -> None:
        """Starts the source, and suspends the default action. A cancelled source ends the loop instead."""
        controller.suspend_default_action()
        if self._is_cancelled.is_set():
            controller.all_actions_completed()
        else:
            self._thread.start()

    def cancel(self) -> None:
        """Makes the source end, at the latest when it collects its next element.

        The loop is then completed without `on_finished`. May be called from any thread, any number of times.
        """
        with self._cancel_once:
            if self._is_cancelled.is_set():
                return
            self._is_cancelled.set()
        if self._cancel is not None:
            self._cancel()

    def join(self, timeout_s: float | None = None) -> bool:
        """Waits for the source's thread. Returns whether it has ended, or was never started.

        Do not call it from mail: the source may be waiting for the lock that the mail holds.
        """
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run_to_the_end(self) -> None:
        try:
            self._run(self._context)
        except SourceCancelledError:
            pass
        except BaseException as error:  # noqa: BLE001 - the task raises it
            self.error = error
        try:
            self._tell_the_task()
        except MailboxClosedError:
            # The task has already ended for another reason, which is known.
            return

    def _tell_the_task(self) -> None:
        # An exception after a cancellation is not a failure: the connections of the source may have been closed.
        if self.error is None or self._is_cancelled.is_set():
            self._executor.execute(self._complete, f"end of legacy source '{self._name}'")
        else:
            self._processor.report_error(self.error)

    def _complete(self) -> None:
        if self._on_finished is not None and not self._is_cancelled.is_set():
            self._on_finished()
        self._processor.all_actions_completed()
