"""A thread with an asyncio event loop, on which the calls of one operator run.

One loop for all calls of an operator: an AsyncFunction may share a client, a lock or a semaphore between
them, as asyncio programs do.
"""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Invoke = Callable[[], Coroutine[Any, Any, Any]]
    OnEnd = Callable[[Any, BaseException | None], None]

STOPPING_S = 10.0
"""How long cancelled calls get to clean up behind them."""


class RunningCall:
    """One call on its way; `cancel` makes sure that its end is not reported."""

    __slots__ = ("_loop", "invoke", "is_cancelled", "on_end", "task")

    def __init__(self, loop: asyncio.AbstractEventLoop, invoke: Invoke, on_end: OnEnd) -> None:
        self._loop = loop
        self.invoke = invoke
        self.on_end = on_end
        self.is_cancelled = False
        self.task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        """Raises CancelledError in the call; does nothing when it has ended. From any thread."""
        self.is_cancelled = True
        self._loop.call_soon_threadsafe(self._cancel_task)

    def _cancel_task(self) -> None:
        if self.task is not None:
            self.task.cancel()


class EventLoopThread:
    """Runs coroutines from `start` to `stop`.

    Args:
        name: What a thread dump shows, and the warning of `stop`.
        threads: How many blocking calls may run at once through `asyncio.to_thread`.
    """

    def __init__(self, name: str, threads: int) -> None:
        self._name = name
        self._threads = threads
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pool: ThreadPoolExecutor | None = None
        # Filled by the task's thread, emptied by the loop's: one wake-up serves all that has gathered.
        self._inbox: deque[RunningCall] = deque()
        self._is_woken = False
        self._is_stopping = False
        # A loop holds its tasks weakly.
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Starts the thread."""
        self._loop = asyncio.new_event_loop()
        self._pool = ThreadPoolExecutor(self._threads, f"{self._name} blocking call")
        self._loop.set_default_executor(self._pool)
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def submit(self, invoke: Invoke, on_end: OnEnd) -> RunningCall:
        """Runs the coroutine that `invoke` makes.

        Args:
            invoke: Called on the loop.
            on_end: Called on the loop with the result and None, or with None and the error, whatever
                its kind; not for a call that was cancelled.
        """
        assert self._loop is not None, "submit comes after start"
        call = RunningCall(self._loop, invoke, on_end)
        self._inbox.append(call)
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._take_inbox)
        return call

    def stop(self) -> None:
        """Cancels what is running, and ends the thread.

        A call that does not react is left behind with a warning, and so is a blocking call on a thread
        of the pool: Python cannot end either.
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

    def _run(self) -> None:
        assert self._loop is not None
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()

    def _take_inbox(self) -> None:
        # Lowered first: a call that comes in meanwhile is seen below, or wakes the loop again.
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
        # Those that the user's code made too.
        tasks = asyncio.all_tasks()
        for task in tasks:
            task.cancel()
        ended = asyncio.gather(*tasks, return_exceptions=True)
        ended.add_done_callback(lambda _: loop.stop())
