"""Threads that run tasks, which a job can abandon if a user's function never returns.

Flink interrupts a task that does not react to its cancellation, and ends the process of a task that does not react to
the interrupt (`TaskCanceler`, `TaskInterrupter`). Python can raise an exception in a thread, but not while the thread
waits in C code, for example in `time.sleep`. Such a thread is abandoned: the job continues without it. It is a daemon,
so the process can exit.
"""

from __future__ import annotations

import contextvars
import ctypes
import logging
import queue
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any, TypeVar

from opchain.runtime.job.client import CompletableFuture
from opchain.runtime.job.run import HeldInterrupts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

_LOG = logging.getLogger("opchain.local")

ENDING_S = 5.0
"""The time in seconds for tasks to end when the job is stopped. Then they are interrupted."""

INTERRUPTED_S = 1.0
"""The time in seconds for an interrupted task to end. Then its thread is abandoned."""

_FRAMES_SHOWN = 4


class JobStoppedError(Exception):
    """The job was cancelled while it ran."""


def end_threads(threads: Sequence[threading.Thread], patience_s: float) -> None:
    """Waits until threads end. It interrupts them after `patience_s`, and abandons those that do not react."""
    _join(threads, patience_s)
    left = [thread for thread in threads if thread.is_alive()]
    for thread in left:
        _raise_in(thread, JobStoppedError)
    _join(left, INTERRUPTED_S)
    for thread in left:
        if thread.is_alive():
            _warn_of_abandoned(thread)


def _join(threads: Sequence[threading.Thread], longest_s: float) -> None:
    ends_at = time.monotonic() + longest_s
    for thread in threads:
        thread.join(max(0.0, ends_at - time.monotonic()))


class TaskThread:
    """Runs calls one after the other, in a thread of its own.

    Args:
        clean_up: Called in the thread after its last call.

    Attributes:
        is_abandoned: Whether a call did not end. The thread takes no more calls.
    """

    def __init__(self, clean_up: Callable[[], None]) -> None:
        self.is_abandoned = False
        self._clean_up = clean_up
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._current: _Call | None = None
        self._last_context = contextvars.Context()
        self._thread = threading.Thread(target=self._work, name="tasks", daemon=True)
        with HeldInterrupts():
            self._thread.start()

    def run(self, call: Callable[[], T]) -> T:
        """Runs a call in the thread, with the caller's context variables, and waits for it.

        Raises:
            BaseException: The exception of the call.
            JobStoppedError: The call did not end in time after `stop`.
        """
        context = contextvars.copy_context()
        self._current = current = _Call(lambda: context.run(call))
        self._calls.put(current)
        result: T = current.done.result()
        return result

    def stop(self, patience_s: float = ENDING_S) -> None:
        """Ends the current call: it is interrupted after `patience_s`, and abandoned if it still does not end.

        Returns at once.
        """
        current = self._current
        if current is not None:
            threading.Thread(
                target=self._end, args=(current, patience_s), name="end call", daemon=True
            ).start()

    def close(self) -> None:
        """Runs `clean_up` in the thread, and ends the thread. An abandoned thread does both after its call."""
        self._last_context = contextvars.copy_context()
        self._calls.put(None)
        if not self.is_abandoned:
            self._thread.join()

    def _end(self, call: _Call, patience_s: float) -> None:
        if call.ended.wait(patience_s):
            return
        _raise_in(self._thread, JobStoppedError)
        if call.ended.wait(INTERRUPTED_S):
            return
        self.is_abandoned = True
        _warn_of_abandoned(self._thread)
        call.done.set_exception(JobStoppedError())

    def _work(self) -> None:
        while True:
            try:
                call = self._calls.get()
                if call is None:
                    break
                call.run()
            except JobStoppedError:  # an interrupt that arrived after its call had ended
                continue
        self._last_context.run(self._clean_up)


class _Call:
    """A call and its result."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self.done: CompletableFuture[Any] = CompletableFuture()
        self.ended = threading.Event()

    def run(self) -> None:
        """Runs the call. Its result is dropped if the call was abandoned."""
        try:
            result = self._call()
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            self.done.set_exception(error)
        else:
            self.done.set_result(result)
        finally:
            self.ended.set()


def _raise_in(thread: threading.Thread, error: type[Exception]) -> None:
    """Raises an exception in another thread, before its next bytecode."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident or 0), ctypes.py_object(error)
    )


def _warn_of_abandoned(thread: threading.Thread) -> None:
    frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001 - documented
    _LOG.warning(
        "a function does not return, and Python cannot interrupt it. The job ends without its thread '%s', which runs "
        "until the function returns or the process exits. The function is here:\n%s",
        thread.name,
        "" if frame is None else "".join(traceback.format_stack(frame, _FRAMES_SHOWN)),
    )
