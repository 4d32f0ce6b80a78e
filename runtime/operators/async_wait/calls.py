"""Calls of async functions: their timeouts, attempts and arguments, and the thread that runs them.

One event loop serves all calls of an operator. So an AsyncFunction may share a client, a lock or a semaphore between
calls, as asyncio programs do. All timeouts of an operator are equally long, so one timer is enough. A function is
called with one record, or with a batch.
"""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from opchain.runtime.errors import short_repr
from opchain.runtime.functions.async_functions import AsyncBatchFunction, AsyncFunction
from opchain.runtime.functions.callables import as_function, name_of

if TYPE_CHECKING:
    from opchain.runtime.mailbox.processing_time_service import ProcessingTimeService, TimerHandle
    from opchain.runtime.operators.async_wait.queues import QueuedRecord

    Invoke = Callable[[], Coroutine[Any, Any, Any]]
    OnEnd = Callable[[Any, BaseException | None], None]


STOPPING_S = 10.0
"""How long `stop` waits for cancelled calls."""


class RunningCall:
    """A running call. After `cancel` its end is not reported."""

    __slots__ = ("_loop", "invoke", "is_cancelled", "on_end", "task")

    def __init__(self, loop: asyncio.AbstractEventLoop, invoke: Invoke, on_end: OnEnd) -> None:
        self._loop = loop
        self.invoke = invoke
        self.on_end = on_end
        self.is_cancelled = False
        self.task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        """Raises CancelledError in the call, unless it has ended. Any thread may call this."""
        self.is_cancelled = True
        self._loop.call_soon_threadsafe(self._cancel_task)

    def _cancel_task(self) -> None:
        if self.task is not None:
            self.task.cancel()


class EventLoopThread:
    """Runs coroutines from `start` to `stop`.

    Args:
        name: The name of the thread, which the warning of `stop` contains.
        threads: How many calls may run at once in `asyncio.to_thread`.
    """

    def __init__(self, name: str, threads: int) -> None:
        self._name = name
        self._threads = threads
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pool: ThreadPoolExecutor | None = None
        # The task's thread adds calls. The loop is woken once for all of them.
        self._inbox: deque[RunningCall] = deque()
        self._is_woken = False
        self._is_stopping = False
        # An event loop has only weak references to its tasks.
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Starts the thread."""
        self._loop = loop = asyncio.new_event_loop()
        self._pool = ThreadPoolExecutor(self._threads, f"{self._name} blocking call")
        loop.set_default_executor(self._pool)
        self._thread = threading.Thread(
            target=self._run, args=(loop,), name=self._name, daemon=True
        )
        self._thread.start()

    def submit(self, invoke: Invoke, on_end: OnEnd) -> RunningCall:
        """Runs the coroutine that `invoke` makes.

        Args:
            invoke: Called on the loop.
            on_end: Called on the loop with the result and None, or with None and the error. Not called if the call was
                cancelled.
        """
        assert self._loop is not None, "submit comes after start"
        call = RunningCall(self._loop, invoke, on_end)
        self._inbox.append(call)
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._take_inbox)
        return call

    def stop(self) -> None:
        """Cancels running calls, and ends the thread.

        Python cannot end a coroutine that ignores its cancellation, or a blocking call in a thread. After a warning
        such calls continue to run.
        """
        loop, thread, pool = self._loop, self._thread, self._pool
        if loop is None or thread is None or pool is None:
            return
        self._loop = None
        pool.shutdown(wait=False, cancel_futures=True)
        loop.call_soon_threadsafe(self._begin_stopping)
        thread.join(STOPPING_S)
        if thread.is_alive():
            warnings.warn(
                f"{self._name}: a call still runs {STOPPING_S:g} s after it was cancelled; it "
                f"blocks its event loop (use asyncio.to_thread for blocking code) or ignores "
                f"CancelledError",
                RuntimeWarning,
                stacklevel=2,
            )

    # In the loop's thread

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()

    def _take_inbox(self) -> None:
        # The flag is reset first. So a call that is added now is either started below, or wakes the loop again.
        self._is_woken = False
        inbox, create_task = self._inbox, asyncio.get_running_loop().create_task
        while inbox:
            call = inbox.popleft()
            if not call.is_cancelled:
                call.task = create_task(self._run_to_end(call))
                self._tasks.add(call.task)
                call.task.add_done_callback(self._tasks.discard)

    async def _run_to_end(self, call: RunningCall) -> None:
        try:
            result = await call.invoke()
        except asyncio.CancelledError as error:
            if call.is_cancelled or self._is_stopping:
                raise
            call.on_end(None, error)  # the function cancelled itself
        except BaseException as error:  # noqa: BLE001 - the task's thread raises it, whatever it is
            call.on_end(None, error)
        else:
            call.on_end(result, None)

    def _begin_stopping(self) -> None:
        self._is_stopping = True
        self._inbox.clear()
        loop = asyncio.get_running_loop()
        # This includes the tasks that the user's code has created.
        tasks = asyncio.all_tasks()
        for task in tasks:
            task.cancel()
        ended = asyncio.gather(*tasks, return_exceptions=True)
        ended.add_done_callback(lambda _: loop.stop())


T = TypeVar("T")


class Deadlines(Generic[T]):
    """Calls a function for each item that is not removed within a timeout.

    All timeouts are equally long, so items are due in the order in which they were added. Only the first item has a
    timer. Flink sets and cancels a timer per record.

    Args:
        clock: The clock and timers of the task.
        timeout_ms: The timeout of each item.
        on_due: Called with an item whose timeout has expired. The item is removed before.
    """

    def __init__(
        self, clock: ProcessingTimeService, timeout_ms: int, on_due: Callable[[T], None]
    ) -> None:
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._on_due = on_due
        self._due_at_ms: OrderedDict[T, int] = OrderedDict()
        self._timer: TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._due_at_ms)

    def add(self, item: T) -> None:
        """Starts the timeout of an item."""
        at_ms = self._clock.current_processing_time() + self._timeout_ms
        self._due_at_ms[item] = at_ms
        if self._timer is None:
            self._timer = self._clock.register_timer(at_ms, self._look)

    def remove(self, item: T) -> None:
        """Stops the timeout of an item."""
        self._due_at_ms.pop(item, None)

    def clear(self) -> None:
        """Forgets all items."""
        self._due_at_ms.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _look(self, now_ms: int) -> None:
        self._timer = None
        due = self._due_at_ms
        while due:
            item, at_ms = next(iter(due.items()))
            if at_ms > now_ms:
                # The item of the timer was removed. The first item now may have been added much later.
                self._timer = self._clock.register_timer(at_ms, self._look)
                return
            del due[item]
            self._on_due(item)


class PendingCall:
    """A call for a record, or for the records of a batch that still have no results.

    Flink: `ResultHandler`, and `RetryableResultHandlerDelegator` around it.
    """

    __slots__ = ("attempt", "is_done", "pause", "records", "running")

    def __init__(self, records: list[QueuedRecord]) -> None:
        self.records = records
        self.attempt = 1
        self.is_done = False
        self.running: RunningCall | None = None
        self.pause: TimerHandle | None = None
        """The timer of the next attempt, while the call waits for it."""

    @property
    def values(self) -> list[Any]:
        """The records of the call."""
        return [record.value for record in self.records]


class Invocation(Protocol):
    """How to call a function with up to `batch_size` records. Each record has its own results."""

    batch_size: int

    def argument(self, values: list[Any]) -> Any:
        """The arguments of the call for these records."""

    def call(self, argument: Any) -> Coroutine[Any, Any, Any]:
        """The coroutine of one attempt."""

    def results_of_call(self, returned: Any, argument: Any) -> Sequence[Iterable[Any]]:
        """The results of each record, from the return value of the coroutine.

        Raises:
            TypeError: The value is not iterable.
            ValueError: There are results for another number of records.
        """

    def results_in_place(self, argument: Any) -> Sequence[Iterable[Any]]:
        """The results of the function's `timeout`, which usually raises TimeoutError."""


class SingleInvocation:
    """An AsyncFunction, or a coroutine function in its place: called with a record."""

    batch_size = 1

    def __init__(self, function: Any) -> None:
        self._function: AsyncFunction[Any, Any] = as_function(AsyncFunction, function)
        self._invoke = self._function.async_invoke

    def argument(self, values: list[Any]) -> Any:
        """The record."""
        return values[0]

    def call(self, argument: Any) -> Coroutine[Any, Any, Any]:
        """See Invocation."""
        return self._invoke(argument)

    def results_of_call(self, returned: Any, argument: Any) -> Sequence[Iterable[Any]]:
        """See Invocation."""
        return [_results(returned, self._function, "async_invoke", argument)]

    def results_in_place(self, argument: Any) -> Sequence[Iterable[Any]]:
        """See Invocation."""
        return [_results(self._function.timeout(argument), self._function, "timeout", argument)]


class BatchInvocation:
    """An AsyncBatchFunction: called with a list of records."""

    def __init__(self, function: AsyncBatchFunction[Any, Any]) -> None:
        self._function = function
        self.batch_size = function.max_batch_size

    def argument(self, values: list[Any]) -> Any:
        """The records."""
        return values

    def call(self, argument: Any) -> Coroutine[Any, Any, Any]:
        """See Invocation."""
        return self._function.async_invoke_batch(argument)

    def results_of_call(self, returned: Any, argument: Any) -> Sequence[Iterable[Any]]:
        """See Invocation."""
        return self._each(returned, argument, "async_invoke_batch")

    def results_in_place(self, argument: Any) -> Sequence[Iterable[Any]]:
        """See Invocation."""
        return self._each(self._function.timeout(argument), argument, "timeout")

    def _each(self, returned: Any, values: list[Any], method: str) -> list[Sequence[Any]]:
        by_record = _results(returned, self._function, method, values)
        if len(by_record) != len(values):
            raise ValueError(
                f"'{name_of(self._function)}.{method}' returned results for {len(by_record)} records, but was called "
                f"with {len(values)}; it must return one iterable per record, in order"
            )
        return [
            _results(results, self._function, method, value)
            for results, value in zip(by_record, values, strict=True)
        ]


def invocation_of(function: Any) -> Invocation:
    """How a function is called."""
    if isinstance(function, AsyncBatchFunction):
        return BatchInvocation(function)
    return SingleInvocation(function)


def _results(returned: Any, function: Any, method: str, subject: Any) -> Sequence[Any]:
    if not isinstance(returned, Iterable):
        # The message begins as PyFlink's, because programs search for that text.
        what = "cannot be none" if returned is None else "should be of list type"
        raise TypeError(
            f"The result of AsyncFunction {what}, but '{name_of(function)}.{method}' returned "
            f"{short_repr(returned)} for {short_repr(subject)}; return an iterable, such as a list, also "
            "for one result or for none"
        )
    return returned if isinstance(returned, Sequence) else list(returned)
