"""A result that comes later, and may be given by anyone."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future, InvalidStateError
from typing import TYPE_CHECKING, Generic

from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from collections.abc import Callable


class CompletableFuture(Generic[T]):
    """A value, an error, or a cancellation: whichever comes first, and for good.

    Threads may race to complete it; exactly one wins and is told so.

    >>> future = CompletableFuture()
    >>> future.set_result(1), future.set_result(2), future.result()
    (True, False, 1)

    Flink: CompletableFuture of PyFlink, Java's CompletableFuture.

    Args:
        future: What to complete with; a new one if not given. That of an executor is completed by
            the executor.
    """

    def __init__(self, future: Future[T] | None = None) -> None:
        self._future: Future[T] = Future() if future is None else future

    @staticmethod
    def completed(value: T) -> CompletableFuture[T]:
        """One that has its value already."""
        future: CompletableFuture[T] = CompletableFuture()
        future.set_result(value)
        return future

    def cancel(self) -> bool:
        """Cancels, if nothing came yet; says whether this is cancelled now."""
        return self._future.cancel()

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._future.cancelled()

    def done(self) -> bool:
        """Whether it has a value or an error, or was cancelled."""
        return self._future.done()

    def set_result(self, result: T) -> bool:
        """Gives the value; says whether it was the first to come."""
        try:
            self._future.set_result(result)
        except InvalidStateError:
            return False
        return True

    def set_exception(self, exception: BaseException) -> bool:
        """Gives an error; says whether it was the first to come."""
        try:
            self._future.set_exception(exception)
        except InvalidStateError:
            return False
        return True

    def result(self, timeout: float | None = None) -> T:
        """Waits for the value.

        Args:
            timeout: At most this many seconds; without end if not given.

        Raises:
            concurrent.futures.CancelledError: It was cancelled.
            concurrent.futures.TimeoutError: Nothing came in time.
            BaseException: The error that it was completed with.
        """
        return self._future.result(timeout)

    def exception(self) -> BaseException | None:
        """The error; None if there is none, or nothing came yet. Does not wait."""
        if not self._future.done():
            return None
        try:
            return self._future.exception()
        except CancelledError as error:
            return error

    def add_done_callback(self, callback: Callable[[CompletableFuture[T]], object]) -> None:
        """Calls back with this future once it is done, in the thread that completes it."""
        self._future.add_done_callback(lambda _: callback(self))

    def __str__(self) -> str:
        if not self.done():
            return "CompletableFuture[not completed]"
        if self.exception() is not None:
            return f"CompletableFuture[completed with {self.exception()!r}]"
        return "CompletableFuture[completed]"
