"""Calls asynchronous functions, while the stream continues.

    task's thread                                   event loop's thread
    process_element: queue, start a call  ------>   await function.async_invoke(record)
    _take_ended (mail): complete, emit    <------   result or error

Only the calls run in the other thread. Retry predicates, `timeout` and emitting run in the task's thread. While the
queue is full, the operator waits in its mailbox: mail of this operator and of downstream operators runs, and nothing
upstream does. That is the back pressure. At the end of the input the operator waits until the queue is empty.

Flink: `AsyncWaitOperator`. Differences:

- One mail hands over all calls that have ended. In Flink each call sends its own mail.
- A call that times out is cancelled. In Flink it continues, and its result is dropped.
- When the input ends, retries keep their pauses, as in PyFlink. Flink's Java operator makes a last attempt at once.
- Latency markers wait in the queue. In Flink they overtake it.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from opchain.runtime.mailbox.task_mailbox import MailboxClosedError
from opchain.runtime.operators.async_wait.calls import (
    Deadlines,
    EventLoopThread,
    PendingCall,
    invocation_of,
)
from opchain.runtime.operators.async_wait.queues import (
    ElementQueue,
    OrderedQueue,
    QueuedRecord,
    UnorderedQueue,
)
from opchain.runtime.operators.operator import OperatorContext, Output, UserFunctionOperator
from opchain.runtime.records.record_copy import own_copy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opchain.runtime.program.operator_specs import AsyncWaitSpec
    from opchain.runtime.program.vertex_program import OperatorProgram


class AsyncWaitOperator(UserFunctionOperator):
    """Ordered and unordered wait, for async functions and async batch functions."""

    method = "async_invoke"

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        spec: AsyncWaitSpec = program.spec  # type: ignore[assignment]
        self.capacity = spec.capacity
        self.queue: ElementQueue = OrderedQueue() if spec.is_ordered else UnorderedQueue()
        self.invocation = invocation_of(spec.function)
        self.event_loop = EventLoopThread(f"calls of '{program.name}'", spec.capacity)
        self.deadlines: Deadlines[PendingCall] | None = (
            Deadlines(context.processing_time, spec.timeout_ms, self._time_out)
            if spec.timeout_ms > 0
            else None
        )
        self._strategy = spec.retry_strategy
        self._asks_again: Callable[[Any], bool] | None = None
        self._forgives: Callable[[Exception], bool] | None = None
        if self._strategy is not None:
            predicate = self._strategy.get_retry_predicate()
            self._asks_again = predicate.result_predicate()
            self._forgives = predicate.exception_predicate()
        # With object reuse, an upstream operator may change a record after it has emitted it.
        self._copies_input = context.task.vertex.object_reuse
        self._gathered: list[QueuedRecord] = []
        # The event loop adds calls that have ended. One mail takes all of them.
        self._ended: deque[tuple[PendingCall, Any, BaseException | None]] = deque()
        self._is_mail_sent = False

    def open(self) -> None:
        """Opens the function, and starts the event loop."""
        super().open()
        self.event_loop.start()

    # Elements

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Starts a call, or adds the record to a batch. Before that, waits until the queue has room."""
        if self._copies_input:
            value = own_copy(value)
        self._wait_for_place()
        self._gathered.append(self.queue.put_record(value, timestamp))
        if len(self._gathered) >= self.invocation.batch_size:
            self._call_gathered()

    def process_watermark(self, watermark: int) -> None:
        """Emits a watermark after the results of all records before it."""
        self._put_mark(partial(super().process_watermark, watermark), is_boundary=True)

    def process_status(self, is_idle: bool) -> None:
        """Emits a status after the results of all records before it."""
        self._put_mark(partial(super().process_status, is_idle), is_boundary=True)

    def process_latency_marker(self, marker: Any) -> None:
        """Emits a latency marker when a record in its place would be emitted."""
        self._put_mark(partial(super().process_latency_marker, marker), is_boundary=False)

    def on_batch_end(self) -> None:
        """Starts the call of an incomplete batch, because the next record may come much later."""
        self._call_gathered()

    def end_input(self, number: int) -> None:
        """Waits for all calls, with their timeouts and retries."""
        del number
        self._call_gathered()
        while len(self.queue):
            self.context.mailbox.yield_()

    def finish(self) -> None:
        """Waits for calls that have started since `end_input`."""
        self.end_input(0)

    def prepare_snapshot(self, checkpoint_id: int) -> None:  # noqa: ARG002 - the contract
        """Waits for all calls, so that the state contains none.

        Flink stores the records of running calls in the state, and repeats the calls after a restore.
        """
        self.end_input(0)

    def close(self) -> None:
        """Cancels running calls, and closes the function."""
        if self.deadlines is not None:
            self.deadlines.clear()
        try:
            self.event_loop.stop()
        finally:
            super().close()

    def _put_mark(self, pass_on: Callable[[], None], *, is_boundary: bool) -> None:
        self._call_gathered()
        self._wait_for_place()
        self.queue.put_mark(pass_on, is_boundary=is_boundary)
        self._emit_completed()

    def _wait_for_place(self) -> None:
        while len(self.queue) >= self.capacity:
            self._call_gathered()
            self.context.mailbox.yield_()

    def _emit_completed(self) -> None:
        collect = self.output.collect
        while (element := self.queue.take()) is not None:
            element.emit(collect)

    # Calls

    def _call_gathered(self) -> None:
        if self._gathered:
            call = PendingCall(self._gathered)
            self._gathered = []
            if self.deadlines is not None:
                self.deadlines.add(call)
            self._attempt(call)

    def _attempt(self, call: PendingCall) -> None:
        call.running = self.event_loop.submit(
            partial(self.invocation.call, self.invocation.argument(call.values)),
            partial(self._report_end, call),
        )

    def _report_end(self, call: PendingCall, returned: Any, error: BaseException | None) -> None:
        """Sends mail; in the event loop's thread."""
        self._ended.append((call, returned, error))
        if not self._is_mail_sent:
            self._is_mail_sent = True
            # The mailbox is closed, so the task has ended and does not need the result.
            with suppress(MailboxClosedError):
                self.context.mailbox.execute(self._take_ended, f"results of '{self.program.name}'")

    def _take_ended(self) -> None:
        # The flag is reset first. So a call that ends now is either taken below, or sends mail again.
        self._is_mail_sent = False
        ended = self._ended
        while ended:
            call, returned, error = ended.popleft()
            if call.is_done:
                continue  # it had ended before it was cancelled
            if error is None:
                self._take_returned(call, returned)
            else:
                self._take_error(call, error)
        self._emit_completed()

    def _take_returned(self, call: PendingCall, returned: Any) -> None:
        value = self.invocation.argument(call.values)
        by_record = self.invocation.results_of_call(returned, value)
        asks_again = self._asks_again
        if asks_again is None or not self._strategy.can_retry(call.attempt):
            self._complete(call, by_record)
            return
        again = []
        for record, results in zip(call.records, by_record, strict=True):
            if asks_again(results):
                again.append(record)
            else:
                self.queue.complete(record, results)
        call.records = again
        if again:
            self._pause(call)
        else:
            self._complete(call, [])

    def _take_error(self, call: PendingCall, error: BaseException) -> None:
        if (
            self._forgives is not None
            and isinstance(error, Exception)
            and self._strategy.can_retry(call.attempt)
            and self._forgives(error)
        ):
            self._pause(call)
        else:
            self._fail(self.invocation.argument(call.values), error)

    def _fail(self, value: Any, error: BaseException) -> None:  # noqa: ARG002 - shown as the record
        raise error

    def _pause(self, call: PendingCall) -> None:
        clock = self.context.processing_time
        pause_ms = self._strategy.get_backoff_time_millis(call.attempt)
        call.running = None
        call.pause = clock.register_timer(
            clock.current_processing_time() + max(0, pause_ms), partial(self._attempt_again, call)
        )

    def _attempt_again(self, call: PendingCall, _at_ms: int) -> None:
        call.pause = None
        call.attempt += 1
        self._attempt(call)

    def _time_out(self, call: PendingCall) -> None:
        """Uses the results of the function's `timeout`. There is no retry."""
        value = self.invocation.argument(call.values)
        if call.running is not None:
            call.running.cancel()
        if call.pause is not None:
            call.pause.cancel()
        self._complete(call, self.invocation.results_in_place(value))
        self._emit_completed()

    def _complete(self, call: PendingCall, by_record: Iterable[Iterable[Any]]) -> None:
        call.is_done = True
        if self.deadlines is not None:
            self.deadlines.remove(call)
        for record, results in zip(call.records, by_record, strict=True):
            self.queue.complete(record, results)
