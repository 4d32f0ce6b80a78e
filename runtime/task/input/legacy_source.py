"""The input of a task whose SourceFunction blocks in `run(ctx)`, in its own thread.

Such a source cannot be asked for its next buffer, so it cannot be the default action. The default action starts the
thread and suspends itself. From then on the task's thread only runs mail, under the lock. The source emits each
element under the same lock. If it changes something together with an element, such as its offset, it holds the lock
for both. So a snapshot, which is mail, sees both or neither.

The end of the source, its error or its cancellation also arrive as mail.

Flink: SourceStreamTask and its LegacySourceFunctionThread, which is interrupted when the task is cancelled. Python
cannot interrupt a thread: a cancelled source gets a SourceCancelledError when it emits its next element.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.source_sink_functions import SourceFunction
from opchain.runtime.mailbox.task_mailbox import MailboxClosedError
from opchain.runtime.records.elements import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    Watermark,
    WatermarkStatus,
)
from opchain.runtime.task.input.task_input import TaskInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.mailbox.mailbox_processor import Controller, MailboxProcessor
    from opchain.runtime.mailbox.timer_service import TimerService
    from opchain.runtime.operators.source import LegacySourceOperator
    from opchain.runtime.task.operator_chain import OperatorChain


class SourceCancelledError(BaseException):
    """The task of a source was cancelled; leaves `run`, past any `except Exception` in it."""


class LegacySourceContext(SourceFunction.SourceContext[Any]):
    """The context of `run`. It delivers each element while it holds the lock.

    Its methods raise SourceCancelledError if the task was cancelled. The element is not delivered then.
    """

    def __init__(
        self, lock: threading.RLock, deliver: Callable[[Any], object], is_cancelled: threading.Event
    ) -> None:
        self._lock = lock
        self._deliver = deliver
        self._is_cancelled = is_cancelled

    def collect(self, element: Any) -> None:
        """Emits a record without a timestamp."""
        self._emit((element, None))

    def collect_with_timestamp(self, element: Any, timestamp: int) -> None:
        """Emits a record with its event time."""
        self._emit((element, timestamp))

    def emit_watermark(self, timestamp: int) -> None:
        """Emits the collected records, then the watermark."""
        self._emit(Watermark(timestamp))

    def mark_as_temporarily_idle(self) -> None:
        """Emits the collected records, then the status idle."""
        self._emit(WatermarkStatus.IDLE)

    def get_checkpoint_lock(self) -> threading.RLock:
        """The lock that the task's mail also takes."""
        return self._lock

    def _emit(self, element: Any) -> None:
        with self._lock:
            # Checked under the lock: a source that was waiting for the lock delivers no more elements.
            if self._is_cancelled.is_set():
                raise SourceCancelledError
            self._deliver(element)


class LegacySourceThread:
    """Runs one source on a thread beside its task.

    Args:
        name: The name in the thread and in the mail.
        run: The source's loop. It returns at its end, or after a cancellation.
        deliver: Receives each (record, timestamp) and event, in the source's thread and under the lock.
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
        run: Callable[[LegacySourceContext], object],
        deliver: Callable[[Any], object],
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
            self._report_end()
        except MailboxClosedError:
            # The task has already ended for another reason, which is known.
            return

    def _report_end(self) -> None:
        # An exception after a cancellation is not a failure: the connections of the source may have been closed.
        if self.error is None or self._is_cancelled.is_set():
            self._executor.execute(self._complete, f"end of legacy source '{self._name}'")
        else:
            self._processor.report_error(self.error)

    def _complete(self) -> None:
        if self._on_finished is not None and not self._is_cancelled.is_set():
            self._on_finished()
        self._processor.all_actions_completed()


class LegacySourceInput(TaskInput):
    """Runs a SourceFunction in its own thread. Flink: `SourceStreamTask`.

    Records are collected into batches. A live run processes a batch after `flush_after_ms`, by a timer that sends mail. A
    bounded job, whose results must not depend on the clock, processes a batch when it is full. An exception downstream is
    raised in the function's `collect`. It also fails the task if the function catches it, because a part of a batch is
    lost then.
    """

    def __init__(
        self,
        operator: LegacySourceOperator,
        chain: OperatorChain,
        processor: MailboxProcessor,
        lock: threading.RLock,
        batch_size: int,
        timers: TimerService,
        flush_after_ms: int | None = None,
    ) -> None:
        self._chain = chain
        self._batch_size = batch_size
        self._values: list[Any] = []
        self._timestamps: list[int | None] = []
        self._has_output = processor.mailbox_executor()
        self._timers = timers
        self._flush_after_ms = flush_after_ms
        self._is_idle = False
        self._watermark = MIN_WATERMARK
        self._processor = processor
        operator.hand_over = self._hand_over

        self._thread = LegacySourceThread(
            operator.program.name,
            operator.run,
            self._deliver,
            processor=processor,
            lock=lock,
            cancel=operator.function.cancel,
            on_finished=self._finish,
        )

    def process_next(self, controller: Controller) -> None:
        """Starts the function's thread, once. From then on the task only runs mail."""
        self._thread.default_action(controller)

    def _deliver(self, element: Any) -> None:
        """Takes a (record, timestamp) or an event. Runs in the source's thread, under the lock."""
        try:
            self._take(element)
        except Exception as error:
            self._processor.report_error(error)
            raise

    def _take(self, element: Any) -> None:
        if element.__class__ is tuple:
            self._activate()
            self._values.append(element[0])
            self._timestamps.append(element[1])
            if len(self._values) >= self._batch_size or self._flush_after_ms == 0:
                self._hand_over()
                self._has_output.execute(_do_nothing, "yield what a legacy source filled")
            elif len(self._values) == 1 and self._flush_after_ms is not None:
                # The first record of a batch sets the timer for the whole batch.
                at_ms = self._timers.current_processing_time() + self._flush_after_ms
                self._timers.call_at(at_ms, self._send_flush)
        elif element.__class__ is Watermark:
            self._emit_watermark(element.timestamp)
        elif not self._is_idle:
            self._hand_over()
            self._is_idle = True
            self._chain.head.process_status(is_idle=True)

    def _send_flush(self) -> None:
        """Runs in the thread of the timers."""
        with suppress(MailboxClosedError):  # the task has ended
            self._has_output.execute(self._hand_over, "flush a legacy source")

    def _activate(self) -> None:
        if self._is_idle:
            self._is_idle = False
            self._chain.head.process_status(is_idle=False)

    def _emit_watermark(self, timestamp: int) -> None:
        self._activate()
        self._hand_over()
        # A lower watermark is dropped, as after an exchange.
        if timestamp > self._watermark:
            self._watermark = timestamp
            self._chain.process_watermark(0, timestamp)

    def _hand_over(self) -> None:
        if self._values:
            values, timestamps = self._values, self._timestamps
            self._values, self._timestamps = [], []
            self._chain.process_batch(0, values, timestamps)

    def _finish(self) -> None:
        self._emit_watermark(MAX_WATERMARK)

    def close(self) -> None:
        """Cancels the source and waits for its thread."""
        self._thread.cancel()
        self._thread.join()


def _do_nothing() -> None:
    """Does nothing: this mail only makes the loop take a turn."""
